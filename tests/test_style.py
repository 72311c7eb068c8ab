"""House rules that a machine can hold: layers, docstrings, sizes, words."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lantern_lib

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "lantern_lib"

# Lowest first. A module imports only from those before it.
LAYERS = [
    "units",
    "book_data",
    "hardware",
    "model_parts",
    "model_config",
    "vision_tower",
    "hf_families",
    "hf_quantization",
    "hf_layers",
    "hf_config",
    "models",
    "matrices",
    "transformer",
    "kv_cache",
    "layer_groups",
    "shards",
    "devices",
    "engine_rules",
    "memory_plan",
    "memory_report",
    "log_lines",
    "engine_logs",
    "roofline",
    "collectives",
    "step",
    "tiny",
    "parallelism",
    "mixture_of_experts",
    "workload",
    "scheduler",
    "admission",
    "kv_blocks",
    "prefix_tree",
    "chunked_prefill",
    "queueing",
    "metrics",
    "quantization",
    "speculative",
    "measurements",
    "loose_floors",
    "bounded_fit",
    "spreads",
    "engine_ledger",
    "calibration",
    "timing_channel",
    "rollout",
    "reliability",
    "autoscale",
    "capacity",
    "calculator",
    "calculator_tables",
    "standby",
    "cold_start",
    "cache_tiers",
    "agents",
    "fairness",
    "guardrails",
    "prompt_cache",
    "pricing",
    "simulator",
    "studies",
    "usual_formulas",
    "cli",
    "claims",
    "figures",
    "labs",
    "check_text",
    "check_arrays",
    "check_random",
    "check_sequences",
    "check_time",
    "check_samples",
    "check_place",
    "checks",
]
MODULES = [m.name for m in pkgutil.iter_modules([str(LIBRARY)])]


def test_every_module_has_a_layer() -> None:
    assert sorted(MODULES) == sorted(LAYERS)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_from_lower_layers(name: str) -> None:
    path = LIBRARY / f"{name}.py"
    files = [path] if path.exists() else sorted((LIBRARY / name).glob("*.py"))
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lantern_lib"):
                parts = (node.module or "").split(".")
                used = [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
                for layer in used:
                    if layer == name or layer not in LAYERS:
                        continue  # its own package, or a name that the package root offers
                    assert LAYERS.index(layer) < LAYERS.index(name), f"{file.name} imports {layer}"


def test_the_core_imports_without_its_extras() -> None:
    """In a fresh interpreter, nothing but the standard library and numpy is loaded."""
    code = (
        "import sys, lantern_lib, lantern_lib.step, lantern_lib.claims, lantern_lib.checks;"
        "bad = {'matplotlib', 'altair', 'IPython', 'ipywidgets', 'nbgrader', 'sphinx'} & set(sys.modules);"
        "sys.exit(f'loaded {bad}' if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def public_callables() -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for name in LAYERS:
        module = importlib.import_module(f"lantern_lib.{name}")
        modules = [module]
        if hasattr(module, "__path__"):
            modules += [
                importlib.import_module(m.name) for m in pkgutil.iter_modules(module.__path__, f"{module.__name__}.")
            ]
        for each in modules:
            for attribute, value in vars(each).items():
                if inspect.isfunction(value) and value.__module__ == each.__name__ and not attribute.startswith("_"):
                    found.append((f"{each.__name__}.{attribute}", value))
    return found


@pytest.mark.parametrize(("name", "function"), public_callables(), ids=[n for n, _ in public_callables()])
def test_a_public_docstring_is_complete(name: str, function: object) -> None:
    text = inspect.getdoc(function) or ""
    signature = inspect.signature(function)  # type: ignore[arg-type]
    assert ">>>" in text, f"{name} has no example"
    assert "Returns\n" in text or signature.return_annotation in (None, "None"), f"{name} does not say what it returns"
    if signature.parameters:
        assert "Parameters\n" in text, f"{name} does not list its parameters"
        for parameter in signature.parameters:
            assert re.search(rf"\b{parameter}\b", text.split("Parameters\n")[1]), f"{name} leaves out {parameter}"


def python_files() -> list[Path]:
    folders = ["lantern_lib", "lantern_grading", "book/_ext"]
    return [p for folder in folders for p in sorted((ROOT / folder).rglob("*.py"))]


@pytest.mark.parametrize("path", python_files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_modules_and_functions_stay_small(path: Path) -> None:
    """A module's code is counted without docstrings, comments and blank lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            lines.add(node.lineno)
            if not hasattr(node, "body"):
                lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        if isinstance(node, ast.FunctionDef):
            doc = node.body[0] if ast.get_docstring(node) else None
            skipped = (doc.end_lineno or 0) - doc.lineno + 1 if doc else 0
            length = (node.end_lineno or 0) - node.lineno + 1 - skipped
            assert length <= 60, f"{path.name}: {node.name} has {length} lines"
    assert len(lines) <= 300, f"{path.name} has {len(lines)} lines of code"


FORBIDDEN = ["/work/", "../shared", ".library", "pypi.org", "pythonhosted", "registry.npmjs", "this session"]


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\0") if name]


def test_the_project_speaks_of_itself_alone() -> None:
    for path in tracked_files():
        if path.name == "test_style.py" or not path.is_file() or path.suffix in {".woff2", ".png"}:
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        for word in FORBIDDEN:
            assert word not in text, f"{path.relative_to(ROOT)} mentions {word}"


def test_the_version_is_said_once() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = "(.+)"$', project, re.M)
    assert version is not None
    assert not hasattr(lantern_lib, "__version__")
    assert f"version: {version[1]}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
