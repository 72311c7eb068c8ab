from __future__ import annotations

import linecache

import pytest

from lantern_lib import H100, LANTERN_70B, Replica, claims, step


@pytest.fixture(autouse=True)
def _empty_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "_ledger", {})
    return


@pytest.mark.parametrize(
    ("value", "printed"),
    [(0.0143166, "14.3 ms"), (54, "54"), (2684354560, "2.5 GiB"), (0.155, "15 percent"), (0.155, "16 percent")],
)
def test_a_value_that_rounds_to_what_is_printed_holds(value: float, printed: str) -> None:
    claims.claim("t-x", value, printed)
    assert claims.printed("t-x") == printed


@pytest.mark.parametrize(
    ("value", "printed"),
    [(0.01437, "14.3 ms"), (0.0143, "14.3 s"), (54.6, "54"), (2684354560, "2.5 GB"), (float("nan"), "1"), (3, "two")],
)
def test_a_value_that_does_not_fails_and_says_both(value: float, printed: str) -> None:
    with pytest.raises(claims.ClaimError, match=f"^t-x: printed '{printed}', computed "):
        claims.claim("t-x", value, printed)


@pytest.mark.parametrize("bad", ["54", None, True])
def test_a_value_must_be_a_number(bad: object) -> None:
    with pytest.raises(claims.ClaimError, match="the value must be a number"):
        claims.claim("t-x", bad, "54")  # type: ignore[arg-type]


def test_above_and_below() -> None:
    claims.claim("t-up", 0.4, "30 percent", relation="above")
    claims.claim("t-down", 0.31, "33 percent", relation="below")
    with pytest.raises(claims.ClaimError):
        claims.claim("t-no", 0.4, "33 percent", relation="below")
    with pytest.raises(claims.ClaimError, match="relation must be one of equals, above, below"):
        claims.claim("t-no", 0.4, "33 percent", relation="near")


def test_one_id_prints_one_text() -> None:
    claims.claim("t-x", 1, "1")
    claims.claim("t-x", 1, "1")
    with pytest.raises(claims.ClaimError, match="use two ids"):
        claims.claim("t-x", 1, "1.0")


CELL = """
claims.claim(
    "t-step", cost.total_seconds * batch_size / 64, "18.7 ms", note="at a context of 2,000"
)
"""


def test_the_derivation_is_the_source_of_the_value() -> None:
    """Run as a notebook cell is: compiled from text that the interpreter can look up again."""
    cost = step.decode_step(LANTERN_70B, Replica(H100, tp_size=4), 64, 2000)
    linecache.cache["<cell>"] = (len(CELL), None, CELL.splitlines(keepends=True), "<cell>")
    exec(compile(CELL, "<cell>", "exec"), {"claims": claims, "cost": cost, "batch_size": 64})
    record = claims.check_box("t").claims[0]
    assert record.expression == "cost.total_seconds * batch_size / 64"
    names = [name for name, _ in record.inputs]
    assert names == ["cost", "batch_size"]
    assert record.inputs[0][1].startswith(
        "decode of batch 64 at context 2,000, Lantern 70B on 4 × H100 SXM: arithmetic"
    )
    assert (record.unit, record.note) == ("seconds", "at a context of 2,000")


def test_a_check_box_lists_only_its_section_and_is_never_empty() -> None:
    claims.claim("a1-x", 1, "1")
    claims.claim("a10-x", 2, "2")
    box = claims.check_box("a1")
    assert repr(box).splitlines()[0] == "Check A1: 1 claim holds"
    assert "<td>1</td>" in box._repr_html_()
    assert claims.summary() == "2 claims hold"
    with pytest.raises(claims.ClaimError, match="no claim begins with 'a2-'"):
        claims.check_box("a2")


def test_markup_in_a_claim_is_escaped() -> None:
    claims.claim("t-x", 1, "1 <b>unit</b>", note="<script>")
    assert "<b>" not in claims.check_box("t")._repr_html_()


def test_an_unknown_claim_has_no_printed_text() -> None:
    with pytest.raises(claims.ClaimError, match="t-none: no such claim"):
        claims.printed("t-none")
