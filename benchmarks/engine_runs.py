"""The experiments: decode, prefill, prompt cache, and requests in an open loop."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from engine_server import Engine

from lantern_lib import metrics
from lantern_lib.metrics import RequestRecord
from lantern_lib.workload import poisson

#: A sampler that takes the likeliest token, and the one a request gets that asks for nothing.
SAMPLERS: dict[str, dict[str, Any]] = {
    "greedy": {"samplers": ["top_k"], "top_k": 1},
    "default sampler": {},
}
#: Steps of one stream that are timed, and how many more the others run, so that the batch stays full.
STEPS, SPARE = 24, 200
#: A document of some length with a question after it.
DOCUMENT_LEN, QUESTION_LEN = 1024, 64
CACHE_CASES = ("off", "next turn", "other question", "other question, full window")
#: Requests of a load test, and their tokens.
NUM_REQUESTS, PROMPT_LEN, OUTPUT_LEN, SLOTS = 32, 64, 32, 8
#: Offered rates, over the rate at which the batching engine finishes requests that all come at once.
SHARES = (0.3, 0.6, 0.9)

Found = dict[str, Any]


def some_tokens(count: int, seed: int) -> list[int]:
    """Return a prompt that no other seed shares the beginning of: the start token and random words."""
    words = np.random.default_rng(seed).integers(1000, 200_000, count - 1)
    return [2, *(int(word) for word in words)]


def gaps(messages: Iterable[Mapping[str, Any]]) -> list[float]:
    """Return the seconds between consecutive tokens of a stream, by the engine's own clock."""
    stamps = [message["timings"]["predicted_ms"] for message in messages if message.get("tokens")]
    return [(later - earlier) / 1e3 for earlier, later in pairwise(stamps)]


def summary(times: Sequence[float]) -> Found:
    """Return the shortest of many times, their median and their number."""
    return {"value": min(times), "median": statistics.median(times), "count": len(times)}


def _steps(engine: Engine, prompts: Sequence[list[int]], sampler: str) -> list[float]:
    """Time some steps of a full batch: all but one sequence run before and after; nothing if one of them ended."""
    body = {"cache_prompt": True, "ignore_eos": True, "return_tokens": True, **SAMPLERS[sampler]}
    others = []
    for slot, prompt in enumerate(prompts[1:], 1):
        others.append(engine.stream(prompt=prompt, id_slot=slot, n_predict=SPARE, **body))
        next(iter(others[-1]))
    watched = engine.stream(prompt=prompts[0], id_slot=0, n_predict=STEPS + 1, timings_per_token=True, **body)
    found = gaps(watched)
    full = not any(stream.ended() for stream in others)
    for stream in (watched, *others):
        stream.close()
    return found if full else []


def decode(
    path: Path, threads: int, batch_sizes: Sequence[int], context_len: int, sampler: str, seconds: float
) -> Iterator[Found]:
    """Time steps of batches in which every sequence has its prompt in the cache already."""
    slots = max(batch_sizes)
    first_len = context_len - STEPS // 2  # the timed steps lie around the context that the row names
    prompts = [some_tokens(first_len, seed) for seed in range(slots)]
    with Engine(path, threads=threads, slots=slots, slot_tokens=context_len + SPARE + 64) as engine:
        for slot, prompt in enumerate(prompts):
            engine.complete(prompt=prompt, id_slot=slot, n_predict=1, cache_prompt=True, **SAMPLERS["greedy"])
        for batch_size in batch_sizes:
            times: list[float] = []
            until = time.perf_counter() + seconds
            while time.perf_counter() < until or not times:
                times += _steps(engine, prompts[:batch_size], sampler)
            yield {"slots": slots, "batch_size": batch_size, "context_len": context_len, **summary(times)}


def prefill(path: Path, threads: int, prompt_lens: Sequence[int], seconds: float) -> Iterator[Found]:
    """Time the prompt of requests that ask for one token, each with words of its own."""
    with Engine(path, threads=threads, slot_tokens=max(prompt_lens) + 64) as engine:
        for prompt_len in prompt_lens:
            times: list[float] = []
            until = time.perf_counter() + seconds
            while time.perf_counter() < until or len(times) < 3:
                prompt = some_tokens(prompt_len, len(times))
                answer = engine.complete(prompt=prompt, n_predict=1, cache_prompt=False, **SAMPLERS["greedy"])
                computed = answer["timings"]["prompt_n"]
                if computed != prompt_len:
                    raise RuntimeError(f"asked for {prompt_len} tokens, the engine computed {computed}")
                times.append(answer["timings"]["prompt_ms"] / 1e3)
            yield {"prompt_len": prompt_len, **summary(times)}


def prompt_cache(path: Path, threads: int, case: str, seconds: float) -> Iterator[Found]:
    """Time a long prompt whose beginning the engine has just seen."""
    document = some_tokens(DOCUMENT_LEN - QUESTION_LEN, 0)
    times, cached = [], 0
    full = case.endswith("full window")
    with Engine(path, threads=threads, slot_tokens=DOCUMENT_LEN + 128, full_window=full) as engine:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until or len(times) < 3:
            before, question = ([*some_tokens(QUESTION_LEN, 2 * len(times) + seed)[1:], 1000] for seed in (1, 2))
            first = document if case == "next turn" else document + before
            if case != "off":
                # Forget all, then let the engine see what the real request shares.
                engine.complete(prompt=first, n_predict=1, cache_prompt=False, **SAMPLERS["greedy"])
            answer = engine.complete(
                prompt=document + question, n_predict=1, cache_prompt=case != "off", **SAMPLERS["greedy"]
            )
            times.append(answer["timings"]["prompt_ms"] / 1e3)
            cached = answer["timings"]["cache_n"]
    yield {"prompt_len": DOCUMENT_LEN, "num_cached_tokens": cached, **summary(times)}


def _request(engine: Engine, prompt: list[int], arrival: float, records: list[RequestRecord]) -> None:
    stamps: list[float] = []
    stream = engine.stream(
        prompt=prompt,
        n_predict=OUTPUT_LEN,
        cache_prompt=False,
        ignore_eos=True,
        return_tokens=True,
        **SAMPLERS["greedy"],
    )
    for message in stream:
        stamps += [time.perf_counter()] * len(message.get("tokens") or ())
    stream.close()
    records.append(RequestRecord(arrival, stamps[0], stamps[-1], len(stamps)))


def offer(engine: Engine, offsets: Sequence[float], seed: int) -> list[RequestRecord]:
    """Send requests at their times, whatever has become of those before."""
    records: list[RequestRecord] = []
    clients = []
    start = time.perf_counter() + 0.1
    for number, offset in enumerate(offsets):
        prompt = some_tokens(PROMPT_LEN, seed + number)
        time.sleep(max(0.0, start + offset - time.perf_counter()))
        clients.append(threading.Thread(target=_request, args=(engine, prompt, start + offset, records)))
        clients[-1].start()
    for client in clients:
        client.join()
    return records


def _load_rows(records: Sequence[RequestRecord], slots: int, rate: float) -> Iterator[Found]:
    waits = [metrics.ttft(record) for record in records]
    paces = [metrics.tpot(record) for record in records]
    shape = {"slots": slots, "rate": rate, "prompt_len": PROMPT_LEN, "count": len(records)}
    for case, value, unit in (
        ("ttft, median", metrics.percentile(waits, 0.5), "s"),
        ("ttft, 95th percentile", metrics.percentile(waits, 0.95), "s"),
        ("tpot, median", metrics.percentile(paces, 0.5), "s"),
        ("output", metrics.output_throughput(records), "tokens/s"),
    ):
        yield {**shape, "case": case, "value": value, "median": value, "unit": unit}


def open_loop(path: Path, threads: int) -> Iterator[Found]:
    """Offer the same random arrivals to an engine that batches, and to one that takes one request at a time."""
    capacity = 0.0
    for slots in (SLOTS, 1):
        with Engine(path, threads=threads, slots=slots, slot_tokens=PROMPT_LEN + OUTPUT_LEN + 64) as engine:
            if not capacity:
                at_once = offer(engine, [0.0] * 2 * SLOTS, seed=10_000)
                capacity = metrics.request_throughput(at_once)
            for share in SHARES:
                rate = float(f"{share * capacity:.3g}")
                arrivals = poisson(NUM_REQUESTS, rate, PROMPT_LEN, OUTPUT_LEN, np.random.default_rng(7))
                yield from _load_rows(offer(engine, list(arrivals.arrival_seconds), seed=0), slots, rate)
