"""Scripts that complete the command in a shell, made by the package shtab."""

from __future__ import annotations

import argparse

from lantern_lib.devices import DEVICES
from lantern_lib.models import public_models

#: Shells that shtab writes for.
SHELLS = ("bash", "zsh", "tcsh")


def model_names() -> list[str]:
    """Return every name that ``--model`` accepts.

    Returns
    -------
    list of str
        Shipped models, their aliases and Lantern's own.

    Examples
    --------
    >>> "Qwen3-32B" in model_names()
    True
    """
    entries = public_models().values()
    return ["lantern-70b", *(name for entry in entries for name in (entry.name, *entry.aliases))]


def completes(action: argparse.Action, kind: str) -> None:
    """Mark an argument for completion.

    Parameters
    ----------
    action : argparse.Action
        The argument.
    kind : str
        ``"models"``, ``"cards"`` or ``"files"`` [text].

    Examples
    --------
    >>> action = argparse.ArgumentParser().add_argument("--gpu")
    >>> completes(action, "cards")
    >>> action.complete["bash"]
    '_lantern_cards'
    """
    files = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}
    own = {"bash": f"_lantern_{kind}", "zsh": f"_lantern_{kind}", "tcsh": "f"}
    action.complete = files if kind == "files" else own  # type: ignore[attr-defined]


def _preamble() -> dict[str, str]:
    cards = " ".join(sorted({name.replace(" ", "-") for name in DEVICES}))
    models = " ".join(model_names())
    bash = f"""
_lantern_models() {{ compgen -W "{models}" -- "$1"; compgen -f -- "$1"; }}
_lantern_cards() {{ compgen -W "{cards}" -- "$1"; }}
"""
    zsh = f"""
_lantern_models() {{ _alternative 'models:model:({models})' 'files:config.json:_files' }}
_lantern_cards() {{ _alternative 'cards:card:({cards})' }}
"""
    return {"bash": bash, "zsh": zsh}


def completion_script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script for a shell.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The command's parser.
    shell : str
        One of :data:`SHELLS` [text].

    Returns
    -------
    str
        What the shell is to read [text].

    Raises
    ------
    ValueError
        If shtab is not installed.

    Examples
    --------
    >>> completion_script(argparse.ArgumentParser("lantern"), "bash").startswith("# AUTOMATICALLY GENERATED")
    True
    """
    try:
        import shtab
    except ImportError:
        raise ValueError("shell must be completed by the package shtab, got none. Install lantern-lib[cli].") from None
    return str(shtab.complete(parser, shell=shell, preamble=_preamble()))
