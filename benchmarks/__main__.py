"""Measure, print tables, and write book/data/benchmarks.json, which the book prints from.

    python benchmarks [--quick | --sweeps | --grading]

How fast papers and whole classes are graded goes to grading.json beside it.

LANTERN_DATA names a folder with public traces, or with a folder ``traces`` of them: azure2023_conv.csv,
azure2023_code.csv and mooncake_conversation.jsonl. Without it those rows are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import class_scale
import grading
import simulator
import sweeps
from this_machine import processor_name

TRACE = "mooncake_conversation.jsonl"


def machine() -> dict[str, Any]:
    """What the numbers were measured on, without the machine's name."""
    packages = {}
    for name in ("numpy", "distributed", "pyarrow"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    return {
        "date": date.today().isoformat(),
        "processor": processor_name(),
        "processors": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": packages,
        "load_before": [round(load, 2) for load in os.getloadavg()],
    }


def traces() -> Path | None:
    """Find the folder of public traces."""
    named = os.environ.get("LANTERN_DATA")
    places = [Path(named), Path(named) / "traces"] if named else []
    return next((place for place in places if (place / TRACE).is_file()), None)


def measure_simulator(quick: bool) -> dict[str, Any]:
    """Run the benchmarks of single simulations."""
    results: dict[str, Any] = {"machine": machine()}
    print("The simulator: requests per CPU second (the fastest of three runs)")
    simulator.heading()
    results["simulator"] = simulator.synthetic()
    folder = traces()
    if folder:
        results["traces"] = simulator.traces(folder)
    else:
        print(f"The public traces are left out: LANTERN_DATA names no folder with {TRACE}.")
    print("\nWhat a leap gains, by the length of answers")
    results["leaps"] = simulator.leaps()
    if not quick:
        print("\nUp to a million requests")
        results["growth"] = simulator.growth()
    return results


def main() -> int:
    """Run all benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--quick", action="store_true", help="leave out the million requests and write no file")
    choice.add_argument("--sweeps", action="store_true", help="measure the sweeps again and keep the rest of the file")
    choice.add_argument("--grading", action="store_true", help="measure the grading alone")
    options = parser.parse_args()
    if not options.sweeps:
        measured = {"machine": machine(), **grading.measure()}
        print("\nA class of a real lab")
        measured["class"] = class_scale.measure(100 if options.quick else 1000)
        if not options.quick:
            path = Path(__file__).parents[1] / "book" / "data" / "grading.json"
            path.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
        if options.grading:
            return 0
        print()
    target = Path(__file__).parents[1] / "book" / "data" / "benchmarks.json"
    results = json.loads(target.read_text(encoding="utf-8")) if options.sweeps else measure_simulator(options.quick)
    print("\nSweeps: wall seconds")
    results["sweeps"] = sweeps.speed_up()
    if not options.quick:
        target.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
