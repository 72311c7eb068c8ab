"""The messages of labs: each kind of wrong answer ends in one or two sentences that help."""

import math
import warnings

import numpy as np
import pytest

from lantern_lib import H100, LANTERN_70B, ModelConfig, Replica, kv_cache, labs, step
from lantern_lib.check_samples import chi_square_limit
from lantern_lib.checks import CheckFailed, NotWritten, Task


def task(**functions):
    return Task(4, functions)


def message(check, *args, **kwargs):
    with pytest.raises(CheckFailed) as caught:
        check(*args, **kwargs)
    return str(caught.value)


def test_the_slip_of_the_lab_example_is_named():
    text = message(
        task().compare, "conversations at 8,192 tokens", 6, 54,
        slips=[(6, "You are off by a factor of about 8: did you use the 64 query heads?")],
    )  # fmt: skip
    assert text == (
        "Task 4, conversations at 8,192 tokens: got 6, expected 54."
        " You are off by a factor of about 8: did you use the 64 query heads?"
    )


def test_a_slip_that_gives_the_right_value_is_never_named():
    text = message(task().compare, "x", 7, 54, slips=[(54, "wrong sentence"), (7, "right sentence")])
    assert "right sentence" in text
    assert "wrong sentence" not in text


def test_a_value_no_slip_explains_gets_no_sentence():
    assert message(task().compare, "x", 7, 54, "tokens", slips=[(6, "no")]) == ("Task 4, x: got 7, expected 54 tokens.")


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (2**30 / 1e9, "between GiB and GB"),
        (1e9 / 2**30, "between GB and GiB"),
        (1e3, "1,000"),
        (100, "not in percent"),
        (0.5, "pairs"),
        (8, "query heads"),
    ],
)
def test_common_factors_are_named_whatever_the_task(factor, words):
    assert words in message(task().compare, "x", 300.0 * factor, 300.0)


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (None, "return its result"),
        ("54", "a str; expected one number in bytes"),
        (True, "a bool"),
        ([54], "a list"),
        (np.array([54, 55]), "an array of shape (2,)"),
        (float("nan"), "not a finite number"),
        (float("inf"), "not a finite number"),
        (54j, "a complex"),
    ],
)
def test_what_is_no_number_is_said_so(got, words):
    assert words in message(task().compare, "x", got, 54, "bytes")


@pytest.mark.parametrize("got", [54, 54.0, np.int64(54), np.float64(54)])
def test_equal_numbers_of_any_kind_pass(got):
    task().compare("x", got, 54)


def test_a_count_must_be_whole():
    task().compare("x", np.int64(54), 54, whole=True)
    assert "A count is an int" in message(task().compare, "x", 54.0, 54, whole=True)


def test_near_numbers_are_printed_apart():
    # These two agree in every digit that six significant digits show.
    text = message(task().compare, "x", 1.0000001, 1.0, rel=1e-9)
    got, expected = text.removeprefix("Task 4, x: got ").rstrip(".").split(", expected ")
    assert got != expected


def test_tolerance_is_relative():
    task().compare("x", 1.0009e12, 1e12, rel=1e-3)
    message(task().compare, "x", 1.0011e12, 1e12, rel=1e-3)


def test_an_unfinished_stub_is_named_and_is_still_a_not_implemented_error():
    def stub():
        raise NotImplementedError("Task 4: stub")

    with pytest.raises(NotWritten, match=r"Task 4: stub is not written yet") as caught:
        task(stub=stub).call("stub")
    assert isinstance(caught.value, NotImplementedError)


def test_a_missing_function_is_said_to_be_missing():
    assert "there is no function usable" in message(task().call, "usable")
    assert "there is no function usable" in message(Task(4, {"usable": 3}).call, "usable")


def test_an_exception_shows_the_call_the_error_and_no_frames():
    def divide(model, replica, batch_size):
        return 1 / 0

    text = message(task(divide=divide).call, "divide", LANTERN_70B, Replica(H100, tp_size=4), batch_size=3)
    assert text.startswith(
        "Task 4: divide(Lantern 70B, 4 × H100 SXM, batch_size=3) raised ZeroDivisionError: division by zero."
    )
    assert "return 1 / 0" in text
    assert "File" not in text


def test_a_hint_is_shown_only_when_the_call_raises():
    def refuse():
        raise ValueError("no")

    assert "the answer is 0" in message(task(f=refuse).call, "f", hint="the answer is 0")
    assert task(f=lambda: 1).call("f", hint="the answer is 0") == 1


def test_prints_and_warnings_of_a_right_answer_are_dropped(capsys):
    def noisy():
        print("debug")
        warnings.warn("careful", stacklevel=1)
        return 54

    assert task(noisy=noisy).call("noisy") == 54
    assert capsys.readouterr() == ("", "")


def test_ipython_shows_the_sentences_alone():
    with pytest.raises(CheckFailed) as caught:
        task().compare("x", 1, 2)
    lines = caught.value._render_traceback_()
    assert " ".join(lines) == f"CheckFailed: {caught.value}"


def good(context_len):
    raise ValueError(f"context_len must be above 0, got {context_len!r}.")


def wrong_field(context_len):
    raise ValueError(f"length must be above 0, got {context_len!r}.")


def no_value(context_len):
    raise ValueError("context_len is wrong.")


def type_error(context_len):
    raise TypeError("unsupported")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda context_len: 12, "returned 12"),
        (wrong_field, "names context_len and the value"),
        (no_value, "names context_len and the value"),
        (type_error, "raised TypeError"),
    ],
)
def test_bad_input_that_is_not_refused_well(function, words):
    assert words in message(task(f=function).refuses, "f", field="context_len", values=[0])


def test_bad_input_that_is_refused_well():
    task(f=good).refuses("f", field="context_len", values=[0, -1, float("nan"), "8192", True, None])


def test_a_refusal_may_have_to_say_something_else():
    def f(config):
        raise ValueError("hidden_size is missing")

    task(f=f).refuses("f", field="config", values=[{}], says="hidden_size")
    assert "names vocab_size" in message(task(f=f).refuses, "f", field="config", values=[{}], says="vocab_size")


def test_refuses_does_not_take_an_unfinished_stub_for_a_refusal():
    def stub(context_len):
        raise NotImplementedError("Task 4: stub")

    assert "not written yet" in message(task(stub=stub).refuses, "stub", field="context_len", values=[0])


@pytest.mark.parametrize(
    ("got", "words"),
    [(None, "expected a dict"), ({"a": 1}, "has no entry 'b'"), ({"a": 1, "b": 2, "c": 3}, "unknown entry 'c'")],
)
def test_a_dict_must_have_its_entries(got, words):
    assert words in message(task().has_entries, "parts", got, ["a", "b"])


def test_given_puts_right_functions_in_place_and_takes_them_out_again():
    names = {"kv_bytes_per_token": lambda model: -1}
    exec("def conversation(model):\n    return 8192 * kv_bytes_per_token(model) + len(num_parameters(model))", names)
    check = Task(4, names)
    mine = names["kv_bytes_per_token"]
    with check.given("kv_bytes_per_token", "num_parameters"):
        # 2.5 GiB and six entries.
        assert check.call("conversation", LANTERN_70B) == 2.5 * 2**30 + 6
    assert names["kv_bytes_per_token"] is mine
    assert "num_parameters" not in names


def test_given_gives_back_after_a_failure():
    names = {"kv_bytes_per_token": len}
    with pytest.raises(KeyError), Task(4, names).given("kv_bytes_per_token"):
        raise KeyError
    assert names["kv_bytes_per_token"] is len


def student(source, **names):
    """Define functions as a notebook does, in a namespace called __main__."""
    space = {"__name__": "__main__", **names}
    exec(source, space)
    return Task(3, space)


LEANING = {
    "a library function under its own name": ("f = cache", {"cache": kv_cache.bytes_per_token}),
    "a call of a library function": ("def f(m):\n    return cache(m)", {"cache": kv_cache.bytes_per_token}),
    "a module": ("def f(m):\n    return k.bytes_per_token(m)", {"k": kv_cache}),
    "an import inside": ("def f(m):\n    import lantern_lib.kv_cache as k\n    return k.bytes_per_token(m)", {}),
    "a from-import inside": ("def f(m):\n    from lantern_lib import kv_cache as k\n    return k.x(m)", {}),
    "a helper": ("def g(m):\n    return k.bytes_per_token(m)\ndef f(m):\n    return g(m)", {"k": kv_cache}),
    "a lambda inside": ("def f(m):\n    return (lambda x: k.bytes_per_token(x))(m)", {"k": kv_cache}),
    "a partial": ("from functools import partial\nf = partial(cache)", {"cache": kv_cache.bytes_per_token}),
    "a default": ("def f(m, go=cache):\n    return go(m)", {"cache": kv_cache.bytes_per_token}),
    "the stand-ins": ("def f(m):\n    return labs.stand_ins()['kv_bytes_per_token'](m)", {"labs": labs}),
    "an import by name": ("def f(m):\n    return __import__('lantern_lib.kv_cache').kv_cache.x(m)", {}),
}  # fmt: skip


@pytest.mark.parametrize("case", LEANING)
def test_leaning_on_the_library_is_seen(case):
    source, names = LEANING[case]
    text = message(student(source, **names).own_work, "f")
    assert "Task 3: f leans on lantern_lib." in text
    assert "Write the formula yourself" in text


def test_own_work_passes():
    from lantern_lib.units import require_int

    source = '''
def half(m):
    """See lantern_lib.kv_cache for the same."""
    require_int("num_layers", m.num_layers)
    return m.num_layers * m.num_kv_heads * m.head_dim * m.kv_bytes


def f(m):
    return 2 * half(m) if isinstance(m, ModelConfig) else None
'''
    check = student(source, require_int=require_int, ModelConfig=ModelConfig)
    check.own_work("f", "half")
    assert check.call("f", LANTERN_70B) == 327_680


def test_a_name_that_is_not_bound_yet_is_no_leaning():
    source = """
def make():
    def f(m):
        return later
    if False:
        later = 1
    return f


f = make()
"""
    student(source).own_work("f")


def test_stand_ins_agree_with_published_totals():
    # Totals as the makers publish them; the library is not asked.
    shapes = {
        8_030_261_248: ModelConfig("llama 3 8B", 32, 4096, 14336, 32, 8, 128, 128256),
        32_762_123_264: ModelConfig("qwen 3 32B", 64, 5120, 25600, 64, 8, 128, 151936, qk_norm=True),
    }
    for total, shape in shapes.items():
        parts = labs.stand_ins()["num_parameters"](shape)
        assert parts["total"] == total == sum(count for part, count in parts.items() if part != "total")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: labs.given_model("gpt-9", "nowhere"), "model_name must be one of lantern-70b, got 'gpt-9'"),
        (lambda: labs.given_replica("H900", 4), "accelerator_name must be one of H100"),
        (lambda: labs.given_replica("H100", 0), "tp_size must be"),
    ],
)
def test_what_cannot_be_given_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize(
    ("got", "words"),
    [
        ([4, 9], "value 2 of 2 is 9, expected 8 steps. One too late."),
        ([4, 7], "value 2 of 2 is 7, expected 8 steps."),
        ([4], "got 1 value, expected 2."),
        ([8, 4], "The values are right, their order is not."),
        ([5, 9], "Every value is 1 too large."),
        ([4000, 8000], "off by a factor of 1,000"),
        (None, "return its result"),
        (12, "12 of type int; expected a list of numbers"),
        ([4, None], "value 2 of 2 is None"),
        ([4, True], "value 2 of 2 is True"),
        ([4, float("nan")], "value 2 of 2 is nan"),
        (np.array([[4, 8]]), "an array of shape (1, 2)"),
    ],
)
def test_a_sequence_that_is_not_right_is_told_why(got, words):
    check = task().compare_sequence
    assert words in message(check, "ends", got, [4, 8], "steps", slips=[([4, 9], "One too late."), ([4, 8], "no")])


@pytest.mark.parametrize("got", [[4, 8], (4, 8.0), np.array([4, 8]), range(4, 9, 4)])
def test_equal_sequences_of_any_kind_pass(got):
    task().compare_sequence("ends", got, [4, 8])


@pytest.mark.parametrize(("got", "words"), [(False, "got False, expected True. Why."), (1, "expected True or False")])
def test_a_wrong_truth_value_is_told_why(got, words):
    task().compare_truth("fits", np.bool_(True), True)
    assert words in message(task().compare_truth, "fits", got, True, "Why.")


def test_columns_are_sorted_and_what_is_no_record_is_said_so():
    assert task().columns("z", [2 + 1j, 1j], ["real", "imag"]) == {"real": [0.0, 2.0], "imag": [1.0, 1.0]}
    assert "None has no field real" in message(task().columns, "z", [None], ["real"])
    assert "expected a list" in message(task().columns, "z", None, ["real"])


class Box:
    def __init__(self, size):
        self.size = size

    def put(self, count):
        raise NotImplementedError("Task 4: Box.put")

    def take(self, count):
        if count > self.size:
            raise KeyError(f"count {count}")
        return 1 / (count - 1)


def test_methods_are_called_by_their_dotted_name():
    check = Task(4, {"Box": Box})
    box = check.call("Box", 3)
    assert check.call("Box.take", box, 3) == 0.5
    assert "Task 4: Box.put is not written yet" in message(check.call, "Box.put", box, 1)
    assert "there is no function Box.lose" in message(check.call, "Box.lose", box)
    assert "your line: return 1 / (count - 1)" in message(check.call, "Box.take", box, 1)


def test_a_refusal_may_be_another_error():
    check = Task(4, {"Box": Box})
    check.refuses("Box.take", Box(3), field="count", values=[4], error=KeyError)
    text = message(check.refuses, "Box.take", Box(3), field="count", values=[1], error=KeyError)
    assert "raised ZeroDivisionError" in text
    assert "expected a KeyError that names count" in text


def test_a_loop_that_does_not_end_is_stopped():
    def forever():
        while True:
            pass

    def run():
        with task(f=forever).ends_within(0.2, "Is the queue ever empty?"):
            task(f=forever).call("f")

    assert message(run) == "Task 4: no answer after 0.2 seconds, so it was stopped. Is the queue ever empty?"
    with task(f=len).ends_within(0.2, "no"):
        assert task(f=len).call("f", "four") == 4


def test_stand_ins_of_week_2_count_final_lengths():
    class Request:
        def __init__(self, prompt_len, output_len):
            self.prompt_len, self.output_len, self.arrival_step = prompt_len, output_len, 0

    right, pair = labs.stand_ins(2), [Request(4, 4), Request(4, 4)]
    assert right["projected_tokens"](pair[0]) == 8
    assert [right["never_fits"](pair[0], capacity) for capacity in (8, 7)] == [False, True]
    fits = [right["may_enter"](pair[0], pair[1:], slots, tokens) for slots, tokens in ((2, 16), (2, 15), (1, 16))]
    assert fits == [True, False, False]


def test_an_array_of_another_form_is_told_so_in_one_sentence():
    check = task()
    right = np.array([[1.0, 2.0, 3.0]])
    assert "got None. Does the function return" in message(check.compare_array, "x", None, right)
    assert "got the shape (3, 1), expected (1, 3). It is transposed." in message(
        check.compare_array, "x", right.T, right
    )
    assert "got the shape (2,), expected (1, 3)." in message(check.compare_array, "x", [1, 2], right)
    assert "expected an array of numbers" in message(check.compare_array, "x", [["a", "b", "c"]], right)
    assert "expected an array of numbers" in message(check.compare_array, "x", [[True, False, True]], right)
    assert "expected an array of shape (1, 3)" in message(check.compare_array, "x", [[1], [2, 3]], right)
    assert "at [0, 1] stands nan" in message(check.compare_array, "x", [[1.0, np.nan, 3.0]], right)
    assert "expected an integer type" in message(check.compare_array, "x", right, right, whole=True)


def test_an_array_passes_within_its_tolerance_whatever_holds_it():
    check = task()
    for got in ([[1, 2]], ((1.0, 2.0),), np.array([[1, 2]], np.int8), np.array([[1.0, 2.0 + 1e-12]])):
        check.compare_array("x", got, [[1.0, 2.0]])
    check.compare_array("x", [0.0009], [0.0], absolute=1e-3)
    message(check.compare_array, "x", [0.0011], [0.0], absolute=1e-3)


def test_the_largest_difference_and_the_slip_are_named():
    check = task()
    text = message(
        check.compare_array, "x", [1.0, 5.0, 3.5], [1.0, 2.0, 3.0], "bytes", slips=[([1, 5, 3.5], "Doubled?")]
    )
    assert text == "Task 4, x: at [1]: got 5, expected 2 bytes, the largest of 2 differences. Doubled?"
    # A slip that gives the right array says nothing, and one of another shape is passed over.
    text = message(check.compare_array, "x", [3.0], [2.0], slips=[([2.0], "no"), ([[3.0]], "no"), ([3.0], "yes")])
    assert text.endswith("yes")
    assert "factor of 1,000" in message(check.compare_array, "x", [2000.0, 3000.0, 0.0], [2.0, 3.0, 0.0])


def test_parts_of_a_tuple_are_counted():
    check = task()
    assert check.parts("f", [1, 2], ["a", "b"]) == (1, 2)
    assert "f returned 3, expected (a, b)." in message(check.parts, "f", 3, ["a", "b"])
    assert "f returned (1, 2, 3), expected (a, b)." in message(check.parts, "f", (1, 2, 3), ["a", "b"])


def test_a_demand_says_its_sentence():
    task().demand("x", np.bool_(True), "no")
    assert message(task().demand, "x", 0, "It is empty.") == "Task 4, x: It is empty."


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([4.0, 4.2, 3.8, 4.1], "the mean of 4 runs is 4.025 ± 0.427, expected 5 s. That is the service alone."),
        ([6.0, 6.1, 5.9], "the mean of 3 runs is 6 ± 0.289, expected 5 s."),
        ([2.0, 2.0], "the mean of 2 runs is 2 ± 0, expected 5 s."),
        ([1.0, None], "value 2 of 2 is None; expected a number."),
    ],
)
def test_an_estimate_outside_its_interval_is_told_why(runs, words):
    with pytest.raises(CheckFailed) as error:
        task().compare_estimate("time", runs, 5.0, "s", slips=[(4.0, "That is the service alone.")])
    assert str(error.value).endswith(f"time: {words}")


def test_an_estimate_inside_its_interval_passes_and_the_interval_is_no_wider():
    # Four runs around 4.0 with a standard error of 0.1: five of them reach from 3.5 to 4.5.
    spread = 0.1 * 2 * math.sqrt(3) / 2
    runs = [4 - spread, 4 - spread, 4 + spread, 4 + spread]
    task().compare_estimate("time", runs, 4.49)
    with pytest.raises(CheckFailed):
        task().compare_estimate("time", runs, 4.51)
    task().compare_estimate("time", [0.1] * 3, 0.1)


def test_stand_ins_of_week_3_are_the_library_where_a_step_is_of_one_kind():
    right, four = labs.stand_ins(3), Replica(H100, tp_size=4)
    decode = step.decode_step(LANTERN_70B, four, 32, 4000)
    prefill = step.prefill_step(LANTERN_70B, four, 512, 3584)
    assert right["mixed_step"](LANTERN_70B, four, 32, 4000)["total_seconds"] == decode.total_seconds
    alone = right["mixed_step"](LANTERN_70B, four, 0, 0, 512, 3584)
    assert alone["compute_seconds"] == prefill.compute_seconds
    assert alone["memory_seconds"] == prefill.memory_seconds
    assert alone["total_seconds"] == prefill.total_seconds
    arrivals = right["poisson_arrivals"](2.0, 1000, np.random.default_rng(3))
    assert arrivals == sorted(arrivals)
    assert len(arrivals) == 1000
    assert right["percentile"]([3, 1, 2], 0.5) == 2


def test_samples_of_the_right_distribution_pass_and_others_are_named():
    rng = np.random.default_rng(1)
    right, wrong = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.4, 0.3, 0.3, 0.0])
    names = list("abcd")
    for _ in range(200):
        task().compare_samples("draw", rng.multinomial(2000, right), right, names)
    text = message(
        task().compare_samples, "draw", rng.multinomial(5000, wrong), right, names,
        slips=[(right, "never"), ([0.25] * 4, "Even?"), (wrong, "Swapped?")],
    )  # fmt: skip
    assert text.startswith("Task 4, draw: c came up in ")
    assert text.endswith("expected 20.0 percent. Swapped?")
    assert "d came up" in message(task().compare_samples, "draw", [50, 30, 19, 1], right, names)
    assert "no outcome" in message(task().compare_samples, "draw", [0, 0, 0, 0], right, names)


def test_rare_outcomes_of_a_right_sampler_are_no_mistake():
    # Ninety outcomes that come once in ten thousand draws: Pearson's distance alone would cry wolf.
    right = np.array([0.5, 0.491, *[0.0001] * 90])
    rng = np.random.default_rng(2)
    names = [str(n) for n in range(92)]
    for _ in range(2000):
        task().compare_samples("draw", rng.multinomial(1000, right), right, names)
    # And a sampler that never writes them is found, together with one that writes them too often.
    message(task().compare_samples, "draw", rng.multinomial(9000, [0.5, 0.5, *[0.0] * 90]), right, names)
    message(task().compare_samples, "draw", rng.multinomial(9000, [0.5, 0.47, *[1 / 3000] * 90]), right, names)


@pytest.mark.parametrize("outcomes", [2, 3, 5, 11, 97])
def test_true_samples_pass_the_limit_of_chi_square_less_than_once_in_a_million(outcomes):
    limit, free = chi_square_limit(outcomes), outcomes - 1
    if free == 1:
        beyond = math.erfc(math.sqrt(limit / 2))
    else:  # with an even number of degrees of freedom it is a Poisson sum
        beyond = math.exp(-limit / 2) * sum((limit / 2) ** i / math.factorial(i) for i in range(free // 2))
    assert 1e-8 < beyond <= 1.01e-6
