"""What a student's cells showed, made anew: text and PNG, and only so much of it."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Sequence
from typing import Any

from lantern_grading.checker.program import Step

_PNG = b"\x89PNG\r\n\x1a\n"


def shown(outputs: Sequence[Any], steps: Sequence[Step], output_bytes: int) -> list[list[Any]]:
    """Take from what cells showed only text and PNG, and only so much of it.

    Parameters
    ----------
    outputs : sequence
        What the sandbox says that each step showed: anything.
    steps : sequence of Step
        What was run.
    output_bytes : int
        What is kept in all [bytes].

    Returns
    -------
    list of list
        For each cell of the paper that showed something, its place and its outputs as a notebook has them.
    """
    left = output_bytes
    kept: list[list[Any]] = []
    for step, made_of in zip(steps, outputs, strict=False):
        if step.index < 0 or type(made_of) is not list:
            continue
        clean = []
        for output in made_of:
            made = _output(output)
            size = len(json.dumps(made)) if made else 0
            if made and size <= left:
                left -= size
                clean.append(made)
        if clean:
            kept.append([step.index, clean])
    return kept


def was_late(outputs: Sequence[Any], step: int) -> bool:
    """Say whether a step was stopped at its limit of time."""
    those = outputs[step] if 0 <= step < len(outputs) else None
    last = those[-1] if type(those) is list and those else None
    return type(last) is dict and last.get("ename") == "TimeLimit"


def _output(output: Any) -> dict[str, Any] | None:
    if type(output) is not dict:
        return None
    text = {key: value for key, value in output.items() if type(key) is str and type(value) is str}
    kind = text.get("output_type")
    if kind == "stream":
        name = "stderr" if text.get("name") == "stderr" else "stdout"
        return {"output_type": "stream", "name": name, "text": text.get("text", "")}
    if kind == "error":
        frames = output.get("traceback")
        lines = [line for line in frames if type(line) is str] if type(frames) is list else []
        return {
            "output_type": "error", "ename": text.get("ename", ""), "evalue": text.get("evalue", ""), "traceback": lines
        }  # fmt: skip
    data = output.get("data")
    if kind not in ("display_data", "execute_result") or type(data) is not dict:
        return None
    made = {"text/plain": data["text/plain"]} if type(data.get("text/plain")) is str else {}
    with contextlib.suppress(ValueError, TypeError):
        if base64.b64decode(data.get("image/png", ""), validate=True).startswith(_PNG):
            made["image/png"] = data["image/png"]
    extra = {"execution_count": None} if kind == "execute_result" else {}
    return {"output_type": kind, "data": made, "metadata": {}, **extra} if made else None
