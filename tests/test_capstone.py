"""The capstone's file is what the program makes of it, and its plots read it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("altair", reason="figures need the labs extra")

from lantern_lib import step
from lantern_lib.figures import part_g_capstone_plots as plots
from lantern_lib.figures.roles import PAGE_COLOURS
from lantern_lib.hardware import H100, Replica
from lantern_lib.model_config import LANTERN_70B
from lantern_lib.studies import bench, capstone

DATA: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parent.parent / "book/data/capstone.json").read_text(encoding="utf-8")
)
ROWS = {each["words"]: each for each in DATA["changes"]}
CHANGES = {change.words: change for change in capstone.CHANGES}
PLOTS = {
    "one_change": lambda: plots.one_change(DATA, rate=3),
    "two_tests": lambda: plots.two_tests(DATA, users=64),
}


def rows_of(name: str) -> list[dict[str, Any]]:
    found = re.findall(r'"values": (\[\{.*?\}\])', json.dumps(PLOTS[name]().to_dict()))
    rows: list[dict[str, Any]] = max((json.loads(text) for text in set(found) if '"stop"' in text), key=len)
    return rows


def test_the_file_has_every_change() -> None:
    assert list(ROWS) == list(CHANGES)
    assert DATA["rates"] == list(bench.RATES)
    assert [each["users"] for each in DATA["closed"]] == list(capstone.USERS)


@pytest.mark.parametrize("words", ["as it is", "8-bit weights", "two replicas"])
def test_a_sample_of_the_runs_is_recomputed(words: str) -> None:
    for place in (1, 5):
        run = capstone.measure(CHANGES[words], DATA["rates"][place])
        assert round(run.ttft.p95 * 1e3) == ROWS[words]["ttft"][place]
        assert round(run.tpot.p95 * 1e4) == ROWS[words]["tpot"][place]
    assert capstone.closed_loop(64) == DATA["closed"][list(capstone.USERS).index(64)]


@pytest.mark.parametrize("words", ["as it is", "8-bit weights"])
def test_a_knee_is_kept_and_a_tolerance_above_it_is_broken(words: str) -> None:
    """Counted here limit by limit; the tolerance of the search is its only slack."""
    for rate, kept in ((ROWS[words]["knee"], True), (ROWS[words]["knee"] + capstone.TOLERANCE, False)):
        runs = [capstone.measure(CHANGES[words], rate, seed) for seed in capstone.SEEDS]
        good = [run.ttft.p95 <= 2.0 and run.tpot.p95 <= 0.05 for run in runs]
        assert (sum(good) >= 2) is kept


def test_a_floor_is_the_sum_of_the_steps_of_part_a() -> None:
    """64 seats are allowed by the promise, so the rate is one over a prompt and 400 shares of a step."""
    machine = Replica(H100, tp_size=4)
    prompt = step.prefill_step(LANTERN_70B, machine, 2000).total_seconds
    written = 400 * step.decode_step(LANTERN_70B, machine, 64, 2200).total_seconds / 64
    assert 64 * (prompt + written) / 400 < 0.05
    assert capstone.floor_rate(CHANGES["as it is"]) == pytest.approx(1 / (prompt + written), rel=1e-3)
    assert capstone.floor_rate(CHANGES["two replicas"]) == 2 * capstone.floor_rate(CHANGES["as it is"])
    for words, change in CHANGES.items():
        assert ROWS[words]["floor"] == capstone.floor_rate(change)


def test_two_replicas_share_one_door() -> None:
    one, two = (capstone.measure(CHANGES[words], 2, minutes=2) for words in ("as it is", "two replicas"))
    assert one.num_finished == two.num_finished
    assert two.tpot.p95 < one.tpot.p95


def test_a_closed_loop_never_asks_for_more_than_the_machine_gives() -> None:
    rates = [each["rate"] for each in DATA["closed"]]
    assert max(rates) < ROWS["as it is"]["floor"] * 1.05
    # Little: users who never pause are the rate times the time of an answer, and that has many tokens.
    assert all(each["users"] > each["rate"] * each["tpot"] for each in DATA["closed"])


def test_settings_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(ValueError, match="weight_bits must be 16 with drafts"):
        capstone.Change("both", bench.Setting(draft_len=3), weight_bits=8)
    with pytest.raises(ValueError, match="replicas"):
        capstone.Change("none", capstone.START, replicas=0)
    with pytest.raises(ValueError, match="tolerance"):
        capstone.knee(CHANGES["as it is"], tolerance=0)


def test_the_plots_read_the_file() -> None:
    (row,) = [r for r in rows_of("one_change") if r["change"] == "two replicas" and r["rate"] == 4]
    place = DATA["rates"].index(4)
    assert row["tpot"] == ROWS["two replicas"]["tpot"][place] / 10
    price = 8 * 3.0 / (ROWS["two replicas"]["knee"] * 2400 * 3600) * 1e6
    assert row["verdict"] == f"knee {ROWS['two replicas']['knee']:.1f}; there a million tokens for ${price:.2f}"
    (point,) = [r for r in rows_of("two_tests") if r["users_text"].startswith("64 users")]
    assert point["rate"] == DATA["closed"][list(capstone.USERS).index(64)]["rate"]


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_describes_itself_names_its_stops_and_holds_plain_colours(name: str) -> None:
    spec = PLOTS[name]().to_dict()
    assert len(spec["description"]) > 150
    assert len(spec["usermeta"]["lantern"]["stops"]["ring"]) == len({row["stop"] for row in rows_of(name)})
    text = json.dumps({key: value for key, value in spec.items() if key not in ("datasets", "data")})
    assert "var(" not in text
    drawn = set(re.findall(r'"(?:fill|stroke|color)": (?:\{"value": )?"(#[0-9a-f]{6})"', text))
    assert len(drawn) >= 2
    assert drawn <= set(PAGE_COLOURS)


def test_a_ring_and_a_selector_start_only_on_what_there_is() -> None:
    with pytest.raises(ValueError, match="^rate must be a stop"):
        plots.one_change(DATA, rate=2.7)
    with pytest.raises(ValueError, match="^change must be one of"):
        plots.one_change(DATA, rate=3, change="more luck")
    with pytest.raises(ValueError, match="^users must be a stop"):
        plots.two_tests(DATA, users=65)
