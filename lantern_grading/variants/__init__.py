"""Another model, machine or workload for each student: drawn once, written down, and graded with.

``weekN.toml`` lists equally hard choices for each parameter of a lab. What a student got is kept in the class's
folder, and grading reads it there: neither a new version of the choices nor an edited notebook changes it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import tomllib
from pathlib import Path
from typing import Any

from lantern_grading.classroom import student_id
from lantern_grading.paths import ROOT

#: Where draws are kept if no class is named: the folder of ``nbgrader_config.py``.
COURSE = ROOT / "gradebook"
_CHOICES = Path(__file__).parent


def weeks() -> list[str]:
    """Return the labs that have variants."""
    return sorted(path.stem for path in _CHOICES.glob("*.toml"))


def choices(week: str) -> dict[str, list[Any]]:
    """Read what may be given in a lab.

    Parameters
    ----------
    week : str
        The lab, for example ``"week3"`` [text].

    Returns
    -------
    dict of str to list
        The choices of each parameter.

    Raises
    ------
    ValueError
        If the lab has no variants.
    """
    if week not in weeks():
        raise ValueError(f"week must be one of {', '.join(weeks())}, got {week!r}.")
    return tomllib.loads((_CHOICES / f"{week}.toml").read_text(encoding="utf-8"))


def draw(week: str, student: str, seed: str) -> dict[str, Any]:
    """Draw a student's parameters: always the same for the same student, seed and choices.

    Parameters
    ----------
    week, student : str
        The lab and the student's id [text].
    seed : str
        The class's secret; without it nobody can tell what another student gets [text].

    Returns
    -------
    dict of str to value
        One choice for each parameter, by a keyed hash of its own: a new parameter changes no other.

    Raises
    ------
    ValueError
        If the lab has no variants or the id cannot be the name of a folder.

    Examples
    --------
    >>> draw("week3", "ada", "a seed") == draw("week3", "ada", "a seed")
    True
    """
    student_id(student)
    drawn = {}
    for name, values in choices(week).items():
        text = "\0".join(["lantern-variant", week, student, name])
        digest = hmac.new(seed.encode(), text.encode(), hashlib.sha256).digest()
        drawn[name] = values[int.from_bytes(digest, "big") % len(values)]
    return drawn


def _record(week: str, student: str, course: Path) -> Path:
    return course / "variants" / week / f"{student}.json"


def recorded(week: str, student: str, course: Path = COURSE) -> dict[str, Any]:
    """Return what was given to a student, or nothing if nothing was.

    Parameters
    ----------
    week, student : str
        The lab and the student's id [text].
    course : Path
        The class's folder.

    Returns
    -------
    dict of str to value
        The recorded parameters; empty for a student who has the lab as it is.

    Raises
    ------
    ValueError
        If the record cannot be read: better no grade than one with other parameters.
    """
    student_id(student)
    path = _record(week, student, course)
    if not path.exists():
        return {}
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} must hold what {student} was given, and is no JSON: {error}") from None
    return values


def give(week: str, student: str, course: Path = COURSE) -> dict[str, Any]:
    """Return what a student was given, and draw and record it if this is the first time.

    Parameters
    ----------
    week, student : str
        The lab and the student's id [text].
    course : Path
        The class's folder. Its seed lies in ``variants/seed.txt`` and is made when it is missing.

    Returns
    -------
    dict of str to value
        The parameters.
    """
    choices(week)
    values = recorded(week, student, course)
    if not values:
        values = draw(week, student, _seed(course))
        path = _record(week, student, course)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written aside and moved: nobody ever reads half a record.
        scratch = path.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
        scratch.replace(path)
    return values


def _seed(course: Path) -> str:
    path = course / "variants" / "seed.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(secrets.token_hex(16) + "\n")
    except FileExistsError:
        pass
    return path.read_text(encoding="utf-8").strip()


def given(week: str, course: Path = COURSE) -> dict[str, dict[str, Any]]:
    """Return what all students were given in a lab, sorted by student."""
    choices(week)
    return {
        path.stem: recorded(week, path.stem, course) for path in sorted((course / "variants" / week).glob("*.json"))
    }


def own_cell(parameters: str, values: dict[str, Any]) -> tuple[str, str]:
    """Write the cell with a student's own parameters.

    Parameters
    ----------
    parameters : str
        The name of the lab's cell with its own parameters, for example ``"w3-parameters"`` [text].
    values : dict of str to value
        The student's.

    Returns
    -------
    (str, str)
        Name and source of the cell [text]; without values an empty source.

    Examples
    --------
    >>> own_cell("w3-parameters", {"tp_size": 8})
    ('w3-given', '# What you were given instead.\\ntp_size = 8')
    """
    name = f"{parameters.split('-')[0]}-given"
    if not values:
        return name, ""
    from papermill.translators import translate_parameters

    return name, translate_parameters("python3", "python", values, "What you were given instead.").rstrip("\n")
