"""The committed summary of the traces is what the program makes of them, and holds no trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lantern_lib.workload.summary import LIFETIMES, SOURCES, main, summarise

FILE = Path(__file__).resolve().parent.parent / "book/data/traces.json"
SUMMARY: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))


def test_the_committed_summary_is_recomputed_from_the_traces(outside: Callable[[str], Path]) -> None:
    date = SUMMARY["sources"]["agents"]["date"]
    assert json.loads(json.dumps(summarise(outside("traces"), date))) == SUMMARY


def test_every_trace_has_its_source_licence_and_count() -> None:
    assert set(SUMMARY["sources"]) == set(SOURCES) == set(SUMMARY) - {"sources"}
    for source in SUMMARY["sources"].values():
        assert {"source", "licence", "date"} == set(source)
    assert FILE.stat().st_size < 20_000


def test_the_parts_of_the_summary_agree_with_each_other() -> None:
    agents = SUMMARY["agents"]
    assert sum(one["calls"] for one in agents["each"]) == agents["calls"]
    assert sum(one["prompt"] for one in agents["each"]) == agents["prompt_tokens"]
    assert agents["gaps"] == agents["calls"] - agents["sessions"] == sum(row["calls"] for row in agents["by_gap"])
    assert [row["lifetime"] for row in agents["lifetimes"]] == list(LIFETIMES)
    for row in agents["lifetimes"]:
        assert row["written"] + row["read"] == agents["prompt_tokens"]
    for key, name in ((300, "5m"), (3600, "1h")):
        (row,) = [row for row in agents["lifetimes"] if row["lifetime"] == key]
        for field in ("written", "read", "lost_calls"):
            assert row[field] == sum(one[name][field] for one in agents["each"])
    # A pause of exactly a bound counts as longer in one table and as in time in the other; there is none.
    later = [row["calls"] for row in agents["by_gap"]]
    assert [r["lost_calls"] for r in agents["lifetimes"] if r["lifetime"] in (60, 300, 3600)] == [
        sum(later[1:]),
        sum(later[2:]),
        later[3],
    ]
    for key in ("azure-code", "azure-chat", "mooncake"):
        assert sum(SUMMARY[key]["per_minute"]) <= SUMMARY[key]["requests"]


def test_the_program_writes_the_committed_file(tmp_path: Path, outside: Callable[[str], Path]) -> None:
    out = tmp_path / "traces.json"
    assert main([str(outside("traces")), str(out), SUMMARY["sources"]["agents"]["date"]]) == 0
    assert out.read_text(encoding="utf-8") == FILE.read_text(encoding="utf-8")
