"""Honest submissions with something wrong about them: how each came to be so, and what a fair person gives for it."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from small import EXAM, SOLUTIONS, handed_in, untouched

Notebook = dict[str, Any]
Files = Mapping[str, bytes]
GOOD, FAILED, REJECTED = "graded", "graded with failures", "rejected"


@dataclass(frozen=True)
class Case:
    """A submission: what it is made of, which tasks it deserves to lose, its state, and what it has to be told."""

    name: str
    make: Callable[[], Files]
    lost: frozenset[str] = frozenset()
    state: str = GOOD
    says: str = ""
    student: str = ""


CASES: list[Case] = []
NAME = f"{EXAM}.ipynb"


def dumped(notebook: Any, **how: Any) -> bytes:
    return json.dumps(notebook, **how).encode()


def case(lost: str = "", state: str = GOOD, says: str = "") -> Callable[[Callable[[Notebook], Any]], None]:
    """Add a case: a function that changes a good notebook, or returns another, or bytes, or files."""

    def add(change: Callable[[Notebook], Any]) -> None:
        def make() -> Files:
            notebook = handed_in()
            made = change(notebook)
            made = notebook if made is None else made
            if isinstance(made, bytes):
                return {NAME: made}
            return {NAME: dumped(made)} if "cells" in made or "worksheets" in made else made

        name = change.__name__.strip("_").replace("_", " ")
        CASES.append(Case(name, make, frozenset(lost.split()), state, says, change.__name__.strip("_")))

    return add


def at(notebook: Notebook, name: str) -> int:
    return next(place for place, cell in enumerate(notebook["cells"]) if cell["id"] == name)


def put(notebook: Notebook, name: str, source: str) -> None:
    notebook["cells"][at(notebook, name)]["source"] = source


def add(notebook: Notebook, source: str, place: int | None = None, kind: str = "code") -> None:
    cell: dict[str, Any] = {
        "cell_type": kind,
        "id": f"added-{len(notebook['cells'])}",
        "metadata": {},
        "source": source,
    }
    cell |= {"outputs": [], "execution_count": 3} if kind == "code" else {}
    notebook["cells"].insert(len(notebook["cells"]) if place is None else place, cell)


def wrong(notebook: Notebook, *names: str) -> Notebook:
    for name in names:
        put(notebook, name, SOLUTIONS[name].split("\n")[0] + "\n    return 0")
    return notebook


# How the file came


@case()
def _as_it_should_be(notebook: Notebook) -> None:
    pass


for number, name in enumerate(
    ["small (2).ipynb", "Copy of small.ipynb", "small-Copy1.ipynb", "SMALL.IPYNB", "small.ipynb.txt", "small.json",
     "lovelace final FINAL.ipynb", "small/small.ipynb", "sm\u00e4ll.ipynb", "small [1].ipynb"]
):  # fmt: skip
    CASES.append(
        Case(
            f"called {name}",
            lambda name=name: {name: dumped(handed_in())},
            says="was taken for",
            student=f"name{number}",
        )
    )
for student in [
    "ada [2]",
    "o'brien",
    "josé",
    "名前",
    "a+b c",
    "{x}",
    "%41",
    "--help",
    "*",
    "$HOME",
    "ada.b",
    "b & c",
    "a;b",
    'q"q',
]:
    CASES.append(Case(f"by {student}", lambda: {NAME: dumped(handed_in())}, student=student))


@case()
def _beside_what_editors_leave(notebook: Notebook) -> Files:
    return {
        NAME: dumped(notebook),
        ".ipynb_checkpoints/small-checkpoint.ipynb": dumped(untouched()),
        "__MACOSX/._small.ipynb": b"\0\5\26\7",
        ".DS_Store": b"\0",
        "timestamp.txt": b"tomorrow",
    }


@case(says="2 notebooks were handed in")
def _with_the_untouched_lab_beside_it(notebook: Notebook) -> Files:
    return {NAME: dumped(untouched()), "small-1.ipynb": dumped(notebook)}


@case(says="2 notebooks were handed in")
def _an_earlier_state_beside_it(notebook: Notebook) -> Files:
    early = untouched()
    put(early, "s-t1-double", SOLUTIONS["s-t1-double"])
    return {"early.ipynb": dumped(early), NAME: dumped(notebook)}


@case(says="could not be read and was left out")
def _a_broken_copy_beside_it(notebook: Notebook) -> Files:
    return {"broken.ipynb": b"{", NAME: dumped(notebook)}


@case()
def _with_a_module_of_its_own(notebook: Notebook) -> Files:
    put(notebook, "s-t1-double", "from helper import twice\n\ndef double(x):\n    return twice(x)")
    return {NAME: dumped(notebook), "helper.py": b"def twice(x):\n    return x + x\n"}


@case()
def _with_a_file_of_data(notebook: Notebook) -> Files:
    put(
        notebook, "s-t1-double", "FACTOR = int(open('data/factor.txt').read())\n\ndef double(x):\n    return FACTOR * x"
    )
    return {NAME: dumped(notebook), "data/factor.txt": b"2\n"}


@case(says="The file table.txt was changed; the instructor's was used.")
def _a_given_file_was_changed(notebook: Notebook) -> Files:
    return {NAME: dumped(notebook), "table.txt": b""}


@case(says="byte order mark")
def _a_byte_order_mark(notebook: Notebook) -> bytes:
    return b"\xef\xbb\xbf" + dumped(notebook)


@case(says="UTF-16")
def _utf_16(notebook: Notebook) -> bytes:
    return json.dumps(notebook).encode("utf-16")


@case(says="was read as Latin-1")
def _latin_1(notebook: Notebook) -> bytes:
    put(notebook, "s-t1-double", "# für Zoë\n" + SOLUTIONS["s-t1-double"])
    return json.dumps(notebook, ensure_ascii=False).encode("latin-1")


@case(says="was read as Latin-1")
def _windows_quotes(notebook: Notebook) -> bytes:
    put(notebook, "s-t4-why", "\u201cBecause\u201d \u2013 that is all.")
    return json.dumps(notebook, ensure_ascii=False).encode("cp1252")


@case()
def _windows_line_ends_of_the_file(notebook: Notebook) -> bytes:
    return dumped(notebook, indent=1).replace(b"\n", b"\r\n")


@case(says="lines ended as on Windows")
def _windows_line_ends_of_the_cells(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].replace("\n", "\r\n")


@case()
def _sources_as_lists_of_lines(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].splitlines(keepends=True)


@case()
def _spaces_at_the_end_of_the_file(notebook: Notebook) -> bytes:
    return b"\n\n" + dumped(notebook) + b"\n \n"


@case(says="old format")
def _format_3(notebook: Notebook) -> Notebook:
    cells = []
    for cell in notebook["cells"]:
        old = {key: value for key, value in cell.items() if key not in ("id", "source", "execution_count")}
        old["input" if cell["cell_type"] == "code" else "source"] = cell["source"]
        cells.append(old | ({"language": "python"} if cell["cell_type"] == "code" else {}))
    return {"worksheets": [{"cells": cells, "metadata": {}}], "metadata": {}, "nbformat": 3, "nbformat_minor": 0}


@case()
def _format_4_2_without_ids(notebook: Notebook) -> None:
    notebook["nbformat_minor"] = 2
    for cell in notebook["cells"]:
        del cell["id"]


@case()
def _a_format_of_the_future(notebook: Notebook) -> None:
    notebook["nbformat_minor"] = 99


@case()
def _a_schema_number_of_the_future(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if about := cell["metadata"].get("nbgrader"):
            about["schema_version"] = 99


@case()
def _no_schema_number_and_other_points(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if about := cell["metadata"].get("nbgrader"):
            about.pop("schema_version")
            about["points"] = 1000


@case()
def _all_marks_lost_but_ids(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["metadata"] = {}


@case(says="found by content or place")
def _all_marks_and_ids_lost(notebook: Notebook) -> None:
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"], cell["id"] = {"id": f"colab{number}"}, f"x{number}"


@case(says="found by content or place")
def _marks_lost_and_cells_in_another_order(notebook: Notebook) -> None:
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"], cell["id"] = {}, f"x{number}"
    notebook["cells"].sort(key=lambda cell: cell["cell_type"])


@case()
def _another_kernel(notebook: Notebook) -> None:
    notebook["metadata"] = {"kernelspec": {"display_name": "R", "language": "R", "name": "ir"}}


@case()
def _no_metadata_of_the_notebook(notebook: Notebook) -> None:
    notebook["metadata"] = {}


@case()
def _huge_outputs_are_kept_in_the_file(notebook: Notebook) -> None:
    output = {"output_type": "stream", "name": "stdout", "text": "x" * 3_000_000}
    notebook["cells"][at(notebook, "s-t1-visible")]["outputs"] = [output, output]


@case()
def _outputs_that_are_damaged(notebook: Notebook) -> None:
    notebook["cells"][at(notebook, "s-t1-visible")]["outputs"] = [None, {"output_type": 7}, "text"]


@case(says="were no cells and were left out")
def _an_entry_that_is_no_cell(notebook: Notebook) -> None:
    notebook["cells"].insert(3, None)


# What was done to the cells


@case(says="There were 2 cells with the name s-t1-double")
def _an_answer_was_copied(notebook: Notebook) -> None:
    place = at(notebook, "s-t1-double")
    notebook["cells"].insert(place + 1, copy.deepcopy(notebook["cells"][place]))


@case(says="There were 2 cells with the name s-t1-double")
def _a_first_try_was_kept_above_the_answer(notebook: Notebook) -> None:
    place = at(notebook, "s-t1-double")
    first = copy.deepcopy(notebook["cells"][place])
    first["source"] = "def double(x):\n    return x"
    notebook["cells"].insert(place, first)


@case()
def _a_test_was_copied(notebook: Notebook) -> None:
    place = at(notebook, "s-t1-visible")
    notebook["cells"].insert(place, copy.deepcopy(notebook["cells"][place]))


@case(says="There were 2 cells with the name s-t4-why")
def _the_essay_was_copied(notebook: Notebook) -> None:
    notebook["cells"].append(copy.deepcopy(notebook["cells"][at(notebook, "s-t4-why")]))


@case(says="s-t1-visible was deleted")
def _tests_were_deleted(notebook: Notebook) -> None:
    notebook["cells"] = [
        cell for cell in notebook["cells"] if "visible" not in cell["id"] and "hidden" not in cell["id"]
    ]


@case(says="s-setup was deleted")
def _the_setup_was_deleted(notebook: Notebook) -> None:
    del notebook["cells"][at(notebook, "s-setup")]


@case()
def _only_the_answers_are_left(notebook: Notebook) -> None:
    notebook["cells"] = [cell for cell in notebook["cells"] if cell["id"] in SOLUTIONS]


@case(lost="t2", says="There is no cell for s-t2-mean")
def _an_answer_was_deleted(notebook: Notebook) -> None:
    del notebook["cells"][at(notebook, "s-t2-mean")]


@case(says="s-t1-visible was changed; the original was used")
def _a_test_has_a_print_in_it(notebook: Notebook) -> None:
    put(notebook, "s-t1-visible", "print(double(3))\nassert double(3) == 6")


@case(says="s-setup was changed; the original was used")
def _the_setup_imports_more(notebook: Notebook) -> None:
    put(notebook, "s-setup", notebook["cells"][at(notebook, "s-setup")]["source"] + "\nimport random")


@case()
def _a_test_became_text(notebook: Notebook) -> None:
    notebook["cells"][at(notebook, "s-t1-visible")]["cell_type"] = "markdown"


@case(says="had become markdown; it was read as code")
def _an_answer_became_raw(notebook: Notebook) -> None:
    notebook["cells"][at(notebook, "s-t1-double")]["cell_type"] = "raw"


@case(says="had become code; it was read as markdown")
def _the_essay_became_code(notebook: Notebook) -> None:
    notebook["cells"][at(notebook, "s-t4-why")]["cell_type"] = "code"


@case()
def _a_helper_in_a_cell_before(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "def double(x):\n    return _twice(x)")
    add(notebook, "def _twice(x):\n    return x + x", at(notebook, "s-t1-double"))


@case()
def _a_helper_in_a_cell_after(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "def double(x):\n    return _twice(x)")
    add(notebook, "def _twice(x):\n    return x + x", at(notebook, "s-t1-visible"))


@case()
def _the_answer_is_in_the_cell_after(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "# see below")
    add(notebook, SOLUTIONS["s-t1-double"], at(notebook, "s-t1-visible"))


@case()
def _the_answers_are_in_reverse_order(notebook: Notebook) -> None:
    places = [at(notebook, name) for name in list(SOLUTIONS)[:3]]
    cells = [notebook["cells"][place] for place in places]
    for place, cell in zip(places, reversed(cells), strict=True):
        notebook["cells"][place] = cell


@case()
def _the_answers_stand_at_the_end(notebook: Notebook) -> None:
    notebook["cells"].sort(key=lambda cell: cell["id"] in SOLUTIONS)


@case()
def _all_answers_in_the_first_cell(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "\n\n".join(list(SOLUTIONS.values())[:3]))
    for name in ("s-t2-mean", "s-t3-greet"):
        put(notebook, name, "# done above")


@case()
def _a_wrong_function_of_that_name_long_before(notebook: Notebook) -> None:
    add(notebook, "def mean(values):\n    return values[0]", 1)


@case()
def _a_wrong_function_of_that_name_at_the_end(notebook: Notebook) -> None:
    add(notebook, "def double(x):\n    return x  # trying something out")


@case()
def _a_name_of_pythons_is_taken_at_the_end(notebook: Notebook) -> None:
    add(notebook, "sum = 0\nlen = 3")


@case()
def _a_helper_is_replaced_at_the_end(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "FACTOR = 2\n\ndef double(x):\n    return _times(x, FACTOR)")
    add(notebook, "def _times(x, n):\n    return n * x", at(notebook, "s-t1-visible"))
    add(notebook, "FACTOR = 3\n\ndef _times(x):\n    return x")


@case()
def _a_helper_stands_below_all_tests(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "def double(x):\n    return _twice(x)")
    add(notebook, "def _twice(x):\n    return x + x")


@case()
def _an_answer_is_deleted_at_the_end(notebook: Notebook) -> None:
    add(notebook, "del double, mean, greet")


@case()
def _the_next_answer_begins_with_a_wrong_copy_of_the_last(notebook: Notebook) -> None:
    put(notebook, "s-t2-mean", "def double(x):\n    return x\n\n" + SOLUTIONS["s-t2-mean"])


@case(lost="t1")
def _it_is_put_right_only_where_no_test_follows(notebook: Notebook) -> None:
    wrong(notebook, "s-t1-double")
    add(notebook, SOLUTIONS["s-t1-double"])


@case()
def _names_of_the_tests_are_taken(notebook: Notebook) -> None:
    add(notebook, "math = np = None", at(notebook, "s-t1-double"))


# What happens when it runs


@case()
def _an_undefined_name_in_a_late_cell(notebook: Notebook) -> None:
    add(notebook, "print(result_of_last_week)")


@case()
def _a_late_cell_that_is_no_python(notebook: Notebook) -> None:
    add(notebook, "def f(:\n  ???")


@case()
def _text_in_a_cell_of_code(notebook: Notebook) -> None:
    add(notebook, "Here I show that it's right:", at(notebook, "s-t2-mean"))


@case(lost="t1")
def _an_answer_that_is_no_python(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "def double(x)\n    return 2 * x")


@case(lost="t1")
def _a_tab_among_spaces(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "def double(x):\n        y = x\n\treturn 2 * y")


@case(lost="t3")
def _one_answer_fails_for_some_input(notebook: Notebook) -> None:
    put(notebook, "s-t3-greet", "def greet(name):\n    return 1 / 0")


@case(lost="t1 t2 t3", says="s-t1-double")
def _nothing_was_done(notebook: Notebook) -> Notebook:
    made = untouched()
    del made["cells"][at(made, "s-t1-visible")]
    made["cells"] = [cell for cell in made["cells"] if cell["id"] != "s-t1-double"]
    return made


@case(lost="t1 t2 t3")
def _handed_in_as_it_was_given_out(notebook: Notebook) -> Notebook:
    return untouched()


@case(lost="t2 t3")
def _half_done(notebook: Notebook) -> Notebook:
    made = untouched()
    put(made, "s-t1-double", SOLUTIONS["s-t1-double"])
    return made


@case()
def _magics(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "%matplotlib inline\n%time\n" + SOLUTIONS["s-t1-double"])
    add(notebook, "%%time\ny = double(4)", at(notebook, "s-t1-visible"))
    add(notebook, "!pip install numpy\n%load_ext autoreload\n%timeit double(2)\nfiles = !ls")


@case()
def _an_answer_under_a_cell_magic(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "%%time\n" + SOLUTIONS["s-t1-double"])


@case()
def _a_cell_of_shell_and_help(notebook: Notebook) -> None:
    add(notebook, "%%bash\necho hello | cat", 2)
    add(notebook, "double?", 3)


@case()
def _asks_for_input_in_a_cell(notebook: Notebook) -> None:
    add(notebook, "name = input('Your name? ')\nprint(greet(name))")


@case(lost="t3")
def _asks_for_input_in_an_answer(notebook: Notebook) -> None:
    put(notebook, "s-t3-greet", "def greet(name):\n    name = input()\n    return f'Hello, {name}!'")


@case()
def _prints_a_megabyte_in_each_call(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "def double(x):\n    print('x' * 1_000_000)\n    return 2 * x")


@case()
def _prints_megabytes_in_a_cell(notebook: Notebook) -> None:
    add(notebook, "for _ in range(2000):\n    print('y' * 1000)", 4)


@case()
def _warns(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "import warnings\n\ndef double(x):\n    warnings.warn('careful')\n    return 2 * x")


@case()
def _writes_to_stderr_and_logs(notebook: Notebook) -> None:
    talk = "    print('debug', file=sys.stderr)\n    logging.warning('x')"
    put(notebook, "s-t1-double", f"import logging, sys\n\ndef double(x):\n{talk}\n    return 2 * x")


@case()
def _numpy_warns(notebook: Notebook) -> None:
    put(notebook, "s-t2-mean", "def mean(values):\n    np.float64(1.0) / np.array([0.0])\n    return np.mean(values)")


@case()
def _leaves_by_sys_exit(notebook: Notebook) -> None:
    add(notebook, "import sys\nsys.exit(1)", 5)


@case()
def _leaves_by_quit(notebook: Notebook) -> None:
    add(notebook, "quit()", 5)


@case(state=FAILED)
def _the_process_dies_in_the_last_cell(notebook: Notebook) -> None:
    add(notebook, "import os\nos._exit(1)")


@case(state=FAILED)
def _a_crash_in_the_last_cell(notebook: Notebook) -> None:
    add(notebook, "import ctypes\nctypes.string_at(0)")


@case(lost="t3", state=FAILED)
def _the_process_dies_in_the_last_task(notebook: Notebook) -> None:
    put(notebook, "s-t3-greet", "import os\n\ndef greet(name):\n    os.kill(os.getpid(), 9)")


@case(state=FAILED)
def _a_late_cell_never_ends(notebook: Notebook) -> None:
    add(notebook, "while True:\n    pass")


@case(lost="t1", state=FAILED)
def _an_answer_never_ends(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "def double(x):\n    while True:\n        x = x")


@case(lost="t1")
def _an_answer_calls_itself_for_ever(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "def double(x):\n    return double(x)")


@case()
def _wants_more_memory_than_there_is(notebook: Notebook) -> None:
    add(notebook, "big = bytearray(50_000_000_000)")


@case()
def _threads_are_left_behind(notebook: Notebook) -> None:
    add(notebook, "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()")


@case()
def _another_process_is_left_behind(notebook: Notebook) -> None:
    add(notebook, "import subprocess\nsubprocess.Popen(['sleep', '60'])")


@case()
def _names_that_are_not_ascii(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "π2 = 2\n\ndef double(größe):\n    λ = π2\n    return λ * größe")


@case()
def _a_lambda(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "double = lambda x: 2 * x")


@case()
def _an_object_that_can_be_called(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "class Times:\n    def __call__(self, x):\n        return x + x\n\ndouble = Times()")


@case()
def _a_partial_function(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "import functools, operator\ndouble = functools.partial(operator.mul, 2)")


@case()
def _annotations_of_the_future(notebook: Notebook) -> None:
    put(
        notebook,
        "s-t1-double",
        "from __future__ import annotations\n\ndef double(x: Number) -> Number:\n    return 2 * x",
    )


@case()
def _another_folder_is_the_working_one(notebook: Notebook) -> None:
    add(notebook, "import os\nos.makedirs('out', exist_ok=True)\nos.chdir('out')", 2)


@case()
def _awaits_in_a_cell(notebook: Notebook) -> None:
    add(notebook, "import asyncio\nawait asyncio.sleep(0)")


@case()
def _uses_the_given_file(notebook: Notebook) -> None:
    put(notebook, "s-t1-double", "assert open('table.txt').read() == TABLE\n" + SOLUTIONS["s-t1-double"])


@case()
def _leaves_a_debugger_call(notebook: Notebook) -> None:
    add(notebook, "breakpoint()")


# What nobody can grade


@case(state=REJECTED, says="No notebook was handed in")
def _an_empty_folder(notebook: Notebook) -> Files:
    return {}


@case(state=REJECTED, says="No notebook was handed in")
def _only_a_report(notebook: Notebook) -> Files:
    return {"report.pdf": b"%PDF-1.7", "script.py": b"def double(x): return 2 * x"}


@case(state=REJECTED, says="The file is empty")
def _an_empty_file(notebook: Notebook) -> bytes:
    return b""


@case(state=REJECTED, says="breaks off in the middle")
def _cut_off(notebook: Notebook) -> bytes:
    return dumped(notebook)[:1500]


@case(state=REJECTED, says="merge conflict")
def _a_merge_conflict(notebook: Notebook) -> bytes:
    return b"<<<<<<< HEAD\n" + dumped(notebook) + b"\n=======\n{}\n>>>>>>> theirs\n"


@case(state=REJECTED, says="is a web page")
def _the_page_instead_of_the_file(notebook: Notebook) -> bytes:
    return b"<!DOCTYPE html><html><body>Log in</body></html>"


@case(state=REJECTED, says="is an archive")
def _an_archive_with_the_name_of_a_notebook(notebook: Notebook) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(NAME, dumped(notebook))
    return packed.getvalue()


@case(state=REJECTED, says="none of the answers")
def _the_notebook_of_another_week(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["id"] = cell["id"].replace("s-", "w9-")
        if about := cell["metadata"].get("nbgrader"):
            about["grade_id"] = cell["id"]
        cell["source"] = cell["source"].replace("double", "halve").replace("mean", "mode").replace("greet", "part")
        cell["source"] += "\n# week 9" if cell["cell_type"] == "code" else " Week 9."


@case(state=REJECTED, says="none of the answers")
def _a_notebook_without_cells(notebook: Notebook) -> None:
    notebook["cells"] = []
