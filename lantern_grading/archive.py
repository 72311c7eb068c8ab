"""The archive a student downloads: labs and library, nothing that gives an answer away."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tomllib
import zipfile
from pathlib import Path

from lantern_grading.paths import ROOT

FOLDER = "lantern-student"
_HERE = Path(__file__).parent
# What only the archive has: how to begin, the one command, and what an assistant should know.
_OWN = {"README.md": "student_readme.md", "Makefile": "student.mk", "AGENTS.md": "student_agents.md"}
# The beginning of the zip format's calendar: the same bytes whenever the archive is made.
_DATE = (1980, 1, 1, 0, 0, 0)


def contents(root: Path = ROOT) -> dict[str, bytes]:
    """Collect the archive's files.

    Parameters
    ----------
    root : Path
        The project.

    Returns
    -------
    dict of str to bytes
        Path inside the archive, and content.
    """
    files = {name: (_HERE / source).read_bytes() for name, source in _OWN.items()}
    files["pyproject.toml"] = _pyproject(root).encode()
    for licence in sorted(root.glob("LICENSE*")):
        files[licence.name] = licence.read_bytes()
    for folder in ("labs", "lantern_lib"):
        for path in sorted((root / folder).rglob("*")):
            hidden = any(part.startswith((".", "__pycache__")) for part in path.relative_to(root).parts)
            if path.is_file() and not hidden:
                files[path.relative_to(root).as_posix()] = path.read_bytes()
    return {name: files[name] for name in sorted(files)}


def _pyproject(root: Path) -> str:
    """Write a project file that installs the library and what the labs draw with."""
    whole = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    project, data = whole["project"], whole["tool"]["setuptools"]["package-data"]["lantern_lib"]
    needed = project["dependencies"] + project["optional-dependencies"]["labs"]
    modules = sorted(path.parent.relative_to(root) for path in (root / "lantern_lib").rglob("__init__.py"))
    packages = [module.as_posix().replace("/", ".") for module in modules]
    # JSON's strings and lists are TOML's too.
    return "\n".join(
        [
            "[build-system]",
            'requires = ["setuptools>=77"]',
            'build-backend = "setuptools.build_meta"',
            "",
            "[project]",
            f"name = {json.dumps(project['name'])}",
            f"version = {json.dumps(project['version'])}",
            f"requires-python = {json.dumps(project['requires-python'])}",
            f"dependencies = {json.dumps(needed, indent=2)}",
            "",
            "[tool.setuptools]",
            f"packages = {json.dumps(packages)}",
            "",
            "[tool.setuptools.package-data]",
            f"lantern_lib = {json.dumps(data)}",
            "",
        ]
    )


def write(out: Path, root: Path = ROOT) -> Path:
    """Write the archive, the same bytes on every run.

    Parameters
    ----------
    out : Path
        A name that ends in ``.zip`` or ``.tar.gz``.
    root : Path
        The project.

    Returns
    -------
    Path
        The archive.

    Raises
    ------
    ValueError
        For another ending.
    """
    if not out.name.endswith((".zip", ".tar.gz")):
        raise ValueError(f"out must end in .zip or .tar.gz, got {out.name!r}.")
    out.parent.mkdir(parents=True, exist_ok=True)
    files = contents(root)
    out.write_bytes(_zip(files) if out.suffix == ".zip" else _tar(files))
    return out


def _zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(f"{FOLDER}/{name}", _DATE)
            entry.external_attr = 0o100644 << 16
            entry.create_system = 3
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)
    return buffer.getvalue()


def _tar(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", filename="", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, content in files.items():
            entry = tarfile.TarInfo(f"{FOLDER}/{name}")
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
