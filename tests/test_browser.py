"""The built book in a real browser, with the network closed.

Needs a built book (``make book``), Chromium, and axe-core from ``npm ci --prefix tests/browser``. Where one
is missing these tests are skipped with a reason; in CI (``CI`` set) they fail instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lantern_book.look import Reader, Visit

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parent.parent
AXE = ROOT / "tests/browser/node_modules/axe-core/axe.min.js"
STEPS = ROOT / "book/_static/steps.js"

# Looked at from every side; the other pages once each, as a phone in the dark shows them.
PAGES = ("index", "a/a3", "a/a4")
TOC = re.findall(r"(?:root|file): (\S+)", (ROOT / "book/_toc.yml").read_text(encoding="utf-8"))
OTHER_PAGES = tuple(name for name in TOC if name not in PAGES)
# A cell that draws a plot names its figure in its head and calls a module of plots.
CELL = re.compile(r"^```\{code-cell\}.*?^```$", re.MULTILINE | re.DOTALL)
FIGURE_OF_A_PLOT = re.compile(r"figure: \{name: (fig-[\w-]+).*plots\.\w+\(", re.DOTALL)


def plots_of(page: str) -> list[str]:
    """The names of the plots that a page draws."""
    cells = CELL.findall((ROOT / "book" / f"{page}.md").read_text(encoding="utf-8"))
    return [found[1] for cell in cells if (found := FIGURE_OF_A_PLOT.search(cell))]


EXPLORABLE = tuple((page, figure) for page in sorted(TOC) for figure in plots_of(page))
# Everything a browser asks for on a first visit, read to the end, each file gzipped, without and with a plot [bytes].
TEXT_BUDGET, PLOT_BUDGET = 300_000, 650_000
# Plots that only have selectors, or whose ring picks a row by name and moves along no axis: no tests of the ring.
RINGLESS = {
    ("d/d5", "fig-arrivals"),
    ("e/e2", "fig-three-ingredients"),
    ("f/f1", "fig-cold-start"),
    ("usual_formulas", "fig-usual"),
    ("usual_formulas", "fig-usual-logs"),
}
RINGED = tuple(each for each in EXPLORABLE if each not in RINGLESS)
# What the rings read, by page, figure and slider position, as published in the two source documents.
READINGS = (
    ("a/a3", "fig-roofline", "64", ("18.7 ms", "3,419 tokens/s")),
    ("a/a4", "fig-kv-budget", "8,192", ("54 conversations",)),
    ("a/a4", "fig-kv-budget", "2,000", ("224 conversations",)),
    ("a/a4", "fig-kv-budget", "131,072", ("3 conversations",)),
    ("b/b1", "fig-batching", "32", ("3,236 steps", "7,863 steps")),
    ("b/b2", "fig-paged", "16", ("4.0 percent", "97,392 token-slots")),
    ("b/b3", "fig-chunk", "512", ("47 ms", "754 ms")),
    ("b/b5", "fig-spec", "8", ("3.1 times",)),
    ("c/c3", "fig-capacity", "20/s", ("raw: 20 GPUs, $2.08", "cached: 16 GPUs, $1.67")),
    ("c/c3", "fig-capacity", "100/s", ("cached: 68 GPUs",)),
    ("d/d2", "fig-session-bill", "19", ("506,250", "125.0%")),
    ("f/f3", "fig-surge", "300 s", ("queue: 7.1 min, 106 s", "prepared: 0.0 min, 1,108 refused")),
    ("f/f3", "fig-quality", "1 point", ("texts: 299", "replay: 10,175")),
)


class Figure:
    """An explorable figure on an open page."""

    def __init__(self, visit: Visit, name: str) -> None:
        self.page = visit.page
        self.root = self.page.locator(f'[data-figure="{name}"]')
        self.show()
        self.page.wait_for_selector(f'[data-figure="{name}"].lt-live')
        self.slider = self.root.locator("input[type=range]")
        self.plot = self.root.locator(".lt-plot:visible svg")

    def show(self) -> None:
        """Bring it into the middle of the window."""
        self.root.evaluate("root => root.scrollIntoView({block: 'center', behavior: 'instant'})")

    @property
    def readout(self) -> str:
        """What stands under the plot."""
        return self.root.locator(".lt-readout").inner_text()

    @property
    def drawn(self) -> list[str]:
        """The readouts in the plot itself."""
        return self.plot.locator("g[class*=readout] text").all_text_contents()

    @property
    def shown_value(self) -> str:
        return self.root.locator(".lt-control-value").inner_text()

    def _ring(self) -> list[float]:
        """Size, centre and middle of the draggable ring [CSS pixels]: it is the largest drawn symbol."""
        rings: list[list[float]] = self.plot.locator("g.mark-symbol path").evaluate_all(
            "paths => paths.filter(p => p.getAttribute('stroke-width') > 2).map(p => p.getBoundingClientRect())"
            ".map(b => [b.width, b.x + b.width / 2, b.y + b.height / 2])"
        )
        return max(rings)

    @property
    def ring_centre(self) -> float:
        """How far right the ring stands [CSS pixels]."""
        return self._ring()[1]

    @property
    def ring_height(self) -> float:
        """How far down the ring stands [CSS pixels]."""
        return self._ring()[2]

    def press(self, *keys: str) -> None:
        self.slider.focus()
        for key in keys:
            self.page.keyboard.press(key)
        self.settle()

    def settle(self) -> None:
        """Wait until the plot has caught up with its controls."""
        self.page.wait_for_timeout(150)

    def go_to(self, stop: str) -> None:
        """Move the slider by keyboard to the position of that name."""
        stops = json.loads(self.slider.get_attribute("data-stops") or "[]")
        self.press("Home", *["ArrowRight"] * stops.index(stop))
        assert self.shown_value == stop


def assert_light(visit: Visit, name: str) -> None:
    """Fail unless the page, read to the end, stays within its budget, and loads the plot library only for a plot."""
    has_plot = name in {page for page, _ in EXPLORABLE}
    weights = visit.weights()
    assert any("vega" in path for path in weights) is has_plot, "the plot library must load where a plot is"
    heaviest = sorted(weights.items(), key=lambda item: -item[1])[:8]
    assert sum(weights.values()) < (PLOT_BUDGET if has_plot else TEXT_BUDGET), heaviest


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_light_asks_no_other_host_and_raises_no_error(reader: Reader, name: str) -> None:
    with reader.visit(name) as visit:
        visit.read_to_the_end()
        assert (visit.foreign, visit.failed, visit.errors) == ([], [], [])
        assert_light(visit, name)


def test_the_closed_network_is_really_closed(reader: Reader) -> None:
    """The two tests above can fail: a page that asks another host is seen, and gets nothing."""
    with reader.visit("index") as visit:
        visit.page.evaluate("fetch('https://example.org/').catch(() => null)")
        visit.page.wait_for_timeout(200)
        assert visit.foreign == ["https://example.org/"]
        assert visit.failed == ["https://example.org/"]


@pytest.mark.parametrize("name", PAGES)
def test_text_and_pictures_stand_without_script(reader: Reader, name: str) -> None:
    with reader.visit(name, java_script_enabled=False) as visit:
        article = visit.page.locator("article.bd-article")
        assert len(article.inner_text()) > 1000
        for controls in visit.page.locator(".lt-controls").all():
            assert not controls.is_visible()
        for plots in visit.page.locator(".lt-plots").all():
            assert plots.locator("svg:visible").count() == 1


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_never_scrolls_sideways(reader: Reader, name: str) -> None:
    with reader.visit(name, "narrow") as visit:
        visit.read_to_the_end()
        visit.page.evaluate("document.querySelectorAll('details').forEach(fold => (fold.open = true))")
        assert visit.page.evaluate("document.scrollingElement.scrollWidth") <= visit.page.evaluate("innerWidth")


@pytest.fixture(scope="module")
def plot(reader: Reader, request: pytest.FixtureRequest) -> Iterator[Figure]:
    """A plot on its open page. The tests of one plot share the page: to load it is most of their work."""
    name, figure, size = request.param
    with reader.visit(name, size) as visit:
        yield Figure(visit, figure)


def shown(page: str, figure: str, size: str = "wide", *more: Any) -> Any:
    """The parameters of a test of one plot; what concerns one page is tested by one process."""
    return pytest.param((page, figure, size), *more, id=f"{page}-{figure}-{size}", marks=pytest.mark.xdist_group(page))


def each(plots: Iterable[tuple[str, str]], *sizes: str) -> pytest.MarkDecorator:
    """Give a test each of these plots in each of the sizes."""
    cases = [shown(*names, size) for names in plots for size in sizes]
    return pytest.mark.parametrize("plot", cases, indirect=True, scope="module")


@each(RINGED, "wide")
def test_the_ring_follows_the_keyboard(plot: Figure) -> None:
    before = plot.readout, plot.drawn, plot.ring_centre
    way = "ArrowLeft" if int(plot.slider.input_value()) > 0 else "ArrowRight"
    plot.press(way, way)
    assert plot.readout != before[0]
    assert plot.drawn != before[1]
    assert (plot.ring_centre < before[2]) is (way == "ArrowLeft")
    assert plot.slider.get_attribute("aria-valuetext") == plot.readout


@each(RINGED, "wide", "narrow")
def test_the_ring_follows_the_pointer(plot: Figure) -> None:
    plot.show()
    slider, readout, centre = int(plot.slider.input_value()), plot.readout, plot.ring_centre
    box = plot.plot.bounding_box()
    assert box
    # Far enough to reach another stop also where stops are few, towards the side with more room.
    way = -1 if centre - box["x"] > box["width"] / 2 else 1
    target = centre + way * 0.4 * box["width"]
    mouse = plot.page.mouse
    mouse.move(centre, plot.ring_height)
    mouse.down()
    mouse.move(target, plot.ring_height, steps=8)
    mouse.up()
    plot.settle()
    assert (int(plot.slider.input_value()) - slider) * way > 0
    assert plot.readout != readout
    assert abs(plot.ring_centre - target) < abs(centre - target), "the nearest stop, not the pointer's own place"
    held = plot.readout
    mouse.move(centre, plot.ring_height, steps=4)
    plot.settle()
    assert plot.readout == held, "the ring must stay when the button is up"


@each(EXPLORABLE, "wide")
def test_every_selector_changes_the_picture(plot: Figure) -> None:
    for selector in plot.root.locator("select").all():
        picture, readout = plot.plot.inner_html(), plot.readout
        current = selector.evaluate("select => select.selectedIndex")
        selector.select_option(index=1 if current == 0 else 0)
        plot.settle()
        assert plot.plot.inner_html() != picture, "the picture must change"
        selector.select_option(index=current)
        plot.settle()
        assert plot.readout == readout


@each([names for names in EXPLORABLE if names[0].startswith("a/")], "wide")
def test_part_a_chooses_accelerator_and_tensor_parallel_size(plot: Figure) -> None:
    assert plot.root.locator("select").count() == 2


@pytest.mark.parametrize(
    ("plot", "stop", "texts"),
    [shown(name, figure, "wide", stop, texts) for name, figure, stop, texts in READINGS],
    indirect=["plot"],
    scope="module",
)
def test_the_rings_read_what_was_published(plot: Figure, stop: str, texts: tuple[str, ...]) -> None:
    plot.go_to(stop)
    for text in texts:
        found = rf"(?<![\d,.]){re.escape(text)}"
        assert re.search(found, plot.readout), plot.readout
        assert any(re.search(found, drawn) for drawn in plot.drawn)


def test_the_ring_follows_a_finger(reader: Reader) -> None:
    with reader.visit("a/a3", "narrow", has_touch=True, is_mobile=True) as visit:
        plot = Figure(visit, "fig-roofline")
        slider, centre = int(plot.slider.input_value()), plot.ring_centre
        box = plot.plot.bounding_box()
        assert box
        touch = visit.page.context.new_cdp_session(visit.page)
        height = box["y"] + box["height"] * 0.25

        def send(kind: str, *points: float) -> None:
            touch.send(
                "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": height} for x in points]}
            )

        send("touchStart", centre)
        for step in range(1, 9):
            send("touchMove", centre + 10 * step)
        send("touchEnd")
        plot.settle()
        assert int(plot.slider.input_value()) > slider


def test_a_plot_keeps_its_state_when_the_screen_turns(reader: Reader) -> None:
    with reader.visit("a/a4") as visit:
        plot = Figure(visit, "fig-kv-budget")
        plot.go_to("2,000")
        visit.page.set_viewport_size({"width": 390, "height": 844})
        plot.root.locator(".lt-narrow svg").wait_for(state="visible")
        plot.root.scroll_into_view_if_needed()
        visit.page.wait_for_timeout(400)
        assert any("224 conversations" in text for text in plot.drawn)


@pytest.mark.parametrize("name", PAGES)
def test_a_claim_opens_and_closes_by_keyboard(reader: Reader, name: str) -> None:
    with reader.visit(name) as visit:
        page = visit.page
        claim = page.locator("article button.lt-claim").first
        popover = page.locator(f"#{claim.get_attribute('popovertarget')}")
        assert not popover.is_visible()
        claim.focus()
        page.keyboard.press("Enter")
        assert popover.is_visible()
        assert claim.inner_text() in popover.inner_text()
        box = popover.bounding_box()
        assert box
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 900
        page.keyboard.press("Escape")
        assert not popover.is_visible()
        assert claim.evaluate("button => document.activeElement === button")


def test_unfolded_code_that_scrolls_is_reachable_by_keyboard(reader: Reader) -> None:
    with reader.visit("a/a3", "narrow") as visit:
        visit.page.evaluate("document.querySelectorAll('details').forEach(fold => (fold.open = true))")
        visit.page.wait_for_timeout(200)
        boxes = "[...document.querySelectorAll('article pre')].filter(pre => pre.scrollWidth > pre.clientWidth)"
        assert visit.page.evaluate(f"{boxes}.length") > 0
        assert visit.page.evaluate(f"{boxes}.every(pre => pre.tabIndex === 0)")


def serious_findings(visit: Visit) -> list[str]:
    """What axe-core calls serious or critical on the page as it is now.

    Contrast is looked at for two texts of each kind: most of the time goes there, and a thousand words of one colour
    on one ground have one contrast.
    """
    visit.page.add_script_tag(path=AXE)
    found: list[dict[str, Any]] = visit.page.evaluate(FIND)
    return [
        f"{rule['id']}: {node['target']} {node['failureSummary']}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


FIND = """async () => {
    const kinds = new Map();
    const clear = colour => colour === 'transparent' || colour.endsWith(', 0)');
    for (const element of document.body.querySelectorAll('*')) {
        if (![...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim())) continue;
        const style = getComputedStyle(element);
        const kind = [style.color, style.fill, style.fontSize, style.fontWeight, style.textDecorationLine];
        for (let at = element; at; at = at.parentElement) {
            const ground = getComputedStyle(at);
            kind.push(ground.opacity);
            if (ground.backgroundImage !== 'none' || !clear(ground.backgroundColor)) {
                kind.push(ground.backgroundImage, ground.backgroundColor);
                break;
            }
        }
        const key = kind.join('|');
        if (!kinds.has(key)) kinds.set(key, []);
        if (kinds.get(key).length < 2) kinds.get(key).push(element);
    }
    const few = {resultTypes: ['violations']};
    const rest = await axe.run({...few, rules: {'color-contrast': {enabled: false}}});
    const contrast = await axe.run([...kinds.values()].flat(), {...few, runOnly: ['color-contrast']});
    return [...rest.violations, ...contrast.violations];
}"""


@pytest.mark.parametrize("name", OTHER_PAGES)
def test_every_other_page_is_light_and_sound_on_a_phone_in_the_dark(
    reader: Reader, name: str, missing: Callable[[str], None]
) -> None:
    if not AXE.is_file():
        missing("axe-core is not installed: npm ci --prefix tests/browser")
    with reader.visit(name, "narrow", True) as visit:
        visit.read_to_the_end()
        assert_light(visit, name)
        visit.page.evaluate("document.querySelectorAll('details').forEach(fold => (fold.open = true))")
        visit.page.wait_for_timeout(200)
        assert (visit.foreign, visit.failed, visit.errors) == ([], [], [])
        assert visit.page.evaluate("document.scrollingElement.scrollWidth") <= visit.page.evaluate("innerWidth")
        assert serious_findings(visit) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", ["wide", "narrow"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(
    reader: Reader, name: str, size: str, dark: bool, missing: Callable[[str], None]
) -> None:
    if not AXE.is_file():
        missing("axe-core is not installed: npm ci --prefix tests/browser")
    with reader.visit(name, size, dark) as visit:
        page = visit.page
        visit.read_to_the_end()
        assert page.evaluate("document.documentElement.dataset.theme") == ("dark" if dark else "light")
        page.evaluate("document.querySelectorAll('details').forEach(fold => (fold.open = true))")
        page.locator("article button.lt-claim").first.press("Enter")
        page.wait_for_timeout(200)  # for the boxes that scroll, once unfolded, to become reachable
        assert serious_findings(visit) == []


def test_axe_sees_poor_contrast(reader: Reader, missing: Callable[[str], None]) -> None:
    """The test above can fail: grey text on grey is found, also where it is one word far down."""
    if not AXE.is_file():
        missing("axe-core is not installed: npm ci --prefix tests/browser")
    with reader.visit("index") as visit:
        assert serious_findings(visit) == []
        grey = "<i style='color:#999;background:#bbb'>grey words</i>"
        visit.page.evaluate("grey => ([...document.querySelectorAll('article li')].at(-1).innerHTML = grey)", grey)
        (finding,) = serious_findings(visit)
        assert finding.startswith("color-contrast")


def test_the_switch_changes_the_theme_and_is_remembered(reader: Reader) -> None:
    with reader.visit("index") as visit:
        theme = "document.documentElement.dataset.theme"
        switch = visit.page.locator(".article-header-buttons .theme-switch-button")
        background = "getComputedStyle(document.body).backgroundColor"
        light = visit.page.evaluate(background)
        for _ in range(3):  # automatic, light, dark, in the theme's order
            switch.click()
            if visit.page.evaluate(theme) == "dark":
                break
        assert visit.page.evaluate(theme) == "dark"
        assert visit.page.evaluate(background) != light
        visit.page.reload()
        assert visit.page.evaluate(theme) == "dark"


DIAGRAM = """<div class="lt-diagram"><svg data-steps="3" viewBox="0 0 9 9">
<g data-step="1"></g><g data-step="2" data-label="the second"></g><g data-step="3"></g></svg></div>"""


@pytest.mark.parametrize("still", [False, True], ids=["motion", "reduced"])
def test_a_diagram_unfolds_and_is_complete_at_first(reader: Reader, still: bool) -> None:
    with reader.visit("index", reduced_motion="reduce" if still else "no-preference") as visit:
        page = visit.page
        page.set_content(DIAGRAM)
        page.add_script_tag(path=STEPS)
        hidden = page.locator(".lt-later")
        assert hidden.count() == 0
        assert page.get_by_role("button", name="Play").is_visible() is not still
        page.get_by_role("button", name="Step").click()
        assert hidden.count() == 2
        page.get_by_role("button", name="Step").click()
        assert hidden.count() == 1
        assert page.locator("output").inner_text() == "2 of 3: the second"
        page.get_by_role("button", name="Reset").click()
        assert hidden.count() == 0
        if not still:
            page.get_by_role("button", name="Play").click()
            assert hidden.count() == 2
            page.wait_for_selector(".lt-later", state="detached", timeout=5000)
