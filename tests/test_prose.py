"""Bare numbers in prose: what must be found, what must not, and that the course has none."""

from __future__ import annotations

from pathlib import Path

import pytest
from lantern_book.project import Project
from lantern_book.prose import Finding, bare_numbers

ROOT = Path(__file__).parents[1]

FOUND = {
    "unit after a space": ("It takes 14 ms.", ["14 ms"]),
    "unit without a space": ("It takes 14ms.", ["14ms"]),
    "unit in bold": ("It takes **14** ms.", ["14 ms"]),
    "unit on the next line": ("It takes 14\nms.", ["14\\nms"]),
    "binary prefix": ("It leaves 320 KiB, then 2.5 GiB.", ["320 KiB", "2.5 GiB"]),
    "rate": ("At 3.35 TB/s and 5 tokens/s.", ["3.35 TB", "5 tokens"]),
    "work": ("A step of 9 TFLOPs at 4 PFLOP/s.", ["9 TFLOPs", "4 PFLOP"]),
    "percent": ("From 40% to 50 percent.", ["40%", "50 percent"]),
    "dollars": (r"It costs \$5 or 7 dollars.", ["$5", "7 dollars"]),
    "times": ("It is 3 times, 4x or 5× faster.", ["3 times", "4x", "5×"]),
    "things counted": ("On 8 GPUs with 80 layers.", ["8 GPUs", "80 layers"]),
    "hyphen": ("A 4-GPU machine, an 80-layer model.", ["4-GPU", "80-layer"]),
    "seconds": ("After 5 s, or 2 seconds.", ["5 s", "2 seconds"]),
    "three digits": ("There are 183 of them, not 162.", ["183", "162"]),
    "thousands": ("With 70,553,706,496 in all.", ["70,553,706,496"]),
    "decimals": ("A ratio of 1.25, nearly.", ["1.25"]),
    "power": ("About 1.41e14, or 10^14.", ["1.41e14", "10^"]),
    "year with a unit": ("It holds 2000 tokens.", ["2000 tokens"]),
    "not a year": ("A context of 1024 or 8192.", ["1024", "8192"]),
    "size of a model as a count": ("It has 70B parameters.", ["70B"]),
    "prefix in lower case": ("A sub-100 ms answer.", ["100 ms"]),
    "heading": ("## The 8 GPUs", ["8 GPUs"]),
    "table": ("| a | b |\n|---|---|\n| x | 14 ms |", ["14 ms"]),
    "list": ("- one\n- 14 ms", ["14 ms"]),
    "alternative text": ("![A curve up to 14 ms](curve.svg)", ["14 ms"]),
    "link text": ("[after 14 ms](page.md)", ["14 ms"]),
    "admonition title": (":::{admonition} In 14 ms\nText.\n:::", ["14 ms"]),
    "admonition text": (":::{note}\nIt takes 14 ms.\n:::", ["14 ms"]),
    "nested box": ("::::{dropdown} Why\n:::{note}\n14 ms\n:::\n::::", ["14 ms"]),
    "box that ended early": (":::\nIt takes 14 ms.\n:::", ["14 ms"]),
    "caption in cell metadata": (
        '```{code-cell} ipython3\n:mystnb: {figure: {name: f, caption: "At 14 ms."}}\nx = 1\n```',
        ["14 ms"],
    ),
    "alternative text in cell metadata": (
        '```{code-cell} ipython3\n---\nmystnb:\n  image:\n    alt: "At 14 ms."\n---\nx = 1\n```',
        ["14 ms"],
    ),
    "figure": ("```{figure} a-1024.svg\n:alt: At 14 ms\n\nThen 15 ms.\n```", ["14 ms", "15 ms"]),
    "other role": ("It takes {sub}`14 ms`.", ["14 ms"]),
    "raw HTML": ('<details><summary>In 14 ms</summary><img alt="15 ms"></details>', ["14 ms", "15 ms"]),
    "definition": ("Term\n: It takes 14 ms.", ["14 ms"]),
}

FREE = {
    "claim": "It takes {claim}`14.3 ms <a3-step>`.",
    "claim in bold": "It takes **{claim}`14.3 ms <a3-step>`**.",
    "fact": "It costs {fact}`$98.32 <gpu-hour>` an hour.",
    "citation": "As shown {cite}`kwon2023`, {cite:p}`agrawal2024`.",
    "reference": "See {ref}`Table 128 <t>`, {numref}`fig-1024`, {doc}`1024`.",
    "code": "Set `batch_size=256` and {code}`512`.",
    "formula": "$2 \\cdot 80 \\cdot 128$ bytes, {math}`1024`, and\n\n$$ 2 \\cdot 8192 \\text{ ms} $$",
    "code block": "```python\nx = 14.3  # 14 ms\n```",
    "code cell": "```{code-cell} ipython3\n:tags: [hide-input]\nx = 1024  # ms\n```",
    "link target": "[the page](https://example.org/1024/14ms)",
    "address": "<https://example.org/1024> and https://example.org/2048",
    "front matter": "---\nminutes: 10 minutes\nn: 1024\n---\nText.",
    "spelled": "Ten minutes, four people, fifty-four conversations.",
    "year": "In 2023, from 1998 to 2024, in the 1990s.",
    "date": "On 14 March 2024 (2024-03-14).",
    "section": "See A3, B2 and section 5.",
    "products": "An H100, an A100-80GB, Lantern 70B, Llama 3.1 8B, Llama-3.1-405B, Qwen2.5, p5.48xlarge.",
    "model": "Its own dense 70B model.",
    "ordinals": "The 1st, 2nd, 3rd, 11th and 101st.",
    "version": "Version 1.0.4 of 7.4.7.",
    "width": "An 8-bit cache, FP16 weights.",
    "day": "Day 5. Week 1. Figure 12.",
    "small count": "Of these, 5, users say, are free.",
    "comment": "% 14 ms\nText.\n\n<!-- 15 ms -->",
    "label": "(t-1024)=\n# Title",
    "math directive": "```{math}\n:label: e\n1024 \\text{ ms}\n```",
}


def findings(tmp_path: Path, text: str) -> list[Finding]:
    page = tmp_path / "page.md"
    page.write_text(text, "utf8")
    return bare_numbers(page)


@pytest.mark.parametrize(("text", "numbers"), FOUND.values(), ids=FOUND.keys())
def test_bare_number_is_found(tmp_path: Path, text: str, numbers: list[str]) -> None:
    assert [finding.text.split("' in ")[0].lstrip("'") for finding in findings(tmp_path, text)] == numbers


@pytest.mark.parametrize("text", FREE.values(), ids=FREE.keys())
def test_free_number_is_left_alone(tmp_path: Path, text: str) -> None:
    assert findings(tmp_path, text) == []


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    lines = [
        "---",
        "title: x",
        "---",
        "# Title of 14 ms",
        "",
        "First line, a role {claim}`14.3 ms",
        "<a3-step>` that wraps,",
        "then 14 ms.",
        "",
        "::::{dropdown} A title of 14 ms",
        ":class: tip",
        "",
        "Text of 14 ms.",
        "",
        ":::{note}",
        "Deep 14 ms.",
        ":::",
        "::::",
        "",
        "| a | b |",
        "|---|---|",
        "| x | y |",
        "| x | 14 ms |",
        "",
        "```{code-cell} ipython3",
        ":tags: [hide-input]",
        ':mystnb: {figure: {caption: "At 14 ms."}}',
        "x = 14  # 14 ms",
        "```",
        "",
        "<p>raw",
        "14 ms</p>",
    ]
    wanted = [
        number for number, line in enumerate(lines, 1) if "14 ms" in line and not line.startswith(("x =", "title"))
    ]
    assert [finding.line for finding in findings(tmp_path, "\n".join(lines))] == wanted


def test_course_has_no_bare_number() -> None:
    project = Project(ROOT)
    pages = [path for path in project.pages.values() if path.suffix == ".md"]
    assert pages, "the table of contents names no page"
    found = [finding for page in pages for finding in bare_numbers(page, project.markdown)]
    assert not found, "\n".join(f"{project.show(f.path)}:{f.line}: {f.text}" for f in found)


def test_no_title_of_a_fold_holds_a_claim() -> None:
    """A claim is a button, and so is the title: one inside the other cannot be reached by keyboard."""
    pages = sorted((ROOT / "book").rglob("*.md"))
    titles = [(page, line) for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    folds = [(page.name, line) for page, line in titles if line.lstrip(":").startswith("{dropdown}")]
    assert len(folds) > 100
    assert [each for each in folds if "{claim}" in each[1] or "{fact}" in each[1]] == []
