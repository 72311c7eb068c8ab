"""Explorable plot of page B5: what speculation gains, by draft length and batch."""

from __future__ import annotations

from typing import Any

import altair as alt

from lantern_lib import speculative, step
from lantern_lib.figures.explore import WIDTH, grips, knob, label, readout, ring, rows_chart, selector
from lantern_lib.figures.roles import ARITHMETIC, CONTROL, MEMORY, TOTAL, USER
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig

DRAFT_LENS = tuple(range(1, 17))
BATCHES = (1, 8, 32, 64, 128)
#: Chance of a drafted token to be kept, with the field of its curve.
ACCEPTANCES = {"low": 0.6, "middle": 0.8, "high": 0.9}


def _rows(model: ModelConfig, replica: Replica, context_len: int, draft_cost: float) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for batch in BATCHES:
        ordinary = step.decode_step(model, replica, batch, context_len).total_seconds
        block: list[dict[str, Any]] = []
        for stop, length in enumerate(DRAFT_LENS):
            check = speculative.verify_step(model, replica, batch, context_len, length).total_seconds / ordinary
            gains = {
                name: speculative.speedup(acceptance, length, draft_cost, check)
                for name, acceptance in ACCEPTANCES.items()
            }
            tokens = speculative.expected_tokens(ACCEPTANCES["middle"], length)
            cost = check + draft_cost * length
            drafts = "1 draft" if length == 1 else f"{length} drafts"
            # Near 1 the second digit decides whether it is a gain.
            shown = f"{gains['middle']:.{1 if gains['middle'] >= 1.05 else 2}f}"
            block.append(
                {
                    "batch": str(batch),
                    "stop": stop,
                    "k": length,
                    **{name: round(gain, 3) for name, gain in gains.items()},
                    "tokens": round(tokens, 3),
                    "cost": round(cost, 3),
                    "gain_text": f"{drafts} at batch {batch}: {shown} times",
                    "cost_text": f"{tokens:.2f} tokens for the time of {cost:.2f} steps",
                }
            )
        for name in ACCEPTANCES:
            best = max(row[name] for row in block)
            for row in block:
                row[f"best_{name}"] = best if row[name] == best else None
        rows += block
    return rows


def speculation(
    model: ModelConfig,
    replica: Replica,
    *,
    context_len: int,
    draft_cost: float = 0.05,
    draft_len: int = 8,
    batch_size: int = 1,
) -> alt.VConcatChart:
    """Plot the gain of speculation over the draft length, and the tokens and time of a round under it.

    Parameters
    ----------
    model : ModelConfig
        The large model.
    replica : Replica
        The machine with its efficiencies.
    context_len : int
        Cached tokens of each sequence [tokens].
    draft_cost : float
        Time of one drafted token, in ordinary steps [ratio].
    draft_len : int
        Where the ring stands first, one of :data:`DRAFT_LENS` [tokens].
    batch_size : int
        First choice of :data:`BATCHES` [sequences].

    Returns
    -------
    altair.VConcatChart
        Two panels with one ring and a selector.

    Raises
    ------
    ValueError
        If `draft_len` or `batch_size` is no stop.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> len(speculation(LANTERN_70B, Replica(H100, tp_size=4), context_len=2000).vconcat)
    2
    """
    if batch_size not in BATCHES:
        raise ValueError(f"batch_size must be a choice of the selector (1, 8, 32, 64, 128), got {batch_size!r}.")
    rows = _rows(model, replica, context_len, draft_cost)
    grip = ring("Drafted tokens", "draft_len", draft_len, DRAFT_LENS)
    batch = selector("batch", "Batch", [str(b) for b in BATCHES], str(batch_size))
    base = (
        rows_chart(rows)
        .transform_filter("datum.batch == batch")
        .encode(
            x=alt.X(
                "k:Q",
                title="k: tokens drafted in a round",
                axis=alt.Axis(values=[1, 2, 4, 6, 8, 10, 12, 14, 16], format="d"),
                scale=alt.Scale(domain=[0.5, 17.5], nice=False),
            )
        )
    )
    here = base.transform_filter(grip)
    top = alt.layer(*_gains(base), knob(here, "middle"), readout(here, "gain", "gain_text", 14), grips(base, 210, grip))
    bottom = alt.layer(*_round(base), knob(here, "cost", first=False), readout(here, "cost", "cost_text", 14))
    return (
        alt.vconcat(top.properties(width=WIDTH, height=210), bottom.properties(width=WIDTH, height=170))
        .add_params(batch)
        .properties(
            description=(
                f"Two panels over the number of drafted tokens, 1 to {DRAFT_LENS[-1]}, for a draft that costs"
                f" {draft_cost:.0%} of a step, at a chosen batch. Above: the gain in tokens per second for acceptance"
                " 0.6, 0.8 and 0.9 rises to a best length and falls after it; at a large batch it falls below 1."
                " Below: tokens of a round level off while its time grows, slowly at batch 1 and steeply at batch 128."
            ),
            usermeta={"lantern": {"stops": {"ring": [str(k) for k in DRAFT_LENS]}}},
        )
    )


def _gains(base: alt.Chart) -> list[alt.Chart]:
    """Draw one curve for each acceptance with its best length, and the line of no gain."""
    y = alt.Y("value:Q", title="tokens/s, times ordinary", scale=alt.Scale(domain=[0, 6], nice=False))
    styles = {"low": (MEMORY, [2, 3], 6), "middle": (TOTAL, [1, 0], 3), "high": (USER, [7, 3], -8)}
    layers: list[alt.Chart] = [
        base.mark_rule(stroke=CONTROL.light, strokeWidth=1.5, strokeDash=list(CONTROL.dash)).encode(
            x=alt.value(0), x2=alt.value("width"), y=alt.datum(1)
        )
    ]
    for name, (role, dash, dy) in styles.items():
        curve = y.copy()
        curve.shorthand = f"{name}:Q"
        layers.append(base.mark_line(stroke=role.light, strokeDash=dash).encode(y=curve))
        layers.append(base.mark_point(filled=True, size=60, fill=role.light, opacity=1).encode(y=f"best_{name}:Q"))
        layers.append(label(base, f"{ACCEPTANCES[name]}", "k", name, role, 16, align="left", dx=6, dy=dy))
    return layers


def _round(base: alt.Chart) -> list[alt.Chart]:
    """Draw the tokens of a round and its time, both in their own unit on one axis."""
    y = alt.Y("tokens:Q", title="per round: tokens, and time in steps", scale=alt.Scale(domain=[0, 10], nice=False))
    return [
        base.mark_line(stroke=USER.light, strokeDash=list(USER.dash)).encode(y=y),
        base.mark_line(stroke=ARITHMETIC.light, strokeDash=list(ARITHMETIC.dash)).encode(y="cost:Q"),
        label(base, "tokens", "k", "tokens", USER, 16, align="left", dx=6, dy=8),
        label(base, "time", "k", "cost", ARITHMETIC, 16, align="left", dx=6, dy=2),
    ]
