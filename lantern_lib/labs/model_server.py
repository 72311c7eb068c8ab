"""A provider on the student's own machine, for week 6: blocks of a prompt, terms of a cache, a scripted model.

What the provider's cache finds and bills is the lab's question and stands nowhere in here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lantern_lib.units import require_int, require_one_of, require_positive

PARTS = ("tools", "system", "messages")
_TOKEN = re.compile(r"\w+|[^\w\s]")

Message = dict[str, Any]


class ToolError(Exception):
    """A tool that cannot do what it was asked. Its text is for the model to read."""


@dataclass(frozen=True)
class Terms:
    """What a provider's cache costs and how it behaves.

    Parameters
    ----------
    input_price : float
        One input token that no cache helps with [dollars].
    write_price, read_price : float
        A token that is written to the cache, and one that is read from it [input tokens].
    output_price : float
        A token that the model writes [input tokens].
    lifetime_seconds : float
        How long an entry lives after it was written or last read [seconds].
    minimum_tokens : int
        Shortest prefix that is stored [tokens].
    max_marks : int
        How many blocks of a request may carry a mark [count].
    lookback_blocks : int
        How many blocks are searched backwards from a mark, the marked one included [count].

    Examples
    --------
    >>> Terms().write_price
    1.25
    """

    input_price: float = 3e-6
    write_price: float = 1.25
    read_price: float = 0.1
    output_price: float = 5.0
    lifetime_seconds: float = 300.0
    minimum_tokens: int = 1024
    max_marks: int = 4
    lookback_blocks: int = 20

    def __post_init__(self) -> None:
        for name in ("input_price", "write_price", "output_price", "lifetime_seconds"):
            require_positive(name, getattr(self, name))
        if require_positive("read_price", self.read_price) >= 1:
            raise ValueError(f"read_price must be below 1, got {self.read_price!r}. At 1 a cache saves nothing.")
        require_int("minimum_tokens", self.minimum_tokens, minimum=0)
        require_int("max_marks", self.max_marks)
        require_int("lookback_blocks", self.lookback_blocks)


@dataclass(frozen=True)
class Block:
    """A block of a prompt: its part (one of :data:`PARTS`), its text, and whether it carries a mark.

    Examples
    --------
    >>> Block("system", "Be brief.", mark=True).part
    'system'
    """

    part: str
    text: str
    mark: bool = False

    def __post_init__(self) -> None:
        require_one_of("part", self.part, PARTS)


@dataclass(frozen=True)
class Usage:
    """What one call was billed for: input read from the cache, written to it and neither, and output [tokens].

    Examples
    --------
    >>> Usage(2000, 150, 0).output
    0
    """

    read: int
    written: int
    fresh: int
    output: int = 0


@lru_cache(maxsize=4096)
def count_tokens(text: str) -> int:
    """Return how many tokens a text has: words and signs, each one token.

    Parameters
    ----------
    text : str
        The text.

    Returns
    -------
    int
        Its length [tokens].

    Notes
    -----
    A real tokenizer cuts otherwise. For a cache it matters only that the same text has the same tokens. Used in lab 6.

    Examples
    --------
    >>> count_tokens("It is 12:30.")
    6
    """
    return len(_TOKEN.findall(text))


def prefix_keys(blocks: Sequence[Block]) -> list[str]:
    """Return a key for each beginning of a prompt: the first block, the first two, and so on.

    Parameters
    ----------
    blocks : sequence of Block
        The prompt.

    Returns
    -------
    list of str
        One for each block. Two prompts share a key if and only if they agree in part and text up to there, letter by
        letter. Marks make no difference.

    Notes
    -----
    A chain: each key is the hash of the one before and of the block, as engines name their blocks (page B2).

    Examples
    --------
    >>> one = prefix_keys([Block("system", "Be brief."), Block("messages", "Hello")])
    >>> two = prefix_keys([Block("system", "Be brief.", mark=True), Block("messages", "Good day")])
    >>> one[0] == two[0], one[1] == two[1]
    (True, False)
    """
    keys, before = [], ""
    for block in blocks:
        before = hashlib.sha256("\0".join((before, block.part, block.text)).encode()).hexdigest()[:16]
        keys.append(before)
    return keys


def model_answer(script: Sequence[Message], messages: Sequence[Message]) -> Message:
    """Return what the model says next. It remembers nothing: the messages are all it knows.

    Parameters
    ----------
    script : sequence of dict
        Its answers in order, each with ``text`` and ``calls``; a call has ``id``, ``tool`` and ``argument``.
    messages : sequence of dict
        The conversation so far. The model's own answers have the role ``"assistant"``.

    Returns
    -------
    dict
        ``text`` and ``calls``; an empty list of calls means that the model is done.

    Raises
    ------
    ValueError
        If the conversation is one that a provider refuses: a call without its result behind it, or a result
        without a call.

    Examples
    --------
    >>> script = [{"text": "Let me see.", "calls": [{"id": "a", "tool": "read", "argument": "log"}]}]
    >>> model_answer(script, [{"role": "user", "text": "What happened?"}])["text"]
    'Let me see.'
    """
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["id"] not in open_calls:
                raise ValueError(f"messages hold a result for {message['id']!r}, and no open call has this id.")
            open_calls.remove(message["id"])
        elif open_calls:
            break
        elif message["role"] == "assistant":
            open_calls = [call["id"] for call in message["calls"]]
    if open_calls:
        raise ValueError(f"messages must hold a result for every call, and {open_calls} have none.")
    turn = sum(message["role"] == "assistant" for message in messages)
    answer: Message = script[turn] if turn < len(script) else {"text": "That is all.", "calls": []}
    return {"text": answer["text"], "calls": [dict(call) for call in answer["calls"]]}


def run_tool(results: Mapping[str, Mapping[str, str]], tool: str, argument: str) -> str:
    """Return what a tool gives for an argument.

    Parameters
    ----------
    results : mapping
        What each tool gives for each argument [text].
    tool, argument : str
        Which tool, and with what [text].

    Returns
    -------
    str
        The result [text].

    Raises
    ------
    ToolError
        If there is no such tool, or it fails with this argument.

    Examples
    --------
    >>> run_tool({"read": {"log": "all is well"}}, "read", "log")
    'all is well'
    """
    if tool not in results:
        raise ToolError(f"There is no tool {tool}.")
    if argument not in results[tool]:
        raise ToolError(f"{tool} failed: it finds no {argument}.")
    return results[tool][argument]


def long_text(word: str, num_tokens: int) -> str:
    """Return a text of a given length, different for each word.

    Parameters
    ----------
    word : str
        What it is about [text].
    num_tokens : int
        Its length [tokens].

    Returns
    -------
    str
        The text.

    Raises
    ------
    ValueError
        If `num_tokens` is below 0.

    Examples
    --------
    >>> long_text("rule", 3)
    'rule0 rule1 rule2'
    """
    return " ".join(f"{word}{place}" for place in range(require_int("num_tokens", num_tokens, minimum=0)))


def steady_requests(
    num_calls: int, result_tokens: int, tools: Sequence[Message], system: str, *, task: str = "Find the fault."
) -> list[Message]:
    """Return the requests of a session in which each answer asks for one file, and reads it.

    Parameters
    ----------
    num_calls : int
        Calls [count].
    result_tokens : int
        Length of each file [tokens].
    tools : sequence of dict
        Definitions of the tools, the same in each request.
    system : str
        The system prompt, the same in each request [text].
    task : str
        What the user asks [text].

    Returns
    -------
    list of dict
        Each with ``tools``, ``system`` and ``messages``.

    Raises
    ------
    ValueError
        If a count is below 1.

    Examples
    --------
    >>> [len(request["messages"]) for request in steady_requests(3, 10, [], "Be brief.")]
    [1, 3, 5]
    """
    messages: list[Message] = [{"role": "user", "text": task}]
    requests = []
    for turn in range(require_int("num_calls", num_calls)):
        requests.append({"tools": list(tools), "system": system, "messages": [dict(m) for m in messages]})
        call = {"id": f"c{turn}", "tool": "read", "argument": f"file {turn}"}
        messages.append({"role": "assistant", "text": "Let me look.", "calls": [call]})
        text = long_text(f"line{turn}x", require_int("result_tokens", result_tokens))
        messages.append({"role": "tool", "id": call["id"], "text": text, "error": False})
    return requests
