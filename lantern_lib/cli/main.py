"""From the words that were typed to a report and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from lantern_lib.capacity import Traffic
from lantern_lib.cli import cost, explain, simulate, size
from lantern_lib.cli.completion import completion_script
from lantern_lib.cli.inputs import find_card, read_model, read_text
from lantern_lib.cli.parser import build_parser
from lantern_lib.cli.render import clean, show
from lantern_lib.cli.report import Report, Value
from lantern_lib.engine_logs import read_engine_log
from lantern_lib.memory_plan import MemoryPlan, plan_memory
from lantern_lib.metrics import Slo
from lantern_lib.simulator import TooManyEventsError

YES, NO, BAD_INPUT = 0, 1, 2


def _typed(asked: argparse.Namespace) -> dict[str, Value]:
    return {name: value for name, value in vars(asked).items() if name not in ("command", "json", "plain")}


def _plan(asked: argparse.Namespace) -> MemoryPlan:
    model, positions = read_model(asked.model, asked.dtype, asked.kv_dtype)
    return plan_memory(
        model,
        find_card(asked.gpu).device,
        asked.tp,
        asked.engine,
        version=asked.engine_version,
        fraction=asked.fraction,
        max_num_tokens=asked.max_num_tokens,
        max_num_seqs=asked.max_num_seqs,
        max_positions=positions,
        ep_size=getattr(asked, "ep", 1),
    )


def _size(asked: argparse.Namespace) -> Report:
    return size.size(size.Sizing(_plan(asked), find_card(asked.gpu), asked.context, asked.ep), _typed(asked))


def _explain_log(asked: argparse.Namespace) -> Report:
    model = read_model(asked.model, asked.dtype, asked.kv_dtype)[0] if asked.model else None
    return explain.explain_log(read_engine_log(read_text(asked.file)), asked.context, model, _typed(asked))


def _cost(asked: argparse.Namespace) -> Report:
    if asked.tokens_per_second is not None:
        if asked.model or asked.rate is not None:
            raise ValueError(
                "tokens_per_second must stand alone, got --model or --rate beside it. Give one of the two."
            )
        return cost.measured_cost(
            asked.gpu_hour,
            asked.gpus,
            asked.tokens_per_second,
            asked.utilization,
            asked.price,
            asked.people,
            _typed(asked),
        )
    if asked.model is None or asked.gpu is None or asked.rate is None:
        raise ValueError("tokens_per_second must be given, or --model, --gpu and --rate, got neither.")
    model, _ = read_model(asked.model, asked.dtype, asked.kv_dtype)
    replica = find_card(asked.gpu).replica(asked.tp, asked.compute_efficiency, asked.bandwidth_efficiency)
    traffic = Traffic(asked.rate, asked.prompt, asked.output, asked.cached)
    return cost.fleet_cost(
        model, replica, traffic, asked.gpu_hour, asked.max_utilization, asked.price, asked.people, _typed(asked)
    )


def _simulate(asked: argparse.Namespace) -> Report:
    replica = find_card(asked.gpu).replica(asked.tp, asked.compute_efficiency, asked.bandwidth_efficiency)
    load = simulate.Load(asked.rate, asked.prompt, asked.output, asked.requests, asked.equal, asked.seed)
    settings = simulate.Settings(asked.max_batch, asked.prefill, asked.token_budget, asked.overhead)
    promised = asked.ttft is not None or asked.tpot is not None
    slo = Slo(asked.ttft, asked.tpot) if promised else None
    return simulate.simulate(_plan(asked), replica, load, settings, slo, _typed(asked))


_COMMANDS = {"size": _size, "explain-log": _explain_log, "cost": _cost, "simulate": _simulate}


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError):
        words = f"{error.strerror or type(error).__name__}: {error.filename}" if error.filename else str(error)
    else:
        words = str(error)
    return clean(" ".join(words.split()))[:600]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``lantern``; those of the process if not given [text].

    Returns
    -------
    int
        0 if the answer is yes, 1 if something does not fit, pay or keep its promise, 2 for bad input [exit code].

    Examples
    --------
    >>> main(["cost", "--gpu-hour", "2.5", "--tokens-per-second", "700", "--plain"])
    Cost of 1 GPU at 700 tokens/s
    <BLANKLINE>
    Cost
      a million tokens  0.992 dollars  2.5 × 1 an hour / (700 tokens/s × 3,600 × 1)
      a month           1,825 dollars  730 hours
    <BLANKLINE>
    - A million tokens here pay for GPUs alone: no engineers, no spares, no network.
    0
    """
    parser = build_parser()
    try:
        asked = parser.parse_args(arguments)
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else BAD_INPUT
    try:
        if asked.command == "completion":
            sys.stdout.write(completion_script(parser, asked.shell))
            return YES
        report = _COMMANDS[asked.command](asked)
        if asked.json:
            sys.stdout.write(report.as_json() + "\n")
        else:
            show(report, sys.stdout, rich=not asked.plain)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has gone: nothing may be written when the interpreter closes its files either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return YES
    except (ValueError, OSError, OverflowError, MemoryError, TooManyEventsError) as error:
        sys.stderr.write(f"lantern {asked.command}: error: {_one_line(error)}\n")
        return BAD_INPUT
    except KeyboardInterrupt:
        return 130
    return YES if report.fits else NO
