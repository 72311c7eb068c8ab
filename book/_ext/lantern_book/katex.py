r"""Formulas: KaTeX runs while the book is built, so a reader's browser only needs its style sheet.

Beside KaTeX's own commands an author has the figure colours: ``\mem{x}`` (memory), ``\ari{x}``
(arithmetic), ``\tot{x}`` (shared or total), ``\usr{x}`` (user), ``\ctl{x}`` (control) and ``\att{x}``
(attacker). They become CSS classes, so that they follow the colour theme.
"""

import os
import re
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from py_mini_racer import JSEvalException, MiniRacer
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)
ENGINE = Path(__file__).parent / "vendor" / "katex.min.js"
ROLES = ("mem", "ari", "tot", "usr", "ctl", "att")

# Trust covers one command with our own six classes, and nothing else: no \href, no \includegraphics.
# Strictness is on except for what the role macros and Sphinx's own line breaks need.
PROGRAM = r"""
function lanternRender(tex, display, roles) {
  const macros = {};
  for (const role of roles) macros["\\" + role] = "\\htmlClass{lt-" + role + "}{#1}";
  const own = new Set(roles.map(role => "lt-" + role));
  return katex.renderToString(tex, {
    displayMode: display, output: "htmlAndMathml", throwOnError: true, macros: macros,
    trust: context => {
      if (context.command === "\\htmlClass" && own.has(context.class)) return true;
      throw new katex.ParseError(context.command + " is not allowed in this book");
    },
    strict: code => code === "htmlExtension" || code === "newLineInDisplayMode" ? "ignore" : "error",
  });
}
"""


class FormulaError(ValueError):
    """A formula KaTeX cannot set."""


@lru_cache(maxsize=1)
def _engine(process_id: int) -> MiniRacer:
    """Start the script engine once per process: a forked one cannot be shared."""
    engine = MiniRacer()
    engine.eval(ENGINE.read_text(encoding="utf-8"))
    engine.eval(PROGRAM)
    return engine


@lru_cache(maxsize=4096)
def render(tex: str, display: bool = False) -> str:
    r"""Set a formula and return it as HTML with MathML beside it.

    Raises FormulaError with KaTeX's own words when the formula is wrong.

    >>> "katex" in render(r"\mem{s_{kv}}")
    True
    """
    try:
        return str(_engine(os.getpid()).call("lanternRender", tex, display, list(ROLES)))
    except JSEvalException as error:
        found = re.search(r"ParseError: (.*)", str(error))
        message = found.group(1) if found else str(error).strip().splitlines()[0]
        raise FormulaError(f"formula {tex!r}: {message}") from None


def _render_or_warn(tex: str, display: bool, node: nodes.Node) -> str:
    try:
        return render(tex, display)
    except FormulaError as error:
        LOGGER.warning("%s", error, location=node, type="lantern", subtype="formula")
        return f'<code class="lt-formula-error">{escape(tex)}</code>'


def display_source(text: str, nowrap: bool) -> str:
    r"""Give a display formula the environments its line breaks need, as Sphinx does for MathJax.

    >>> display_source(r"a &= b \\ c &= d", nowrap=False)
    '\\begin{aligned}a &= b \\\\ c &= d\\end{aligned}'
    """
    parts = [part.strip() for part in text.split("\n\n") if part.strip()]
    if nowrap or not parts:
        return text
    broken = [rf"\begin{{aligned}}{p}\end{{aligned}}" if _has_break(p) else p for p in parts]
    if len(broken) == 1:
        return broken[0]
    return r"\begin{gathered}" + r"\\".join(broken) + r"\end{gathered}"


def _has_break(part: str) -> bool:
    r"""Tell whether a line break stands outside every environment (a matrix has its own)."""
    outside = re.sub(r"\\begin\{(\w+\*?)\}.*?\\end\{\1\}", "", part, flags=re.DOTALL)
    return r"\\" in outside


def visit_math(self: HTML5Translator, node: nodes.math) -> None:
    """Write an inline formula."""
    self.body.append(self.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    self.body.append(_render_or_warn(node.astext(), False, node) + "</span>")
    raise nodes.SkipNode


def visit_displaymath(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a display formula in a box that scrolls by itself when the screen is narrow."""
    attributes: dict[str, Any] = {"CLASS": "math lt-formula notranslate nohighlight"}
    self.body.append(self.starttag(node, "div", "", **attributes))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    # A scrolling box must be reachable by keyboard and needs a name when it is.
    self.body.append('<div class="lt-scroll" tabindex="0" role="group" aria-label="Formula">')
    source = display_source(node.astext(), bool(node.get("nowrap", False)))
    self.body.append(_render_or_warn(source, True, node) + "</div></div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Register the renderer under the name ``lantern_katex`` (chosen in ``_config.yml``)."""
    app.add_html_math_renderer("lantern_katex", (visit_math, None), (visit_displaymath, None))
