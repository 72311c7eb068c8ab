# ruff: noqa: E501 (programs in a line)
"""The checker on a small assignment: right answers, honest trouble, and answers that are meant to cheat.

The attacks stand here in full and nowhere else; the documentation describes their kinds in words.
"""

import dataclasses
import json
import os
import signal
import time

import pytest

from lantern_grading.checker import Pool, grade_one
from lantern_grading.checker import trial as small
from lantern_grading.outcome import State, Trust
from lantern_grading.sandbox import Limits, SandboxError, choose

pytestmark = pytest.mark.grading

EXAM = small.exam()
LIMITS = Limits(cell_seconds=10.0, total_seconds=120.0)
SHORT = Limits(cell_seconds=2.0, total_seconds=60.0)
FULL = {test.cell_id: test.points for test in EXAM.tests}
REST = {name: points for name, points in FULL.items() if name not in small.FIRST}


@pytest.fixture(scope="module")
def backend():
    try:
        return choose("bubblewrap")
    except SandboxError as error:
        pytest.fail(f"no sandbox: {error}")


@pytest.fixture(scope="module")
def pool(backend):
    with Pool(EXAM, backend, LIMITS, spare=1) as pool:
        yield pool


@pytest.fixture
def grade(backend, pool):
    def run(paper, exam=EXAM, limits=LIMITS):
        return grade_one(exam, paper, backend=backend, limits=limits, pool=pool if exam is EXAM else None)

    return run


def scores(outcome):
    return {test.grade_id: test.score for test in outcome.tests}


def message(outcome, name):
    return next(test.message for test in outcome.tests if test.grade_id == name)


def shown(outcome):
    return json.dumps([cell.outputs for cell in outcome.outputs])


# Right answers


def test_the_reference_gets_all_points_and_every_result_says_where_it_ran(grade):
    outcome = grade(EXAM.reference())
    assert outcome.state is State.GRADED
    assert scores(outcome) == FULL
    assert {test.trust for test in outcome.tests} == {Trust.ISOLATED}
    assert [test.grade_id for test in outcome.tests if test.hidden] == ["s-t1-hidden"]
    assert all(test.message == "" and test.limit == "" for test in outcome.tests)


def test_papers_are_graded_too_when_what_they_are_forked_from_has_ended(backend):
    with Pool(EXAM, backend, LIMITS, spare=0) as pool:
        os.kill(pool.server.pid, signal.SIGKILL)
        for _ in range(2):
            assert scores(grade_one(EXAM, EXAM.reference(), backend=backend, limits=LIMITS, pool=pool)) == FULL
        assert pool.server is None


def test_nothing_written_gets_nothing(grade):
    outcome = grade(small.paper(t1_double="", t2_answer="", t3_answer="", t4_answer=""))
    assert set(scores(outcome).values()) == {0.0}
    assert "there is no function Stack" in message(outcome, "s-t3-stack") or "Stack" in message(outcome, "s-t3-stack")


def test_partial_credit_is_a_number_from_the_last_line(grade):
    outcome = grade(small.paper(t1_double="def double(x):\n    return 2 * x if x != 3 else 7"))
    assert scores(outcome)["s-t5-partial"] == 1.5


@pytest.mark.parametrize(
    ("answer", "last"),
    [
        ("def double(x):\n    return 2 * x", "2.5"),
        ("def double(x):\n    return 2 * x", "-0.1"),
        ("def double(x):\n    return 2 * x", "math.nan"),
        ("def double(x):\n    return 2 * x", "True"),
        ("def double(x):\n    return 2 * x", "'2'"),
        ("def double(x):\n    return 2 * x", "(2,)"),
        ("def double(x):\n    return 2 * x", "10**400"),
    ],
)
def test_a_last_line_out_of_range_is_never_full_marks(grade, answer, last):
    exam = small.exam(tests={"s-t1-bad": last, "s-t1-good": "assert True"})
    outcome = grade(small.paper(t1_double=answer), exam)
    assert scores(outcome)["s-t1-bad"] == 0.0
    assert outcome.state is State.NEEDS_PERSON
    assert "s-t1-bad must end with a number from 0 to 2" in outcome.reason


@pytest.mark.parametrize(
    ("last", "points"),
    [("np.float64(0.5)", 0.5), ("np.int8(2)", 2), ("0", 0), ("0.5;", 2), ("None", 2), ("x = 1", 2),
     ("__import__('fractions').Fraction(1, 4)", 0.25), ("__import__('decimal').Decimal('1.5')", 1.5)],
)  # fmt: skip
def test_every_numeric_type_is_a_number(grade, last, points):
    exam = small.exam(tests={"s-t1-part": last})
    assert scores(grade(small.paper(), exam)) == {"s-t1-part": points}


@pytest.mark.parametrize(
    "double",
    [
        "from collections import Counter, deque, namedtuple\ndef double(x):\n    return np.float64(2 * x) "
        "if isinstance(x, (int, float)) else 2 * x",
        "double = lambda x: x + x",
        "import functools\n@functools.lru_cache\ndef cached(x):\n    return x\ndef double(x):\n    return x * 2",
        "class Doubler:\n    def __call__(self, x):\n        return x * 2\ndouble = Doubler()",
        "from fractions import Fraction\ndef double(x):\n    return Fraction(2) * x if isinstance(x, int) else x * 2",
    ],
)
def test_any_right_way_to_write_it_counts(grade, double):
    assert scores(grade(small.paper(t1_double=double))) == FULL


def test_a_named_tuple_a_counter_and_a_deque_are_data(grade):
    exam = small.exam(
        answers={"s-t1-double": ""},
        tests={
            "s-t1-named": "a, b = pair()\nassert (a, b) == (1, 2)\nassert isinstance(pair(), tuple)",
            "s-t1-counted": "assert counted('aab') == {'a': 2, 'b': 1}",
            "s-t1-queue": "assert list(queue()) == [1, 2]",
            "s-t1-records": "assert [(r.x, r.y) for r in records(5)] == [(n, n) for n in range(5)]",
            "s-t1-objects": "assert [o.value for o in objects()] == [1, 2]",
            "s-t1-steps": "assert list(steps()) == [0, 1, 2]",
            "s-t1-big": "assert big() == 10**100",
            "s-t1-tuple": "assert nested() == {'a': (1, [2.0, None], {3})}",
        },
    )
    from lantern_grading.exam import Exam

    names = ["pair", "counted", "queue", "records", "objects", "steps", "big", "nested"]
    asked = "\n".join(f"def {name}(*_): pass" for name in names)
    cells = tuple(
        type(cell)(cell.cell_id, cell.role, cell.kind, asked, cell.points) if cell.cell_id == "s-t1-double" else cell
        for cell in exam.cells
    )
    answer = """
from collections import Counter, deque, namedtuple
Pair = namedtuple("Pair", "first second")
def pair(): return Pair(1, 2)
def counted(text): return Counter(text)
def queue(): return deque([1, 2])
def records(n): return [Point(k, k) for k in range(n)]
class Own:
    def __init__(self, value): self.value = value
def objects(): return [Own(1), Own(2)]
def steps():
    yield from range(3)
def big(): return 10**100
def nested(): return {"a": (1, [2.0, None], {3})}
"""
    outcome = grade(small.paper(t1_double=answer), Exam("small", cells))
    assert {test.message for test in outcome.tests} == {""}


# Honest trouble


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        (("import warnings\nwarnings.warn('careful')", "import sys\nprint('x', file=sys.stderr)"), "warnings"),
        (("%matplotlib inline\n1 + 1", "!ls\nfiles = !ls\n", "%%time\nx = 3", "double?"), "magics"),
        (("%%html\n<b>x</b>", "%%bash\nls", "%load_ext autoreload\n%autoreload 2"), "cell magics"),
        (("name = input('name? ')",), "input"),
        (("import sys\nsys.exit()", "quit()", "exit(3)"), "exit"),
        (
            ("raise SystemExit('x')", "raise KeyboardInterrupt", "1 / 0", "this is no Python", "\tx = 1\n  y = 2"),
            "errors",
        ),
        (("import logging\nlogging.warning('x')\nlogging.basicConfig(level=10)",), "logging"),
        (("get_ipython().run_line_magic('matplotlib', 'inline')", "display(3)\ndisplay(1, 2)"), "ipython"),
        (("from __future__ import annotations\ndef f(x: Missing) -> None: pass\nf(1)",), "future"),
        (("import threading, time\nthreading.Thread(target=time.sleep, args=(100,)).start()",), "thread"),
        (("print('x' * 10_000_000)", "'y' * 10_000_000"), "flood"),
        (("import os\nos.chdir('/')\nos.environ.clear()",), "moves"),
        (("np.random.seed(1)\nnp.seterr(all='raise')\nimport sys\nsys.setrecursionlimit(150)",), "settings"),
    ],
)
def test_honest_trouble_costs_nothing(grade, extra, why):
    outcome = grade(small.paper(*extra))
    assert scores(outcome) == FULL, outcome.reason
    assert len(shown(outcome)) < 200_000


@pytest.mark.parametrize(
    "double",
    [
        "import warnings, sys\ndef double(x):\n    warnings.warn('old')\n    print('debug', x)\n"
        "    print(x, file=sys.stderr)\n    return 2 * x",
        "import subprocess\ndef double(x):\n    subprocess.run(['echo', 'hi'])\n    return 2 * x",
        "%matplotlib inline\ndef double(x):\n    return 2 * x",
        "def double(x):\n    return 2 * x\nprint(double(2))\n1 / 0",
        "def double(x):\n    return 2 * x\nassert double(1) == 3",
    ],
)
def test_honest_trouble_inside_an_answer_costs_nothing(grade, double):
    assert scores(grade(small.paper(t1_double=double))) == FULL


@pytest.mark.parametrize(
    "extra",
    [
        "import os\nos._exit(0)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "import ctypes\nctypes.string_at(0)",
        "while True:\n    pass",
        "while True:\n    try:\n        x = 1\n    except:\n        pass",
        "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True:\n    pass",
        "import time\ntime.sleep(1000)",
    ],
)
def test_a_last_cell_that_ends_or_blocks_the_process_costs_nothing_and_is_said(grade, extra):
    start = time.monotonic()
    outcome = grade(small.paper(extra), limits=SHORT)
    assert scores(outcome) == FULL, outcome.reason
    assert outcome.state is State.WITH_FAILURES
    assert "cell 5 was cut at statement" in outcome.reason
    assert time.monotonic() - start < 40


def test_what_stands_before_the_line_that_ends_the_process_is_kept(grade):
    outcome = grade(small.paper(t1_double=small.DOUBLE + "\nimport os\nos._exit(1)\nx = 2"))
    assert scores(outcome) == FULL
    assert outcome.state is State.WITH_FAILURES


def test_a_dead_process_costs_the_tests_that_need_what_died(grade):
    outcome = grade(small.paper(t3_answer=small.STACK.replace("return self.items.pop()", "import os; os._exit(0)")))
    assert scores(outcome) == {**FULL, "s-t3-stack": 0.0}
    assert "has ended" in message(outcome, "s-t3-stack")


def test_an_endless_loop_costs_one_timeout_and_its_own_tests(grade):
    start = time.monotonic()
    outcome = grade(small.paper(t1_double="def double(x):\n    while True:\n        pass"), limits=SHORT)
    assert scores(outcome) == {**dict.fromkeys(small.FIRST, 0.0), **REST}
    assert {test.limit for test in outcome.tests if test.grade_id in small.FIRST} == {"time"}
    # Five tests call it. The first gets 2 s, each later one half a second.
    assert sum(test.seconds for test in outcome.tests) < 2 + 4 * 1.6
    assert time.monotonic() - start < 30


def test_a_function_that_loops_for_some_inputs_keeps_its_other_tests(grade):
    outcome = grade(
        small.paper(t1_double="def double(x):\n    while type(x) is int and x == 7:\n        pass\n    return 2 * x"),
        limits=SHORT,
    )
    assert scores(outcome) == {**FULL, "s-t1-hidden": 0.0}


def test_files_beside_the_notebook_are_there_and_hide_no_module(grade):
    files = (
        ("numpy.py", b"raise SystemExit"), ("random.py", b"1/0"), ("lantern_lib/__init__.py", b"1/0"),
        ("helper.py", b"def twice(x):\n    return 2 * x"), ("data/numbers.txt", b"3"), ("math.py", b"1/0"),
    )  # fmt: skip
    double = "import random\nfrom helper import twice\nassert open('data/numbers.txt').read() == '3'\ndouble = twice"
    assert scores(grade(small.paper(t1_double=double, files=files))) == FULL


def test_a_name_that_a_visible_test_imports_may_be_used(grade):
    exam = small.exam(tests={"s-t1-uses": "from statistics import fmean\nassert double(2) == fmean([4, 4])"})
    assert scores(grade(small.paper(t1_double="def double(x):\n    return fmean([2 * x])"), exam)) == {"s-t1-uses": 2.0}


def test_figures_become_pictures_and_nothing_active_is_kept(grade):
    draws = "import matplotlib.pyplot as plt\nplt.plot([1, 2])"
    active = (
        "class Page:\n    def _repr_html_(self):\n        return '<script>alert(1)</script>'\n"
        "    def _repr_javascript_(self):\n        return 'alert(1)'\nPage()"
    )
    outcome = grade(small.paper(draws, active), limits=LIMITS)
    kinds = {kind for cell in outcome.outputs for output in cell.outputs for kind in output.get("data", {})}
    assert kinds == {"image/png", "text/plain"}
    assert "script" not in shown(outcome)


# Answers that are meant to cheat. In each, task 1 is wrong; nothing of it may score.

ALWAYS = """
class Always:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    def __le__(self, other): return True
    def __gt__(self, other): return True
    def __ge__(self, other): return True
    def __bool__(self): return True
    def __hash__(self): return 0
    def __len__(self): return 2
    def __iter__(self): return iter([self, self])
    def __getitem__(self, key): return self
    def __contains__(self, key): return True
    def __getattr__(self, name): return self
    def __call__(self, *args, **kwargs): return self
    def __add__(self, other): return 0.0
    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __abs__ = __round__ = __add__
    def __float__(self): return 1.0
    def __index__(self): return 1
    def __int__(self): return 1
    def __array__(self, *args, **kwargs): return np.array(1.0)
    def __instancecheck__(self, other): return True
    def __repr__(self): return "14"
"""
PIPES = """
import os
def shout(data):
    for handle in range(3, 64):
        try:
            os.write(handle, data)
        except OSError:
            pass
"""
ATTACKS = {
    "an object that equals everything": ALWAYS + "def double(x): return Always()",
    "the same by a metaclass": "class Meta(type):\n    def __eq__(cls, other): return True\n    __hash__ = type.__hash__\n"
    "class Any(metaclass=Meta): pass\ndef double(x): return Any",
    "a list of such objects": ALWAYS + "def double(x): return [Always(), Always()]",
    "a dict with such a value": ALWAYS + "def double(x): return {'a': Always()}",
    "a float subclass": "class F(float):\n    __eq__ = lambda s, o: True\n    __ne__ = lambda s, o: False\n"
    "    __sub__ = __rsub__ = lambda s, o: 0.0\n    __add__ = lambda s, o: 0.0\n    __abs__ = lambda s: 0.0\n"
    "    __hash__ = float.__hash__\ndef double(x): return F(1)",
    "an int subclass": "class I(int):\n    __eq__ = lambda s, o: True\n    __hash__ = int.__hash__\ndef double(x): return I(1)",
    "a str subclass": "class S(str):\n    __eq__ = lambda s, o: True\n    __hash__ = str.__hash__\ndef double(x): return S('1')",
    "a list subclass": "class L(list):\n    __eq__ = lambda s, o: True\ndef double(x): return L([1])",
    "a dict subclass": "class D(dict):\n    __eq__ = lambda s, o: True\ndef double(x): return D()",
    "a tuple subclass": "class T(tuple):\n    __eq__ = lambda s, o: True\ndef double(x): return T((1,))",
    "an array subclass": "class A(np.ndarray):\n    def __eq__(self, other): return np.True_\n"
    "    def __array_ufunc__(self, *a, **k): return np.zeros(2)\ndef double(x): return np.zeros(2).view(A)",
    "an array of objects": ALWAYS + "def double(x): return np.array([Always(), Always()], dtype=object)",
    "an array function override": ALWAYS + "Always.__array_ufunc__ = lambda *a, **k: True\n"
    "Always.__array_function__ = lambda *a, **k: True\ndef double(x): return Always()",
    "a dataclass with another equality": "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int = 1\n"
    "    def __eq__(self, other): return True\ndef double(x): return P()",
    "nan": "def double(x): return math.nan",
    "an array of nan": "def double(x): return np.array([math.nan, math.nan])",
    "infinity": "def double(x): return math.inf",
    "a zero-dimensional array": "def double(x): return np.array(True)",
    "an empty array": "def double(x): return np.array([])",
    "an input transformer": "shell = get_ipython()\nshell.input_transformers_post.append(lambda lines: [])\n"
    "shell.events.register('pre_run_cell', print)\nshell.run_cell = lambda *a: None\ndouble = None",
    "frames": "import sys, gc\ndef double(x):\n    frame = sys._getframe()\n    while frame:\n"
    "        for value in list(frame.f_locals.values()) + list(frame.f_globals.values()):\n"
    "            if isinstance(value, str) and 'expected_secret_value' in value: return 14\n"
    "        frame = frame.f_back\n    for thing in gc.get_objects():\n"
    "        if isinstance(thing, dict) and 'expected_secret_value' in thing: return thing['expected_secret_value']\n"
    "    return None",
    "exit at the top": "import os\nos._exit(0)",
    "exit in a call": "import os\ndef double(x): os._exit(0)",
    "sys.exit in a call": "import sys\ndef double(x): sys.exit(0)",
    "kill everybody": "import os\ndef double(x):\n    for pid in (-1, os.getppid(), 1):\n        try: os.kill(pid, 9)\n"
    "        except OSError: pass",
    "a forged frame": PIPES + "def double(x):\n    shout(b'\\x02\\x00\\x00\\x00T\\x00' * 50)\n    return 1",
    "a flood of forged replies": PIPES + "import struct\nfrom lantern_grading.checker.encode import Writer\n"
    "reply = Writer({}, None).encode(('reply', b'0' * 16, 0.0, 'ok', 6, {}))\n"
    "def double(x):\n    shout((struct.pack('<I', len(reply)) + reply) * 3000)\n    return 1",
    "a frame that claims a gigabyte": PIPES + "shout(b'\\xff\\xff\\xff\\x7f')\ndef double(x): return 1",
    "a forged end of the cells": PIPES + "import struct\nfrom lantern_grading.checker.encode import Writer\n"
    "ran = Writer({}, None).encode(('ran', [[{'output_type': 'error', 'ename': 'TimeLimit'}]] * 9))\n"
    "shout(struct.pack('<I', len(ran)) + ran)\ndef double(x): return 1",
    "a forged place": PIPES + "import struct\nfrom lantern_grading.checker.encode import Writer\n"
    "at = Writer({}, None).encode(('at', 10**30, -5))\nshout(struct.pack('<I', len(at)) + at)\nimport os\nos._exit(1)",
    "a thread that goes on writing": PIPES
    + "import threading\ndef spam():\n    while True: shout(b'\\x01\\x00\\x00\\x00T')\n"
    "def double(x):\n    threading.Thread(target=spam, daemon=True).start()\n    return 1",
    "the worker's own functions replaced": "import sys\nworker = sys.modules['lantern_grading.checker.worker']\n"
    "worker.Worker.do_call = lambda self, *a: (True, {})\ndouble = lambda x: 1",
    "a forged reference": "import sys\nworker = sys.modules['lantern_grading.checker.worker']\n"
    "codec = sys.modules['lantern_grading.checker.codec']\n"
    "worker.Worker.do_call = lambda self, *a: (codec.Reference(True, 0), {})\ndouble = lambda x: 1",
    "checks replaced": "from lantern_lib import checks\nimport numpy.testing, math, unittest\n"
    "for name in dir(checks.Task):\n    if not name.startswith('__'): setattr(checks.Task, name, lambda *a, **k: None)\n"
    "np.testing.assert_allclose = np.testing.assert_equal = lambda *a, **k: None\nnp.isclose = math.isclose = lambda *a: True\n"
    "double = lambda x: 1",
    "builtins replaced": "import builtins\nbuiltins.AssertionError = ZeroDivisionError\nbuiltins.abs = lambda x: 0\n"
    "builtins.isinstance = lambda *a: True\ndouble = lambda x: 1",
    "a look at the files": "import os\ndef double(x):\n    for top, _, names in os.walk('/'):\n"
    "        if top.startswith(('/proc', '/sys', '/usr')): continue\n        for name in names:\n"
    "            try: text = open(os.path.join(top, name), errors='replace').read(100000)\n            except OSError: continue\n"
    "            if 'expected_secret_value' in text: return 14\n    return 1",
    "a class that never says what it is": (
        "class Odd:\n    @property\n    def __class__(self):\n        while True:\n            pass\n"
        "def double(x):\n    return Odd()"
    ),
    **{
        f"a metaclass with an endless {name}": (
            f"class Meta(type):\n    def {name}(self, *args):\n        while True:\n            try:\n                pass\n"
            "            except BaseException:\n                pass\nclass double(metaclass=Meta):\n    pass"
        )
        for name in (
            "__getattribute__",
            "__getattr__",
            "__hash__",
            "__eq__",
            "__instancecheck__",
            "__bool__",
            "__len__",
            "__mro_entries__",
        )
    },
    "a tuple with endless fields": (
        "import itertools\nclass Row(tuple):\n    _fields = itertools.count()\ndouble = Row((1, 2))"
    ),
    "a fraction of its own": "from fractions import Fraction\nclass Odd:\n    def bit_length(self):\n        while True: pass\ndouble = Fraction(1, 2)\ndouble._numerator = Odd()",
    "a generator of its own": "class PCG64(np.random.PCG64):\n    @property\n    def state(self):\n        while True: pass\ndouble = np.random.Generator(PCG64(1))",
    "a number of its own": "class Odd(np.float64):\n    @property\n    def dtype(self):\n        while True: pass\nOdd.__module__ = 'numpy'\ndouble = Odd(14.0)",
    "a name of its own": "class Name(str):\n    def __str__(self):\n        while True: pass\ndef double(x): return 1\ndouble.__name__ = Name('double')",
    "endless recursion": "import sys\nsys.setrecursionlimit(10**9)\ndef double(x): return double(x)",
    "a list in itself": "def double(x):\n    a = []\n    a.append(a)\n    return a",
    "a deep nest": "def double(x):\n    a = []\n    for _ in range(100000): a = [a]\n    return a",
    "a whole number without end": "def double(x): return 1 << 10**8",
    "a text without end": "def double(x): return 'x' * 10**9",
    "an array without end": "def double(x): return np.zeros(10**9)",
    "a strided array without end": "def double(x): return np.lib.stride_tricks.as_strided(np.zeros(1), (10**6, 10**6), (0, 0))",
    "a range without end": "def double(x): return range(10**18)",
    "an endless generator": "def double(x):\n    while True: yield x",
    "memory": "def double(x):\n    a = []\n    while True: a.append(bytearray(10**8))",
    "hostile text of an error": "class E(Exception):\n    def __str__(self): raise RuntimeError\n    __repr__ = __str__\n"
    "def double(x): raise E",
    "an error that is an assertion's name": "class AssertionError(Exception): pass\ndef double(x): raise AssertionError('6')",
    "a group of errors": "def double(x): raise ExceptionGroup('x', [ValueError(1)])",
    "an error with arguments": "def double(x): raise UnicodeDecodeError('a', b'', 0, 1, 'x')",
    "an error that ends": "def double(x): raise SystemExit(0)",
    "an error of the grader's": "class TimeUp(BaseException): pass\nclass BadScoreError(ValueError): pass\n"
    "def double(x): raise TimeUp",
    "no function": "double = 6",
    "a property that never answers": "class P:\n    @property\n    def shape(self):\n        while True: pass\n"
    "    def __len__(self):\n        while True: pass\ndef double(x): return P()",
    "alarms switched off": "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\n"
    "signal.setitimer = lambda *a: None\ndef double(x):\n    while True: pass",
    "arguments emptied": "def double(x):\n    if isinstance(x, list): x.clear()\n    return 1",
    "a name that is no word": "def double(x): return type('a b<script>', (), {})()",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_scores_nothing_and_harms_no_other_task(grade, name):
    outcome = grade(small.paper(t1_double=ATTACKS[name]), limits=SHORT)
    assert {key: score for key, score in scores(outcome).items() if key in small.FIRST and score} == {}
    assert outcome.state in (State.GRADED, State.WITH_FAILURES), outcome.reason
    assert "expected_secret_value" not in json.dumps([test.message for test in outcome.tests]) + shown(outcome)
    assert all(len(test.message) <= 2000 for test in outcome.tests)
    spoils = ("replaced", "writing", "kill", "claims", "forged", "exit at the top", "alarms")
    if not any(word in name for word in spoils):
        assert {key: scores(outcome)[key] for key in REST} == REST, outcome.reason


def test_prints_of_hidden_inputs_are_not_shown(grade):
    outcome = grade(
        small.paper(t1_double="seen = []\ndef double(x):\n    seen.append(x)\n    print('input', x)\n    return 2 * x")
    )
    assert scores(outcome) == FULL
    assert "input" not in shown(outcome)


def test_the_count_of_the_instructors_object_cannot_be_forged(grade):
    for forged in (
        "def spin(meter, times):\n    meter.turns = times\n    return [2 * n for n in range(times)]",
        "def spin(meter, times):\n    meter.__dict__['turns'] = times\n    return [2 * n for n in range(times)]",
        "def spin(meter, times):\n    Meter.turns = times\n    return [2 * n for n in range(times)]",
        "def spin(meter, times):\n    return [2 * n for n in range(times)]",
    ):
        outcome = grade(small.paper(t4_answer=f"{forged}\ndef draw(count, rng):\n    return rng.normal(size=count)"))
        assert scores(outcome) == {**FULL, "s-t4-spin": 0.0}


def test_the_instructors_object_keeps_its_secrets_and_its_errors_arrive(grade):
    tries = """
def spin(meter, times):
    try:
        meter._secret
    except AttributeError:
        pass
    else:
        return "seen"
    try:
        meter.turn(-1)
    except ValueError as error:
        assert "value must not be negative, got -1" in str(error)
    assert isinstance(meter, Meter)
    return [meter.turn(number) for number in range(times)]


def draw(count, rng):
    return rng.normal(size=count)
"""
    assert scores(grade(small.paper(t4_answer=tries))) == FULL


def test_a_generator_is_followed_and_not_set(grade):
    forged = "def spin(meter, times):\n    return [meter.turn(number) for number in range(times)]\n" + (
        "def draw(count, rng):\n    numbers = rng.normal(size=count)\n"
        "    rng.bit_generator.state = np.random.default_rng(1).bit_generator.state\n    return numbers"
    )
    # The test compares the next number: it is as if the generator had not been used, so the test fails.
    assert scores(grade(small.paper(t4_answer=forged))) == {**FULL, "s-t4-spin": 0.0}


CHANGES = {
    "s-t1-sorts": "values = [3, 1, 2]\nassert double(values) == sorted(values)",
    "s-t1-keeps": "values = [3, 1]\ndouble(values)\nassert values == [3, 1], 'you changed the list'",
    "s-t1-nested": "rows = {'a': np.zeros(2), 'b': [Point(1, 2)]}\ndouble(rows)\nassert not rows['a'].any()",
    "s-t1-given": "assert double(GIVEN) == sorted(GIVEN)",
    "s-t1-after": "assert GIVEN == [2, 1]",
}


@pytest.mark.parametrize(
    ("double", "kept"),
    [
        ("def double(x):\n    return sorted(x)", set(CHANGES)),
        (
            "def double(x):\n    if isinstance(x, dict): return None\n    x.sort()\n    return x",
            set(CHANGES) - {"s-t1-keeps"},
        ),
        ("def double(x):\n    x['a'] += 1", {"s-t1-after"}),
        ("def double(x):\n    x.clear()\n    return []", {"s-t1-after"}),
    ],
)
def test_what_a_function_does_to_its_arguments_is_seen_and_gains_nothing(grade, double, kept):
    exam = small.exam(tests=CHANGES, setup=small.SETUP + "\nGIVEN = [2, 1]\n")
    outcome = grade(small.paper(t1_double=double), exam)
    # The third one fails the first two because a list has no 'a', the last because of what it leaves.
    assert {name for name, score in scores(outcome).items() if score} - {"s-t1-nested", "s-t1-keeps"} == kept - {
        "s-t1-nested", "s-t1-keeps"
    }  # fmt: skip
    assert scores(outcome)["s-t1-after"] == 2.0
    if "sort()" in double or "clear()" in double:
        assert message(outcome, "s-t1-keeps") == "you changed the list"
    if "+= 1" in double:
        assert scores(outcome)["s-t1-nested"] == 0
    if "clear()" in double:
        assert "its answer is right only for what it leaves" in message(outcome, "s-t1-sorts")


def test_a_function_may_be_asked_to_change_its_argument(grade):
    tests = {"s-t1-place": "values = [3, 1, 2]\nassert double(values) is None\nassert values == [1, 2, 3]"}
    double = "def double(x):\n    x.sort()"
    assert scores(grade(small.paper(t1_double=double), small.exam(tests, in_place=("s-t1-place",)))) == {
        "s-t1-place": 2
    }
    # Without the instructor's word for it, such a test would also pass for one that empties the list.
    assert scores(grade(small.paper(t1_double=double), small.exam(tests))) == {"s-t1-place": 0}


def in_turn(exam):
    """The exam with each task's tests after its answer."""
    tests = list(exam.tests)
    cells = [cell for cell in exam.cells if cell not in tests]
    for place in range(len(cells), 0, -1):
        cells[place:place] = [test for test in tests if test.task == cells[place - 1].task]
    return dataclasses.replace(exam, cells=(*cells, *(test for test in tests if test not in cells)))


def test_each_test_sees_the_notebook_as_it_was_at_its_place(grade):
    exam = in_turn(small.exam())
    spoil = "def double(x): return 1\ndef length(p): return 0\nclass Stack: pass\nmath = np = None\ndel spin, draw"
    assert [cell.cell_id for cell in exam.cells][1:4] == ["s-t1-double", "s-t1-plain", "s-t1-hidden"]
    # Only the partial credit, which stands at the end, is asked of what the last cell left.
    assert scores(grade(small.paper(spoil), exam)) == {**FULL, "s-t4-spin": 0.0, "s-t5-partial": 0.0}
    spoil = spoil.replace("\ndel spin, draw", "")
    assert scores(grade(small.paper(t4_answer=f"{spoil}\nimport numpy as np\n{small.SPIN}"), exam)) == {
        **FULL, "s-t5-partial": 0.0
    }  # fmt: skip


def test_two_answers_do_not_add_up_to_a_right_one(grade):
    exam = in_turn(small.exam())
    guess = "def double(x):\n    return {}"
    for one, other in [("2 * x if x == 3 or type(x) is str else 1", "2 * x if x != 3 else 1"), ("41", "2 * x")]:
        first, last = guess.format(one), guess.format(other)
        both = scores(grade(small.paper(last, t1_double=first), exam))
        alone = scores(grade(small.paper(t1_double=first), exam))
        assert {n: s for n, s in both.items() if n != "s-t5-partial"} == {
            n: s for n, s in alone.items() if n != "s-t5-partial"
        }


def test_no_cell_shows_what_a_test_before_it_asked(grade):
    keeps = "seen = []\ndef double(x):\n    seen.append(x)\n    open('seen.txt', 'a').write(repr(x))\n    return 2 * x"
    shows = "print('kept', seen)\nimport os\nprint('file', os.path.exists('seen.txt'))"
    outcome = grade(small.paper(shows, t1_double=keeps), in_turn(small.exam()))
    assert scores(outcome) == FULL
    assert [output["text"] for cell in outcome.outputs for output in cell.outputs] == ["kept []\nfile False\n"]


@pytest.mark.parametrize("double", ["1 << 10**8", "[[]]\nfor _ in range(99): double = [double]", "'x' * 10**8"])
def test_an_answer_that_is_a_value_nobody_can_send_loses_its_own_tests(grade, double):
    outcome = grade(small.paper(t1_double=f"double = {double}"))
    assert outcome.state is State.GRADED, outcome.reason
    assert scores(outcome) == {**dict.fromkeys(small.FIRST, 0.0), **REST}


def test_an_import_that_replaces_an_answer_after_its_tests_is_no_answer_by_import(grade):
    tests = {"s-t1-own": "from lantern_lib import checks\nchecks.Task(1, globals()).own_work('double')"}
    exam = in_turn(small.exam(tests))
    late = "from lantern_lib.kv_cache import bytes_per_token as double"
    assert scores(grade(small.paper(late), exam)) == {"s-t1-own": 2.0}
    outcome = grade(small.paper("def double(x):\n    return 2 * x", t1_double=late), exam)
    assert "double leans on lantern_lib.kv_cache" in message(outcome, "s-t1-own")
    # A helper may stand below the test, but what it is made of counts.
    below = "from lantern_lib.kv_cache import bytes_per_token as helper"
    outcome = grade(small.paper(below, t1_double="def double(x):\n    return helper and 2 * x"), exam)
    assert "double leans on lantern_lib.kv_cache" in message(outcome, "s-t1-own")


def test_an_answer_by_import_is_found_although_the_process_denies_it(grade):
    denies = """
import sys
from lantern_lib import kv_cache, labs
labs.leans_on = lambda *_: ""
sys.modules["lantern_grading.checker.worker"].Worker.do_leans_on = lambda *_: ("",)


def helper(x):
    return kv_cache and 2 * x


def double(x):
    return helper(x)
"""
    tests = {"s-t1-own": "from lantern_lib import checks\nchecks.Task(1, globals()).own_work('double')"}
    outcome = grade(small.paper(t1_double=denies), small.exam(tests))
    assert "double leans on lantern_lib.kv_cache" in message(outcome, "s-t1-own")
    assert scores(outcome) == {"s-t1-own": 0.0}
    assert scores(grade(small.paper(), small.exam(tests))) == {"s-t1-own": 2.0}


def test_a_record_class_of_the_students_own_may_be_an_answer(grade):
    # The import of the test is one more cell of the instructor's after the answer: it makes nobody's class the exam's.
    tests = {"s-t1-own": "from lantern_lib import checks\nassert (double(3).twice, double(4).twice) == (6, 8)"}
    own = "from dataclasses import dataclass\n@dataclass\nclass Result:\n    twice: int\ndef double(x):\n    return Result(2 * x)"
    outcome = grade(small.paper(t1_double=own), small.exam(tests))
    assert (outcome.state, scores(outcome)) == (State.GRADED, {"s-t1-own": 2.0}), outcome.reason


def test_a_test_in_the_kernel_is_marked_as_such(grade):
    exam = small.exam(in_kernel=("s-t1-plain",))
    outcome = grade(small.paper(), exam)
    assert scores(outcome) == FULL
    assert outcome.tests[0].trust is Trust.IN_KERNEL
    outcome = grade(small.paper(t1_double="double = lambda x: 1"), exam)
    assert scores(outcome)["s-t1-plain"] == 0


WRONG = "def double(x):\n    return 7\n"
DECEIVE = {
    "a function of Python": (WRONG + "import builtins\nbuiltins.abs = lambda x: 0", "assert abs(double(3) - 6) < 1e-9"),
    "a function of math": (WRONG + "import math\nmath.isclose = lambda *args: True", "import math\nassert math.isclose(double(3), 6)"),
    "a constant": (WRONG + "import math\nmath.inf = 3.0", "import math\nassert 7 < math.inf and double(3) < 7 or double(3) > math.inf"),
    "a module": (WRONG + "import sys, types\nsys.modules['math'] = types.SimpleNamespace(isclose=lambda *args: True)", "import math\nassert math.isclose(double(3), 6)"),
    "a check of numpy": (WRONG + "np.testing.assert_equal = lambda *args: None", "np.testing.assert_equal(double(3), 6)"),
    "the code of a check of the lab": (WRONG + "from lantern_lib import checks\nchecks.Task.compare.__code__ = (lambda *args: None).__code__", "from lantern_lib import checks\nchecks.Task(1, globals()).compare('double', double(3), 6)"),
    "a check of the lab": (WRONG + "from lantern_lib import checks\nchecks.Task.compare = lambda *args: None", "from lantern_lib import checks\nchecks.Task(1, globals()).compare('double', double(3), 6)"),
    "equality of a class of the lab": (WRONG + "from lantern_lib.hardware import Link\nLink.__eq__ = lambda a, b: True", "from lantern_lib.hardware import Link\nassert Link('x', double(3) * 1e9, 0.0) == Link('x', 6e9, 0.0)"),
}  # fmt: skip


@pytest.mark.parametrize("name", DECEIVE)
def test_what_a_test_in_the_kernel_stands_on_is_put_back(backend, name):
    attack, test = DECEIVE[name]
    exam = small.exam({"s-t1-plain": test}, {"s-t1-double": small.DOUBLE}, in_kernel=("s-t1-plain",))
    for source, points in ((small.DOUBLE, 2.0), (attack, 0.0)):
        outcome = grade_one(exam, small.paper(t1_double=source), backend=backend, limits=LIMITS)
        assert (outcome.state, scores(outcome)) == (State.GRADED, {"s-t1-plain": points}), outcome.reason


def test_a_test_in_the_kernel_finds_a_notebook_and_nobody_at_the_keyboard(backend):
    test = "display(get_ipython())\ntry:\n    double(3)\nexcept RuntimeError as error:\n    assert 'nobody to ask' in str(error)\nelse:\n    assert False"
    exam = small.exam({"s-t1-plain": test}, {"s-t1-double": small.DOUBLE}, in_kernel=("s-t1-plain",))
    asks = small.paper(t1_double="def double(x):\n    return float(input('x? '))")
    assert scores(grade_one(exam, asks, backend=backend, limits=LIMITS)) == {"s-t1-plain": 2.0}


def test_a_given_cell_that_fails_needs_a_person(grade):
    outcome = grade(small.paper(), small.exam(setup="import math\n1 / 0"))
    assert outcome.state is State.NEEDS_PERSON
    assert "ZeroDivisionError" in outcome.reason
    assert set(scores(outcome).values()) == {0.0}


def test_a_test_that_a_value_drives_into_a_loop_ends_alone(grade):
    exam = small.exam(
        tests={"s-t1-loop": "for _ in range(double(1)):\n    pass\nassert double(1) == 2", "s-t1-last": "assert double"}
    )
    outcome = grade(small.paper(t1_double="def double(x): return 10**15"), exam, limits=SHORT)
    assert scores(outcome) == {"s-t1-loop": 0.0, "s-t1-last": 2.0}
    assert outcome.state is State.WITH_FAILURES
