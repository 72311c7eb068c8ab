"""What the command accepts."""

from __future__ import annotations

import argparse
from typing import NoReturn

from lantern_lib.cli.completion import SHELLS, completes
from lantern_lib.cli.inputs import DTYPES, KV_DTYPES

_EXIT = "Exit codes: 0 = yes, 1 = it does not fit, pay or keep the promise, 2 = bad input."


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and leave with 2."""
        line = "".join(letter if letter.isprintable() else "?" for letter in message)
        self.exit(2, f"{self.prog}: error: {line[:600]} (see {self.prog} --help)\n")


def _output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print for programs, in bytes, seconds, tokens, dollars")
    parser.add_argument("--plain", action="store_true", help="print plain columns, also where rich is installed")


def _model(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    group = parser.add_argument_group("model")
    named = group.add_argument(
        "--model", required=required, metavar="NAME|FILE", help="a shipped model, or a config.json"
    )
    completes(named, "models")
    group.add_argument("--dtype", choices=DTYPES, default="auto", help="how weights are stored; auto: as the file says")
    group.add_argument("--kv-dtype", choices=KV_DTYPES, default="auto", help="how the cache is stored")


def _card(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    group = parser.add_argument_group("cards")
    gpu = group.add_argument("--gpu", required=required, metavar="CARD", help="h100, rtx-4090, 80GB …")
    completes(gpu, "cards")
    group.add_argument("--tp", type=int, default=1, metavar="N", help="GPUs that share every matrix (default 1)")


def _experts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ep", type=int, default=1, metavar="N", help="GPUs that share the experts, if more than --tp")


def _engine(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("engine")
    group.add_argument("--engine", choices=("vllm", "sglang", "tensorrt-llm"), default="vllm", type=str.lower)
    group.add_argument("--engine-version", default="", metavar="V", help="narrows the intervals")
    group.add_argument("--fraction", type=float, metavar="F", help="the engine's memory setting (default: its own)")
    group.add_argument("--max-num-tokens", type=int, metavar="N", help="most tokens of a step (default: the engine's)")
    group.add_argument("--max-num-seqs", type=int, metavar="N", help="most sequences of a step (default: the engine's)")


def _efficiency(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("efficiency")
    group.add_argument("--compute-efficiency", type=float, default=0.5, metavar="E", help="of peak (default 0.5)")
    group.add_argument("--bandwidth-efficiency", type=float, default=0.8, metavar="E", help="of peak (default 0.8)")


def _traffic(parser: argparse.ArgumentParser, *, required: bool) -> None:
    group = parser.add_argument_group("traffic")
    group.add_argument("--rate", type=float, required=required, metavar="R", help="requests a second")
    group.add_argument("--prompt", type=int, default=2000, metavar="N", help="tokens of a prompt (default 2000)")
    group.add_argument("--output", type=int, default=400, metavar="N", help="tokens of an answer (default 400)")


def _cost(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gpu-hour", type=float, required=True, metavar="D", help="dollars for a GPU and an hour")
    parser.add_argument("--price", type=float, metavar="D", help="dollars for a million tokens elsewhere")
    parser.add_argument("--people", type=float, default=0.0, metavar="D", help="dollars for people in a month")
    measured = parser.add_argument_group("from a measured rate")
    measured.add_argument("--tokens-per-second", type=float, metavar="R", help="tokens that all GPUs make while busy")
    measured.add_argument("--gpus", type=int, default=1, metavar="N", help="GPUs that are paid (default 1)")
    measured.add_argument(
        "--utilization", type=float, default=1.0, metavar="U", help="share of time that they are busy"
    )
    _model(parser, required=False)
    _card(parser, required=False)
    _traffic(parser, required=False)
    parser.add_argument("--cached", type=int, default=0, metavar="N", help="tokens of a prompt found in a cache")
    parser.add_argument(
        "--max-utilization", type=float, default=1.0, metavar="U", help="share of time a replica may work"
    )
    _efficiency(parser)


def _simulate(parser: argparse.ArgumentParser) -> None:
    _model(parser)
    _card(parser)
    _engine(parser)
    _traffic(parser, required=True)
    parser.add_argument("--requests", type=int, default=2000, metavar="N", help="how many (default 2000)")
    parser.add_argument("--equal", action="store_true", help="all answers of one length")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="where chance begins (default 1)")
    parser.add_argument("--max-batch", type=int, default=256, metavar="N", help="most sequences together (default 256)")
    parser.add_argument("--prefill", choices=("chunked", "separate"), default="chunked")
    parser.add_argument("--token-budget", type=int, default=2048, metavar="N", help="tokens of a step (default 2048)")
    parser.add_argument("--overhead", type=float, default=0.0, metavar="S", help="seconds that every step loses")
    parser.add_argument("--ttft", type=float, metavar="S", help="promise: seconds to the first token")
    parser.add_argument("--tpot", type=float, metavar="S", help="promise: seconds for each further token")
    _efficiency(parser)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command.

    Returns
    -------
    argparse.ArgumentParser
        With a parser for each of size, explain-log, cost, simulate and completion.

    Examples
    --------
    >>> build_parser().parse_args(["size", "--model", "Qwen3-32B", "--gpu", "h100"]).tp
    1
    """
    parser = Parser("lantern", description="What serving a language model takes: memory, time, money.", epilog=_EXIT)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)

    def command(name: str, words: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=words, description=words, epilog=_EXIT)

    one = command("size", "where a GPU's memory goes, and how many conversations fit")
    _model(one)
    _card(one)
    _experts(one)
    one.add_argument("--context", type=int, default=8192, metavar="N", help="tokens of a conversation (default 8192)")
    _engine(one)
    _output(one)
    two = command("explain-log", "what a start-up log of vLLM, SGLang or TensorRT-LLM says")
    completes(two.add_argument("file", metavar="FILE", help="the log; - is the standard input"), "files")
    _model(two, required=False)
    two.add_argument("--context", type=int, metavar="N", help="tokens of a conversation (default: the log's own limit)")
    _output(two)
    three = command("cost", "what a million tokens cost, from a measured rate or from a model on cards")
    _cost(three)
    _output(three)
    four = command("simulate", "one replica under requests that come at random")
    _simulate(four)
    _output(four)
    five = command("completion", "a script that completes this command in a shell")
    five.add_argument("shell", choices=SHELLS)
    return parser
