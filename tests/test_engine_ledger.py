"""The measured engine: its table is plausible, no step undercuts its floor, and the script plans and resumes."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lantern_lib import transformer
from lantern_lib.engine_ledger import (
    COLUMNS,
    KINDS,
    NUM_WEIGHTS,
    UNITS,
    EngineRow,
    best_rows,
    floor_of,
    gemma_270m,
    machine_of,
    read_engine_rows,
)

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "book" / "data" / "engine_cpu.csv"
ROWS = read_engine_rows(TABLE)
BEST = best_rows(ROWS)
STEP = EngineRow("decode", "Q8_0", 1, 1, 1, 128, 0, 0, 0.0, "greedy", 0.02, 0.03, "s", 50, 1.0, 285_018_624)
RATES = [
    EngineRow("bandwidth", "", 1, 1, 0, 0, 0, 0, 0.0, "read", 1e10, 9e9, "bytes/s", 9, 1.0, 0),
    EngineRow("arithmetic", "", 1, 1, 0, 0, 0, 0, 0.0, "multiply", 5e10, 4e10, "FLOPs/s", 9, 1.0, 0),
]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import engine
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return engine


def bits(name: str) -> float:
    """What a weight takes by the format's definition: blocks of 32 numbers with one 16-bit scale."""
    return {"F16": 16, "Q8_0": 8 + 16 / 32, "Q4_0": 4 + 16 / 32}[name]


def test_the_shape_has_as_many_weights_as_the_file() -> None:
    assert transformer.parameters(gemma_270m(1.0)).total == NUM_WEIGHTS


@pytest.mark.parametrize("name", ["F16", "Q8_0", "Q4_0"])
def test_the_files_hold_what_their_formats_say(name: str) -> None:
    count = transformer.parameters(gemma_270m(1.0))
    (found,) = {row.weight_bytes for row in ROWS if row.format == name}
    assert found == (NUM_WEIGHTS - count.norms) * bits(name) / 8 + 4 * count.norms


def test_the_table_has_every_kind_and_both_thread_counts() -> None:
    assert {row.kind for row in ROWS} == set(KINDS)
    for kind in ("bandwidth", "arithmetic", "decode", "prefill"):
        assert {row.threads for row in ROWS if row.kind == kind} >= {1, 2}


def test_times_and_rates_are_those_of_a_computer() -> None:
    plausible = {"bytes/s": (1e9, 1e12), "FLOPs/s": (1e9, 1e13), "tokens/s": (0.1, 1e5), "s": (1e-4, 600)}
    for row in ROWS:
        low, high = plausible[row.unit]
        assert low < row.value < high, row
        if row.kind in UNITS:
            assert row.median <= row.value
        else:
            assert row.median >= row.value
        assert row.processor
        assert row.memory_bytes > 1e9
        assert row.date.startswith("20")
        assert row.load_average >= 0


@pytest.mark.parametrize("row", [row for row in BEST if row.kind in ("decode", "prefill", "cache")], ids=str)
def test_no_step_undercuts_its_floor(row: EngineRow) -> None:
    assert row.value >= floor_of(row, machine_of(BEST, row.threads)).total_seconds


def test_the_floor_of_a_step_is_its_bytes_over_the_bandwidth() -> None:
    machine = machine_of(RATES, 1)
    cache = 128 * 18 * 2 * 256 * 2
    assert floor_of(STEP, machine).memory_seconds == pytest.approx((285_018_624 + cache) / 1e10)


def test_a_prompt_pays_the_output_matrix_once() -> None:
    prompt = replace(STEP, kind="prefill", batch_size=0, context_len=0, prompt_len=64, case="")
    blocks = 29_491_200 + 70_778_880
    attention = 18 * 4 * 4 * 256 * (64 * 65 // 2)
    expected = 2 * 64 * blocks + 2 * 262_144 * 640 + attention
    assert floor_of(prompt, machine_of(RATES, 1)).flops == expected


def test_what_is_cached_is_not_computed_again() -> None:
    whole = replace(STEP, kind="cache", batch_size=0, context_len=0, prompt_len=64, case="off")
    rest = replace(whole, num_cached_tokens=60)
    machine = machine_of(RATES, 1)
    assert floor_of(rest, machine).flops < floor_of(whole, machine).flops / 4


def test_repeats_keep_the_best_of_their_direction() -> None:
    merged = best_rows([STEP, replace(STEP, value=0.03), RATES[0], replace(RATES[0], value=2e10)])
    assert [(row.value, row.count) for row in merged] == [(0.02, 100), (2e10, 18)]
    load = replace(STEP, kind="load", case="ttft, median")
    assert [row.value for row in best_rows([load, replace(load, value=9.0)])] == [9.0]


def test_two_machines_are_not_one() -> None:
    with pytest.raises(ValueError, match=r"^processor must be one"):
        best_rows([STEP, replace(STEP, processor="another")])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "decoding"}, r"^kind must be one of"),
        ({"unit": "ms"}, r"^unit must be s or tokens/s for decode, got 'ms'"),
        ({"value": 0.0}, r"^value must be positive"),
        ({"value": float("nan")}, r"^value must be positive"),
        ({"threads": 0}, r"^threads must be"),
    ],
)
def test_a_bad_row_is_refused_by_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(STEP, **change)


def test_a_bad_file_is_refused_by_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    values = [str(value) for value in asdict(STEP).values()]
    path.write_text("\n".join([",".join(COLUMNS), ",".join(values), ",".join(["oven", *values[1:]])]), encoding="utf-8")
    with pytest.raises(ValueError, match=r"^line 3 of rows.csv: kind must be one of"):
        read_engine_rows(path)
    path.write_text("kind,value\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"^columns must include .*batch_size"):
        read_engine_rows(path)


def test_floors_exist_only_for_steps_and_measured_threads() -> None:
    with pytest.raises(ValueError, match=r"^kind must be decode, prefill or cache"):
        floor_of(replace(STEP, kind="load"), machine_of(RATES, 1))
    with pytest.raises(ValueError, match=r"^threads must be one that bandwidth"):
        machine_of(RATES, 2)


def test_rows_are_written_as_they_are_read(script: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    for row in (STEP, RATES[0]):
        script.append(path, row)
    assert read_engine_rows(path) == [STEP, RATES[0]]


def test_the_plan_is_done_when_its_rows_are_there(script: ModuleType) -> None:
    tasks = script.plan(["F16", "Q8_0"], [1, 2])
    assert len(set(tasks)) == len(tasks)
    (first,) = [task for task in tasks if task.answers(STEP)]
    assert (first.kind, first.format, first.threads) == ("decode", "Q8_0", 1)
    assert not any(task.answers(replace(STEP, format="Q4_0")) for task in tasks)
    assert not any(task.answers(replace(STEP, context_len=7)) for task in tasks)


def test_the_whole_plan_has_its_rows_in_the_table(script: ModuleType) -> None:
    from engine_files import FORMATS

    missing = [task for task in script.plan(FORMATS, [1, 2]) if not any(task.answers(row) for row in ROWS)]
    assert missing == []


def test_gaps_are_between_tokens_of_the_engines_clock(script: ModuleType) -> None:
    messages = [{"tokens": [1], "timings": {"predicted_ms": at}} for at in (0.5, 20.5, 50.5)]
    assert script.engine_runs.gaps([*messages, {"tokens": [], "stop": True}]) == pytest.approx([0.02, 0.03])


def test_prompts_share_nothing_but_their_start(script: ModuleType) -> None:
    one, other = (script.engine_runs.some_tokens(64, seed) for seed in (1, 2))
    assert len(one) == len(other) == 64
    assert one[0] == other[0]
    assert not set(one[1:]) & set(other[1:])


def test_the_script_without_its_extra_says_what_to_install(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(script, "PACKAGES", ("no-such-engine",))
    monkeypatch.setattr(sys, "argv", ["engine.py", "--out", str(tmp_path / "rows.csv")])
    script.machine.cache_clear()
    assert script.main() == 2
    assert 'pip install -e ".[engine]"' in capsys.readouterr().err
