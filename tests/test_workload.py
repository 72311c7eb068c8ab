"""Workloads keep their rows, and say which row is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from lantern_lib.workload import Call, Request, Session, Workload

ROWS = [
    Request(2.0, 30, 4, priority=1, session=7, prefix_blocks=(0, 5)),
    Request(0.5, 10, 2, prefix_blocks=(0,)),
    Request(2.0, 40, 6, session=7),
]


def columns(**changed: object) -> dict[str, object]:
    return {"arrival_seconds": [0.0, 1.0], "prompt_len": [5, 6], "output_len": [1, 2]} | changed


def test_rows_come_back_in_order_of_arrival() -> None:
    work = Workload.from_requests(ROWS, block_size=16)
    assert list(work) == [ROWS[1], ROWS[0], ROWS[2]]
    assert list(work.first(2)) == [ROWS[1], ROWS[0]]
    assert len(work.first(9)) == 3


def test_left_out_columns_have_their_defaults() -> None:
    work = Workload(**columns())  # type: ignore[arg-type]
    assert work[1] == Request(1.0, 6, 2)
    assert work.prompt_len.dtype == np.int64


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"arrival_seconds": []}, "at least one request"),
        ({"arrival_seconds": [1.0, 0.5]}, "arrival_seconds .* row 1"),
        ({"arrival_seconds": [-1.0, 0.5]}, "arrival_seconds .* row 0"),
        ({"arrival_seconds": [0.0, float("nan")]}, "arrival_seconds .* row 1"),
        ({"prompt_len": [5, 0]}, "prompt_len .* row 1"),
        ({"prompt_len": [5, 6.5]}, "prompt_len .* 6.5.* row 1"),
        ({"output_len": [1]}, "output_len must have one entry"),
        ({"priority": [-1, 0]}, "priority .* row 0"),
        ({"block_ids": [1]}, "block_starts"),
        ({"block_ids": [1], "block_starts": [0, 1, 1]}, "block_size"),
    ],
)
def test_a_bad_column_is_named_with_its_row(changed: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Workload(**columns(**changed))  # type: ignore[arg-type]


def test_a_call_and_a_session_refuse_what_cannot_be() -> None:
    with pytest.raises(ValueError, match="reused_len"):
        Call(10, 1, reused_len=11)
    with pytest.raises(ValueError, match="gap_seconds"):
        Call(10, 1, gap_seconds=-1)
    with pytest.raises(ValueError, match="calls"):
        Session(())
