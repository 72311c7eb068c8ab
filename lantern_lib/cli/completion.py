"""Scripts that complete the command in a shell: by the package shtab, and for fish, which it does not know, by us."""

from __future__ import annotations

import argparse

from lantern_lib.devices import DEVICES
from lantern_lib.models import public_models

SHELLS = ("bash", "zsh", "fish", "tcsh")


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
    action.lantern_kind = kind  # type: ignore[attr-defined]
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


def _fish_option(action: argparse.Action) -> str:
    """Return what fish is told of one argument: its names, and what may follow."""
    words = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in action.option_strings]
    kind = getattr(action, "lantern_kind", None)
    if action.choices is not None:
        words += ["-x" if action.option_strings else "", f"-a '{' '.join(map(str, action.choices))}'"]
    elif kind is not None:
        words += ["-r" if action.option_strings else "", "-F" if kind != "cards" else ""]
        words += [f"-a '(__lantern_{kind})'"] if kind != "files" else []
    elif action.option_strings and action.nargs != 0:
        words.append("-x")
    help_text = (action.help or "").replace("'", "\\'")
    return " ".join([*filter(None, words), f"-d '{help_text}'"])


def fish_script(parser: argparse.ArgumentParser) -> str:
    """Return the script for fish.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        The command's parser, with a parser for each word that may follow.

    Returns
    -------
    str
        What fish is to read [text].

    Examples
    --------
    >>> from lantern_lib.cli.parser import build_parser
    >>> "-n '__fish_seen_subcommand_from size' -l tp -x" in fish_script(build_parser())
    True
    """
    cards = " ".join(sorted({name.replace(" ", "-") for name in DEVICES}))
    lines = [
        f"# Source this, or save it as ~/.config/fish/completions/{parser.prog}.fish",
        f"function __lantern_models; string split ' ' '{' '.join(model_names())}'; end",
        f"function __lantern_cards; string split ' ' '{cards}'; end",
        f"complete -c {parser.prog} -f",
    ]
    for commands in parser._actions:
        if not isinstance(commands, argparse._SubParsersAction):
            continue
        for each in commands._choices_actions:
            lines.append(f'complete -c {parser.prog} -n __fish_use_subcommand -a {each.dest} -d "{each.help}"')
        for name, inner in commands.choices.items():
            seen = f"complete -c {parser.prog} -n '__fish_seen_subcommand_from {name}'"
            lines += [f"{seen} {_fish_option(action)}" for action in inner._actions]
    return "\n".join(lines) + "\n"


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
    if shell == "fish":
        return fish_script(parser)
    try:
        import shtab
    except ImportError:
        raise ValueError("shell must be completed by the package shtab, got none. Install lantern-lib[cli].") from None
    return str(shtab.complete(parser, shell=shell, preamble=_preamble()))
