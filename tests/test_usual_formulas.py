"""The usual formulas: each mistake has the factor that its own arithmetic gives, on shapes written out here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lantern_lib.memory_report import FORMATS, PoolRow, read_pools
from lantern_lib.model_config import LANTERN_70B
from lantern_lib.models import find_model, public_models
from lantern_lib.usual_formulas import LOG_MISTAKES, MISTAKES, fitting_plan, wrong_formulas, wrong_on_log

POOLS = Path(__file__).resolve().parent.parent / "book" / "data" / "kv_pools.csv"


def factor(name: str, key: str, context_len: int = 8192) -> float:
    (found,) = [w for w in wrong_formulas(find_model(name), context_len) if w.mistake.key == key]
    return found.factor


@pytest.mark.parametrize(
    ("name", "key", "expected"),
    [
        ("Llama-3-70B", "heads", 64 / 8),
        ("Llama-3-70B", "width", 8192 / (8 * 128)),
        ("Qwen2.5-7B", "width", 3584 / (4 * 128)),  # a thread's seven, times a four that nobody explains
        ("Qwen1.5-72B", "heads", 1.0),
        ("Falcon-7B", "heads", 71.0),  # one key-value head
        ("Qwen3-32B", "division", 5120 / 64 / 128),
        ("DeepSeek-V3", "heads", 128 * (128 + 64 + 128) / 576),
        ("DeepSeek-V3", "width", 2 * 7168 / 576),
        ("DeepSeek-V3", "ranks", 1 / 8),  # a latent is not divided
        ("Llama-3-70B", "ranks", 1.0),
        ("Qwen2.5-7B", "ranks", 1 / 2),  # four heads on eight cards
        ("Llama-3-70B", "bytes", 1 / 2),
        ("gpt-oss-120b", "windows", 2 * 8192 / (8192 + 128)),
        ("gpt-oss-120b", "windows-131072", 2 * 131_072 / (131_072 + 128)),
        ("Mixtral-8x7B", "active", 12_879_925_248 / 46_702_792_704),  # published totals
    ],
)
def test_a_factor_is_that_of_its_own_arithmetic(name: str, key: str, expected: float) -> None:
    key, _, context = key.partition("-")
    assert factor(name, key, int(context or 8192)) == pytest.approx(expected, rel=1e-6)


def test_a_mistake_that_a_model_gives_no_occasion_for_is_left_out() -> None:
    keys = {wrong.mistake.key for wrong in wrong_formulas(LANTERN_70B)}
    assert keys == {"heads", "width", "division", "ranks", "bytes", "reserve", "decimal"}
    assert "division" not in {wrong.mistake.key for wrong in wrong_formulas(find_model("DeepSeek-V3"))}
    assert "recurrent" in {wrong.mistake.key for wrong in wrong_formulas(find_model("Qwen3-Next-80B-A3B"))}


def test_every_mistake_is_made_on_some_model_and_none_twice() -> None:
    made = set()
    for entry in public_models().values():
        keys = [wrong.mistake.key for wrong in wrong_formulas(entry.model)]
        assert keys == sorted(keys, key=[m.key for m in MISTAKES].index)
        assert len(keys) == len(set(keys))
        made.update(keys)
    assert made == {mistake.key for mistake in MISTAKES}


def test_bits_times_parameters_forgets_scales_and_tables() -> None:
    """A 70B of 8 bits: 70.55 GB by bits, and two bytes for each number of both tables in truth."""
    model = replace(find_model("Llama-3-70B"), storage=FORMATS["fp8"])
    (found,) = [w for w in wrong_formulas(model) if w.mistake.key == "bits"]
    tables = 2 * 128_256 * 8192
    assert found.said == 70_553_706_496
    assert found.right - found.said == pytest.approx(tables, rel=0.02)


def test_the_reserve_is_all_that_no_reserve_forgets() -> None:
    plan = fitting_plan(LANTERN_70B)
    assert plan is not None
    (found,) = [w for w in wrong_formulas(LANTERN_70B) if w.mistake.key == "reserve"]
    forgotten = plan.activation.value + plan.runtime.value + plan.graphs.value + plan.rotary.value
    assert found.said - found.right == pytest.approx(forgotten)


def test_a_model_too_large_for_eight_cards_has_no_pool() -> None:
    assert fitting_plan(find_model("Kimi-K2")) is None
    assert not {"reserve", "decimal"} & {wrong.mistake.key for wrong in wrong_formulas(find_model("Kimi-K2"))}


def row_of(log: str) -> PoolRow:
    (row,) = [row for row in read_pools(POOLS) if row.id == log]
    return row


def test_a_log_of_two_cards_is_read_wrongly_by_half() -> None:
    """A 14B with 40 query heads and 8 key-value heads on two cards."""
    found = {wrong.mistake.key: wrong.factor for wrong in wrong_on_log(row_of("kv19"))}
    assert found["group"] == 0.5
    assert found["heads"] == pytest.approx(8 / 40)
    assert found["width"] == pytest.approx(8 * 128 / 5120)


def test_shortcuts_to_a_pool_fall_in_one_order_and_a_flagged_log_is_not_used() -> None:
    for row in read_pools(POOLS):
        found = {wrong.mistake.key: wrong.said for wrong in wrong_on_log(row)}
        if row.flag or not row.model:
            assert found == {}
        if found:
            assert found["all"] >= found["rest"] >= found["reserve"]
            assert [m.key for m in LOG_MISTAKES if m.key in found] == list(found)


def test_a_context_must_be_a_number_of_tokens() -> None:
    with pytest.raises(ValueError, match="^context_len must be a whole number of 1 or more, got 0"):
        wrong_formulas(LANTERN_70B, 0)
