"""Floors of published runs, against sums made by others and loops."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lantern_lib import transformer
from lantern_lib.loose_floors import loose_floor
from lantern_lib.measurements import MODELS, WORK, Measurement, floor, left_out, read_measurements

TABLE = Path(__file__).resolve().parent.parent / "book" / "data" / "measured.csv"
ONE = Measurement("m", "a log", "", "Llama-2-70B", "H100", "fp16", "vLLM", 4, 1, 512, 0, 512, "tpot", 0.0297)
#: What the publishers of the weights count. Two totals hold saved rotary buffers, which no step reads.
TOTALS = {
    "Llama-2-7B": 6_738_417_664 - 2_048,
    "Llama-2-70B": 68_976_653_312 - 5_120,
    "Llama-3-8B": 8_030_261_248,
    "Llama-3.1-405B": 405_853_388_800,
    "Mistral-7B": 7_241_732_096,
    "Qwen2.5-7B": 7_615_616_512,
    "Qwen2.5-72B": 72_706_203_648,
    "Qwen3-1.7B": 1_720_574_976,
}
#: The bandwidth of one card that gpt-fast's README prints beside its tokens per second [GB/s].
GPT_FAST = {
    "x25": 1397.31,
    "x26": 1069.20,
    "x28": 1181.99,
    "x29": 955.83,
    "x30": 704.10,
    "x32": 1340.76,
    "x33": 1135.29,
    "x34": 752.04,
    "x36": 1322.58,
}


def rows() -> dict[str, dict[str, str]]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def by_id() -> dict[str, Measurement]:
    return {one.id: one for one in read_measurements(TABLE)}


@pytest.mark.parametrize(("name", "total"), TOTALS.items())
def test_the_shapes_have_the_published_totals(name: str, total: int) -> None:
    assert transformer.parameters(MODELS[name]).total == total


def test_the_experts_are_those_of_the_published_totals() -> None:
    """Mixtral by its matrices: eight experts of three, attention, router, norms, output table."""
    width, kv = 4096, 8 * 128
    expert, attention = 3 * width * 14336, 2 * width * (width + kv)
    shared = 32 * (attention + 8 * width + 2 * width) + width + 32000 * width
    count = transformer.parameters(MODELS["Mixtral-8x7B"])
    assert count.streamed == shared + 32 * 8 * expert
    assert count.active - count.embedding == shared + 32 * 2 * expert
    assert count.experts == 32 * 8 * expert


def test_the_table_is_the_public_one_without_grade_c(outside: Callable[[str], Path]) -> None:
    same = {
        "model": "model",
        "card": "gpu",
        "tp": "tp",
        "precision": "precision",
        "engine": "engine",
        "batch": "concurrency_or_batch",
        "prompt_tokens": "prompt_tokens",
        "output_tokens": "output_tokens",
        "metric": "metric",
        "value": "value",
        "unit": "unit",
        "grade": "grade",
    }
    with outside("truth/measured.csv").open(encoding="utf-8", newline="") as file:
        public = {row["id"]: row for row in csv.DictReader(file) if row["grade"] in "AB"}
    ours = rows()
    assert list(ours) == list(public)
    for key, row in public.items():
        assert {ours_: ours[key][ours_] for ours_ in same} == {ours_: row[theirs] for ours_, theirs in same.items()}
        assert row["source"].startswith(ours[key]["source"])


def test_floors_agree_with_a_second_computation(outside: Callable[[str], Path]) -> None:
    """Its ratios are rounded to three places; of whole requests it counts one decode step more."""
    found = by_id()
    compared = 0
    with outside("truth/measured.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["id"] in found and row["ratio_floor_to_measured"]:
                one = found[row["id"]]
                ratio = floor(one).mbu if row["ratio_kind"] == "MBU" else floor(one).mfu
                assert ratio == pytest.approx(float(row["ratio_floor_to_measured"]), abs=0.003), one.summary
                if one.work != "both":
                    assert ratio == pytest.approx(float(row["ratio_floor_to_measured"]), abs=0.0011), one.summary
                compared += 1
    assert compared == 61


@pytest.mark.parametrize(("key", "gigabytes"), GPT_FAST.items())
def test_the_source_counts_the_same_weights(key: str, gigabytes: float) -> None:
    """gpt-fast prints its bandwidth, so bandwidth over tokens per second is what it takes a card to read: its share of
    the layers, and the output table whole. With several cards or 8-bit weights it adds the input table, in 16 bits."""
    one = by_id()[key]
    count, each = transformer.parameters(MODELS[one.model]), one.shape.weight_bytes
    layers = (count.attention + count.feed_forward + count.norms) * each
    tables = count.head * each + (2 * count.embedding if one.tp_size > 1 or each < 2 else 0)
    assert layers / one.tp_size + tables == pytest.approx(gigabytes * 1e9 * one.measured_seconds, rel=0.01)
    # A floor lets the cards share the output table too, and adds the cache of a short context.
    assert floor(one).memory_seconds * one.replica.bandwidth == pytest.approx(layers + count.head * each, rel=0.01)


def test_every_row_is_used_or_says_why_not() -> None:
    ours = rows()
    for row in ours.values():
        assert row["source"], row["id"]
        assert row["url"].startswith("https://") or "benchmark" in row["source"], row["id"]
        assert (row["status"] == "used") == (not row["reason"]), row["id"]
    assert {row["status"] for row in ours.values()} == {"used", "rejected", "left out"}
    assert sum(left_out(TABLE).values()) + len(read_measurements(TABLE)) == len(ours)


def test_only_the_rejected_series_beats_its_floor() -> None:
    """Prompts of 2,048 tokens after one of 1,024: what a prefix cache has seen is not computed again."""
    shares = {key: floor(one).share for key, one in by_id().items()}
    assert [key for key, share in shares.items() if share > 1] == ["x92"]
    assert {key for key, one in by_id().items() if one.rejected} == {"x92", "x93", "x94"}
    assert all(0.1 < share < 0.9 for key, share in shares.items() if not by_id()[key].rejected)


def test_every_public_row_has_a_floor_or_a_reason(outside: Callable[[str], Path]) -> None:
    """Without lengths the weights of a step, or the operations of a token. No time is below its floor but x92."""
    found, reasons, below = by_id(), {}, []
    with outside("truth/measured.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["grade"] not in "AB":
                continue
            loose = loose_floor(row | {"card": row["gpu"], "batch": row["concurrency_or_batch"]})
            share = floor(found[row["id"]]).share if row["id"] in found else loose.share
            if share is None:
                reasons[row["id"]] = loose.what
            elif share > 1:
                below.append(row["id"])
            if row["id"] in found and loose.share is not None and found[row["id"]].work != "both":
                assert loose.share <= share * (1 + 1e-9), row["id"]
    assert below == ["x92"]
    assert set(reasons) == {"x37", "x96", "x133", "x134"}
    assert all(reasons.values())


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"card": "n/s"}, "the card is not named"),
        ({"model": "Llama-9"}, "the shape or its format is not known"),
        ({"precision": "int3"}, "the shape or its format is not known"),
        ({"model": "Llama-2-70B int4 + 7B int4 draft"}, "several tokens a step, and how many is not said"),
        ({"metric": "happiness"}, "happiness has no floor without lengths"),
    ],
)
def test_a_loose_floor_says_why_there_is_none(changes: dict[str, str], what: str) -> None:
    row = {"model": "Llama-3-8B", "card": "H100", "tp": "1", "precision": "bf16", "batch": "1"}
    row |= {"metric": "tpot", "value": "10", "unit": "ms"}
    assert loose_floor(row).share == pytest.approx(2 * (8_030_261_248 - 525_336_576) / 3.35e12 / 0.01)
    assert loose_floor(row | changes).what == what
    assert loose_floor(row | changes).share is None


def test_whole_requests_are_the_sum_of_their_steps() -> None:
    one = replace(ONE, model="Llama-3-8B", metric="output_throughput", tp_size=1, value=1000.0)
    one = replace(one, batch_size=3, prompt_len=20, output_len=5)
    model, peak = MODELS["Llama-3-8B"], 989e12
    flops = transformer.prompt_flops(model, 20).total
    moved = 2 * transformer.parameters(model).streamed
    for i in range(1, 5):
        flops += transformer.token_flops(model, 20 + i).total
        moved += 2 * transformer.parameters(model).streamed + 3 * (20 + i) * 131072
    least = floor(one)
    assert least.compute_seconds == pytest.approx(3 * flops / peak)
    assert least.memory_seconds == pytest.approx(moved / 3.35e12)
    assert least.measured_seconds == pytest.approx(15 / 1000)
    assert floor(replace(one, batch_size=None)).memory_seconds == 0
    short = replace(one, output_len=1, batch_size=1)
    assert floor(short).compute_seconds == pytest.approx(transformer.prompt_flops(model, 20).total / peak)


def test_a_step_of_experts_reads_the_chosen_ones_and_everything_shared() -> None:
    """One token of Mixtral: two experts of eight; with a large batch all of them."""
    one = replace(ONE, model="Mixtral-8x7B", tp_size=1)
    shared, expert, cache = 1_605_636_096 - 131_072_000, 32 * 3 * 4096 * 14336, 512 * 131072
    assert floor(one).memory_seconds * 3.35e12 == pytest.approx(2 * (shared + 2 * expert) + cache, rel=1e-6)
    many = floor(replace(one, batch_size=500))
    assert many.memory_seconds * 3.35e12 == pytest.approx(2 * (shared + 8 * expert) + 500 * cache, rel=1e-6)
    attention = 4 * 32 * 32 * 128 * 512
    assert floor(one).compute_seconds * 989e12 == pytest.approx(2 * (shared + 2 * expert) + attention, rel=1e-3)


def test_eight_bit_models_compute_with_eight_bit_units() -> None:
    prompt = replace(ONE, metric="ttft", prompt_len=4096)
    assert floor(prompt).compute_seconds / floor(replace(prompt, precision="fp8")).compute_seconds == pytest.approx(
        1979 / 989
    )
    # Stored in 8 bits, computed in 16.
    assert floor(replace(prompt, precision="int8")).compute_seconds == floor(prompt).compute_seconds


def test_metrics_are_turned_into_seconds() -> None:
    assert replace(ONE, metric="single_stream_decode", value=50.0).measured_seconds == pytest.approx(0.02)
    assert replace(ONE, metric="batch_latency", value=2.0, output_len=100).measured_seconds == pytest.approx(0.02)
    assert set(WORK.values()) == {"decode", "prefill", "both"}


@pytest.mark.parametrize(
    ("field", "bad", "message"),
    [
        ("model", "Llama-9", "^model must be one of Llama-7B, .*got 'Llama-9'"),
        ("card", "H1000", "^card must be one of"),
        ("precision", "int3", "^precision must be one of"),
        ("metric", "speed", "^metric must be one of"),
        ("tp_size", 0, "^tp_size must be"),
        ("value", 0.0, "^value must be"),
        ("prompt_len", -1, "^prompt_len must be"),
        ("batch_size", 0, "^batch_size must be"),
        ("batch_size", None, "^batch_size and context_len must be known for tpot"),
        ("context_len", 0, "^batch_size and context_len must be known for tpot"),
    ],
)
def test_a_measurement_refuses_what_it_does_not_know(field: str, bad: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(ONE, **{field: bad})
