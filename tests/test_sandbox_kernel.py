"""Kernels in the sandbox, by name alone: through nbclient, papermill and nbgrader as they are."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import nbclient
import nbformat
import pytest
from jupyter_core.utils import ensure_event_loop
from nbclient.exceptions import DeadKernelError
from traitlets.config import Config

from lantern_grading.sandbox import SandboxError, choose, kernelspec, relay
from lantern_grading.sandbox.provisioner import SandboxProvisioner

pytestmark = pytest.mark.grading

ROOT = Path(__file__).resolve().parents[1]
GROUP = "jupyter_client.kernel_provisioners"


@pytest.fixture(autouse=True, scope="module")
def known(missing):
    """A machine with a sandbox, where Jupyter knows the kernel."""
    try:
        choose()
    except SandboxError as error:
        missing(str(error))
    before = os.environ.get("JUPYTER_PATH")
    kernelspec.use()
    yield
    ensure_event_loop().close()  # the one that jupyter_core opened for this thread
    if before is None:
        del os.environ["JUPYTER_PATH"]
    else:
        os.environ["JUPYTER_PATH"] = before


def notebook(*sources, kernel="python3"):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    book.metadata.kernelspec = {"name": kernel, "display_name": kernel, "language": "python"}
    return book


@pytest.fixture
def execute(tmp_path):
    """Run cells with nbclient and return what each showed; the folder beside the notebook is `tmp_path / "here"`."""
    (tmp_path / "here").mkdir()

    def execute(*sources, timeout=60, limits=None, **options):
        config = Config()
        config.SandboxProvisioner.limits = limits or {}
        book = notebook(*sources)
        client = nbclient.NotebookClient(
            book, kernel_name="lantern-sandbox", allow_errors=True, timeout=timeout, interrupt_on_timeout=True,
            resources={"metadata": {"path": str(tmp_path / "here")}}, config=config, **options,
        )  # fmt: skip
        client.execute()
        return [shown(cell) for cell in book.cells]

    return execute


def shown(cell):
    parts = []
    for output in cell.outputs:
        if output.output_type == "stream":
            parts.append(output.text)
        elif output.output_type == "error":
            parts.append(f"{output.ename}: {output.evalue}")
        else:
            parts.append(output.data["text/plain"])
    return "".join(parts)


def test_cells_run_without_network_in_a_copy_of_the_folder(execute, tmp_path):
    (tmp_path / "here" / "data.json").write_text("[1]")
    (tmp_path / "here" / "week1.ipynb").write_text("hidden tests")
    (tmp_path / "here" / "link").symlink_to(tmp_path)
    got = execute(
        "import os; os.getcwd(), os.listdir('.')",
        "open('data.json').read()",
        "open('new.txt', 'w').write('x'); open('data.json', 'w').write('[2]')",
        "import socket; socket.create_connection(('127.0.0.1', 22), 2)",
        "import numpy, lantern_lib.units; int(numpy.arange(4).sum())",
        f"os.path.exists({str(ROOT / 'solutions')!r}), os.path.exists({str(tmp_path)!r})",
        "!echo shell",
        "%time 1 + 1",
        "input()",
    )
    assert got[0] == "('/scratch/home', ['data.json'])"
    assert got[1] == "'[1]'"
    assert got[3].startswith("ConnectionRefusedError")
    assert got[4] == "6"
    assert got[5] == "(False, False)"
    assert got[6].strip() == "shell"
    assert got[7].endswith("2")
    assert got[8].startswith("StdinNotImplementedError")
    assert (tmp_path / "here" / "data.json").read_text() == "[1]"
    assert not (tmp_path / "here" / "new.txt").exists()


def test_an_endless_loop_is_interrupted_and_the_rest_runs(execute):
    got = execute("x = 1", "while True: pass", "x + 1", timeout=3)
    assert got[1].startswith("KeyboardInterrupt")
    assert got[2] == "2"


def test_a_module_beside_the_notebook_is_found_but_hides_no_other(execute, tmp_path):
    (tmp_path / "here" / "helper.py").write_text("answer = 42")
    (tmp_path / "here" / "numpy.py").write_text("raise SystemExit")
    (tmp_path / "here" / "random.py").write_text("raise SystemExit")
    (tmp_path / "here" / "ipykernel_launcher.py").write_text("raise SystemExit")
    assert execute("import helper, numpy, random; helper.answer + int(numpy.zeros(1)[0])") == ["42"]


def test_limits_are_those_of_the_configuration(execute):
    limits = {"address_space_bytes": 2**31, "processes": 40}
    got = execute(
        "import numpy; numpy.ones(2**29)",
        "import os, time\nmade = 0\ntry:\n    while made < 200:\n        os.fork() or (time.sleep(60), os._exit(0))\n"
        "        made += 1\nexcept BlockingIOError as error:\n    print(10 < made < 40, type(error).__name__)",
        limits=limits,
    )
    assert got[0].startswith(("_ArrayMemoryError", "MemoryError"))
    assert got[1] == "True BlockingIOError\n"


def test_a_wrong_limit_is_named(execute):
    with pytest.raises(ValueError, match="processes must be a positive number, got -1"):
        execute("1", limits={"processes": -1})


def test_the_whole_notebook_has_a_time(execute, caplog):
    start = time.monotonic()
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    with pytest.raises(DeadKernelError):
        execute(code, limits={"total_seconds": 15}, timeout=6)
    assert time.monotonic() - start < 60
    assert "The kernel was ended: the submission exceeded its limit of time." in caplog.text


def test_a_flood_of_output_is_cut_in_each_cell(execute):
    cells = ["print('a' * 50_000_000)", "import os; os.write(1, b'b' * 3_000_000); print('c')", "print('d')"]
    got = execute(*cells, limits={"output_bytes": 200_000})
    note = "\n[output ends here: a cell may print 200000 characters]\n"
    assert got[0].startswith("a" * 200_000 + note)
    assert len(got[0]) < 201_000
    assert len(got[1]) < 201_000
    assert got[2] == "d\n"


def test_a_flood_past_the_cap_ends_the_kernel(execute, caplog):
    """Whoever takes the cap away meets the one that is outside."""
    code = (
        "from IPython.display import display\nfor _ in range(100): display({'text/plain': 'x' * 1_000_000}, raw=True)"
    )
    with pytest.raises(DeadKernelError):
        execute(code, limits={"output_bytes": 200_000})
    assert "exceeded its limit of output" in caplog.text


def test_nothing_is_left_of_a_kernel(execute, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    code = "import subprocess; subprocess.Popen(['setsid', 'sleep', '98765'], start_new_session=True).pid > 0"
    assert execute(code) == ["True"]
    assert set(tmp_path.iterdir()) == before
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "sleep 98765" not in running


def test_a_dead_kernel_is_a_dead_kernel(execute):
    with pytest.raises(DeadKernelError):
        execute("import os; os._exit(3)")


def test_a_folder_that_holds_too_much_is_not_copied(execute, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for number in range(1200):
        (tmp_path / "here" / str(number)).touch()
    with pytest.raises(SandboxError, match="papermill takes --cwd"):
        execute("1")
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


def test_without_a_sandbox_there_is_no_kernel(execute, tmp_path, monkeypatch):
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxError, match="No permissions to create new namespace"):
        execute("1")


# --- the relay ---------------------------------------------------------------------------------------------------


@pytest.fixture
def listening(tmp_path):
    """A folder in a sandbox's place with a socket in it, and one outside that must never be reached."""
    inner, outer = tmp_path / "root" / "run", tmp_path / "outside"
    inner.mkdir(parents=True)
    outer.mkdir()
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as two:
        for server, path in ((one, inner / "k-1"), (two, outer / "k-1")):
            server.bind(str(path))
            server.listen()
        yield tmp_path / "root", outer


def test_a_socket_inside_is_reached_and_no_link_is_followed(listening):
    root, outside = listening
    relay.connect(root, "/run/k-1").close()
    (root / "run" / "k-2").symlink_to(outside / "k-1")
    (root / "other").symlink_to(outside)
    (root / "run" / "k-3").write_text("no socket")
    for path in ("/run/k-2", "/other/k-1", "/run/k-3"):
        with pytest.raises(OSError, match="(?i)socket|link|directory|refused"):
            relay.connect(root, path)
    # The control: an ordinary connection follows.
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(root / "other" / "k-1"))


# --- the tools, as they are --------------------------------------------------------------------------------------


def declared():
    """The entry point that the project file declares."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["entry-points"][GROUP]


def test_the_project_file_declares_the_provisioner():
    ((name, value),) = declared().items()
    assert EntryPoint(name, value, GROUP).load() is SandboxProvisioner
    spec = json.loads((ROOT / "lantern_grading/sandbox/jupyter/kernels/lantern-sandbox/kernel.json").read_text())
    assert spec["metadata"]["kernel_provisioner"]["provisioner_name"] == name == kernelspec.NAME
    assert spec["interrupt_mode"] == "message"


@pytest.fixture(scope="module")
def tool(tmp_path_factory):
    """Run a program in an environment where the package is installed with its kernel, and nothing else is changed."""
    installed = tmp_path_factory.mktemp("installed")
    info = installed / "lantern_sandbox_declared-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lantern-sandbox-declared\nVersion: 0\n")
    lines = [f"{name} = {value}" for name, value in declared().items()]
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n" + "\n".join(lines) + "\n")
    kernelspec.install(installed)
    environment = os.environ | {
        "JUPYTER_PATH": str(installed / "share" / "jupyter"),
        "PYTHONPATH": os.pathsep.join([str(installed), str(ROOT)]),
    }
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

    def run(*arguments, cwd, check=True, first=""):
        environment["PATH"] = os.pathsep.join([*([str(first)] if first else []), path])
        result = subprocess.run(
            [sys.executable, "-m", *map(str, arguments)],
            cwd=cwd, env=environment, capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip
        assert not check or result.returncode == 0, result.stdout + result.stderr
        return result

    return run


WHERE = "import os; assert os.getcwd() == '/scratch/home', os.getcwd(); print('in the sandbox')"


def test_papermill(tool, tmp_path):
    book = notebook("value = 1", WHERE, "print(value + 1)")
    book.cells[0].metadata.tags = ["parameters"]
    (tmp_path / "here").mkdir()
    nbformat.write(book, tmp_path / "in.ipynb")
    tool(
        "papermill",
        "in.ipynb",
        "out.ipynb",
        "-k",
        "lantern-sandbox",
        "-p",
        "value",
        "41",
        "--cwd",
        "here",
        cwd=tmp_path,
    )
    cells = nbformat.read(tmp_path / "out.ipynb", as_version=4).cells
    assert [shown(cell) for cell in cells[-2:]] == ["in the sandbox\n", "42\n"]


def test_nbconvert(tool, tmp_path):
    nbformat.write(notebook(WHERE), tmp_path / "in.ipynb")
    name = "--ExecutePreprocessor.kernel_name=lantern-sandbox"
    tool("nbconvert", "--execute", "--to", "notebook", "--output", "out.ipynb", "in.ipynb", name, cwd=tmp_path)
    assert shown(nbformat.read(tmp_path / "out.ipynb", as_version=4).cells[0]) == "in the sandbox\n"


def graded(name, **more):
    return {
        "nbgrader": {
            "grade_id": name,
            "schema_version": 3,
            "grade": False,
            "locked": False,
            "solution": False,
            "task": False,
        }
        | more
    }


def assignment():
    """An assignment of one function and one test, and a check that it runs in the sandbox."""
    book = notebook(
        "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION",
        f"{WHERE}\nassert double(2) == 4",
    )
    book.cells[0].metadata.update(graded("double", solution=True))
    book.cells[1].metadata.update(graded("test-double", grade=True, locked=True, points=3))
    return book


@pytest.fixture(scope="module")
def released(tmp_path_factory, tool):
    """A course of plain nbgrader whose configuration says one thing."""
    folder = tmp_path_factory.mktemp("released")
    (folder / "nbgrader_config.py").write_text(
        'c = get_config()\nc.CourseDirectory.course_id = "c"\nc.Execute.kernel_name = "lantern-sandbox"\n'
    )
    (folder / "source" / "ps1").mkdir(parents=True)
    nbformat.write(assignment(), folder / "source" / "ps1" / "p.ipynb")
    tool("nbgrader", "generate_assignment", "ps1", "--create", cwd=folder)
    return folder


@pytest.fixture
def course(released, tmp_path):
    return shutil.copytree(released, tmp_path / "course")


def hand_in(course, student, answer, kernel="python3"):
    book = nbformat.read(course / "release" / "ps1" / "p.ipynb", as_version=4)
    book.cells[0].source = answer
    book.metadata.kernelspec.name = kernel
    folder = course / "submitted" / student / "ps1"
    folder.mkdir(parents=True)
    nbformat.write(book, folder / "p.ipynb")
    return folder / "p.ipynb"


def test_nbgrader_autograde(course, tool):
    hand_in(course, "right", "def double(x):\n    return x + x")
    # A submission's own wish for another kernel is not heard.
    hand_in(course, "wrong", "def double(x):\n    return x", kernel="bash")
    peek = f"import os; print([os.path.exists(p) for p in {[str(course), str(course / 'gradebook.db')]}])\n"
    hand_in(course, "peeping", peek + "def double(x):\n    return 2 * x")
    tool("nbgrader", "autograde", "ps1", cwd=course)
    scores = tool("nbgrader", "export", "--to", "grades.csv", cwd=course)
    assert scores.returncode == 0
    rows = [line.split(",") for line in (course / "grades.csv").read_text().splitlines()]
    score = {row[rows[0].index("student_id")]: float(row[rows[0].index("score")]) for row in rows[1:]}
    assert score == {"right": 3, "wrong": 0, "peeping": 3}
    cells = nbformat.read(course / "autograded" / "peeping" / "ps1" / "p.ipynb", as_version=4).cells
    assert shown(cells[0]) == "[False, False]\n"
    assert shown(cells[1]) == "in the sandbox\n"


def test_nbgrader_validate(course, tool):
    good = hand_in(course, "right", "def double(x):\n    return x + x")
    bad = hand_in(course, "wrong", "def double(x):\n    return x")
    said = tool("nbgrader", "validate", good, bad, cwd=course).stdout
    assert said.count("Success") == 1
    assert "AssertionError" in said
    assert "VALIDATION FAILED ON 1 CELL" in said.upper()


def test_nbgrader_without_a_sandbox_grades_nothing_and_says_why(course, tool, tmp_path):
    hand_in(course, "right", "def double(x):\n    return x + x")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions' >&2\nexit 1\n")
    (tmp_path / "broken" / "bwrap").chmod(0o755)
    result = tool("nbgrader", "autograde", "ps1", cwd=course, check=False, first=tmp_path / "broken")
    assert result.returncode != 0
    assert "cannot make a sandbox here: bwrap: No permissions" in result.stderr
    assert not list((course / "autograded").rglob("*.ipynb"))
