"""The command: what it prints, how it leaves, and that nothing that is typed or read makes it stumble."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lantern_lib.cli import main
from lantern_lib.cli.completion import model_names
from lantern_lib.cli.inputs import find_card
from lantern_lib.devices import DEVICES
from lantern_lib.models import find_model
from lantern_lib.transformer import parameters

ROOT = Path(__file__).resolve().parent.parent
LOG = """INFO 03-21 [worker.py:267] model weights take 12.55GiB; non_torch_memory takes 0.16GiB
INFO 03-21 [worker.py:267] the rest of the memory reserved for KV Cache is 56.18GiB.
INFO 03-21 [executor_base.py:111] # cuda blocks: 7191, # CPU blocks: 512
"""
SIZE = ["size", "--model", "Llama-3.1-8B", "--gpu", "a100", "--fraction", "0.9", "--engine-version", "0.11"]
EIGHT = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}


def command(*words: str, text: str = "", before: str = "pass") -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, as a shell would."""
    code = f"import sys; {before}; from lantern_lib.cli import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, input=text, capture_output=True, text=True)


def values(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, float]:
    """Run the command here and return what it says to programs."""
    assert main([*words, "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert found["fits"] is (code == 0)
    return found["values"]


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run a command that must be refused, and return its one line."""
    assert main(list(words)) == 2
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.endswith("\n")
    assert out.err.count("\n") == 1
    assert out.err.startswith("lantern")
    assert ": error: " in out.err
    assert "Traceback" not in out.err
    return out.err


def test_size_is_within_five_percent_of_a_published_log(capsys: pytest.CaptureFixture[str]) -> None:
    """The log of an 8B on an A100 of 80 GB printed 451,379 tokens."""
    found = values(capsys, *SIZE)
    assert found["tokens"] == pytest.approx(451_379, rel=0.05)
    assert found["tokens_low"] <= 451_379 <= found["tokens_high"]
    assert found["parameters"] == 8_030_261_248
    assert found["kv_bytes_per_token"] == 2 * 32 * 8 * 128 * 2
    parts = ("weights", "rotary_table", "activation_peak", "runtime", "recorded_graphs")
    taken = sum(found[part + "_bytes"] for part in parts)
    assert found["pool_bytes"] == pytest.approx(0.9 * found["device_bytes"] - taken)
    assert found["conversations"] == found["pool_bytes"] // (8192 * 131_072)


def test_a_file_and_the_name_of_the_same_shape_agree(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(EIGHT), encoding="utf-8")
    by_name, by_file = (values(capsys, "size", "--gpu", "h100", "--model", m) for m in ("llama-3-8b", str(file)))
    # Only the file says how long a context may be: 131,072 rows of 128 numbers in 16 bits.
    assert by_file["rotary_table_bytes"] == 131_072 * 128 * 2
    assert by_name["rotary_table_bytes"] == 0
    assert by_file["parameters"] == by_name["parameters"]
    assert by_file["pool_bytes"] == by_name["pool_bytes"] - by_file["rotary_table_bytes"]


@pytest.mark.parametrize(("dtype", "factor"), [("fp32", 2.0), ("bf16", 1.0), ("fp8", 0.5), ("nvfp4", 0.25)])
def test_the_stored_width_divides_the_matrices(capsys: pytest.CaptureFixture[str], dtype: str, factor: float) -> None:
    plain = values(capsys, "size", "--model", "llama-3-70b", "--gpu", "b200", "--dtype", "auto")["weights_bytes"]
    found = values(capsys, "size", "--model", "llama-3-70b", "--gpu", "b200", "--dtype", dtype, code=int(factor == 2))
    # Tables and scales keep their width: up to a twentieth of the whole.
    assert factor <= found["weights_bytes"] / plain <= factor + 0.06


def test_the_cache_in_eight_bits_holds_twice_the_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    wide, narrow = (values(capsys, *SIZE, "--kv-dtype", kind)["tokens"] for kind in ("auto", "fp8"))
    assert narrow == pytest.approx(2 * wide, abs=16)


def test_what_does_not_fit_leaves_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    found = values(capsys, "size", "--model", "llama-3-70b", "--gpu", "h100", code=1)
    assert found["conversations"] == 0
    assert found["pool_bytes"] < 0
    assert "step_seconds_alone" not in found
    # Room for the model, none for so long a conversation: 131,072 bytes a token and some 50 GB of pool.
    assert values(capsys, *SIZE, "--context", "1000000", code=1)["pool_bytes"] > 0


def test_a_log_is_explained(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "start.log"
    file.write_text(LOG, encoding="utf-8")
    found = values(capsys, "explain-log", str(file), "--context", "4096")
    assert found["tokens"] == 7191 * 16
    assert found["weights_bytes"] == 12.55 * 2**30
    assert found["conversations"] == 7191 * 16 / 4096
    assert main(["explain-log", str(file), "--plain"]) == 0
    assert "The pool is that of one GPU" in capsys.readouterr().out


def test_a_log_comes_through_a_pipe() -> None:
    done = command("explain-log", "-", "--json", text=LOG)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["values"]["tokens"] == 115_056


def test_a_log_of_a_refusal_leaves_with_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "start.log"
    file.write_text("INFO [gpu_worker.py:298] Available KV cache memory: -3.40 GiB\n", encoding="utf-8")
    assert values(capsys, "explain-log", str(file), code=1)["pool_bytes"] == pytest.approx(-3.4 * 2**30)


def test_cost_agrees_with_a_public_page(capsys: pytest.CaptureFixture[str]) -> None:
    """The page prints 0.99 dollars at 2.50 an hour and 700 tokens a second, and 9.92 at a tenth of the load."""
    paid = ["cost", "--gpu-hour", "2.5", "--tokens-per-second", "700"]
    assert round(values(capsys, *paid)["dollars_per_million"], 2) == 0.99
    assert round(values(capsys, *paid, "--utilization", "0.1")["dollars_per_million"], 2) == 9.92


def test_a_price_that_no_machine_beats_leaves_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    """At 3.13 dollars an hour and 0.99 a million, 878 tokens a second are needed; a machine of 700 never pays."""
    asked = ["cost", "--gpu-hour", "3.13", "--price", "0.99", "--tokens-per-second"]
    found = values(capsys, *asked, "700", code=1)
    assert found["break_even_tokens"] == pytest.approx(3.13 * 730 / 0.99e-6)
    assert values(capsys, *asked, "879")["break_even_utilization"] < 1


def test_the_cost_of_a_fleet_is_that_of_the_book(capsys: pytest.CaptureFixture[str]) -> None:
    """Page C3: four replicas of four for 20 requests a second, at most 65 percent busy."""
    words = "cost --gpu-hour 3 --model lantern-70b --gpu h100 --tp 4 --rate 20 --cached 1500 --max-utilization 0.65"
    found = values(capsys, *words.split())
    assert (found["replicas"], found["gpus"]) == (4, 16)
    assert round(found["dollars_per_million_output"], 2) == 1.67
    assert values(capsys, *words.replace("--tp 4", "--tp 1").split(), code=1) == {}


def test_a_request_alone_takes_as_long_as_the_book_says(capsys: pytest.CaptureFixture[str]) -> None:
    """Page A3: 162 ms for the prompt, 5.88 s for all of it. A request in 10,000 s waits for nobody."""
    words = "simulate --model lantern-70b --gpu h100 --tp 4 --rate 0.0001 --requests 5 --equal --token-budget 8192"
    found = values(capsys, *words.split())
    assert round(found["ttft_seconds_mean"], 3) == 0.162
    assert round(found["e2el_seconds_mean"], 2) == 5.88
    assert found == values(capsys, *words.split())


def test_a_broken_promise_leaves_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    words = "simulate --model lantern-70b --gpu h100 --tp 4 --rate 2 --requests 300 --ttft".split()  # noqa: SIM905
    assert values(capsys, *words, "60")["promise_kept"] == 1.0
    assert values(capsys, *words, "0.01", code=1)["promise_kept"] == 0.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "required: command"),
        ("size", "required: --model"),
        ("size --model nope --gpu h100", "Near are"),
        ("size --model qwen3-32b --gpu banana", "card must be one of"),
        ("size --model qwen3-32b --gpu h100 --tp 5", "tp_size must divide num_heads"),
        ("size --model qwen3-32b --gpu h100 --tp 0", "tp_size must be a whole number"),
        ("size --model qwen3-32b --gpu h100 --fraction nan", "fraction must be a fraction"),
        ("size --model qwen3-32b --gpu h100 --context -1", "context_len must be a whole number"),
        ("size --model qwen3-32b --gpu h100 --context 8k", "--context: invalid int value"),
        ("size --model qwen3-32b --gpu h100 --engine ollama", "invalid choice"),
        ("size --model missing/config.json --gpu h100", "No such file"),
        ("size --model / --gpu h100", "No such file or directory: /config.json"),
        ("explain-log /", "Is a directory"),
        ("cost --gpu-hour 3", "tokens_per_second must be given"),
        ("cost --gpu-hour 3 --tokens-per-second 9 --rate 2", "must stand alone"),
        ("cost --gpu-hour 3 --tokens-per-second inf", "tokens_per_second must be a finite"),
        ("simulate --model qwen3-32b --gpu 80GB --rate 1", "gpu must be a card of known speed"),
        ("simulate --model qwen3-32b --gpu h200 --rate 1 --requests 100000000", "num_requests must be at most"),
        ("simulate --model qwen3-32b --gpu h200 --rate 1 --compute-efficiency 2", "compute_efficiency must be"),
        ("completion csh", "invalid choice"),
    ],
)
def test_bad_input_is_one_line_and_leaves_with_two(capsys: pytest.CaptureFixture[str], words: str, said: str) -> None:
    assert said in refused(capsys, *words.split())


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"model_type": "nope"}', "[" * 100_000, '{"a": NaN}', "\x1b[2J\x00", json.dumps({"a": 1}) * 2],
)
def test_a_file_that_is_no_config_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(text, encoding="utf-8")
    refused(capsys, "size", "--model", str(file), "--gpu", "h100")


@settings(max_examples=60, deadline=None)
@given(config=st.dictionaries(st.sampled_from([*EIGHT, "text_config", "quantization_config"]), st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8), st.lists(st.integers(), max_size=3), st.dictionaries(st.text(max_size=3), st.integers())
), max_size=4))  # fmt: skip
def test_no_config_makes_it_stumble(tmp_path_factory: pytest.TempPathFactory, config: dict[str, object]) -> None:
    file = tmp_path_factory.mktemp("c") / "config.json"
    file.write_text(json.dumps(EIGHT | config), encoding="utf-8")
    assert main(["size", "--model", str(file), "--gpu", "h100", "--json"]) in (0, 1, 2)


@settings(max_examples=60, deadline=None)
@given(text=st.lists(st.sampled_from([*LOG.splitlines(), "GiB", "\x1b[31m", "blocks: 9" * 9, "# GPU blocks: -1"])))
def test_no_log_makes_it_stumble(tmp_path_factory: pytest.TempPathFactory, text: list[str]) -> None:
    file = tmp_path_factory.mktemp("l") / "log"
    file.write_text("\n".join(text), encoding="utf-8")
    assert main(["explain-log", str(file), "--plain"]) in (0, 1, 2)


def test_the_table_is_drawn_with_rich_and_without_it() -> None:
    """The same values, with frames and without; escape codes and brackets of a name do nothing."""
    with_rich, without = command(*SIZE), command(*SIZE, before="sys.modules['rich'] = None")
    assert with_rich.returncode == without.returncode == 0
    assert without.stdout == command(*SIZE, "--plain").stdout
    assert with_rich.stdout != without.stdout
    for shown in ("8,030,261,248", "131,072 bytes", "of total memory"):
        assert shown in with_rich.stdout
        assert shown in without.stdout


def test_a_hostile_name_is_printed_as_text(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(EIGHT | {"_name_or_path": "a\x1b[2J[bold red]b[/]"}), encoding="utf-8")
    for more in ([], ["--plain"]):
        done = command("size", "--model", str(file), "--gpu", "h100", *more)
        assert done.returncode == 0
        assert "\x1b" not in done.stdout
        assert "a?[2J[bold red]b[/]" in done.stdout


def test_a_reader_that_leaves_is_no_error() -> None:
    words = " ".join(SIZE)
    shell = f"set -o pipefail; {sys.executable} -m lantern_lib.cli {words} --plain | true"
    done = subprocess.run(["bash", "-c", shell], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_code_is_no_answer_of_rich_when_a_reader_leaves() -> None:
    """Rich leaves with the code that means no, unless it is told otherwise."""
    shell = f"set -o pipefail; {sys.executable} -m lantern_lib.cli {' '.join(SIZE)} | true"
    done = subprocess.run(["bash", "-c", shell], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_folder_stands_for_the_file_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(EIGHT), encoding="utf-8")
    assert values(capsys, "size", "--model", str(tmp_path), "--gpu", "h100")["parameters"] == 8_030_261_248
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "No such file" in refused(capsys, "size", "--model", str(empty), "--gpu", "h100")


def test_experts_over_groups_are_sized_and_not_timed(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["size", "--model", "DeepSeek-V3", "--gpu", "h200", "--tp", "1"]
    alone = values(capsys, *words, code=1)
    spread = values(capsys, *words, "--ep", "16")
    model = find_model("DeepSeek-V3")
    assert alone["weights_bytes"] - spread["weights_bytes"] > 0.9 * 15 / 16 * parameters(model).experts
    assert "step_seconds_alone" not in spread
    assert main([*words, "--ep", "16", "--plain"]) == 0
    assert "DeepSeek-V3 on 16 GPUs" in (text := capsys.readouterr().out)
    assert "one of 16 groups" in text


def complete(*words: str) -> set[str]:
    """Ask bash what it offers for the last word."""
    script = command("completion", "bash").stdout
    typed = " ".join(f"'{word}'" for word in words)
    ask = f"\nCOMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _shtab_lantern 2>/dev/null\n"
    ask += 'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script + ask], cwd=ROOT, capture_output=True, text=True)
    return set(done.stdout.split())


def test_bash_completes_commands_models_cards_and_files() -> None:
    assert complete("lantern", "si") == {"size", "simulate"}
    assert "Qwen3-32B" in complete("lantern", "size", "--model", "Qwen3")
    assert {"H100", "H100-NVL"} <= complete("lantern", "size", "--gpu", "H1")
    assert "pyproject.toml" in complete("lantern", "explain-log", "pypro")


def typed_into(shell: str, *turns: tuple[str, str]) -> str:
    """Type into a shell on a terminal of its own, each time until it shows what is awaited; return all it showed."""
    process, screen = pty.fork()
    if process == 0:  # pragma: no cover - the shell
        os.environ |= {"TERM": "xterm", "PS1": "> "}
        os.execvp(shell, [shell, "-f", "-i"])
    shown = ""
    try:
        for keys, awaited in turns:
            os.write(screen, keys.encode())
            end = time.monotonic() + 60
            while awaited not in shown and time.monotonic() < end:
                if select.select([screen], [], [], 0.5)[0]:
                    shown += os.read(screen, 65_536).decode(errors="replace")
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(screen)
    return shown


#: What is typed, and what the completed command then says that it was given.
TYPED = (
    ("lantern com\t\n", "<completion>"),
    ("lantern size --engine-v\t\n", "<size --engine-version>"),
    ("lantern size --engine sg\t\n", "<size --engine sglang>"),
)


def test_tcsh_completes_commands_and_options(missing: Callable[[str], None], tmp_path: Path) -> None:
    if shutil.which("tcsh") is None:
        missing("no tcsh on the path")
    script = tmp_path / "lantern.tcsh"
    script.write_text(command("completion", "tcsh").stdout, encoding="utf-8")
    start = f"source {script}; alias lantern 'echo \"<\\!*>\"'; echo rea''dy\n"
    shown = typed_into("tcsh", (start, "ready\r"), *TYPED)
    for _, awaited in TYPED:
        assert awaited in shown.replace(" >", ">")


def test_zsh_completes_commands_models_and_cards(missing: Callable[[str], None], tmp_path: Path) -> None:
    if shutil.which("zsh") is None:
        missing("no zsh on the path")
    (tmp_path / "_lantern").write_text(command("completion", "zsh").stdout, encoding="utf-8")
    script = tmp_path / "start"
    start = f"fpath=({tmp_path} $fpath)\nautoload -Uz compinit\ncompinit -u -D\nlantern() {{ print -r -- '<'$*'>' }}\n"
    script.write_text(start, encoding="utf-8")
    # A shell draws only what changes, so the command says what it was given.
    own = (
        ("lantern size --model Qwen3-32\t\n", "<size --model Qwen3-32B>"),
        ("lantern size --gpu GH\t\n", "<size --gpu GH200>"),
    )
    shown = typed_into("zsh", (f"source {script}; echo rea''dy\n", "ready\r"), *TYPED, *own)
    for _, awaited in (*TYPED, *own):
        assert awaited in shown


def test_fish_completes_commands_models_cards_and_files(missing: Callable[[str], None], tmp_path: Path) -> None:
    fish = shutil.which("fish")
    if fish is None:
        missing("no fish on the path")
        return
    script = tmp_path / "lantern.fish"
    script.write_text(command("completion", "fish").stdout, encoding="utf-8")

    def offered(line: str) -> set[str]:
        ask = f"source {script}; complete -C '{line}'"
        done = subprocess.run([fish, "-c", ask], cwd=ROOT, capture_output=True, text=True, check=True)
        return {each.split("\t")[0] for each in done.stdout.splitlines()}

    assert offered("lantern si") == {"size", "simulate"}
    assert {"Qwen3-32B", "Qwen3-30B-A3B"} <= offered("lantern size --model Qwen3")
    assert {"H20", "H200", "H20-141-GB"} <= offered("lantern size --gpu H20")
    assert offered("lantern size --engine ") == {"vllm", "sglang", "tensorrt-llm"}
    assert offered("lantern size --eng") == {"--engine", "--engine-version"}
    assert "pyproject.toml" in offered("lantern explain-log pypro")
    assert offered("lantern completion ") == {"bash", "zsh", "fish", "tcsh"}


def test_what_completion_offers_is_accepted() -> None:
    for name in model_names():
        assert find_model(name).num_layers
        assert " " not in name
    for name in DEVICES:
        assert find_card(name.replace(" ", "-")).device == DEVICES[name]


def test_completion_says_what_it_needs() -> None:
    done = command("completion", "zsh", before="sys.modules['shtab'] = None")
    assert (done.returncode, done.stdout) == (2, "")
    assert "lantern-lib[cli]" in done.stderr


def test_the_command_is_installed() -> None:
    from importlib.metadata import entry_points

    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'lantern = "lantern_lib.cli:main"' in project
    found = [each for each in entry_points(group="console_scripts") if each.name == "lantern"]
    for each in found:  # an environment that was made before the command has none yet
        assert each.load() is main


def test_help_names_every_command_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for word in ("size", "explain-log", "cost", "simulate", "completion", "Exit codes"):
        assert word in text
