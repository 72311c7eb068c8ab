"""The calculator page: its script computes what the library computes, and a reader can use it."""

from __future__ import annotations

import gzip
import json
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from lantern_book.look import Reader, Visit
from playwright.sync_api import expect

from lantern_lib.calculator import CARDS, ENGINES, Question, answer
from lantern_lib.calculator_tables import tables
from lantern_lib.figures.calculator_panel import panel
from lantern_lib.hf_config import from_hf_config, read_config
from lantern_lib.hf_families import FAMILIES
from lantern_lib.model_config import LANTERN_70B
from lantern_lib.models import find_model, public_models
from lantern_lib.transformer import parameters
from lantern_lib.units import format_quantity
from tests.random_configs import broken, random_config

ROOT = Path(__file__).resolve().parent.parent
AXE = ROOT / "tests/browser/node_modules/axe-core/axe.min.js"
SCRIPT = ROOT / "tests/browser/sizing_lines.js"
NUM_INPUTS = 10_000
PLAIN: dict[str, Any] = {
    "card": "H100 SXM",
    "tp_size": 1,
    "engine": "vLLM 0.9",
    "fraction": 0.9,
    "weight_bits": None,
    "kv_bits": 16,
    "context_len": 8192,
    "batch_size": 64,
    "gpu_hour_dollars": 3,
}
LLAMA: dict[str, Any] = public_models()["Llama-3-8B"].config

Ask = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def ask_node(missing: Callable[[str], None], tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """Return what asks the script many questions in one run of node."""
    node = shutil.which("node")
    if node is None:
        missing("no node on the path")

    def ask(questions: list[dict[str, Any]], known: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        path = tmp_path_factory.mktemp("tables") / "tables.json"
        path.write_text(json.dumps(tables() if known is None else known), encoding="utf-8")
        lines = "\n".join(map(json.dumps, questions))
        done = subprocess.run(
            [str(node), str(SCRIPT), str(path)], input=lines, capture_output=True, text=True, check=True, timeout=300
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    return ask


def ask_python(question: dict[str, Any]) -> dict[str, Any]:
    """Answer one question with the library: numbers, or the sentence of its error."""
    asked = dict(question)
    try:
        model = from_hf_config(read_config(asked.pop("text")))
        return answer(Question(model, **asked)).numbers()
    except ValueError as error:
        return {"error": str(error)}


def differences(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Return what differs by more than 1e-12 of the value."""
    if set(ours) != set(theirs) or "error" in ours:
        return {} if ours == theirs else {"answer": (ours, theirs)}
    found = {}
    for name, value in ours.items():
        pairs = zip(value, theirs[name], strict=True) if isinstance(value, list) else [(value, theirs[name])]
        if any(abs(one - other) > 1e-12 * abs(one) for one, other in pairs):
            found[name] = (value, theirs[name])
    return found


def random_question(rng: random.Random) -> dict[str, Any]:
    config = random_config(rng)
    tp_size = rng.choice((1, 2, 3, 4, 8, 16, 64))
    context_len = rng.choice((1, 2000, 8192, 131_072, rng.randint(1, 1_000_000)))
    has_experts = any("expert" in field for field in json.dumps(config).split('"'))
    return {
        "text": broken(rng, config) if rng.random() < 0.25 else json.dumps(config),
        "card": rng.choice(list(CARDS)),
        "tp_size": tp_size,
        "ep_size": rng.choice((1, tp_size, 2 * tp_size, 4 * tp_size, 6) if has_experts else (1,) * 19 + (2,)),
        "max_num_tokens": rng.choice((None, None, 512, 8192, rng.randint(1, 200_000))),
        "max_num_seqs": rng.choice((None, None, 1, 256, rng.randint(1, 4096))),
        "max_positions": rng.choice((None, None, None, context_len, 2_000_000, rng.randint(1, 2_000_000))),
        "engine": rng.choice(list(ENGINES)),
        "fraction": rng.choice((0.5, 0.9, 0.95, 1, rng.uniform(0.01, 1))),
        "weight_bits": rng.choice((None, None, 16, 8, 4)),
        "kv_bits": rng.choice((16, 8)),
        "context_len": context_len,
        "batch_size": rng.choice((1, 7, 64, rng.randint(1, 5000))),
        "gpu_hour_dollars": rng.choice((3, 2.5, rng.uniform(0.1, 20))),
    }


def test_the_script_computes_what_the_library_computes(ask_node: Ask) -> None:
    """Ten thousand random models, cards, engines and loads; a quarter of the files has something wrong."""
    rng = random.Random(20_261_130)
    questions = [random_question(rng) for _ in range(NUM_INPUTS)]
    ours = [ask_python(question) for question in questions]
    wrong = [
        (question, different)
        for question, one, other in zip(questions, ours, ask_node(questions), strict=True)
        if (different := differences(one, other))
    ]
    assert not wrong, f"{len(wrong)} differ, first {wrong[0]}"
    sound = [question for question, one in zip(questions, ours, strict=True) if "error" not in one]
    kinds = {config.get("model_type") for config in (json.loads(question["text"]) for question in sound)}
    assert set(FAMILIES) <= kinds
    assert len(sound) > NUM_INPUTS / 2
    refused = {one["error"].split(" must ")[0] for one in ours if "error" in one}
    assert len(refused) > 60, "most fields are refused somewhere"


def test_the_comparison_can_fail(ask_node: Ask) -> None:
    """A constant that is off by a part in a billion is seen, and so is another sentence."""
    known = tables()
    known["seconds_per_hour"] *= 1 + 1e-9
    question = {"text": json.dumps(LLAMA), **PLAIN}
    assert differences(ask_python(question), ask_node([question])[0]) == {}
    assert list(differences(ask_python(question), ask_node([question], known)[0])) == ["million_dollars"]
    assert differences({"error": "one"}, {"error": "other"})


ODD_QUESTIONS: tuple[dict[str, Any], ...] = (
    {"tp_size": 0},
    {"tp_size": 2.5},
    {"tp_size": 2000},
    {"context_len": 0},
    {"context_len": 10**9},
    {"batch_size": -3},
    {"batch_size": 10**7},
    {"fraction": 0},
    {"fraction": 1.5},
    {"fraction": -0.25},
    {"gpu_hour_dollars": 0},
    {"gpu_hour_dollars": -1.5},
    {"card": "H1000"},
    {"engine": "vLLM 99"},
    {"weight_bits": 3},
    {"kv_bits": 4},
    {"ep_size": 2},
    {"ep_size": 0},
    {"ep_size": 5000},
    {"max_num_tokens": 0},
    {"max_num_tokens": 10**8},
    {"max_num_seqs": 1.5},
    {"max_positions": -1},
    {"max_positions": 4096},
)
MIXTRAL: dict[str, Any] = public_models()["Mixtral-8x7B"].config


@pytest.mark.parametrize("odd", ODD_QUESTIONS, ids=str)
def test_a_number_out_of_range_gets_the_same_sentence(ask_node: Ask, odd: dict[str, Any]) -> None:
    question = {"text": json.dumps(LLAMA), **PLAIN, **odd}
    ours, theirs = ask_python(question), ask_node([question])[0]
    assert next(iter(odd)) in ours["error"]
    assert theirs == ours


@pytest.mark.parametrize(("tp_size", "ep_size", "words"), [(1, 16, "experts of a layer (8)"), (3, 8, "multiple of tp")])
def test_experts_that_no_engine_lays_out_are_refused_by_both(
    ask_node: Ask, tp_size: int, ep_size: int, words: str
) -> None:
    question = {"text": json.dumps(MIXTRAL), **PLAIN, "tp_size": tp_size, "ep_size": ep_size}
    ours, theirs = ask_python(question), ask_node([question])[0]
    assert words in ours["error"]
    assert theirs == ours


def test_groups_of_gpus_hold_the_matrices_once_each() -> None:
    """Against sums by hand: eight GPUs, alone with their matrices, in pairs, and all together."""
    model = from_hf_config(MIXTRAL)
    count = parameters(model)
    rest = 2.0 * (count.total - count.experts)
    copied = 2.0 * (count.router + count.norms)
    answers = {tp: answer(Question(model, "H100 SXM", tp, batch_size=64, ep_size=8)) for tp in (1, 2, 8)}
    for tp, found in answers.items():
        assert found.question.num_gpus == 8
        held = 2.0 * count.experts / 8 + (rest - copied) / tp + copied
        assert found.plan.weights.value == pytest.approx(held)
        numbers = found.numbers()
        one = found.plan.pool.value // found.sequence_bytes
        assert numbers["conversations"][0] == (8 // tp) * one
        # Every group streams all but the experts and an input table; with 64 tokens every expert is read.
        table = 2.0 * model.vocab_size * model.hidden_size
        read = 2.0 * count.experts * (1 - (1 - 2 / 8) ** 64) + (8 // tp) * (rest - table)
        assert numbers["streamed_bytes"] == pytest.approx(read)
    alone = answers[1].step
    link = CARDS["H100 SXM"].link
    exchange = link.latency_seconds + 7 / 8 * (8 * 2 * 4096 * 2) / link.bandwidth
    assert alone.communication_seconds == pytest.approx(2 * 32 * exchange)
    sums = link.latency_seconds + 2 * 1 / 2 * (16 * 4096 * 2) / link.bandwidth
    assert answers[2].step.communication_seconds == pytest.approx(2 * 32 * (exchange + sums))
    prices = [found.million_dollars for found in answers.values()]
    assert prices[0] == pytest.approx(3.0 * 8 / 3600 / (64 / alone.total_seconds) * 1e6)


def test_what_is_left_open_is_what_the_engine_takes() -> None:
    model = from_hf_config(LLAMA)
    usual = answer(Question(model, "H100 SXM")).plan
    assert (usual.num_tokens, usual.num_seqs) == (8192, 1024)
    told = answer(Question(model, "H100 SXM", max_num_tokens=8192, max_num_seqs=1024)).plan
    assert told.pool == usual.pool
    few = answer(Question(model, "H100 SXM", max_num_seqs=16, max_positions=131_072)).plan
    assert few.pool.value - usual.pool.value == pytest.approx(
        usual.activation.value - 8192 * 2 * 3 * (4096 + 14336) - 131_072 * 2 * 128
    )


HOSTILE: dict[str, tuple[str, str]] = {
    "nothing": ("", "text must be JSON, got none at line 1, column 1"),
    "prose": ("my model is large", "text must be JSON"),
    "a list": ("[1, 2]", "text must be a JSON object, got list"),
    "NaN": ('{"hidden_size": NaN}', "text must hold finite numbers, got NaN"),
    "infinity": ('{"hidden_size": -Infinity}', "text must hold finite numbers, got -Infinity"),
    "deep": ('{"a":' * 200_000, "nested too deeply"),
    "deep list": ("[" * 1_000_000, "nested too deeply"),
    "a number of thousands of digits": ('{"a": ' + "7" * 100_000 + "}", "numbers of a few digits"),
    "too long": (" " * 6_000_000, "text must have at most 5,000,000 characters, got 6,000,000"),
    "a long string": ('{"model_type": "' + "a" * 4_000_000 + '"}', "model_type must be one of"),
    "a key of an object's own": ('{"__proto__": 1, "model_type": "llama"}', "__proto__ is not a field"),
    "a family of an object's own": ('{"model_type": "constructor"}', "model_type must be one of"),
    "a mark before the text": ("\ufeff{}", "text must be JSON"),
    "a control character": ('{"model_type": "ll\x00ama"}', "text must be JSON"),
    "half a file": (json.dumps(LLAMA)[:100], "text must be JSON"),
    "two files": (json.dumps(LLAMA) * 2, "text must be JSON"),
    "too many parameters": (json.dumps(LLAMA | {"hidden_size": 10**9}), "model must have at most"),
    "a size beyond counting": (json.dumps(LLAMA | {"hidden_size": 10**400}), "a number of 401 digits"),
}


@pytest.mark.parametrize(("text", "sentence"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_gets_one_sentence_from_both(ask_node: Ask, text: str, sentence: str) -> None:
    question = {"text": text, **PLAIN}
    ours, theirs = ask_python(question), ask_node([question])[0]
    assert sentence in ours["error"]
    assert theirs == ours
    assert len(ours["error"]) < 1000


def test_more_layers_than_can_be_listed_do_not_hang_the_page(ask_node: Ask) -> None:
    config = public_models()["Mixtral-8x7B"].config | {"num_hidden_layers": 10**9}
    (theirs,) = ask_node([{"text": json.dumps(config), **PLAIN}])
    assert "parameters" in theirs["error"]


def test_every_shipped_model_has_the_library_s_shape_in_the_script(ask_node: Ask) -> None:
    names = list(public_models())
    for name, theirs in zip(names, ask_node([{"shipped": name} for name in names]), strict=True):
        model = public_models()[name].model
        ours = json.loads(json.dumps(asdict(model)))
        del ours["source"]
        assert theirs["model"] == ours, name
        assert theirs["groups"] == json.loads(json.dumps([group._asdict() for group in model.attention_layers]))
        count = parameters(model)
        assert theirs["count"]["total"] == count.total
        assert theirs["count"]["stored"] == count.in_checkpoint
        assert theirs["count"]["active"] == count.active


def test_the_course_s_model_is_one_of_the_page_s() -> None:
    """The page lists it by the public model of its shape."""
    shape = public_models()["Llama-3-70B"].model
    assert parameters(shape) == parameters(LANTERN_70B)
    assert shape.attention_layers == LANTERN_70B.attention_layers


def test_the_script_asks_nobody_and_imports_nothing() -> None:
    for name in ("sizing.js", "calculator.js"):
        text = (ROOT / "book/_static" / name).read_text(encoding="utf-8")
        code = re.sub(r"//.*", "", text)
        assert not re.search(r"\bimport\b|\brequire\(|\bfetch\(|XMLHttpRequest|https?:|innerHTML|\beval\(", code), name


def test_what_the_page_adds_is_light() -> None:
    """Both scripts, the style and the tables, gzipped."""
    files = [(ROOT / "book/_static" / name).read_bytes() for name in ("sizing.js", "calculator.js", "calculator.css")]
    files.append(json.dumps(tables(), separators=(",", ":")).encode())
    assert sum(len(gzip.compress(each)) for each in files) < 40_000


class Page:
    """The calculator on an open page."""

    def __init__(self, visit: Visit) -> None:
        self.page = visit.page
        self.error = self.page.locator("#lt-calc-error")
        self.said = self.page.locator(".lt-calculator__said")

    def choose(self, **fields: str) -> None:
        for name, value in fields.items():
            control = self.page.locator(f"#lt-calc-{name}")
            if name in ("model", "card", "weights", "kv", "engine"):
                control.select_option(value)
            else:
                control.fill(value)
                control.blur()

    def paste(self, text: str) -> None:
        self.page.locator("#lt-calc-model").select_option("own")
        self.choose(config=text)

    def value(self, name: str) -> str:
        return self.page.locator(f"[popovertarget=lt-calc-{name}-derivation]").inner_text()

    def derivation(self, name: str) -> str:
        self.page.locator(f"[popovertarget=lt-calc-{name}-derivation]").press("Enter")
        text = self.page.locator(f"#lt-calc-{name}-derivation").inner_text()
        self.page.keyboard.press("Escape")
        return text


@pytest.mark.browser
def test_a_reader_chooses_a_model_and_reads_the_library_s_answer(reader: Reader) -> None:
    with reader.visit("calculator") as visit:
        page = Page(visit)
        first = answer(Question(LANTERN_70B, "H100 SXM", 4, batch_size=32))
        assert page.value("conversations") == "{:,} ({:,} to {:,})".format(*first.conversations)
        assert page.value("step_seconds") == format_quantity(first.step.total_seconds, "ms", 1)
        bar = page.page.locator(".lt-membar").get_attribute("aria-label")
        assert bar == panel({}, first).description, "the script draws what the library draws"
        page.choose(
            model="DeepSeek-V3", card="H200 SXM", tp="8", kv="8", engine="SGLang 0.0", context="65536", batch="5"
        )
        asked = Question(find_model("DeepSeek-V3"), "H200 SXM", 8, "SGLang 0.0", 0.88, None, 8, 65_536, 5)
        other = answer(asked)
        assert page.page.locator("#lt-calc-fraction").input_value() == "0.88", "the engine's own default"
        assert page.value("weights") == format_quantity(other.plan.weights.value, "GB", 2)
        assert page.value("conversations") == "{:,} ({:,} to {:,})".format(*other.conversations)
        assert page.value("million_dollars") == f"${other.million_dollars:.2f}"
        assert page.said.inner_text().startswith("DeepSeek-V3 on 8 × H200 SXM")
        assert (visit.errors, visit.foreign, visit.failed) == ([], [], [])


@pytest.mark.browser
def test_every_value_opens_a_derivation_with_its_numbers(reader: Reader) -> None:
    with reader.visit("calculator") as visit:
        page = Page(visit)
        names = page.page.locator(".lt-calculator__values button").evaluate_all(
            "buttons => buttons.map(each => each.getAttribute('popovertarget').slice(8, -11))"
        )
        assert len(names) == 19
        for model in ("Lantern 70B", "gpt-oss-120b", "DeepSeek-V3", "Qwen3.6-35B-A3B", "Gemma-3-27B", "in groups"):
            if model == "in groups":
                page.page.locator(".lt-calculator__further summary").click()
                page.choose(model="DeepSeek-V3", tp="2", experts="16", tokens="4096", positions="163840", seqs="")
            else:
                page.choose(model=model)
            for name in names:
                text = page.derivation(name)
                assert re.search(r"Formula|Source", text), (model, name)
                assert re.search(r"\d", text), (model, name)
                assert not re.search("NaN|undefined|Infinity|object", text), (model, name)
        assert "163,840 × 64 × 2 = 20,971,520 bytes" in page.derivation("rotary_table")
        assert "÷ 16 GPUs, all else ÷ 2" in page.derivation("weights")
        assert "8 × ⌊" in page.derivation("conversations")
        assert "2 × 58 × (" in page.derivation("communication_seconds")
        page.choose(model="Lantern 70B", tp="4", tokens="", positions="")
        assert "80 × 512 × 2 = 81,920 bytes" in page.derivation("token_bytes")
        assert "0.9 × 85.02 GB − 35.28 GB − 5.12 GB − 1.01 GB − 0 GB = 35.11 GB" in page.derivation("pool")
        page.choose(batch="1")
        assert "published single streams on more GPUs" in page.derivation("step_seconds")
        assert visit.errors == []


@pytest.mark.browser
def test_what_an_engine_sets_by_itself_can_be_set(reader: Reader) -> None:
    """Folded until somebody wants it; the link holds it, and opens the fold."""
    with reader.visit("calculator") as visit:
        page = Page(visit)
        tokens = page.page.locator("#lt-calc-tokens")
        assert not tokens.is_visible()
        page.page.locator(".lt-calculator__further summary").press("Enter")
        assert tokens.is_visible()
        assert tokens.get_attribute("placeholder") == "8,192 by default"
        assert not page.page.locator("#lt-calc-experts").is_visible(), "the model has none"
        page.choose(model="DeepSeek-V3", card="H200 SXM", tp="1", experts="8", tokens="4096", seqs="64")
        asked = Question(
            find_model("DeepSeek-V3"), "H200 SXM", ep_size=8, max_num_tokens=4096, max_num_seqs=64, batch_size=32
        )
        found = answer(asked)
        assert page.value("conversations") == "{:,} ({:,} to {:,})".format(*found.conversations)
        assert page.value("step_seconds") == format_quantity(found.step.total_seconds, "ms", 1)
        assert page.said.inner_text().startswith("DeepSeek-V3 on 8 × H200 SXM in 8 groups")
        there, link = page.said.inner_text(), page.page.url
        page.page.goto("about:blank")
        page.page.goto(link)
        assert page.said.inner_text() == there
        assert tokens.is_visible()
        page.choose(experts="6", tp="4")
        assert page.error.inner_text().startswith("“GPUs that share the experts” must be a multiple of tp_size (4)")
        page.choose(experts="8", positions="4096")
        assert page.error.inner_text().startswith("“Tokens of each conversation” must be at most max_positions (4,096)")
        page.choose(positions="")
        page.choose(model="Lantern 70B")
        assert page.said.inner_text().startswith("Lantern 70B on 4 × H200 SXM: ")
        assert visit.errors == []


@pytest.mark.browser
def test_the_switch_shows_gib(reader: Reader) -> None:
    with reader.visit("calculator") as visit:
        page = Page(visit)
        assert page.value("device") == "85.02 GB"
        page.page.locator("#lt-calc-GB").press("ArrowRight")
        assert page.value("device") == "79.18 GiB"
        assert page.value("token_bytes") == "80.00 KiB"
        assert " GB" not in page.page.locator(".lt-calculator__result").inner_text()


@pytest.mark.browser
def test_a_link_is_the_result_and_back_goes_back(reader: Reader) -> None:
    with reader.visit("calculator") as visit:
        page = Page(visit)
        start = page.said.inner_text()
        page.choose(model="Qwen3-32B", tp="2")
        page.page.locator("#lt-calc-GiB").check()
        there, link = page.said.inner_text(), page.page.url
        assert there != start
        device = page.page.locator("[popovertarget=lt-calc-device-derivation]")
        page.page.go_back()
        expect(device).to_have_text("85.02 GB")
        page.page.go_back()
        expect(page.page.locator("#lt-calc-tp")).to_have_value("4")
        page.page.go_back()
        expect(page.said).to_have_text(start)
        page.page.go_forward()
        expect(page.page.locator("#lt-calc-model")).to_have_value("Qwen3-32B")
        page.page.goto("about:blank")
        page.page.goto(link)
        assert page.said.inner_text() == there
        page.page.evaluate("() => { location.hash = '#questions' }")
        page.page.wait_for_timeout(300)
        assert page.said.inner_text() == there, "a heading's link leaves the answer alone"


@pytest.mark.browser
def test_a_pasted_file_is_read_and_travels_in_the_link(reader: Reader) -> None:
    config = LLAMA | {"_name_or_path": "mine", "rope_theta": 500000.0, "id2label": {"0": "x" * 9000}}
    with reader.visit("calculator") as visit:
        page = Page(visit)
        assert not page.page.locator("#lt-calc-config").is_visible()
        page.paste(json.dumps(config, indent=2))
        page.page.wait_for_timeout(400)
        assert page.said.inner_text().startswith("mine on 4 × H100 SXM")
        assert "8,030,261,248" in page.derivation("weights")
        link = page.page.url
        assert "x" * 100 not in link, "what changes nothing stays out"
        page.page.goto("about:blank")
        page.page.goto(link)
        assert page.said.inner_text().startswith("mine on 4 × H100 SXM")


@pytest.mark.browser
@pytest.mark.parametrize(("text", "sentence"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_gets_one_sentence_on_the_page(reader: Reader, text: str, sentence: str) -> None:
    with reader.visit("calculator") as visit:
        page = Page(visit)
        page.page.locator("#lt-calc-model").select_option("own")
        took = page.page.evaluate(
            "text => { const field = document.querySelector('#lt-calc-config'), start = performance.now();"
            " field.value = text; field.dispatchEvent(new Event('change', {bubbles: true}));"
            " return performance.now() - start }",
            text,
        )
        assert took < 5000
        said = page.error.inner_text()
        assert ("got nothing" if not text else re.sub(r"^model ", "", sentence)) in said
        assert len(said) < 1000
        assert not page.said.is_visible()
        marked = page.page.locator("[aria-invalid]")
        assert marked.get_attribute("aria-describedby") == "lt-calc-error"
        page.choose(model="Qwen3-8B")
        assert page.said.is_visible()
        assert page.error.inner_text() == ""
        assert visit.errors == []


@pytest.mark.browser
def test_a_link_with_junk_gets_one_sentence(reader: Reader) -> None:
    with reader.visit("calculator") as visit:
        page = Page(visit)
        for junk, label in (
            ("card=<b>x", "“Card”"),
            ("tp=1e9", "“GPUs that share the model”"),
            ("fraction=x", "“Its memory fraction”"),
        ):
            page.page.goto("about:blank")
            page.page.goto(f"{reader.address}calculator.html#model=Qwen3-8B&{junk}")
            assert page.error.inner_text().startswith(f"{label} must be"), junk
        assert visit.errors == []


@pytest.mark.browser
def test_a_model_that_does_not_fit_is_said_to_lack_memory(reader: Reader) -> None:
    with reader.visit("calculator") as visit:
        page = Page(visit)
        page.choose(tp="1")
        found = answer(Question(LANTERN_70B, "H100 SXM", batch_size=32))
        lacking = format_quantity(-found.plan.pool.value, "GB", 2)
        assert f"the model does not fit. Each GPU lacks {lacking}." in page.said.inner_text()
        assert page.page.locator(".lt-membar__limit").count() == 1
        page.choose(tp="4", batch="64")
        assert "So many do not fit" in page.said.inner_text()


@pytest.mark.browser
def test_the_page_is_complete_without_script(reader: Reader) -> None:
    with reader.visit("calculator", java_script_enabled=False) as visit:
        box = visit.page.locator(".lt-calculator")
        assert "weights 35.28 GB" in box.inner_text()
        assert box.locator(".lt-membar__part").count() == 5
        assert box.locator("form").count() == 0
        article = visit.page.locator("article.bd-article").inner_text()
        assert "so 52 conversations fit" in article


@pytest.mark.browser
@pytest.mark.parametrize(("size", "dark"), [("wide", False), ("narrow", True)], ids=["wide-light", "narrow-dark"])
def test_the_open_calculator_is_sound(reader: Reader, size: str, dark: bool, missing: Callable[[str], None]) -> None:
    """With a file of one's own and a derivation open, and then with an error: names, contrast, width."""
    if not AXE.is_file():
        missing("axe-core is not installed: npm ci --prefix tests/browser")
    with reader.visit("calculator", size, dark) as visit:
        page = Page(visit)
        page.paste(json.dumps(LLAMA))
        page.page.wait_for_timeout(400)
        page.page.locator(".lt-calculator__values button").nth(1).press("Enter")
        for text in (None, "{"):
            if text is not None:
                page.choose(config=text)
            visit.page.add_script_tag(path=AXE)
            found = visit.page.evaluate("axe.run().then(result => result.violations)")
            assert [rule["id"] for rule in found if rule["impact"] in ("serious", "critical")] == []
            assert visit.page.evaluate("document.scrollingElement.scrollWidth") <= visit.page.evaluate("innerWidth")
