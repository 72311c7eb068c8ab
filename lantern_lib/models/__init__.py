"""Shapes of public models, shipped as the numbers of their ``config.json`` with where they come from.

A file's fields that change neither parameters nor cache are left out. ``published_total`` is the number of parameters
that the publisher's files count; the tests hold every shape to it.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from lantern_lib.hf_config import from_hf_config
from lantern_lib.model_config import LANTERN_70B, ModelConfig


@dataclass(frozen=True)
class PublicModel:
    """One public model.

    ``name`` is what it is called here and ``aliases`` are models of the same shape; ``config`` are the fields of the
    file that ``origin`` names. ``published_total`` is what the publisher's files count, or None, and ``total_origin``
    where we read it: without one it is nobody's word but ours, and no test may lean on it. ``counts_scales`` says
    whether that holds the scales of quantised blocks, and ``unexplained`` what we can't account for [count].
    ``extra`` are stored numbers by name that no field tells, ``mtp`` layers and tables of a head that the file holds
    and the config does not name.
    """

    name: str
    origin: str
    config: dict[str, Any]
    published_total: int | None = None
    total_origin: str = ""
    aliases: tuple[str, ...] = ()
    counts_scales: bool = True
    unexplained: int = 0
    note: str = ""
    extra: tuple[tuple[str, int], ...] = ()
    mtp: tuple[int, int] | None = None

    @property
    def model(self) -> ModelConfig:
        """The shape."""
        shape = from_hf_config(self.config, name=self.name)
        changes: dict[str, Any] = {"extra": (*shape.extra, *self.extra), "source": self.origin}
        if self.mtp is not None:
            changes |= {"mtp_layers": self.mtp[0], "mtp_tables": self.mtp[1]}
        return replace(shape, **changes)


@cache
def public_models() -> dict[str, PublicModel]:
    """Return every shipped model by its name.

    Returns
    -------
    dict of str to PublicModel
        In the order of the data file.

    Examples
    --------
    >>> public_models()["Qwen3-32B"].published_total
    32762123264
    """
    text = resources.files(__package__).joinpath("public.json").read_text(encoding="utf-8")
    found = {}
    for name, entry in json.loads(text).items():
        entry["aliases"] = tuple(entry.get("aliases", ()))
        entry["extra"] = tuple(entry.get("extra", {}).items())
        entry["mtp"] = tuple(entry["mtp"]) if entry.get("mtp") else None
        found[name] = PublicModel(name, **entry)
    return found


def _key(name: str) -> str:
    """Fold a name: no owner, no capitals, no word that leaves the shape as it is."""
    folded = name.strip().lower().rsplit("/", 1)[-1].replace("_", "-").replace("meta-llama", "llama")
    for ending in ("-instruct", "-chat", "-it", "-base", "-hf", "-2507", "-thinking-2507", "-instruct-2507", "-2506"):
        folded = folded.removesuffix(ending)
    return folded


def find_model(name: str) -> ModelConfig:
    """Return the shape of a model by name.

    Parameters
    ----------
    name : str
        ``"lantern-70b"``, a name of :func:`public_models`, or one of its aliases; capitals, owner and endings such as
        ``-Instruct`` do not matter [text].

    Returns
    -------
    ModelConfig
        The shape, named as it was asked for.

    Raises
    ------
    ValueError
        If there is no such model; the message names the nearest.

    Examples
    --------
    >>> find_model("meta-llama/Llama-3.1-8B-Instruct").num_layers
    32
    >>> find_model("lantern-70b").num_layers
    80
    """
    if not isinstance(name, str):
        raise ValueError(f"name must be the name of a model, got {type(name).__name__}.")
    if _key(name) == "lantern-70b":
        return LANTERN_70B
    shapes = {}
    for entry in public_models().values():
        for known in (entry.name, *entry.aliases):
            shapes[_key(known)] = (known, entry)
    if _key(name) not in shapes:
        near = difflib.get_close_matches(_key(name), shapes, n=3, cutoff=0.3) or list(shapes)[:3]
        raise ValueError(
            f"name must be a shipped model, got {name[:80]!r}. Near are {', '.join(shapes[key][0] for key in near)};"
            " another model can be given by its config.json."
        )
    known, entry = shapes[_key(name)]
    return replace(entry.model, name=known)
