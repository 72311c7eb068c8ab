"""Fetch the third-party files the book carries, at fixed versions, and record their checksums.

Run ``python -m lantern_book.refresh_vendor`` after changing a version below. It needs npm and a
network; building and reading the book need neither.
"""

import hashlib
import subprocess
import tarfile
import tempfile
from pathlib import Path

PACKAGE = Path(__file__).parent
BUILD_TIME = PACKAGE / "vendor"
SHIPPED = PACKAGE.parents[1] / "_static" / "vendor"
CHECKSUMS = BUILD_TIME / "SHA256SUMS"

KATEX = "katex@0.16.47"
VEGA = "vega@5.33.1"  # the major version JupyterLab draws Vega-Lite 5 with


def unpack(name: str, into: Path) -> Path:
    """Download one npm package and return the folder it unpacks to."""
    done = subprocess.run(
        ["npm", "pack", "--silent", "--pack-destination", str(into), name],
        check=True,
        capture_output=True,
        text=True,
    )
    target = into / name.split("@")[0]
    with tarfile.open(into / done.stdout.strip().splitlines()[-1]) as archive:
        archive.extractall(target, filter="data")
    return target / "package"


def only_woff2(css: str) -> str:
    """Drop the fallback font formats: every browser that can read the book reads woff2."""
    for extension, name in (("woff", "woff"), ("ttf", "truetype")):
        parts = css.split(f'.{extension}) format("{name}")')
        css = "".join(part[: part.rindex(",url(")] for part in parts[:-1]) + parts[-1]
    return css


def refresh() -> list[Path]:
    """Replace every vendored file and return their paths."""
    with tempfile.TemporaryDirectory() as scratch:
        katex = unpack(KATEX, Path(scratch))
        vega = unpack(VEGA, Path(scratch))
        wanted = {
            BUILD_TIME / "katex.min.js": (katex / "dist/katex.min.js").read_bytes(),
            SHIPPED / "katex/katex.min.css": only_woff2((katex / "dist/katex.min.css").read_text()).encode(),
            SHIPPED / "katex/LICENSE": (katex / "LICENSE").read_bytes(),
            # The source map is not shipped, so the line that asks for it goes too.
            SHIPPED / "vega/vega.min.js": (vega / "build/vega.min.js")
            .read_bytes()
            .replace(b"//# sourceMappingURL=vega.min.js.map", b""),
        }
        for font in sorted((katex / "dist/fonts").glob("*.woff2")):
            wanted[SHIPPED / "katex/fonts" / font.name] = font.read_bytes()
    for path, content in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return sorted(wanted)


def write_checksums() -> None:
    """Record every vendored file, in the format of ``sha256sum``, relative to the book folder."""
    book = PACKAGE.parents[1]
    files = [path for path in sorted(SHIPPED.rglob("*")) if path.is_file()]
    files.append(BUILD_TIME / "katex.min.js")
    lines = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(book).as_posix()}" for p in files]
    CHECKSUMS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    for vendored in refresh():
        print(vendored)
    write_checksums()
