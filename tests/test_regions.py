"""Which lines of a hidden region are secret: those that say something and stand nowhere else."""

import pytest
from nbformat import v4

from lantern_grading import regions


def secret(*lines, public="x = 1"):
    hidden = "\n".join(["### BEGIN HIDDEN TESTS", *lines, "### END HIDDEN TESTS"])
    return regions.secret_lines([v4.new_code_cell(public), v4.new_code_cell(hidden)], regions.HIDDEN)


@pytest.mark.parametrize(
    "line",
    [
        "from lantern_lib import checks, labs",
        "import numpy as np, math, json",
        '"the_key_of_a_list": [',
        '"the_key_of_a_table": {',
        "check.compare_sequence(",
        "a_long_function_name(",
        "raise ValueError(",
        "return one_of_the_names(",
        "tied_embeddings=True,",
        '"num_attention_heads": 4,',
        "expected = 12345",  # 16 characters are told ...
    ],
)
def test_lines_that_say_nothing_are_no_secrets(line):
    says_something = line.startswith("expected")
    assert secret(line) == ({line} if says_something else set())
    assert secret(f"    {line}  ") == ({line} if says_something else set())


@pytest.mark.parametrize(
    "line",
    [
        "importance = weights.max()",  # begins like an import
        'check.call("serve", [0.0], [1.0])',
        'check.compare_sequence("waits", got,',
        '"the_key_of_a_list": [1, 2, 3],',
        "total = sum_of_parts(",  # opens a call, and says what for
        "frombuffer(secret_bytes_here)",
        "arrival_seconds=0.25,",
        '"num_attention_heads": heads + 1,',
    ],
)
def test_lines_that_say_something_are_secrets(line):
    assert secret(line) == {line}


def test_a_line_that_is_short_or_public_is_no_secret():
    assert secret("expected = 1234") == set()  # 15 characters
    assert secret("value = compute(1, 2)", public="if ready:\n    value = compute(1, 2)  # shown") == set()
