"""What a page loads: only this host's files, and only those the page uses."""

import hashlib
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment

# A page gets a file only when its HTML holds the mark beside it.
SCRIPTS = {
    'class="lt-explorable__data"': "explorable.js",
    'data-steps="': "steps.js",
    'class="lt-lookup': "lookup.js",
    'class="lt-calculator"': "sizing.js",
    'class="lt-calculator__data"': "calculator.js",
}
STYLES = {'class="katex"': "vendor/katex/katex.min.css", 'class="lt-calculator"': "calculator.css"}

TABS = "_static/design-tabs.js"  # sphinx-design links it on every page

# The theme copies these, and no page asks for them: icon fonts and the script that draws icons,
# translations, logos of other people's services, the sources of minified files.
UNUSED = (
    "design-tabs.js",
    "scripts/fontawesome.js",
    "scripts/fontawesome.js.LICENSE.txt",
    "vendor/fontawesome",
    "locales",
    "images",
    "sbt-webpack-macros.html",
    "webpack-macros.html",
)


def keep_own_assets(app: Sphinx, config: Config) -> None:
    """Undo jupyter-book's habit of linking every style sheet and script under ``_static`` on every page."""
    config.html_css_files = ["lantern.css", "parts.css", "icons.css"]
    config.html_js_files = ["lantern.js"]


def adapt_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Add the files whose mark is in the page, and take off the script of tabs, which no page has."""
    html = context.get("body") or ""
    context["script_files"][:] = [f for f in context["script_files"] if f.filename != TABS]
    # The fold of a code cell says what it holds; myst-nb's label would hide that from screen readers.
    html = html.replace(' aria-label="Toggle hidden content"', "")
    # docutils calls the bibliography a list and its entries no list items.
    context["body"] = html.replace('<div role="list" class="citation-list">', '<div class="citation-list">')
    toctree = context["generate_toctree_html"]
    context["generate_toctree_html"] = lambda *args, **options: name_folds(str(toctree(*args, **options)))
    for mark, file in SCRIPTS.items():
        if mark in html:
            app.add_js_file(file)
    for mark, file in STYLES.items():
        if mark in html:
            app.add_css_file(file, priority=200)


def name_folds(html: str) -> str:
    """Give the folds of the navigation a name: the theme's have only an arrow, which nobody can hear.

    >>> name_folds("<details><summary><span></span></summary></details>")
    '<details><summary aria-label="Sections of this part"><span></span></summary></details>'
    """
    return html.replace("<summary>", '<summary aria-label="Sections of this part">')


def write_again(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Return every page when a file under ``_static`` has changed: pages carry the files' checksums.

    Without this Sphinx finds no page out of date and leaves the old style sheet where it is.
    """
    static = Path(app.srcdir) / "_static"
    total = hashlib.sha256()
    for path in sorted(static.rglob("*")):
        if path.is_file():
            total.update(path.relative_to(static).as_posix().encode() + path.read_bytes())
    before = getattr(env, "lantern_static", None)
    env.lantern_static = total.hexdigest()  # type: ignore[attr-defined]
    return [] if before == total.hexdigest() else sorted(env.found_docs)


def prune(app: Sphinx, exception: Exception | None) -> None:
    """Delete what the theme copied and no page loads."""
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    for name in UNUSED:
        target = static / name
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
    for source_map in static.rglob("*.map"):
        source_map.unlink()


def setup(app: Sphinx) -> None:
    """Connect the handlers. They run after the theme's own."""
    # jupyter-book sets this for the comment boxes the book leaves out, and Sphinx warns of settings
    # that nobody knows.
    app.add_config_value("comments_config", {}, "html")
    app.connect("config-inited", keep_own_assets)
    app.connect("env-updated", write_again)
    app.connect("html-page-context", adapt_page, priority=900)
    app.connect("build-finished", prune, priority=900)
