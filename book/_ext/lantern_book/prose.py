"""Find numbers in the prose of a page that are neither a claim nor a fact.

A page is parsed into the tokens that MyST itself works with, so code, formulas, link targets and
front matter are known for what they are. What a reader reads is joined to plain text, where each
role that vouches for its number leaves a mark; then the numbers left over are looked at.

A number counts if it has a unit or three significant digits. Free are: years (1950 to 2049), names
that contain digits (A3, H100, 70B, p5.48xlarge), ordinals, dotted versions, widths such as 8-bit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from myst_parser.parsers.directives import parse_directive_text
from myst_parser.parsers.mdit import create_md_parser

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from myst_parser.config.main import MdParserConfig

    from lantern_book.project import Project

# Stands for a piece that needs no check. Not a digit and not a space, so nothing joins across it.
_MARK = "\N{OBJECT REPLACEMENT CHARACTER}"

# Roles whose text a reader may see as a number, but which vouch for it or are no prose.
_FREE_ROLES = re.compile(
    r"(claim|fact|cite(:\w+)?|ref|numref|eq|doc|term|any|download|code|math|kbd|samp|py:\w+|glue(:\w+)?)"
)
# Directives that hold no prose of ours: code, formulas, structure, and pictures named by a path.
_NO_PROSE = {
    "code", "code-block", "sourcecode", "literalinclude", "math", "bibliography", "toctree", "tableofcontents",
    "contents", "eval-rst", "include", "glue", "mermaid", "raw-cell",
}  # fmt: skip
_PATH_ARGUMENT = {"figure", "image", "code-cell"}
_TEXT_OPTIONS = ("caption", "alt", "title")
_TEXT_ATTRIBUTES = {"alt", "title", "aria-label"}

_UNITS = (
    r"[num\u00b5\u03bc]?s|[kKMGTPE]?i?B|bytes?|bits?|[kKMGT]bit|seconds?|minutes?|mins?|hours?|hrs?|h|days?|weeks?"
    r"|months?|years?|milliseconds?|microseconds?|nanoseconds?|[kMGTPE]?FLOPs?|[kMGTPE]?FLOPS"
    r"|(?:k|M|G|m)?Hz|k?W|MW|kWh|watts?|k?m|percent|per cent|percentage points?|times|fold|x|k|K|M"
    r"|dollars?|cents?|euros?|USD|EUR|thousand|million|billion|trillion"
    r"|tokens?|requests?|sequences?|conversations?|users?|people|GPUs?|cards?|nodes?|replicas?|machines?|servers?"
    r"|layers?|heads?|blocks?|parameters?|weights?|operations?|steps?|queries|calls?|req|RPS|QPS"
)
_NUMBER = re.compile(
    r"(?<!\w)(?<!\w\.)"
    r"(?P<money>[$\u20ac\u00a3]\s?)?"
    r"(?P<number>\d+(?:[,\u202f\u00a0]\d+)*(?:\.\d+)*(?:[eE][+-]?\d+)?)"
    rf"(?P<rest>\s*[%\u2030\u00d7\u00b0]|[\s-]*(?:{_UNITS})(?!\w)|[\u2070\u00b9\u00b2\u00b3\u2074-\u2079^])?"
)
# Numbers that belong to a name or a word: 70B, 2nd, 1990s, 8-bit.
_WORDS = re.compile(r"\d+(\.\d+)?B(?!\w)(?!\s+(parameters|weights))|\d*(1st|2nd|3rd|\dth)\b|(19|20)\d0s\b|\d+-bit\b")
# What stands before the number in names such as Llama-3.1 or H100-80GB.
_NAME_BEFORE = re.compile(r"\b[A-Z][\w.]*-$")


@dataclass(frozen=True)
class Finding:
    """A number in prose that nothing vouches for: file, line [1, 2, ...] and the words around it."""

    path: Path
    line: int
    text: str


class _DirectiveShape:
    """What MyST's directive reader needs to know to split options from content."""

    option_spec: ClassVar = {"any": True}
    required_arguments = 0
    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True


class _HtmlText(HTMLParser):
    """Collect what a reader of HTML sees or hears, with the line of each piece."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[tuple[int, str]] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in ("script", "style", "code")
        self.pieces += [(self.getpos()[0], value) for key, value in attrs if key in _TEXT_ATTRIBUTES and value]

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in ("script", "style", "code")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.pieces.append((self.getpos()[0], data))


def bare_numbers(path: Path, config: MdParserConfig | None = None) -> list[Finding]:
    """Find the numbers in the prose of a page that are neither claim nor fact.

    Parameters
    ----------
    path : Path
        A MyST Markdown file.
    config : MdParserConfig, optional
        The book's Markdown settings; without them, the syntax that the course uses.

    Returns
    -------
    list of Finding
        In the order of the page.
    """
    if config is None:
        from myst_parser.config.main import MdParserConfig

        config = MdParserConfig(enable_extensions={"colon_fence", "dollarmath", "deflist", "attrs_inline", "linkify"})
    parser = create_md_parser(config, RendererHTML)
    pieces = _prose(parser, Path(path).read_text("utf8"), 1)
    found = [Finding(Path(path), line, words) for start, text in pieces for line, words in _numbers(start, text)]
    return sorted(found, key=lambda finding: finding.line)


def print_findings(project: Project, files: Iterable[Path] = ()) -> bool:
    """Print every bare number as ``file:line: text``; return whether there was none."""
    paths = list(files) or [path for path in project.pages.values() if path.suffix == ".md"]
    findings = [finding for path in paths for finding in bare_numbers(path.resolve(), project.markdown)]
    for finding in findings:
        print(f"{project.show(finding.path)}:{finding.line}: {finding.text}")
    return not findings


def _prose(parser: MarkdownIt, text: str, first_line: int) -> Iterator[tuple[int, str]]:
    """Yield the pieces of prose of a text, each with the line it begins on."""
    for token in parser.parse(text):
        line = first_line + (token.map[0] if token.map else 0)
        if token.type == "inline":
            yield line, "".join(_inline(token))
        elif token.type in ("fence", "colon_fence"):
            yield from _fence(parser, token, line)
        elif token.type == "html_block":
            yield from _html(token.content, line)


def _inline(token: Token) -> Iterator[str]:
    """Yield what a line of text shows; emphasis vanishes, so that ``**14** ms`` is read as 14 ms."""
    bare_link = False
    cursor = 0
    for child in token.children or []:
        if child.type in ("link_open", "link_close"):
            bare_link = child.type == "link_open" and child.info == "auto"
        elif child.type in ("text", "text_special"):
            yield _MARK if bare_link else child.content
        elif child.type in ("softbreak", "hardbreak"):
            yield "\n"
        elif child.type == "image":
            yield f"{_MARK} {child.content} {child.attrs.get('title', '')} {_MARK}"
        elif not child.type.endswith(("_open", "_close")) and child.type != "html_inline":
            named = child.type == "myst_role" and not _FREE_ROLES.fullmatch(child.meta["name"])
            yield child.content if named else _MARK
            cursor, breaks = _breaks(token.content, child.content, cursor)
            yield "\n" * breaks


def _breaks(source: str, content: str, cursor: int) -> tuple[int, int]:
    """Return where a role or a piece of code ends in the source, and the line breaks that its token lost."""
    pattern = re.compile(r"\s+".join(map(re.escape, content.split())))
    match = pattern.search(source, cursor)
    return (match.end(), match[0].count("\n")) if match else (cursor, 0)


def _fence(parser: MarkdownIt, token: Token, line: int) -> Iterator[tuple[int, str]]:
    """Yield the prose of a directive: its title, its text options and its content."""
    match = re.match(r"\{([^}]+)\}\s*(.*)", token.info, re.DOTALL)
    if match is None and token.type == "colon_fence":
        # Left over from a box that ended early; a reader sees it, so it is looked at.
        yield from _prose(parser, token.content, line + 1)
    if match is None or match[1] in _NO_PROSE:
        return
    name, argument = match.groups()
    if name == "raw":
        yield from _html(token.content, line + 1)
        return
    if argument and name not in _PATH_ARGUMENT:
        yield from _prose(parser, argument, line)
    parsed = parse_directive_text(_DirectiveShape, "", token.content, validate_options=False)  # type: ignore[arg-type]
    for text in _option_texts(parsed.options):
        for offset, piece in _prose(parser, text, 0):
            yield line + 1 + _line_of_option(token.content, text) + offset, piece
    if name != "code-cell":
        yield from _prose(parser, "\n".join(parsed.body), line + 1 + parsed.body_offset)


def _option_texts(options: Any) -> Iterator[str]:
    """Yield captions and alternative texts, at whatever depth of a cell's metadata."""
    if isinstance(options, dict):
        for key, value in options.items():
            if key in _TEXT_OPTIONS and isinstance(value, str):
                yield value
            else:
                yield from _option_texts(value)


def _line_of_option(content: str, text: str) -> int:
    """Return the line, from 0, where an option's text begins; YAML may have unfolded it."""
    begin = text.strip().split("\n")[0][:20]
    return next((n for n, line in enumerate(content.splitlines()) if begin in line), 0)


def _html(content: str, line: int) -> Iterator[tuple[int, str]]:
    reader = _HtmlText()
    reader.feed(content)
    reader.close()
    for number, text in reader.pieces:
        yield line + number - 1, text


def _numbers(first_line: int, text: str) -> Iterator[tuple[int, str]]:
    """Yield the bare numbers of a piece of prose: the line and the number with its neighbours."""
    for match in _NUMBER.finditer(text):
        if _is_bare(match):
            begin, end = max(match.start() - 24, 0), match.end() + 16
            words = " ".join(text[begin:end].replace(_MARK, "…").split())
            yield first_line + text.count("\n", 0, match.start()), f"{match[0].strip()!r} in '{words}'"


def _is_bare(match: re.Match[str]) -> bool:
    text, start, number = match.string, match.start("number"), match["number"]
    if _WORDS.match(text, start) or _NAME_BEFORE.search(text, 0, start) or number.count(".") > 1:
        return False
    if match["money"] or match["rest"]:
        return True
    if re.fullmatch(r"\d{4}", number) and 1950 <= int(number) <= 2049:
        return False
    mantissa = re.split("[eE]", number)[0]
    return len(re.sub(r"\D", "", mantissa).lstrip("0")) >= 3
