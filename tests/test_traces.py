"""Readers of traces keep what the file says, count what they drop, and say in one sentence what is wrong."""

from __future__ import annotations

import gzip
import io
import json
import math
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lantern_lib.metrics import RequestRecord, ttft
from lantern_lib.workload import Call
from lantern_lib.workload.agents import read_agent_session, read_agent_sessions
from lantern_lib.workload.traces import read_azure, read_mooncake, read_request_log

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
AZURE = (
    f"{HEADER}\n2023-11-16 18:17:04.5000000,20,3\n2023-11-16 18:17:03.0000000,10,1\n2023-11-16 18:17:09.0000000,5,0\n"
)
MOONCAKE = [
    {"timestamp": 3000, "input_length": 1100, "output_length": 4, "hash_ids": [0, 7, 8]},
    {"timestamp": 0, "input_length": 1024, "output_length": 2, "hash_ids": [0, 5]},
    {"timestamp": 9000, "input_length": 0, "output_length": 2, "hash_ids": []},
    {"timestamp": 3000, "input_length": 10, "output_length": 9, "hash_ids": [6]},
]
LOG = [
    {"arrival_time": 101.0, "queued_ts": 8.5, "scheduled_ts": 9.0, "first_token_ts": 10.0, "last_token_ts": 12.0},
    {"arrival_time": 100.0, "queued_ts": 7.0, "scheduled_ts": 7.0, "first_token_ts": 8.0, "last_token_ts": 8.0},
    {"arrival_time": 102.0, "queued_ts": 9.0, "scheduled_ts": 9.5, "first_token_ts": None, "last_token_ts": None},
]
SESSION: dict[str, Any] = {
    "id": "s",
    "block_size": 64,
    "requests": [
        {"t": 2.0, "in": 150, "out": 5, "hash_ids": [1, 2], "api_time": 4.0, "stop": "tool_use"},
        {"t": 10.0, "in": 210, "out": 6, "hash_ids": [1, 2, 3], "stop": "end_turn"},
        {"type": "subagent", "t": 12.0, "requests": [{"t": 1.0, "in": 64, "out": 1, "hash_ids": [9]}]},
        {"t": 40.0, "in": 200, "out": 0, "hash_ids": [1, 2, 3]},
        {"t": 50.0, "in": 200, "out": 7, "hash_ids": [1, 4, 3], "api_time": 60.0},
        {"t": 80.0, "in": 200, "out": 8, "hash_ids": [1, 4, 3]},
    ],
}


def jsonl(rows: list[dict[str, Any]], **every: Any) -> str:
    return "\n".join(json.dumps(row | every) for row in rows)


LOG_TEXT = jsonl(LOG, input_toks=9, output_toks=3)
READERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "azure": (read_azure, AZURE),
    "mooncake": (read_mooncake, jsonl(MOONCAKE)),
    "log": (read_request_log, LOG_TEXT),
    "agent": (read_agent_session, json.dumps(SESSION)),
}


def test_azure_rows_are_sorted_counted_from_the_first_and_dropped_without_tokens() -> None:
    trace = read_azure(io.StringIO(AZURE))
    work = trace.workload
    assert work.arrival_seconds.tolist() == [0.0, 1.5]
    assert (work.prompt_len.tolist(), work.output_len.tolist()) == ([10, 20], [1, 3])
    assert trace.dropped == {"zero tokens": 1}


def test_azure_columns_are_found_by_name() -> None:
    trace = read_azure(io.StringIO("GeneratedTokens,extra,TIMESTAMP,ContextTokens\n3,x,2024-05-10 00:00:00+00:00,20\n"))
    assert (trace.workload[0].prompt_len, trace.workload[0].output_len) == (20, 3)


def test_mooncake_blocks_follow_their_request_into_the_order_of_arrival() -> None:
    trace = read_mooncake(io.StringIO(jsonl(MOONCAKE)))
    assert [r.prefix_blocks for r in trace.workload] == [(0, 5), (0, 7), ()]
    assert [r.arrival_seconds for r in trace.workload] == [0.0, 3.0, 3.0]
    assert trace.workload.block_size == 512
    assert trace.dropped == {"zero tokens": 1}
    whole = read_mooncake(io.StringIO(jsonl(MOONCAKE)), partial_blocks=True).workload
    assert [r.prefix_blocks for r in whole] == [(0, 5), (0, 7, 8), (6,)]


def test_a_log_gives_records_on_one_clock() -> None:
    log = read_request_log(io.StringIO(LOG_TEXT))
    records = [RequestRecord(*row) for row in log.times()]
    # The second row was queued 93 s before its wall-clock arrival, the first 92.5: the clocks differ by 93.
    assert [ttft(record) for record in records] == [1.0, 2.0]
    assert log.queued_seconds.tolist() == [0.0, 1.5]
    assert log.scheduled_seconds.tolist() == [0.0, 2.0]
    assert records[1].last_token_seconds == 5.0
    assert log.dropped == {"zero tokens": 0, "unfinished": 1}


def test_a_session_has_its_pauses_and_what_it_shares_with_the_call_before() -> None:
    trace = read_agent_session(io.StringIO(json.dumps(SESSION)))
    main, sub = trace.sessions
    assert main.session.start_seconds == 2.0
    assert main.session.calls == (
        Call(150, 5),
        Call(210, 6, gap_seconds=4.0, reused_len=128),
        Call(200, 7, gap_seconds=40.0, reused_len=64),  # from the start of the call before: its end is not recorded
        Call(200, 8, gap_seconds=0.0, reused_len=192),  # sent while the answer was still running
    )
    assert main.stops == ("tool_use", "end_turn", "", "")
    assert [math.isnan(seconds) for seconds in main.server_seconds] == [False, True, False, True]
    assert (sub.name, sub.session.start_seconds, len(sub.session.calls)) == ("s/1", 13.0, 1)
    assert (trace.dropped, trace.overlapping) == ({"zero tokens": 1}, 1)


def test_a_folder_of_sessions_is_read_by_name(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.json").write_text(json.dumps(SESSION | {"id": name}), encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no session", encoding="utf-8")
    trace = read_agent_sessions(tmp_path)
    assert [s.name for s in trace.sessions] == ["a", "a/1", "b", "b/1"]
    assert (trace.dropped, trace.overlapping) == ({"zero tokens": 2}, 2)
    with pytest.raises(ValueError, match="at least one session file"):
        read_agent_sessions([])


def seen(found: Any) -> str:
    """Everything a reader returned, as text."""
    if hasattr(found, "sessions"):
        return repr(found)
    return repr([list(found.workload), sorted(found.dropped.items()), list(getattr(found, "times", list)())])


@pytest.mark.parametrize("name", READERS)
def test_any_form_of_the_same_file_reads_the_same(name: str, tmp_path: Path) -> None:
    read, text = READERS[name]
    expected = seen(read(io.StringIO(text)))
    plain, packed = tmp_path / "trace", tmp_path / "trace.gz"
    plain.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n\r\n").encode())
    packed.write_bytes(gzip.compress(text.encode()))
    assert seen(read(plain)) == expected
    assert seen(read(str(packed))) == expected
    with gzip.open(packed) as file:
        assert seen(read(file)) == expected
    with plain.open(encoding="utf-8", newline="") as text_file:
        assert seen(read(text_file)) == expected


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "trace.*(at least one request|must be)"),
        (b"\xff\xfeT\x00I\x00", "trace, line 1 must be text in UTF-8.*0xff"),
        (b"\x1f\x8b\x08\x00", "trace must be a whole gzip file"),
        (gzip.compress(b"x" * 5000)[:-9], "trace must be a whole gzip file|trace.*(must be|one JSON)"),
        (b"[" * 100_000, "trace.* must be"),
        (b"{" * 100_000, "trace.* must be"),
        (b"\x00\x01\x02", "trace.* must be"),
        (b'"text"', "trace.* must be"),
        (b"{}", "trace.* must be"),
    ],
    ids=["empty", "utf-16", "gzip-head", "gzip-cut", "nested", "braces", "binary", "string", "no-fields"],
)
def test_junk_is_refused_in_one_sentence(name: str, data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=words) as caught:
        READERS[name][0](path)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 300
    assert str(tmp_path) not in message


@pytest.mark.parametrize("name", READERS)
def test_one_endless_line_is_not_read_to_its_end(name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    with path.open("wb") as file:
        file.write(b"7")
        file.truncate(200 * 2**20)  # a hole: nothing is stored
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"line 1 must be at most .* bytes"):
        READERS[name][0](path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 140 * 2**20


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("2023-11-16 18:17:03,4808", "line 3: the row must be 3 fields"),
        ("2023-11-16 18:17:03,48", "line 3: the row"),
        ("yesterday,10,1", "line 3: TIMESTAMP must be a time like .* got 'yesterday'"),
        ("2023-11-16 18:17:03+00:00,10,1", "line 3: TIMESTAMP"),
        ("2023-11-16 18:17:03,nan,1", "line 3: ContextTokens .* got 'nan'"),
        ("2023-11-16 18:17:03,10,-1", "line 3: GeneratedTokens .* got '-1'"),
        ("2023-11-16 18:17:03,1_0,1", "line 3: ContextTokens"),
        ("2023-11-16 18:17:03,٣,1", "line 3: ContextTokens"),
        ("2023-11-16 18:17:03,99999999999999999999,1", "line 3: ContextTokens"),
    ],
)
def test_a_bad_azure_row_is_named(row: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_azure(io.StringIO(f"{HEADER}\n2023-11-16 18:17:02,1,1\n{row}\n"))


def test_a_missing_azure_column_is_named() -> None:
    with pytest.raises(ValueError, match=r"line 1: the header .* GeneratedTokens"):
        read_azure(io.StringIO("TIMESTAMP,ContextTokens\n"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"timestamp": float("nan")}, "line 2: it must be one JSON object"),
        ({"timestamp": "0"}, "line 2: timestamp"),
        ({"timestamp": -1}, "line 2: timestamp"),
        ({"input_length": 10.0}, "line 2: input_length"),
        ({"input_length": True}, "line 2: input_length"),
        ({"output_length": 10**12}, "line 2: output_length"),
        ({"hash_ids": [1]}, "line 2: hash_ids must be a list of 2 ids.*got '1 entries'"),
        ({"hash_ids": {"0": 1}}, "line 2: hash_ids"),
        ({"hash_ids": [1, "2"]}, "line 2: hash_ids"),
        ({"hash_ids": [1, -2]}, "line 2: hash_ids"),
        ({"hash_ids": [1, 2**70]}, "line 2: hash_ids"),
        ({"hash_ids": [1, [2]]}, "line 2: hash_ids"),
    ],
)
def test_a_bad_mooncake_line_is_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_mooncake(io.StringIO(jsonl([MOONCAKE[1], MOONCAKE[1] | change])))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"first_token_ts": 20.0}, "line 1: the times must be in the order"),
        ({"arrival_time": None}, "line 1: arrival_time"),
        ({"input_toks": "9"}, "line 1: input_toks"),
        ({"queued_ts": None}, "line 1: queued_ts"),
    ],
)
def test_a_bad_log_line_is_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_request_log(io.StringIO(jsonl([LOG[0]], **({"input_toks": 9, "output_toks": 3} | change))))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"t": 1.0}, "call 2 of s: t must be at least the 2.0"),
        ({"in": -5}, "call 2 of s: in must be"),
        ({"hash_ids": [1, 2.5]}, "call 2 of s: hash_ids"),
        ({"hash_ids": [[1], [2]]}, "call 2 of s: hash_ids"),
        ({"hash_ids": [[1], 2]}, "call 2 of s: hash_ids"),
        ({"hash_ids": [1, 2**80]}, "call 2 of s: hash_ids"),
        ({"hash_ids": ["1"]}, "call 2 of s: hash_ids"),
        ({"hash_ids": None}, "call 2 of s: hash_ids"),
        ({"api_time": "long"}, "call 2 of s: api_time"),
        ({"type": "subagent", "requests": 3}, "call 2 of s: requests"),
    ],
)
def test_a_bad_call_is_named(change: dict[str, Any], words: str) -> None:
    calls = SESSION["requests"]
    text = json.dumps(SESSION | {"requests": [calls[0], calls[1] | change]})
    with pytest.raises(ValueError, match=words):
        read_agent_session(io.StringIO(text))


def test_half_a_session_is_refused() -> None:
    with pytest.raises(ValueError, match="one JSON object.*complete"):
        read_agent_session(io.StringIO(json.dumps(SESSION)[:-30]))
    with pytest.raises(ValueError, match="block_size"):
        read_agent_session(io.StringIO(json.dumps(SESSION | {"block_size": 0})))


def test_memory_grows_by_columns_and_not_by_rows(tmp_path: Path) -> None:
    """Three numbers a row are 24 bytes; sorting and checking copies them a few times."""
    path = tmp_path / "long.csv"
    rows = 60_000
    with path.open("w", encoding="utf-8") as file:
        file.write(HEADER + "\n")
        file.writelines(f"2023-11-16 18:{n // 60 % 60:02}:{n % 60:02}.5,10,1\n" for n in range(rows))
    tracemalloc.start()
    trace = read_azure(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(trace.workload) == rows
    assert peak < rows * 24 * 8


@pytest.mark.parametrize(
    ("name", "ttft_mean", "makespan"),
    [("vllm_RTX4090_Llama-3.1-8B", 65.5, 183.6), ("vllm_RTXPRO6000_Llama-3.1-8B", 7.1, 65.9)],
)
def test_the_public_logs_have_their_published_means(
    name: str, ttft_mean: float, makespan: float, outside: Callable[[str], Path]
) -> None:
    log = read_request_log(outside(f"traces/vllm/{name}/requests.jsonl"))
    records = [RequestRecord(*row) for row in log.times()]
    assert len(records) == 300
    assert sum(map(ttft, records)) / 300 == pytest.approx(ttft_mean, abs=0.06)
    assert max(r.last_token_seconds for r in records) == pytest.approx(makespan, abs=0.06)
