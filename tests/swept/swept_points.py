"""Functions that worker processes import by name; each call leaves a line in the file that SWEPT_LOG names."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np


def _log(point: Mapping[str, Any]) -> None:
    if name := os.environ.get("SWEPT_LOG"):
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, f"{point['x']} {os.getpid()}\n".encode())
        os.close(file)


def numbers(point: Mapping[str, Any]) -> dict[str, float]:
    _log(point)
    time.sleep(point.get("seconds", 0.0))
    return {"square": point["x"] ** 2, "drawn": np.random.default_rng(point["x"]).random()}


def picky(point: Mapping[str, Any]) -> dict[str, float]:
    """Refuse odd points, until a file says otherwise."""
    _log(point)
    if point["x"] % 2 and not os.path.exists(os.environ["SWEPT_LOG"] + ".kind"):
        raise ValueError(f"x must be even,\ngot {point['x']}.")
    return {"half": point["x"] / 2}


def uneven(point: Mapping[str, Any]) -> dict[str, float]:
    return {"third" if point["x"] == 3 else "half": point["x"] / 2}


def wordy(point: Mapping[str, Any]) -> dict[str, Any]:
    return {"half": "a half"}


def twice(point: Mapping[str, Any]) -> dict[str, float]:
    return {"x": 1.0}


def deadly(point: Mapping[str, Any]) -> dict[str, float]:
    _log(point)
    if point["x"] == 5:
        time.sleep(0.5)
        os._exit(3)
    return {"half": point["x"] / 2}
