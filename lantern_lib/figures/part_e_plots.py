"""Explorable plots of part E: three ingredients to switch, and what timing tells about a shared cache."""

from __future__ import annotations

from itertools import product
from typing import Any

import altair as alt
import numpy as np

from lantern_lib.figures.explore import WIDTH, grips, knob, label, readout, ring, rows_chart, selector
from lantern_lib.figures.roles import ATTACKER, CONTROL, MEMORY, USER, Role
from lantern_lib.guardrails.cache_scope import timing_attack
from lantern_lib.guardrails.capabilities import INGREDIENTS, Tool, ingredients, is_exposed
from lantern_lib.hardware import Replica
from lantern_lib.model_config import ModelConfig

YES_NO = ("yes", "no")
CHANNELS = ("yes", "confirmed", "no")
PROBES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
NOISES_MS = (25, 50, 100, 200, 400)
SECRETS = (100, 500, 2000)


def _session(private: str, untrusted: str, channel: str) -> list[Tool]:
    return [
        Tool("files", private_data=private == "yes"),
        Tool("pages", untrusted_text=untrusted == "yes"),
        Tool("send", outward_channel=channel != "no", confirmed=channel == "confirmed"),
    ]


def _why(tools: list[Tool]) -> tuple[str, str]:
    held = ingredients(tools)
    if is_exposed(tools):
        return "Exposed", "injected words can carry data out"
    if tools[2].confirmed:
        return "Safe if the person reads it", "no message leaves unseen"
    missing = [name for name in INGREDIENTS if name not in held]
    reasons = {
        INGREDIENTS[0]: "there is nothing to take",
        INGREDIENTS[1]: "nobody else can give orders",
        INGREDIENTS[2]: "there is no way out",
    }
    return "Safe from this attack", reasons[missing[0]]


def _ingredient_rows() -> list[dict[str, Any]]:
    rows = []
    for private, untrusted, channel in product(YES_NO, YES_NO, CHANNELS):
        tools = _session(private, untrusted, channel)
        verdict, why = _why(tools)
        rows.append(
            {"p": private, "u": untrusted, "c": channel, "verdict": verdict, "why": why, "bad": int(is_exposed(tools))}
            | {f"on{i}": 1.0 if name in ingredients(tools) else 0.1 for i, name in enumerate(INGREDIENTS)}
        )
    return rows


def three_ingredients(*, private: str = "yes", untrusted: str = "yes", channel: str = "yes") -> alt.VConcatChart:
    """Plot which ingredients meet in a session, with a selector for each, and whether that is safe.

    Parameters
    ----------
    private, untrusted : str
        First choices of :data:`YES_NO` [text].
    channel : str
        First choice of :data:`CHANNELS` [text].

    Returns
    -------
    altair.VConcatChart
        One panel with three selectors.

    Examples
    --------
    >>> len(three_ingredients().vconcat)
    1
    """
    base = rows_chart(_ingredient_rows()).transform_filter(
        "datum.p == holds_data && datum.u == holds_text && datum.c == holds_way"
    )
    where = [
        (0.17, 96, INGREDIENTS[0], MEMORY),
        (0.5, 96, INGREDIENTS[1], ATTACKER),
        (0.83, 96, INGREDIENTS[2], CONTROL),
    ]
    hidden = alt.Scale(domain=[0, 1], nice=False)

    def disc(index: int, at: float, y: int, name: str, role: Role) -> list[alt.Chart]:
        x = alt.X(f"x{index}:Q", scale=hidden, axis=None)
        here = base.transform_calculate(**{f"x{index}": str(at)})
        spot = here.mark_point(size=3600, strokeWidth=2.5, stroke=role.light, fill=role.light, shape="circle")
        words = here.mark_text(fontSize=12.5, fontWeight=600, fill=role.light)
        return [
            spot.encode(x=x, y=alt.value(y), fillOpacity=alt.FillOpacity(f"on{index}:Q", scale=None, legend=None)),
            *(
                words.encode(x=x, y=alt.value(y + 48 + 16 * line), text=alt.value(part))
                for line, part in enumerate(name.split())
            ),
        ]

    marks = [layer for index, spot in enumerate(where) for layer in disc(index, *spot)]
    frame = base.transform_filter("datum.bad == 1").mark_rect(
        fill=ATTACKER.light, fillOpacity=0.07, stroke=ATTACKER.light, strokeWidth=2
    )
    frame = frame.encode(x=alt.value(2), x2=alt.value("width"), y=alt.value(2), y2=alt.value(172))
    panel = alt.layer(
        frame,
        *marks,
        readout(base, "verdict", "verdict", 26),
        readout(base, "why", "why", 48),
    ).properties(width=WIDTH, height=176)
    return (
        alt.vconcat(panel)
        .add_params(
            selector("holds_data", "Private data", YES_NO, private),
            selector("holds_text", "Untrusted text", YES_NO, untrusted),
            selector("holds_way", "Outward channel", CHANNELS, channel),
        )
        .properties(
            description=(
                "Three discs: private data, untrusted text, outward channel. A full disc is in the session, a pale one"
                " is not. With all three the session is exposed: injected words can carry data out. Without any one of"
                " them it is safe from this attack, and a channel whose every use a person confirms counts as none."
            )
        )
    )


def _timing_rows(model: ModelConfig, replica: Replica, public_len: int) -> list[dict[str, Any]]:
    rng, rows = np.random.default_rng(2025), []
    for secret, noise in product(SECRETS, NOISES_MS):
        setting = {"public_len": public_len, "secret_len": secret, "noise_seconds": noise / 1e3}
        leaky, scoped = (timing_attack(model, replica, **setting, shared=s) for s in (True, False))  # type: ignore[arg-type]
        signal = leaky.signal_seconds * 1e3
        for stop, probes in enumerate(PROBES):
            right, blind = 100 * leaky.accuracy(probes), 100 * scoped.accuracy(probes)
            rows.append(
                {
                    "secret": str(secret),
                    "noise": str(noise),
                    "stop": stop,
                    "probes": probes,
                    "right": round(right, 1),
                    "played": round(100 * leaky.simulate(probes, 1000, rng), 1),
                    "blind": round(blind, 1),
                    "text": f"shared: right in {right:.0f} of 100, signal {signal:.0f} ms",
                    "blind_text": f"scoped: {blind:.0f} of 100",
                }
            )
    return rows


def timing(
    model: ModelConfig,
    replica: Replica,
    *,
    public_len: int,
    num_probes: int,
    secret_len: int = 500,
    noise_ms: int = 100,
) -> alt.VConcatChart:
    """Plot how often an attacker guesses right what another tenant has sent, over the number of probes.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine.
    public_len : int
        Tokens that everybody sends [tokens].
    num_probes : int
        Where the ring stands first, one of :data:`PROBES` [count].
    secret_len : int
        First choice of :data:`SECRETS` [tokens].
    noise_ms : int
        First choice of :data:`NOISES_MS` [milliseconds].

    Returns
    -------
    altair.VConcatChart
        One panel with a ring and two selectors.

    Raises
    ------
    ValueError
        If `num_probes` is no stop of the slider.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B
    >>> len(timing(LANTERN_70B, Replica(H100, tp_size=4), public_len=1500, num_probes=8).vconcat)
    1
    """
    grip = ring("Probes", "num_probes", num_probes, PROBES)
    x = alt.X(
        "probes:Q",
        title="probes",
        scale=alt.Scale(type="log", domain=[0.9, 70], nice=False),
        axis=alt.Axis(values=[1, 2, 4, 8, 16, 32, 64], format="d"),
    )
    base = rows_chart(_timing_rows(model, replica, public_len))
    base = base.transform_filter("datum.secret == secret && datum.noise == noise").encode(x=x)
    here = base.transform_filter(grip)
    y, title = alt.Scale(domain=[40, 118], nice=False), "right guesses, percent"
    axis = alt.Axis(values=[50, 60, 70, 80, 90, 100])
    line = base.mark_line(stroke=ATTACKER.light, strokeDash=list(ATTACKER.dash), strokeWidth=2.5)
    flat = base.mark_line(stroke=USER.light, strokeDash=list(USER.dash))
    dots = base.mark_point(size=22, filled=True, fill=ATTACKER.light, opacity=0.55)
    panel = alt.layer(
        line.encode(y=alt.Y("right:Q", title=title, scale=y, axis=axis)),
        dots.encode(y=alt.Y("played:Q", title=title, scale=y, axis=axis)),
        flat.encode(y=alt.Y("blind:Q", title=title, scale=y, axis=axis)),
        label(base, "scoped cache: a coin", "probes", "blind", USER, 64, dy=16),
        knob(here, "right"),
        knob(here, "blind", first=False),
        readout(here, "shared", "text", 16),
        readout(here, "scoped", "blind_text", 34),
        grips(base, 230, grip),
    ).properties(width=WIDTH, height=230)
    return (
        alt.vconcat(panel)
        .add_params(
            selector("secret", "Secret part, tokens", [str(s) for s in SECRETS], str(secret_len)),
            selector("noise", "Noise, ms", [str(n) for n in NOISES_MS], str(noise_ms)),
        )
        .properties(
            description=(
                "Right guesses in percent over the number of probes, 1 to 64, on a logarithmic axis. With a shared"
                " cache the curve rises from little above a half towards a hundred, sooner for less noise and longer"
                " secrets; dots beside it are simulated attacks. With a cache that keeps tenants apart it stays at"
                " fifty, a coin."
            ),
            usermeta={"lantern": {"stops": {"ring": [str(p) for p in PROBES]}}},
        )
    )
