"""The committed sweeps are what the programs make of them, and the workbench runs without a screen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lantern_lib.book_data import write_data
from lantern_lib.metrics import Slo
from lantern_lib.simulator import truth
from lantern_lib.simulator.segments import Segments
from lantern_lib.studies import bench, capstone, designs, desks
from lantern_lib.workload import summary
from lantern_lib.workload.gaps import cache_use, call_columns

DATA = Path(__file__).resolve().parent.parent / "book/data"


def load(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


GRID, SWEEP, DESKS, RUNS = load("workbench"), load("designs"), load("desks"), load("vllm_runs")
AGENTS = load("traces")["agents"]


@pytest.mark.parametrize("number", [0, 17, 31, 53])
def test_a_sample_of_the_grid_is_recomputed(number: int) -> None:
    row = GRID["settings"][number]
    setting = bench.Setting(*(row[name] for name in ("chunk", "max_batch", "hit_percent", "draft_len")))
    for place in (1, 6):
        run = bench.measure(setting, GRID["rates"][place])
        assert round(run.ttft.p95 * 1e3) == row["ttft"][place]
        assert round(run.tpot.p95 * 1e4) == row["tpot"][place]


def test_the_grid_is_whole_and_small() -> None:
    assert GRID["rates"] == list(bench.RATES)
    assert [vars(setting) for setting in bench.grid()] == [
        {k: row[k] for k in ("chunk", "max_batch", "hit_percent", "draft_len")} for row in GRID["settings"]
    ]
    # Every file that a study writes is small enough to read in a diff; how many there are is another matter.
    assert max(file.stat().st_size for file in DATA.glob("*.json")) < 20_000


def test_a_hit_is_really_found() -> None:
    """Half of 2,000 tokens is 62 whole blocks, and every prompt but the first has them."""
    setting = bench.Setting(hit_percent=50)
    work = setting.work(2, minutes=1)
    assert sum(Segments(work).sizes) == 62
    assert bench.simulate(work, setting.engine()).cached_len[1:].tolist() == [62 * 16] * (len(work) - 1)


def test_a_promise_is_kept_up_to_the_rate_before_the_first_that_misses_it() -> None:
    promise = Slo(ttft_seconds=1.0, tpot_seconds=0.1)
    assert bench.kept_up_to((1, 2, 3), (0.5, 2.0, 0.5), (0.0, 0.0, 0.0), promise) == 1
    assert bench.kept_up_to((1, 2), (2.0, 0.5), (0.0, 0.0), promise) == 0
    with pytest.raises(ValueError, match="promise must have both limits"):
        bench.kept_up_to((1,), (1.0,), (1.0,), Slo(ttft_seconds=1.0))
    with pytest.raises(ValueError, match="hit_percent must be 0 to 99"):
        bench.Setting(hit_percent=100)
    with pytest.raises(ValueError, match="setting must be one of the grid"):
        bench.row_of(GRID, bench.Setting(max_batch=7))


@pytest.mark.parametrize(
    ("name", "prompt_len", "place"),
    [("separate", 8000, 3), ("chunked-512", 4000, 2), ("pools-6", 8000, 4), ("free", 8000, 1)],
)
def test_a_sample_of_the_designs_is_recomputed(name: str, prompt_len: int, place: int) -> None:
    (row,) = [row for row in SWEEP if (row["design"], row["prompt_len"]) == (name, prompt_len)]
    (design,) = [design for design in designs.designs() if design.name == name]
    run = designs.measure(design, prompt_len, row["rates"][place])
    assert (run.ttft.p95, run.tpot.p95) == pytest.approx((row["ttft"][place], row["tpot"][place]), rel=1e-3)


def test_the_highest_rate_is_where_the_first_limit_is_reached() -> None:
    rates = (1.0, 2.0, 3.0)
    assert designs.highest_rate(rates, (0.1, 0.1, 0.1), (0.01, 0.02, 0.03), 1.0, 1.0) == 3.0
    assert designs.highest_rate(rates, (5.0, 6.0, 7.0), (0.01, 0.02, 0.03), 1.0, 1.0) == 0.0
    # 0.1 to 10 in one step of the rate: 1 is half-way on the line of logarithms.
    assert designs.highest_rate(rates, (0.1, 10.0, 99.0), (0.01, 0.01, 0.01), 1.0, 1.0) == pytest.approx(1.5)


@pytest.mark.parametrize(("count", "cache"), [(4, "none"), (12, "pool"), (16, "host")])
def test_a_sample_of_the_agents_is_recomputed(count: int, cache: str) -> None:
    (row,) = [r for r in DESKS if (r["seed"], r["agents"], r["cache"]) == (desks.SEEDS[0], count, cache)]
    assert desks.measure(AGENTS, count, cache) == {k: v for k, v in row.items() if k not in ("seed", "agents", "cache")}


def test_every_draw_falls_off_the_cliff_between_twelve_and_twenty_four_agents() -> None:
    for seed in desks.SEEDS:
        found = {r["agents"]: r["found"] for r in DESKS if r["seed"] == seed and r["cache"] == "pool"}
        assert found[12] > 0.9
        assert found[24] < 0.01


def test_drawn_sessions_have_the_quantiles_they_are_drawn_from() -> None:
    generator = np.random.default_rng(8)
    calls = call_columns([desks.draw_session(AGENTS, generator) for _ in range(1500)])
    for name, values in (
        ("output_len", calls.output_len),
        ("gap_seconds", calls.gap_seconds[calls.later]),
        ("first_prompt_len", calls.prompt_len[calls.turn == 0]),
    ):
        for share in ("0.25", "0.5", "0.9"):
            few = name == "first_prompt_len"
            assert np.quantile(values, float(share)) == pytest.approx(AGENTS[name][share], rel=0.25 if few else 0.06)
    late = cache_use(calls, 300).lost_calls / calls.later.sum()
    assert late == pytest.approx(36 / 649, rel=0.1)


def test_a_cache_is_one_of_three() -> None:
    with pytest.raises(ValueError, match="cache must be one of none, pool, host"):
        desks.engine("disk")


def test_the_committed_comparison_is_recomputed_from_the_logs(outside: Callable[[str], Path]) -> None:
    folder = outside("traces/vllm").parent
    assert json.loads(json.dumps(truth.summarise(folder, RUNS["sources"]["vllm"]["date"]))) == RUNS


def test_the_half_that_was_not_fitted_is_within_five_percent() -> None:
    for run in RUNS["runs"].values():
        for measure in ("tpot", "makespan"):
            assert run["settings"]["fit"][measure] == pytest.approx(run["measured"][measure], rel=0.05)


def test_the_caches_of_the_engine_and_of_the_statistics_agree() -> None:
    """The one plays an engine and the other counts distances; partial last blocks are in the second only."""
    curve = dict(load("traces")["mooncake"]["reuse"]["lru"])
    for blocks, share in RUNS["mooncake"]["lru"]:
        near = min(curve, key=lambda tokens: abs(tokens - 512 * blocks))
        if abs(near / (512 * blocks) - 1) < 0.03:
            assert share == pytest.approx(curve[near], abs=0.01)


@pytest.mark.parametrize("program", [bench, capstone, designs, desks, truth, summary])
def test_a_program_says_what_it_needs(program: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main([]) == 2
    assert f"Usage: python -m {program.__name__} " in capsys.readouterr().out


def no_traces() -> str:
    raise ValueError("no traces")


def test_a_program_computes_from_its_other_arguments_and_writes_where_it_is_told(tmp_path: Path) -> None:
    out = tmp_path / "made.json"
    assert write_data("any FIRST OUT SECOND", ["1", str(out), "2"], lambda first, second: f"{first}, {second}") == 0
    assert out.read_text(encoding="utf-8") == "1, 2"
    with pytest.raises(ValueError, match="no traces"):
        write_data("any OUT", [str(out)], no_traces)
    assert out.read_text(encoding="utf-8") == "1, 2", "a program that fails leaves the file as it was"


MEASURED = {
    bench: ("workbench", {"row": GRID["settings"]}),
    capstone: ("capstone", {"row": load("capstone")["changes"], "closed_loop": load("capstone")["closed"]}),
    designs: ("designs", {"row": SWEEP}),
    desks: ("desks", {"measure": DESKS}),
    truth: ("vllm_runs", {"summarise": [RUNS]}),
    summary: ("traces", {"summarise": [load("traces")]}),
}


def replay(values: list[Any]) -> Callable[..., Any]:
    coming = iter(values)
    return lambda *_, **__: next(coming)


@pytest.mark.parametrize("program", MEASURED, ids=lambda program: program.__name__.rsplit(".")[-1])
def test_a_program_writes_what_it_measured_as_the_committed_file_has_it(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the byte. The measuring itself takes minutes, so what it once gave stands in for it."""
    name, stand_ins = MEASURED[program]
    for function, values in stand_ins.items():
        monkeypatch.setattr(program, function, replay(values))
    out, committed = tmp_path / "made.json", DATA / f"{name}.json"
    names = program.main.args[0].split()[1:]
    given = [str(out) if each == "OUT" else str(DATA / "traces.json") for each in names]
    assert program.main(given) == 0
    assert out.read_text(encoding="utf-8") == committed.read_text(encoding="utf-8")


def test_the_workbench_runs_without_a_screen() -> None:
    pytest.importorskip("ipywidgets", reason="the workbench needs the labs extra")
    from lantern_lib.figures.workbench import Workbench

    table = Workbench(rates=(1, 3), minutes=1.0)
    first, said = bytes(table.image.value), table.sentence.value
    assert bytes(first).startswith(b"\x89PNG")
    table.hit_percent.value = 80
    assert bytes(table.image.value) != first
    assert table.sentence.value != said
    assert table.runs[1].ttft.p95 < 0.5
    # Settings that do not go together are a sentence, and the picture stays.
    before = bytes(table.image.value)
    table.max_batch.value, table.chunk.value, table.draft_len.value = 256, 512, 3
    assert "token_budget must be at least 1024" in table.sentence.value
    table.draft_len.value = 0
    assert bytes(table.image.value) != before
