"""Start-up logs as engines write them, and as nobody should."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lantern_lib import kv_cache
from lantern_lib.engine_logs import SUM_TOLERANCE_BYTES, EngineLog, read_engine_log
from lantern_lib.log_lines import PATTERNS, clean
from lantern_lib.models import find_model
from lantern_lib.units import GIB

#: Lines that people published, with where they stand, and the numbers in them as a person reads them.
PUBLISHED: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data/engine_logs.json").read_text("utf-8"))
FIELDS = {"weights_gib": "weight_bytes"} | {
    f"{name}_gib": f"{name}_bytes" for name in ("device", "budget", "runtime", "activation", "pool", "free", "needed")
}

# The numbers are those of public logs; each block is one start.
VLLM_0_6 = """
INFO 12-13 19:54:18 worker.py:243] Memory profiling results:
INFO 12-13 19:54:18 worker.py:243] duration     0.75 seconds
INFO 12-13 19:54:18 worker.py:243] total_gpu_memory     79.22GiB
INFO 12-13 19:54:18 worker.py:243] gpu_memory_utilization       0.90
INFO 12-13 19:54:18 worker.py:243] the current vLLM instance can use    71.29GiB
INFO 12-13 19:54:18 worker.py:243] model weights take   14.96GiB
INFO 12-13 19:54:18 worker.py:243] non_torch_memory     1.79GiB
INFO 12-13 19:54:18 worker.py:243] PyTorch activation peak memory       1.26GiB
INFO 12-13 19:54:18 worker.py:243] available_kv_cache_memory    53.29GiB
"""
VLLM_0_7 = """
INFO 03-21 20:15:45 [worker.py:267] the current vLLM instance can use total_gpu_memory (79.19GiB) x\
 gpu_memory_utilization (0.90) = 71.27GiB
INFO 03-21 20:15:45 [worker.py:267] model weights take 12.55GiB; non_torch_memory takes 0.16GiB; PyTorch activation\
 peak memory takes 2.38GiB; the rest of the memory reserved for KV Cache is 56.18GiB.
INFO 03-21 20:15:45 [executor_base.py:111] # cuda blocks: 7191, # CPU blocks: 512
INFO 03-21 20:15:45 [executor_base.py:116] Maximum concurrency for 4096 tokens per request: 28.09x
"""
VLLM_0_11 = """
(APIServer pid=1) INFO 10-02 10:00:00 [api_server.py:1839] vLLM API server version 0.11.0
(EngineCore_DP0 pid=9) INFO 10-02 10:00:01 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config:\
 model='Qwen/Qwen3-32B', dtype=torch.bfloat16, max_seq_len=16000, tensor_parallel_size=1, kv_cache_dtype=auto
(EngineCore_DP0 pid=9) INFO 10-02 10:01:00 [gpu_model_runner.py:2653] Model loading took 61.0347 GiB and 9.1 seconds
(EngineCore_DP0 pid=9) INFO 10-02 10:02:00 [gpu_worker.py:298] Available KV cache memory: 4.45 GiB
(EngineCore_DP0 pid=9) INFO 10-02 10:02:00 [kv_cache_utils.py:1087] GPU KV cache size: 18,176 tokens
(EngineCore_DP0 pid=9) INFO 10-02 10:02:00 [kv_cache_utils.py:1091] Maximum concurrency for 16,000 tokens per request:\
 1.14x
(EngineCore_DP0 pid=9) INFO 10-02 10:03:00 [gpu_worker.py:391] Free memory on device (78.6/79.18 GiB) on startup.\
 Desired GPU memory utilization is (0.9, 71.26 GiB). Actual usage is 61.03 GiB for weight, 5.64 GiB for peak\
 activation, 0.14 GiB for non-torch memory, and -0.88 GiB for CUDAGraph memory. Replace\
 gpu_memory_utilization config with another.
"""
VLLM_RANKS = """
(APIServer pid=1) INFO 08-14 [utils.py:233] non-default args: {'tensor_parallel_size': 2,\
 'gpu_memory_utilization': 0.82}
(Worker_TP1 pid=448) INFO 08-14 14:07:22 [gpu_model_runner.py:6806] Estimated CUDA graph memory: 0.36 GiB total
(Worker_TP0 pid=447) INFO 08-14 14:07:22 [gpu_worker.py:563] Available KV cache memory: 6.87 GiB
(Worker_TP1 pid=448) INFO 08-14 14:07:22 [gpu_worker.py:563] Available KV cache memory: 6.31 GiB
(EngineCore pid=367) WARNING 08-14 14:07:22 [kv_cache_utils.py:1208] Add 3 padding layers, may waste at most 6.25%
(EngineCore pid=367) INFO 08-14 14:07:23 [kv_cache_utils.py:1710] GPU KV cache size: 396,928 tokens
(EngineCore pid=367) INFO 08-14 14:07:23 [kv_cache_utils.py:1711] Maximum concurrency for 131,072 tokens per request:\
 3.03x
"""
VLLM_REFUSES = """
(EngineCore_DP0 pid=1094) ERROR ValueError: To serve at least one request with the models's max seq len (262144),\
 (24.0 GiB KV cache is needed, which is larger than the available KV cache memory (3.18 GiB). Based on the available\
 memory, the estimated maximum model length is 34736. Try increasing `gpu_memory_utilization`.
"""
VLLM_OLD_REFUSES = """
INFO 01-11 15:51:02 llm_engine.py:70] Initializing an LLM engine with config: max_seq_len=4096, tensor_parallel_size=1
INFO 01-11 15:51:18 llm_engine.py:275] # GPU blocks: 229, # CPU blocks: 512
ValueError: The model's max seq len (4096) is larger than the maximum number of tokens that can be stored in KV cache\
 (3664). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.
"""
SGLANG = """
[2025-07-22 09:06:01] server_args=ServerArgs(model_path='Qwen3-235B-A22B-FP8', tp_size=4, mem_fraction_static=0.93)
[2025-07-22 09:06:10 TP0] Load weight begin. avail mem=78.51 GB
[2025-07-22 09:07:10 TP0] Load weight end. type=Qwen3MoeForCausalLM, dtype=torch.bfloat16, avail mem=22.1 GB, mem\
 usage=56.41 GB.
[2025-07-22 09:07:11 TP0] KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB
[2025-07-22 09:07:11 TP0] Memory pool end. avail mem=4.83 GB
[2025-07-22 09:07:40 TP0] max_total_num_tokens=367404, chunked_prefill_size=8192, max_prefill_tokens=16384,\
 max_running_requests=2048, context_len=40960
"""
SGLANG_LATENT = "[2025-01-01 TP0] KV Cache is allocated. #tokens: 524288, KV size: 17.16 GB\n"
TENSORRT = """
[TensorRT-LLM][INFO] Engine version 0.21.0rc0 found in the config file, assuming engine(s) built by new builder API.
[TensorRT-LLM][INFO] TRTGptModel maxSequenceLen: 384
[TensorRT-LLM][INFO] Loaded engine size: 240 MiB
[TensorRT-LLM][INFO] Memory usage when calculating max tokens in paged kv cache: total: 31.84 GiB, available: 17.83 GiB
[TensorRT-LLM][INFO] Number of blocks in KV cache primary pool: 8219
[TensorRT-LLM][INFO] Number of tokens per block: 32.
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 16.05 GiB for max tokens in paged KV cache (263008).
"""
TENSORRT_OLD = """
[TensorRT-LLM][INFO] Allocate 69524783104 bytes for k/v cache.
[TensorRT-LLM][INFO] Using 132608 tokens in paged KV cache.
"""
ALL = (VLLM_0_6, VLLM_0_7, VLLM_0_11, VLLM_RANKS, VLLM_REFUSES, VLLM_OLD_REFUSES, SGLANG, SGLANG_LATENT, TENSORRT)
ALL += (TENSORRT_OLD,)


def gib(size: float | None) -> float:
    assert size is not None
    return size / GIB


@pytest.mark.parametrize("text", [VLLM_0_6, VLLM_0_7])
def test_old_vllm_prints_every_part(text: str) -> None:
    log = read_engine_log(text)
    assert (log.engine, log.fraction) == ("vLLM", 0.9)
    assert log.gap_bytes is not None
    assert abs(log.gap_bytes) < SUM_TOLERANCE_BYTES
    assert gib(log.pool_bytes) in (53.29, pytest.approx(56.18))
    assert not log.refused


def test_blocks_times_their_size() -> None:
    log = read_engine_log(VLLM_0_7)
    assert log.tokens == 7191 * 16
    assert log.bytes_per_token == pytest.approx(kv_cache.bytes_per_token(find_model("Llama-2-7B")), rel=1e-4)
    assert log.concurrency_at(4096) == pytest.approx(28.09, abs=0.005)


def test_new_vllm_says_its_parts_at_the_end() -> None:
    log = read_engine_log(VLLM_0_11)
    assert (log.version, log.cache_format, log.tp_size, log.max_model_len) == ("0.11.0", "auto", 1, 16000)
    assert [gib(part) for part in (log.weight_bytes, log.activation_bytes, log.runtime_bytes)] == pytest.approx(
        [61.03, 5.64, 0.14]
    )
    assert gib(log.device_bytes) == pytest.approx(79.18)
    # This version does not take recorded steps off, and what it measured of them is no part of the sum.
    assert log.graph_bytes is None
    assert gib(log.gap_bytes) == pytest.approx(0.0, abs=0.01)
    assert log.concurrency_at(16_000) == pytest.approx(1.14, abs=0.005)
    assert log.bytes_per_token == pytest.approx(262144, rel=0.003)
    assert any("--max-num-seqs" in each for each in log.advice)
    assert any("0.95 instead of 0.9 gives 3.96 GiB, about 16," in each for each in log.advice)


def test_the_poorest_rank_decides_and_groups_change_the_meaning() -> None:
    log = read_engine_log(VLLM_RANKS)
    assert len(log.pools) == 2
    assert gib(log.pool_bytes) == pytest.approx(6.31)
    assert (log.tp_size, log.fraction) == (2, 0.82)
    assert log.groups
    assert log.tokens is not None
    assert log.concurrency is not None
    assert log.tokens / 131_072 == pytest.approx(log.concurrency, abs=0.005)
    assert any("concurrency times length" in each for each in log.meaning)
    assert any("ranks differ by 0.56 GiB" in each for each in log.meaning)
    assert gib(log.graph_bytes) == pytest.approx(0.36)


def test_a_refusal_says_the_length_that_starts() -> None:
    new, old = read_engine_log(VLLM_REFUSES), read_engine_log(VLLM_OLD_REFUSES)
    assert new.refused
    assert gib(new.needed_bytes) == 24
    assert new.advice[0] == "It starts with --max-model-len of at most 34,736."
    # 24 GiB for 262,144 tokens, of which 3.18 GiB are there.
    assert new.estimated_max_len == pytest.approx(262_144 * 3.18 / 24, rel=0.001)
    assert (old.tokens, old.max_model_len) == (229 * 16, 4096)
    assert read_engine_log("Available KV cache memory: -1.44 GiB").refused


def test_sglang_prints_one_gpu() -> None:
    log = read_engine_log(SGLANG)
    assert (log.engine, log.tokens, log.tp_size, log.fraction) == ("SGLang", 367404, 4, 0.93)
    assert gib(log.pool_bytes) == pytest.approx(16.46)
    assert gib(log.weight_bytes) == pytest.approx(56.41)
    # 235,094 million parameters on four cards: 48,128 bytes a token, and 0.93 of the free memory.
    assert log.bytes_per_token == pytest.approx(48_128, rel=0.001)
    assert pytest.approx(gib(log.pool_bytes), abs=0.2) == 0.93 * 78.51 - 56.41
    assert any("static fraction" in each for each in log.meaning)
    latent = read_engine_log(SGLANG_LATENT)
    assert latent.bytes_per_token == pytest.approx(61 * 576, rel=0.001)


def test_tensorrt_takes_of_what_is_free() -> None:
    log, old = read_engine_log(TENSORRT), read_engine_log(TENSORRT_OLD)
    assert (log.engine, log.version, log.tokens, log.blocks) == ("TensorRT-LLM", "0.21.0rc0", 263_008, 8219)
    assert log.blocks is not None
    assert log.blocks * 32 == log.tokens
    assert 0.9 * gib(log.free_bytes) == pytest.approx(gib(log.pool_bytes), abs=0.01)
    assert gib(log.weight_bytes) == pytest.approx(240 / 1024)
    assert old.bytes_per_token == pytest.approx(524288)
    assert any("free" in each for each in log.meaning)


def test_the_last_start_counts_and_settings_may_stand_before_it() -> None:
    log = read_engine_log("gpu_memory_utilization=0.5\n" + VLLM_RANKS + VLLM_0_11.replace("(0.9, 71.26 GiB)", ""))
    assert log.pools == (pytest.approx(4.45 * GIB),)
    assert log.fraction == 0.82


def test_a_model_counts_windows() -> None:
    gemma = find_model("Gemma-3-27B")
    log = replace(read_engine_log(VLLM_0_6), tp_size=1)
    pool = log.pool_bytes
    assert pool is not None
    one = kv_cache.bytes_per_sequence(gemma, 32_000)
    assert log.concurrency_at(32_000, gemma) == pytest.approx(pool / one)
    with pytest.raises(ValueError, match="^tokens must be in the log, got none"):
        log.concurrency_at(32_000)
    with pytest.raises(ValueError, match="^context_len must be"):
        log.concurrency_at(0)


def test_a_sum_that_misses_is_said() -> None:
    log = read_engine_log(VLLM_0_6.replace("53.29", "57.25"))
    assert any("parts miss the budget by -3.9" in each for each in log.meaning)


def test_escape_codes_and_carriage_returns() -> None:
    coloured = "\x1b[1;36m(EngineCore_DP0 pid=1)\x1b[0;0m INFO \x1b[32mGPU KV cache size: 178,880 tokens\x1b[0m\r\n"
    assert read_engine_log(coloured).tokens == 178_880
    assert clean("a\x00b\x1b[31mc") == "abc"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "Available KV cache mem",
        "GPU KV cache size: tokens",
        "Available KV cache memory: nan GiB",
        "GPU KV cache size: 99999999999999999999999 tokens",
        "Available KV cache memory: 1e999 GiB",
        "{" * 10000,
        "KV Cache is allocated. #tokens: " + "9" * 400,
        "\x00" * 1000,
        "Model loading took 999999999 GiB",
    ],
)
def test_what_is_no_log_gets_one_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="^text must hold lines about memory") as caught:
        read_engine_log(text)
    assert "\n" not in str(caught.value)


def test_what_is_no_text_or_too_much() -> None:
    with pytest.raises(ValueError, match="^text must have at most 5,000,000 characters, got 100,000,000"):
        read_engine_log("x" * 100_000_000)
    with pytest.raises(ValueError, match="^text must be the text of a log, got bytes"):
        read_engine_log(b"GPU KV cache size: 1 tokens")  # type: ignore[arg-type]


def test_long_lines_do_not_hang() -> None:
    """Each would make a careless pattern try every way of splitting it."""
    for piece in (
        "Load weight end. ",
        "KV Cache is allocated. ",
        "#tokens: ",
        "9",
        "9,",
        " ",
        "memory usage: total: 1",
    ):
        with pytest.raises(ValueError, match="^text must hold"):
            read_engine_log("\n".join([piece * 3000] * 20))


def look(log: EngineLog) -> None:
    assert log.summary
    for sentence in (*log.meaning, *log.advice):
        assert sentence.endswith(".")
        assert "nan" not in sentence
        assert "inf " not in sentence


def test_every_log_has_a_line_and_advice() -> None:
    for text in ALL:
        log = read_engine_log(text)
        look(log)
        assert log.meaning


def test_every_pattern_is_found_by_its_words() -> None:
    """The words that are looked for first stand in every line that the pattern reads."""
    lines = [line for text in ALL for line in text.splitlines()]
    used = set()
    for pattern in PATTERNS:
        assert len(pattern.literal) > 5, pattern
        for line in lines:
            if pattern.search.search(line):
                assert pattern.literal in line, pattern
                used.add(pattern)
    assert len(used) > 0.6 * len(PATTERNS)


@given(
    st.lists(st.sampled_from([line for text in ALL for line in text.splitlines() if line]), min_size=1, max_size=8),
    st.randoms(use_true_random=False),
    st.text(max_size=20),
)
def test_a_mangled_log_is_read_or_refused(lines: list[str], chance: random.Random, noise: str) -> None:
    """Lines in any order, cut, doubled, with noise inside and digits changed."""
    mangled = []
    for line in lines:
        begin, end = sorted((chance.randrange(len(line) + 1), chance.randrange(len(line) + 1)))
        changed = chance.choice([line, line[begin:], line[:end], line[:begin] + noise + line[end:], line * 2])
        mangled.append(
            "".join(chance.choice("0123456789.,-") if c.isdigit() and chance.random() < 0.2 else c for c in changed)
        )
    try:
        log = read_engine_log("\n".join(mangled))
    except ValueError as error:
        message: Any = str(error)
        if not message.startswith("text must hold lines about memory"):
            raise
    else:
        look(log)


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        look(read_engine_log(text))
    except ValueError as error:
        if not str(error).startswith("text must hold"):
            raise


@pytest.mark.parametrize("log", PUBLISHED, ids=lambda log: log["id"])
def test_a_published_log_is_read_as_a_person_reads_it(log: dict[str, Any]) -> None:
    found = read_engine_log("\n".join(log["text"]))
    for name, wanted in log["expect"].items():
        got = getattr(found, FIELDS.get(name, name))
        if name.endswith("_gib"):
            assert got == pytest.approx(wanted * GIB), name
        else:
            assert got == wanted, name
    assert found.meaning


def test_published_logs_are_of_many_kinds() -> None:
    read = [read_engine_log("\n".join(log["text"])) for log in PUBLISHED]
    assert {one.engine for one in read} == {"vLLM", "SGLang", "TensorRT-LLM"}
    assert len(read) >= 40
    assert sum(one.refused for one in read) >= 6
    complete = [one.gap_bytes for one in read if one.gap_bytes is not None and len(one.pools) == 1]
    assert len(complete) >= 10
    assert max(map(abs, complete)) < 0.02 * GIB, "the printed parts sum to the budget"


def test_blocks_of_another_size_are_told_by_the_concurrency() -> None:
    """466 blocks of an accelerator whose blocks hold 128 tokens, and V0's 16 where the concurrency says nothing."""
    line = "[executor_base.py:113] # npu blocks: 466, # CPU blocks: 1820"
    assert read_engine_log(line).tokens == 466 * 16
    full = f"{line}\n[executor_base.py:118] Maximum concurrency for 32768 tokens per request: 1.82x"
    assert read_engine_log(full).tokens == 466 * 128
    none = f"{line}\n[executor_base.py:118] Maximum concurrency for 32768 tokens per request: 0.00x"
    assert read_engine_log(none).tokens == 466 * 16


def test_a_shorter_limit_is_worth_something_where_whole_prompts_are_tried() -> None:
    """One 8B on one card printed 2.89 GiB for 29,000 tokens and 3.81 for 20,000; later versions print the same."""
    old = read_engine_log(
        "# GPU blocks: 1952, # CPU blocks: 2048\nMaximum concurrency for 20000 tokens per request: 1.56x"
    )
    new = read_engine_log("GPU KV cache size: 31,232 tokens\nMaximum concurrency for 20,000 tokens per request: 1.56x")
    assert old.tokens == new.tokens == 31_232
    assert "lowers the activation peak" in " ".join(old.advice)
    assert "frees nothing" in " ".join(new.advice)
    assert old.profiles_whole_prompts
    assert not new.profiles_whole_prompts


def test_the_newest_breakdown_has_weights_and_runtime_in_one() -> None:
    line = "Actual usage is 43.21 GiB for consumed memory (weights + non-torch), 0.92 GiB for peak activation"
    assert read_engine_log(line).runtime_bytes is None
    both = f"Model loading took 42.50 GiB memory and 9 seconds\n{line}"
    assert read_engine_log(both).runtime_bytes == pytest.approx(0.71 * GIB)
