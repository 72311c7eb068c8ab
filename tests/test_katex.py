"""Formulas are set while the book is built, or reported with file and line."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from lantern_book import katex
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

CONF = """
extensions = ["myst_parser", "katex_alone"]
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "lantern_katex"
"""
EXTENSION = """
from lantern_book import katex
def setup(app):
    katex.setup(app)
"""


def visible(html: str) -> str:
    """What a sighted reader sees: the text of the drawn half, without the MathML."""
    drawn = html[html.index('<span class="katex-html"') :]
    return re.sub(r"<[^>]+>", "", drawn).replace("\u200b", "")


def test_a_formula_has_a_drawn_and_a_spoken_half() -> None:
    html = katex.render(r"a + b")
    assert visible(html) == "a+b"
    assert "<math" in html
    assert '<annotation encoding="application/x-tex">a + b</annotation>' in html
    assert '<span class="katex-html" aria-hidden="true">' in html


@pytest.mark.parametrize("role", ["mem", "ari", "tot", "usr", "ctl", "att"])
def test_a_role_becomes_a_class_so_that_it_follows_the_theme(role: str) -> None:
    html = katex.render(rf"\{role}{{x}} + y")
    assert f'class="enclosing lt-{role}"' in html
    assert visible(html) == "x+y"
    assert "color:" not in html


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        (r"\frac{1}{", "Unexpected end of input"),
        (r"\nonsense", "Undefined control sequence"),
        (r"\href{https://example.org}{x}", "not allowed"),
        (r"\htmlClass{other}{x}", "not allowed"),
        ("5 €", "Unrecognized Unicode character"),
    ],
)
def test_a_wrong_formula_is_an_error_in_words(formula: str, words: str) -> None:
    with pytest.raises(katex.FormulaError, match=words):
        katex.render(formula)


def test_line_breaks_and_several_lines_are_set() -> None:
    two = katex.display_source(r"a &= b \\ c &= d", nowrap=False)
    assert katex.render(two, display=True).count("<mtr>") == 2
    parts = katex.display_source("a = b\n\nc = d", nowrap=False)
    assert katex.render(parts, display=True).count("<mtr>") == 2
    matrix = r"\begin{pmatrix} a \\ b \end{pmatrix}"
    assert katex.display_source(matrix, nowrap=False) == matrix


def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str) -> tuple[str, str]:
    """Build one page with the renderer alone; return its HTML and the warnings."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "conf.py").write_text(CONF)
    (tmp_path / "katex_alone.py").write_text(EXTENSION)
    (source / "index.md").write_text(page)
    monkeypatch.syspath_prepend(str(tmp_path))
    warnings = io.StringIO()
    with patch_docutils(), docutils_namespace():
        folders = [str(tmp_path / name) for name in ("source", "source", "out", "doctrees")]
        app = Sphinx(*folders, "html", status=None, warning=warnings)
        app.build()
    return (tmp_path / "out/index.html").read_text(), re.sub(r"\x1b\[[\d;]*m", "", warnings.getvalue())


def test_pages_hold_finished_formulas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = "# T\n\nInline $x^2$ here.\n\n$$ \\mem{y} = 1 $$ (eq-y)\n\nSee {eq}`eq-y`.\n"
    html, warnings = build(tmp_path, monkeypatch, page)
    assert warnings == ""
    assert html.count('class="katex"') == 2
    assert '<span class="eqno">(1)' in html
    assert 'href="#equation-eq-y">(1)</a>' in html
    assert "://cdn" not in html
    assert re.search(r'class="lt-scroll"[^>]*aria-label="Formula"', html)


def test_a_wrong_formula_is_a_warning_with_file_and_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = "# T\n\nFirst.\n\n$$ \\frac{1}{ $$\n"
    _, warnings = build(tmp_path, monkeypatch, page)
    assert re.search(r"index\.md:5: WARNING: formula .*Unexpected end of input", warnings)
