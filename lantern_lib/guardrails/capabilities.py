"""Which sessions can leak, judged by what their tools can do and not by what the model says.

Data leaves through an injected instruction only where three ingredients meet in one session: **private
data**, **untrusted text** and an **outward channel**. All rules here follow from that sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

PRIVATE_DATA, UNTRUSTED_TEXT, OUTWARD_CHANNEL = "private data", "untrusted text", "outward channel"
INGREDIENTS = (PRIVATE_DATA, UNTRUSTED_TEXT, OUTWARD_CHANNEL)


@dataclass(frozen=True)
class Tool:
    """A tool or a source of text that a session holds.

    ``private_data``: it shows what the attacker must not learn. ``untrusted_text``: others can write what it
    returns. ``outward_channel``: through it something reaches others, as a message, a request or a commit.
    ``confirmed``: a person sees and approves each use with its full arguments, so the channel is not the model's.
    """

    name: str
    private_data: bool = False
    untrusted_text: bool = False
    outward_channel: bool = False
    confirmed: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"name must be a text that is not empty, got {self.name!r}. People read it in a report.")

    @property
    def ingredients(self) -> frozenset[str]:
        """What the tool brings into a session; a confirmed channel brings none."""
        held = (self.private_data, self.untrusted_text, self.outward_channel and not self.confirmed)
        return frozenset(name for name, has in zip(INGREDIENTS, held, strict=True) if has)


def ingredients(tools: Iterable[Tool]) -> frozenset[str]:
    """Return which of the three ingredients a set of tools brings together.

    Parameters
    ----------
    tools : iterable of Tool
        What one session holds.

    Returns
    -------
    frozenset of str
        A part of :data:`INGREDIENTS`.

    Examples
    --------
    >>> sorted(ingredients([Tool("web", untrusted_text=True), Tool("mail", outward_channel=True)]))
    ['outward channel', 'untrusted text']
    """
    return frozenset().union(*(tool.ingredients for tool in tools))


def is_exposed(tools: Iterable[Tool]) -> bool:
    """Tell whether a session holds all three ingredients.

    Parameters
    ----------
    tools : iterable of Tool
        What one session holds.

    Returns
    -------
    bool
        True if an injected instruction could carry private data out.

    Examples
    --------
    >>> is_exposed([Tool("inbox", private_data=True, untrusted_text=True), Tool("send", outward_channel=True)])
    True
    >>> is_exposed([Tool("inbox", private_data=True, untrusted_text=True)])
    False
    """
    return len(ingredients(tools)) == len(INGREDIENTS)


@dataclass(frozen=True)
class Handover:
    """Text that goes from one session to another.

    ``vetted`` means that a person, or a check against a closed list of values, has seen all of it. Text that nobody
    has seen carries the source's private data and its untrusted words along.
    """

    source: str
    target: str
    vetted: bool = False


def session_ingredients(
    sessions: Mapping[str, Sequence[Tool]], handovers: Sequence[Handover] = ()
) -> dict[str, frozenset[str]]:
    """Return the ingredients of each session, with those that arrive in text from other sessions.

    Parameters
    ----------
    sessions : mapping of str to sequence of Tool
        The tools of each session.
    handovers : sequence of Handover
        Text that goes from one to another.

    Returns
    -------
    dict of str to frozenset of str
        For each session what meets in it.

    Raises
    ------
    ValueError
        If a handover names a session that is not there.

    Notes
    -----
    Private data and untrusted text travel with text that is not vetted, through any number of sessions; the
    channel stays where its tool is. Argued on page E2.

    Examples
    --------
    >>> tools = {"read": [Tool("web", untrusted_text=True)], "act": [Tool("send", outward_channel=True)]}
    >>> sorted(session_ingredients(tools, [Handover("read", "act")])["act"])
    ['outward channel', 'untrusted text']
    """
    for each in handovers:
        for end in (each.source, each.target):
            if end not in sessions:
                raise ValueError(
                    f"handovers must join sessions of {sorted(sessions)}, got {end!r}. Add it to sessions."
                )
    found = {name: ingredients(tools) for name, tools in sessions.items()}
    # Each round carries text one session further, so as many rounds as sessions reach every end.
    for _ in sessions:
        for each in handovers:
            if not each.vetted:
                found[each.target] |= found[each.source] - {OUTWARD_CHANNEL}
    return found


def exposed_sessions(sessions: Mapping[str, Sequence[Tool]], handovers: Sequence[Handover] = ()) -> list[str]:
    """Return the sessions in which all three ingredients meet.

    Parameters
    ----------
    sessions : mapping of str to sequence of Tool
        The tools of each session.
    handovers : sequence of Handover
        Text that goes from one to another.

    Returns
    -------
    list of str
        Their names, in the order given; empty if nothing can leak this way.

    Raises
    ------
    ValueError
        If a handover names a session that is not there.

    Examples
    --------
    >>> inbox = Tool("inbox", private_data=True, untrusted_text=True)
    >>> tools = {"read": [inbox], "act": [Tool("send", outward_channel=True)]}
    >>> exposed_sessions(tools), exposed_sessions(tools, [Handover("read", "act")])
    ([], ['act'])
    >>> exposed_sessions(tools, [Handover("read", "act", vetted=True)])
    []
    """
    found = session_ingredients(sessions, handovers)
    return [name for name in sessions if len(found[name]) == len(INGREDIENTS)]


def smallest_removals(tools: Sequence[Tool]) -> list[frozenset[str]]:
    """Return every smallest set of tools whose removal makes a session safe.

    Parameters
    ----------
    tools : sequence of Tool
        What the session holds; names differ.

    Returns
    -------
    list of frozenset of str
        Names to remove, one set for each way; empty if the session is safe already.

    Raises
    ------
    ValueError
        If two tools have one name.

    Notes
    -----
    A session is safe as soon as one ingredient is gone, and an ingredient goes with the last tool that brings
    it. So the smallest sets are those of the ingredients that the fewest tools bring. Used on page E2.

    Examples
    --------
    >>> tools = [
    ...     Tool("inbox", private_data=True, untrusted_text=True),
    ...     Tool("contacts", private_data=True),
    ...     Tool("send", outward_channel=True),
    ... ]
    >>> sorted(sorted(names) for names in smallest_removals(tools))
    [['inbox'], ['send']]
    """
    _require_distinct(tools)
    if not is_exposed(tools):
        return []
    bringers = [frozenset(t.name for t in tools if each in t.ingredients) for each in INGREDIENTS]
    fewest = min(len(names) for names in bringers)
    return list(dict.fromkeys(names for names in bringers if len(names) == fewest))


def channels_to_confirm(tools: Sequence[Tool]) -> frozenset[str]:
    """Return the tools whose every use a person has to approve, if nothing is removed.

    Parameters
    ----------
    tools : sequence of Tool
        What the session holds; names differ.

    Returns
    -------
    frozenset of str
        All channels that are not confirmed yet; empty if the session is safe already.

    Raises
    ------
    ValueError
        If two tools have one name.

    Examples
    --------
    >>> inbox = Tool("inbox", private_data=True, untrusted_text=True)
    >>> sorted(channels_to_confirm([inbox, Tool("send", outward_channel=True)]))
    ['send']
    """
    _require_distinct(tools)
    if not is_exposed(tools):
        return frozenset()
    return frozenset(t.name for t in tools if OUTWARD_CHANNEL in t.ingredients)


@dataclass(frozen=True)
class Split:
    """Two sessions in place of one; what goes from ``reader`` to ``actor`` has to be vetted."""

    reader: tuple[Tool, ...]
    actor: tuple[Tool, ...]


def split(tools: Sequence[Tool]) -> Split | None:
    """Divide the tools of a session between one that reads untrusted text and one that acts.

    Parameters
    ----------
    tools : sequence of Tool
        What the session holds; names differ.

    Returns
    -------
    Split or None
        None if the tools that read untrusted text hold all three ingredients among themselves: then
        dividing does not help.

    Raises
    ------
    ValueError
        If two tools have one name.

    Notes
    -----
    The actor holds nothing that others can write, so it is safe whatever else it holds, as long as nothing
    reaches it unseen. See :func:`exposed_sessions` with a :class:`Handover` that is not vetted.

    Examples
    --------
    >>> tools = [Tool("web", untrusted_text=True), Tool("files", private_data=True), Tool("send", outward_channel=True)]
    >>> found = split(tools)
    >>> [tool.name for tool in found.reader], [tool.name for tool in found.actor]
    (['web'], ['files', 'send'])
    """
    _require_distinct(tools)
    reader = tuple(t for t in tools if t.untrusted_text)
    actor = tuple(t for t in tools if not t.untrusted_text)
    return None if is_exposed(reader) else Split(reader, actor)


def _require_distinct(tools: Sequence[Tool]) -> None:
    names = [tool.name for tool in tools]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"tools must have a name each, got {twice} twice. A removal is named by it.")
