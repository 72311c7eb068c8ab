"""The workbench that runs: sliders that set the simulator, and a plot that is computed anew. For a live notebook.

In a notebook::

    from lantern_lib.figures.workbench import workbench
    workbench()
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO

import ipywidgets as widgets  # type: ignore[import-untyped]
from matplotlib.figure import Figure

from lantern_lib.figures.roles import CONTROL, MEMORY, PLOT_MUTED, USER
from lantern_lib.metrics import Summary
from lantern_lib.studies.bench import CAPS, CHUNKS, DRAFTS, PROMISE, Setting, kept_up_to, measure

#: Fewer rates than the page's grid, so that a change is answered in about a second.
LIVE_RATES = (1, 2, 3, 4, 5, 6, 8, 10)
LIVE_MINUTES = 3.0


def curve(setting: Setting, rates: Sequence[float], minutes: float, seed: int) -> list[Summary]:
    """Run a setting at several rates.

    Parameters
    ----------
    setting : Setting
        The engine.
    rates : sequence of float
        Requests per second [requests/s].
    minutes : float
        For how long requests arrive [minutes].
    seed : int
        Where the chance comes from.

    Returns
    -------
    list of Summary
        One for each rate.

    Examples
    --------
    >>> len(curve(Setting(max_batch=8), (1, 2), 1.0, 1))
    2
    """
    return [measure(setting, rate, minutes=minutes, seed=seed) for rate in rates]


def drawing(rates: Sequence[float], runs: Sequence[Summary], before: Sequence[Summary] | None = None) -> bytes:
    """Draw both percentiles over the rate.

    Parameters
    ----------
    rates : sequence of float
        Requests per second [requests/s].
    runs : sequence of Summary
        One for each rate.
    before : sequence of Summary, optional
        Another curve, in grey, to compare with.

    Returns
    -------
    bytes
        A PNG. The figure belongs to nobody else and needs no closing.

    Examples
    --------
    >>> drawing((1, 2), curve(Setting(max_batch=8), (1, 2), 1.0, 1))[1:4]
    b'PNG'
    """
    figure = Figure(figsize=(7.2, 5.6), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    for panel, name, scale, role, limit in (
        (top, "ttft", 1.0, USER, PROMISE.ttft_seconds),
        (bottom, "tpot", 1e3, MEMORY, PROMISE.tpot_seconds),
    ):
        if before:
            grey = [scale * getattr(run, name).p95 for run in before]
            panel.plot(rates, grey, color=PLOT_MUTED, linestyle=":", label="before the last change")
        panel.plot(rates, [scale * getattr(run, name).p95 for run in runs], color=role.light, marker="o", label="now")
        panel.axhline(scale * (limit or 0.0), color=CONTROL.light, linestyle="-.", label="promise")
        panel.legend(loc="upper left", frameon=False)
    top.set(yscale="log", ylabel="first token, p95 [s]")
    bottom.set(ylabel="time per token, p95 [ms]", xlabel="requests a second")
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def verdict(rates: Sequence[float], runs: Sequence[Summary]) -> str:
    """Say in a sentence where the promise breaks.

    Parameters
    ----------
    rates : sequence of float
        Requests per second [requests/s].
    runs : sequence of Summary
        One for each rate.

    Returns
    -------
    str
        The sentence [text].

    Examples
    --------
    >>> verdict((1, 2), curve(Setting(max_batch=8), (1, 2), 1.0, 1)).startswith("Both promises hold up to")
    True
    """
    kept = kept_up_to(rates, [run.ttft.p95 for run in runs], [run.tpot.p95 for run in runs])
    if not kept:
        return f"The promise is broken at {rates[0]:g} requests a second already."
    place = list(rates).index(kept)
    return (
        f"Both promises hold up to {kept:g} requests a second; there the 95th percentiles are"
        f" {runs[place].ttft.p95:.2f} s to the first token and {1e3 * runs[place].tpot.p95:.0f} ms a token."
    )


@dataclass
class Workbench:
    """Sliders, a picture and a sentence, kept together.

    ``panel`` is what a notebook shows; a change of any slider runs the simulator and draws again.
    """

    rates: Sequence[float] = LIVE_RATES
    minutes: float = LIVE_MINUTES
    runs: list[Summary] = field(default_factory=list)

    def __post_init__(self) -> None:
        style = {"description_width": "11em"}
        wide = widgets.Layout(width="30em")
        chunks = [("whole prompts" if not chunk else f"{chunk:,} tokens", chunk) for chunk in CHUNKS]
        self.chunk = widgets.SelectionSlider(options=chunks, value=2048, description="Prompts in steps of")
        self.max_batch = widgets.SelectionSlider(options=[8, 16, *CAPS, 256], value=64, description="Batch cap")
        self.hit_percent = widgets.IntSlider(min=0, max=90, step=10, value=0, description="Found in cache, percent")
        self.draft_len = widgets.SelectionSlider(options=range(DRAFTS[-1] + 1), value=0, description="Drafts a round")
        self.seed = widgets.IntSlider(min=1, max=20, value=7, description="Chance (seed)")
        self.controls = (self.chunk, self.max_batch, self.hit_percent, self.draft_len, self.seed)
        self.image = widgets.Image(format="png")
        self.sentence = widgets.Label()
        for control in self.controls:
            control.style, control.layout, control.continuous_update = style, wide, False
            control.observe(self.update, names="value")
        self.panel = widgets.VBox([*self.controls, self.image, self.sentence])
        self.update()

    def update(self, change: object = None) -> None:
        """Run what the sliders say, draw it over the run before, and say where the promise breaks."""
        try:
            setting = Setting(self.chunk.value, self.max_batch.value, self.hit_percent.value, self.draft_len.value)
            now = curve(setting, self.rates, self.minutes, self.seed.value)
        except ValueError as error:  # settings that do not go together: the reader has to see why
            self.sentence.value = str(error)
            return
        self.image.value = drawing(self.rates, now, self.runs)
        self.sentence.value = verdict(self.rates, now)
        self.runs = now


def workbench() -> widgets.VBox:
    """Show the workbench in a live notebook.

    Returns
    -------
    ipywidgets.VBox
        Sliders and a plot; every change runs the simulator for about a second.

    Examples
    --------
    >>> len(workbench().children)
    7
    """
    return Workbench().panel
