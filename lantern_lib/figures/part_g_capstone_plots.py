"""The capstone's plots: one change and where it breaks, and two load tests of one machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from lantern_lib.capacity import dollars_per_million
from lantern_lib.figures.explore import WIDTH, grips, knob, label, readout, ring, rows_chart, selector
from lantern_lib.figures.promise_panels import promise_line, promise_panels, promise_row, short_seconds
from lantern_lib.figures.roles import ATTACKER, USER
from lantern_lib.studies.bench import OUTPUT_LEN, PROMISE, PROMPT_LEN
from lantern_lib.units import require_one_of

#: GPUs of one replica.
GPUS = 4


def million_at(rate: float, replicas: int, gpu_hour_dollars: float) -> float:
    """Return what a million tokens cost at a rate of the capstone's requests.

    Parameters
    ----------
    rate : float
        Requests per second on all replicas together, above 0 [requests/s].
    replicas : int
        Replicas of four GPUs [replicas].
    gpu_hour_dollars : float
        One GPU for one hour [dollars].

    Returns
    -------
    float
        Dollars for a million tokens, prompts and answers [dollars].

    Examples
    --------
    >>> round(million_at(2.9, 1, 3.0), 2)
    0.48
    """
    return dollars_per_million(gpu_hour_dollars, GPUS * replicas, rate * (PROMPT_LEN + OUTPUT_LEN))


def _rows(data: Mapping[str, Any], gpu_hour_dollars: float) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for each in data["changes"]:
        ttft, tpot = [value / 1e3 for value in each["ttft"]], [value / 1e4 for value in each["tpot"]]
        price = million_at(each["knee"], each["replicas"], gpu_hour_dollars)
        verdict = {
            "change": each["words"],
            "verdict": f"knee {each['knee']:.1f}; there a million tokens for ${price:.2f}",
        }
        rows += [
            promise_row(stop, rate, first, pace) | verdict
            for stop, (rate, first, pace) in enumerate(zip(data["rates"], ttft, tpot, strict=True))
        ]
    return rows


def one_change(
    data: Mapping[str, Any], *, rate: float, change: str = "steps of 512 tokens", gpu_hour_dollars: float = 3.0
) -> alt.VConcatChart:
    """Plot both percentiles over the rate for one change, beside the machine as it is.

    Parameters
    ----------
    data : mapping
        ``book/data/capstone.json``.
    rate : float
        Where the ring stands first, one of its rates [requests/s].
    change : str
        The first choice of the selector [text].
    gpu_hour_dollars : float
        One GPU for one hour [dollars].

    Returns
    -------
    altair.VConcatChart
        Two panels with one ring and one selector; the grey line is the machine as it is.

    Raises
    ------
    ValueError
        If `rate` is no stop of the slider, or there is no such change.

    Examples
    --------
    >>> row = {"words": "as it is", "replicas": 1, "ttft": [300, 900], "tpot": [200, 600], "knee": 1.5, "floor": 2.0}
    >>> len(one_change({"rates": [1, 2], "changes": [row]}, rate=1, change="as it is").vconcat)
    2
    """
    names = [each["words"] for each in data["changes"]]
    require_one_of("change", change, names)
    rows = _rows(data, gpu_hour_dollars)
    grip = ring("Rate", "rate", rate, data["rates"])
    start = [row for row in rows if row["change"] == names[0]]
    return (
        promise_panels(rows, "datum.change == change", start, grip, -16)
        .add_params(selector("change", "Change", names, change))
        .properties(
            description=(
                "Two panels over the request rate, one to ten a second, for one chosen change; a grey line shows the"
                " machine as it is. Above, on a logarithmic axis, the 95th percentile of the time to first token is"
                " flat and then turns sharply upwards; below, the 95th percentile of the time per token rises and"
                " levels off. Most changes move both turns to the right. Dashed lines mark the two promises."
            ),
            usermeta={"lantern": {"stops": {"ring": [f"{each:g}" for each in data["rates"]]}}},
        )
    )


def _closed_rows(closed: Sequence[Mapping[str, float]]) -> list[dict[str, Any]]:
    return [
        {
            "stop": stop,
            "rate": each["rate"],
            "ttft": each["ttft"],
            "users_text": f"{each['users']} users: {each['rate']:.2f} requests a second",
            "time_text": f"first token {short_seconds(each['ttft'])}, {1e3 * each['tpot']:.0f} ms a token",
        }
        for stop, each in enumerate(closed)
    ]


def two_tests(data: Mapping[str, Any], *, users: int) -> alt.LayerChart:
    """Plot the wait that an open loop and a closed loop find on the same machine.

    Parameters
    ----------
    data : mapping
        ``book/data/capstone.json``.
    users : int
        Where the ring stands first on the closed loop's curve, one of its numbers of users [users].

    Returns
    -------
    altair.LayerChart
        One panel with a ring over the number of users.

    Raises
    ------
    ValueError
        If `users` is no stop of the slider.

    Examples
    --------
    >>> change = {"words": "as it is", "replicas": 1, "ttft": [300], "tpot": [200], "knee": 1.5, "floor": 2.0}
    >>> point = {"users": 4, "rate": 0.5, "ttft": 0.2, "tpot": 0.02}
    >>> two_tests({"rates": [1], "changes": [change], "closed": [point]}, users=4).to_dict()["height"]
    300
    """
    counts = [each["users"] for each in data["closed"]]
    grip = ring("Users of the closed loop", "users", users, counts)
    x = alt.X("rate:Q", title="requests a second", scale=alt.Scale(domain=[0, 6.2], nice=False))
    wait: dict[str, Any] = {
        "title": "first token, 95th percentile, s",
        "scale": alt.Scale(type="log", domain=[0.03, 9000], nice=False, clamp=True),
        "axis": alt.Axis(values=[0.1, 1, 10, 100, 1000]),
    }
    first = data["changes"][0]
    opened = rows_chart(
        [{"rate": r, "ttft": t / 1e3} for r, t in zip(data["rates"], first["ttft"], strict=True) if r <= 6]
    ).encode(x=x)
    closed = rows_chart(_closed_rows(data["closed"])).encode(x=x)
    here = closed.transform_filter(grip)
    y = alt.Y("ttft:Q", **wait)
    return alt.layer(
        *promise_line(PROMISE.ttft_seconds, "promise: 2 s", wait, -8),
        opened.mark_line(stroke=USER.light, strokeDash=list(USER.dash), strokeWidth=2).encode(y=y),
        closed.mark_line(stroke=ATTACKER.light, strokeDash=list(ATTACKER.dash), strokeWidth=2).encode(
            y=y, order=alt.Order("stop:Q")
        ),
        label(opened, "open loop", "rate", "ttft", USER, data["rates"][-1] if len(data["rates"]) == 1 else 5, dy=-12),
        label(closed, "closed loop", "rate", "ttft", ATTACKER, data["closed"][0]["rate"], dy=-14, align="left"),
        knob(here, "ttft"),
        readout(here, "users", "users_text", 16),
        readout(here, "time", "time_text", 36),
        grips(closed, 300, grip),
    ).properties(
        width=WIDTH,
        height=300,
        description=(
            "Time to first token, 95th percentile, over the request rate, on a logarithmic axis, from two load tests"
            " of one replica. The open loop's curve is flat to about three requests a second and then rises to minutes."
            " The closed loop's curve never passes the highest rate of the machine: with up to sixty-four users the"
            " wait stays under the promise of two seconds."
        ),
        usermeta={"lantern": {"stops": {"ring": [f"{count}" for count in counts]}}},
    )
