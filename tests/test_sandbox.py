"""What student code can do in the sandbox: nothing to the network, to the host, or beyond its limits."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import lantern_lib
from lantern_grading.sandbox import (
    Bubblewrap,
    Limits,
    NoSandbox,
    SandboxError,
    Scratch,
    bubblewrap,
    choose,
    layout,
    seccomp,
)
from lantern_grading.sandbox.__main__ import main as command

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def backend(missing):
    """The default sandbox, where this machine has one."""
    try:
        return choose()
    except SandboxError as error:
        return missing(str(error))


def ended(process, wait):
    """Wait for a sandbox, and return what it printed, its errors, its status and the limit that ended it."""
    with process:
        process.stdin.close()
        process.drain()
        status = process.wait(wait)
    return process.printed(), process.errors(), status, process.reason


@pytest.fixture
def start(backend):
    """Run Python code in a sandbox; see `ended` for what is returned."""

    def start(code, *arguments, wait=60, **options):
        return ended(backend.start([backend.python, "-c", textwrap.dedent(code), *arguments], **options), wait)

    return start


SERVER = """
import json, os, sys, traceback

sys.path.append(sys.argv.pop(1))
import lantern_lib.units
import numpy
from lantern_grading.sandbox import entering

def work(incoming, outgoing, loaded):
    order = json.loads(incoming.read(int.from_bytes(incoming.read(4))))
    os.dup2(outgoing.fileno(), 1)
    outgoing.close()
    incoming.close()
    sys.argv = ["-c", *order["arguments"]]
    try:
        exec(compile(order["code"], "<string>", "exec"), {"__name__": "__main__"})
        status = 0
    except SystemExit as error:
        status = error.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)

entering.main(int(sys.argv.pop()), lambda: None, work)
"""


@pytest.fixture(scope="session")
def server(backend):
    """A program that forks into sandboxes and runs the code that it is sent."""
    made = backend.fork_server([sys.executable, "-P", "-c", SERVER, str(ROOT)], b"")
    assert made is not None
    yield made
    made.close()


@pytest.fixture(params=["started", "entered"])
def run(request, start, backend):
    """Run Python code in a sandbox, in a Python that is started there or forks into it; see `ended`."""
    if request.param == "started":
        return start
    server = request.getfixturevalue("server")

    def enter(code, *arguments, wait=60, limits=None):
        process = backend.enter(server, limits or Limits())
        order = json.dumps({"code": textwrap.dedent(code), "arguments": arguments}).encode()
        process.stdin.write(len(order).to_bytes(4) + order)
        return ended(process, wait)

    return enter


def attempts(printed):
    """What each attempt came to, by name."""
    return dict(line.split("=", 1) for line in printed.splitlines())


TRY = """
def attempt(name, action):
    try:
        print(f"{name}={action()!r}")
    except BaseException as error:
        print(f"{name}={type(error).__name__} {error}")
"""


def test_it_runs_python_with_numpy_and_the_library(run):
    printed, errors, status, reason = run("import numpy, lantern_lib.units; print(numpy.arange(3).sum())")
    assert (printed, errors, status, reason) == ("3\n", "", 0, "")


# --- network -----------------------------------------------------------------------------------------------------


def test_there_is_no_network_and_not_the_hosts_loopback(run):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        name = f"\0lantern-{os.getpid()}"
        abstract.bind(name)
        abstract.listen()
        port = server.getsockname()[1]
        code = f"""
        import socket
        attempt("loopback", lambda: socket.create_connection(("127.0.0.1", {port}), 2))
        attempt("outside", lambda: socket.create_connection(("192.0.2.1", 80), 2))
        attempt("name", lambda: socket.getaddrinfo("example.com", 80))
        attempt("abstract", lambda: socket.socket(socket.AF_UNIX).connect({name!r}))
        attempt("vsock", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))
        attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
        attempt("interfaces", lambda: [name for _, name in socket.if_nameindex()])
        """
        # The control: outside the sandbox these doors are open.
        socket.create_connection(("127.0.0.1", port), 2).close()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(name)
        got = attempts(run(TRY + textwrap.dedent(code))[0])
    assert got["loopback"].startswith("ConnectionRefusedError")
    assert got["outside"].startswith("OSError [Errno 101]")
    assert got["name"].startswith("gaierror")
    assert got["abstract"].startswith("ConnectionRefusedError")
    assert got["vsock"].startswith("OSError [Errno 97]")
    assert got["packet"].startswith(("OSError [Errno 97]", "PermissionError"))
    assert got["interfaces"] == "['lo']"


# --- files -------------------------------------------------------------------------------------------------------


def test_nothing_of_the_host_is_seen_but_the_allow_list(run, tmp_path):
    secret = tmp_path / "another student.txt"
    secret.write_text("the answer")
    seen = [ROOT / "solutions", ROOT / "labs", ROOT / "tests", ROOT / "lantern_grading", ROOT / "pyproject.toml"]
    hidden = [secret, tmp_path, *seen, Path("/etc/passwd"), Path("/etc/shadow"), Path("/var"), Path("/sys")]
    code = """
    import json, os, sys
    print(json.dumps([path for path in json.loads(sys.argv[1]) if os.path.exists(path)]))
    print(json.dumps([os.listdir(os.path.expanduser("~")), os.listdir(os.environ["TMPDIR"]), os.listdir("/lantern")]))
    """
    there = [str(path) for path in hidden if path.exists()]
    assert str(secret) in there
    assert str(ROOT / "solutions") in there
    found, folders = map(json.loads, run(code, json.dumps(there))[0].splitlines())
    assert found == []
    assert folders == [[], [], ["lib"]]


def test_the_whole_tree_holds_no_notebook_and_no_database(run):
    """Outside the system and Python: also not by another door, such as the roots of other processes."""
    code = """
    import os
    leave = {"/usr", "/lib", "/lib64", "/bin", "/dev", "/proc"}
    for folder, folders, files in os.walk("/"):
        folders[:] = [name for name in folders if folder + name not in leave and name[:7] != "python3"]
        for name in files:
            print(os.path.splitext(name)[1], os.path.join(folder, name))
    for name in os.listdir("/proc"):
        if name.isdigit():
            attempt(f"root of {name}", lambda: sorted(os.listdir(f"/proc/{name}/root")) == sorted(os.listdir("/")))
    """
    lines = run(TRY + textwrap.dedent(code))[0].splitlines()
    files = [line.partition(" ")[::2] for line in lines if not line.startswith("root of")]
    assert len(files) > 100
    assert {"/lantern/lib/lantern_lib/units.py", "/etc/ld.so.cache"} <= {path for _, path in files}
    assert [path for ending, path in files if ending in (".ipynb", ".db", ".toml", ".csv")] == []
    doors = attempts("\n".join(line for line in lines if line.startswith("root of")))
    assert len(doors) in (2, 3)  # bubblewrap's own first process, this one, and what waits for one that entered
    assert all(got == "True" or got.startswith("PermissionError") for got in doors.values())


def test_only_the_scratch_can_be_written_and_that_leaves_no_trace(run, backend, tmp_path):
    library = Path(lantern_lib.__file__)
    before = library.stat()
    places = [
        "/",
        "/dev",
        "/etc",
        "/usr/lib",
        "/lantern/lib/lantern_lib",
        sys.prefix,
        "/scratch/home",
        "/scratch/tmp",
        "/dev/shm",
    ]
    code = """
    import os
    for place in PLACES:
        attempt(place, lambda: open(place + "/left-by-a-student", "w").write("x"))
    attempt("library", lambda: open("/lantern/lib/lantern_lib/__init__.py", "a"))
    attempt("over", lambda: os.rename("/lantern/lib", "/lantern/other"))
    attempt("device", lambda: os.mknod("disk", 0o60600, os.makedev(254, 0)))
    """
    got = attempts(run(TRY + f"PLACES = {places}\n" + textwrap.dedent(code))[0])
    assert {place for place in places if got[place] == "1"} == {"/scratch/home", "/scratch/tmp", "/dev/shm"}
    assert got["library"].startswith(("OSError [Errno 30]", "PermissionError"))
    assert got["over"].startswith(("OSError", "PermissionError"))
    assert got["device"].startswith("PermissionError")
    assert library.stat() == before
    for place in places:
        assert not Path(place, "left-by-a-student").exists()


def test_the_files_of_a_submission_are_copies(start, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one.json").write_text("[1]")
    (tmp_path / "secret").symlink_to("/etc/passwd")
    code = """
    import os
    print(open("data/one.json").read(), sorted(os.listdir(".")))
    open("data/one.json", "w").write("[2]")
    open("new.txt", "w").write("x")
    """
    scratch = Scratch.of_folder(tmp_path)
    assert start(code, scratch=scratch)[0] == "[1] ['data']\n"
    assert start(code, scratch=scratch)[0] == "[1] ['data']\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "secret"]


def test_more_can_be_shown_read_only_and_below_one_folder_only(start, backend, tmp_path):
    (tmp_path / "worker.py").write_text("print('worker')")
    shown = {"/lantern/worker.py": tmp_path / "worker.py"}
    code = """
    attempt("got", lambda: open("/lantern/worker.py").read())
    attempt("write", lambda: open("/lantern/worker.py", "w"))
    """
    got = attempts(start(TRY + textwrap.dedent(code), visible=shown)[0])
    assert got["got"] == repr("print('worker')")
    assert got["write"].startswith(("OSError [Errno 30]", "PermissionError"))
    for path in ("/etc/passwd", "/lantern/../etc"):
        with pytest.raises(ValueError, match="below /lantern/"):
            backend.start(["true"], visible={path: tmp_path})
    with pytest.raises(ValueError, match="must name what exists"):
        backend.start(["true"], visible={"/lantern/x": tmp_path / "nothing"})


# --- environment and privileges ----------------------------------------------------------------------------------


def test_the_environment_is_clean(run, monkeypatch):
    monkeypatch.setenv("LANTERN_TOKEN", "secret")
    monkeypatch.setenv("JPY_PARENT_PID", "1")
    code = "import os, json; print(json.dumps(dict(os.environ))); print(os.listdir('/proc/self/fd'))"
    environment, handles = run(code)[0].splitlines()
    environment = json.loads(environment)
    assert not {"LANTERN_TOKEN", "JPY_PARENT_PID", "PYTEST_CURRENT_TEST", "SSH_AUTH_SOCK"} & environment.keys()
    assert environment["HOME"] == "/scratch/home"
    assert environment["PYTHONPATH"] == "/lantern/lib"
    assert not any(str(ROOT) in value for name, value in environment.items() if name != "PATH")
    assert handles == "['0', '1', '2', '3']"  # 3 is the listing itself


def test_it_is_nobody_and_can_become_no_more(run):
    code = """
    import ctypes, os, resource
    libc = ctypes.CDLL(None, use_errno=True)
    def call(name, *arguments):
        if getattr(libc, name)(*arguments) == -1:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return "done"
    status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
    print("caps", [int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")], sep="=")
    print("no_new_privs", status["NoNewPrivs"], sep="=")
    print("seccomp", status["Seccomp"], sep="=")
    print("root", os.getuid() == 0 or os.geteuid() == 0, sep="=")
    attempt("root_again", lambda: os.setuid(0))
    attempt("user_namespace", lambda: call("unshare", 0x10000000))
    attempt("mount_namespace", lambda: call("unshare", 0x00020000))
    attempt("mount", lambda: call("mount", b"none", b"/scratch/tmp", b"tmpfs", 0, None))
    attempt("raise_limit", lambda: resource.setrlimit(resource.RLIMIT_NPROC, (10**6, 10**6)))
    attempt("memory_file", lambda: os.memfd_create("x"))
    attempt("trace", lambda: call("ptrace", 16, 1, 0, 0))
    attempt("hostname", lambda: os.uname().nodename)
    """
    got = attempts(run(TRY + textwrap.dedent(code))[0])
    assert got["caps"] == "[0, 0, 0, 0, 0]"
    assert got["no_new_privs"] == "1"
    assert got["seccomp"] == "2"
    assert got["root"] == "False"
    assert got["hostname"] == "'sandbox'"
    for name in ("root_again", "user_namespace", "mount_namespace", "mount", "memory_file", "trace"):
        assert got[name].startswith(("PermissionError", "OSError [Errno 28]")), (name, got[name])
    assert got["raise_limit"].startswith("ValueError")


def test_a_clone_into_a_user_namespace_is_refused(run):
    """Not only `unshare`: the other two doors to the same thing."""
    code = """
    import ctypes, os, platform
    libc = ctypes.CDLL(None, use_errno=True)
    clone, clone3 = {"x86_64": (56, 435), "aarch64": (220, 435)}[platform.machine()]
    for number, arguments in [(clone, (0x10000000 | 17, 0, 0, 0, 0)), (clone3, (0, 0))]:
        result = libc.syscall(number, *arguments)
        if result == 0:
            os._exit(0)
        print(result, os.strerror(ctypes.get_errno()))
    """
    assert run(code)[0] == "-1 Operation not permitted\n-1 Function not implemented\n"


def test_the_filter_knows_this_machine():
    assert seccomp.program() != b""


# --- limits ------------------------------------------------------------------------------------------------------


def test_a_fork_bomb_stops_at_the_limit_for_root_too(run):
    code = """
    import os, time
    made = 0
    try:
        for _ in range(500):
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
            made += 1
    except BlockingIOError as error:
        print(made, type(error).__name__)
    """
    printed, _, _, _ = run(code, limits=Limits(processes=20))
    made, error = printed.split()
    assert error == "BlockingIOError"
    assert 10 <= int(made) <= 20


def test_two_sandboxes_do_not_share_their_limit_of_processes(backend):
    command = [
        backend.python,
        "-c",
        "import os, time\nfor _ in range(8): os.fork() or time.sleep(60)\nprint(1, flush=True)\ntime.sleep(60)",
    ]
    with (
        backend.start(command, limits=Limits(processes=12)) as one,
        backend.start(command, limits=Limits(processes=12)) as two,
    ):
        assert one.stdout.read(1) == b"1"
        assert two.stdout.read(1) == b"1"
        assert one.members() >= 9


def test_too_much_memory_is_a_memory_error(run):
    code = "import numpy\ntry: numpy.ones(2**28)\nexcept MemoryError: print('MemoryError')\nprint('goes on')"
    printed, _, status, reason = run(code, limits=Limits(address_space_bytes=2**30))
    assert (printed, status, reason) == ("MemoryError\ngoes on\n", 0, "")


def test_the_memory_of_many_processes_is_added_up(run):
    code = """
    import os, time
    for _ in range(6):
        if os.fork() == 0:
            data = b"x" * 60_000_000
            time.sleep(60)
    time.sleep(60)
    """
    start = time.monotonic()
    _, _, status, reason = run(code, limits=Limits(memory_bytes=200_000_000, address_space_bytes=2**30))
    assert (reason, status != 0) == ("memory", True)
    assert time.monotonic() - start < 20


def test_a_big_file_and_a_full_disk_are_errors(run):
    code = """
    import signal
    def fill(name, size):
        with open(name, "wb") as file:
            for _ in range(size):
                file.write(bytes(1_000_000))
    attempt("big", lambda: fill("big", 10))
    def many():
        for number in range(30):
            fill(f"/scratch/tmp/{number}", 3)
    attempt("many", many)
    """
    got = attempts(run(TRY + textwrap.dedent(code), limits=Limits(file_bytes=5_000_000, scratch_bytes=20_000_000))[0])
    assert got["big"].startswith("OSError [Errno 27]")
    assert got["many"].startswith("OSError [Errno 28]")


def test_a_million_empty_files_are_stopped(run):
    code = "for number in range(10**6): open(f'/scratch/tmp/{number}', 'w').close()"
    assert run(code, limits=Limits(scratch_files=5000))[3] == "files"


def test_open_files_are_counted(run):
    code = """
    files = []
    try:
        while True:
            files.append(open("/dev/null"))
    except OSError as error:
        print(len(files), error.errno)
    """
    printed, _, _, _ = run(code, limits=Limits(open_files=40))
    assert printed == "37 24\n"


def test_a_flood_of_output_is_cut_and_blocks_nothing(run):
    code = """
    import sys
    for _ in range(3000):
        sys.stderr.write("e" * 10_000)
        sys.stdout.write("o" * 10_000)
    """
    printed, errors, status, _ = run(code, limits=Limits(output_bytes=100_000))
    assert (printed, errors, status) == ("o" * 100_000, "e" * 100_000, 0)


def test_an_endless_loop_ends_with_the_time(run):
    start = time.monotonic()
    _, _, status, reason = run(
        "import signal\nsignal.signal(15, signal.SIG_IGN)\nwhile True: pass", limits=Limits(total_seconds=1)
    )
    assert (reason, status != 0) == ("time", True)
    assert 1 <= time.monotonic() - start < 10


def test_one_that_waited_for_its_turn_has_all_its_time(backend):
    with backend.start(["sleep", "60"], limits=Limits(total_seconds=4)) as process:
        time.sleep(2.5)
        process.begin()
        time.sleep(2)
        assert process.poll() is None
        process.wait(30)
        assert process.reason == "time"


def test_time_on_the_processor_ends_one_process(run):
    _, _, status, reason = run("while True: pass", limits=Limits(cpu_seconds=1))
    assert status != 0
    assert reason in ("", "processor time")  # the system ends the process, or the watchdog all


def test_time_on_the_processor_is_added_up(run):
    """Also of processes that have ended: many short ones are not cheaper than one."""
    code = """
    import os, time
    for _ in range(1000):
        if os.fork() == 0:
            start = time.process_time()
            while time.process_time() - start < 0.3:
                pass
            os._exit(0)
        os.wait()
    """
    assert run(code, limits=Limits(cpu_seconds=2))[3] == "processor time"


# --- the end -----------------------------------------------------------------------------------------------------


def strays(marker):
    """Processes anywhere on this machine whose command line holds the marker."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if marker.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


DAEMON = """
import os, signal, sys, time
marker = sys.argv[1]
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (1, 2, 15):
            signal.signal(number, signal.SIG_IGN)
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(300)", marker])
    os._exit(0)
time.sleep(0.5)
print("ready", flush=True)
"""


def test_a_background_process_is_gone_after_the_end(backend, run):
    marker = f"marker-of-{os.getpid()}-background"
    with backend.start([backend.python, "-c", DAEMON + "time.sleep(60)", marker]) as process:
        assert process.stdout.read(5) == b"ready"
        assert len(strays(marker)) >= 2  # the control: it does run
        assert process.members() >= 3
    assert process.members() == 0
    assert strays(marker) == []
    # The same if the sandbox ends by itself.
    assert run(DAEMON, marker)[0] == "ready\n"
    assert strays(marker) == []


def left_of(marker):
    """Wait until no process with that marker is left, and return those that are."""
    deadline = time.monotonic() + 10
    while strays(marker) and time.monotonic() < deadline:
        time.sleep(0.05)
    return strays(marker)


def test_killing_the_grader_kills_the_sandbox(backend):
    marker = f"marker-of-{os.getpid()}-orphan"
    program = f"""
    import time
    from lantern_grading.sandbox import choose
    backend = choose()
    process = backend.start([backend.python, "-c", {DAEMON + "time.sleep(300)"!r}, {marker!r}])
    print(process.stdout.read(5).decode(), flush=True)
    time.sleep(300)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, cwd=ROOT) as grader:
        assert grader.stdout.read(5) == b"ready"
        assert len(strays(marker)) >= 2
        grader.kill()
    assert left_of(marker) == []


def test_killing_the_grader_ends_what_entered_and_what_it_was_forked_from(backend):
    marker = f"marker-of-{os.getpid()}-entered"
    program = f"""
    import json, sys, time
    from lantern_grading.sandbox import Limits, choose
    backend = choose()
    server = backend.fork_server([sys.executable, "-P", "-c", {SERVER!r}, {str(ROOT)!r}, {marker!r}], b"")
    process = backend.enter(server, Limits())
    order = json.dumps({{"code": {DAEMON + "time.sleep(300)"!r}, "arguments": [{marker!r}]}}).encode()
    process.stdin.write(len(order).to_bytes(4) + order)
    print(process.stdout.read(5).decode(), flush=True)
    time.sleep(300)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, cwd=ROOT) as grader:
        assert grader.stdout.read(5) == b"ready"
        # What it was forked from, the copy outside, the copy inside, and the daemon.
        assert len(strays(marker)) >= 4
        grader.kill()
    assert left_of(marker) == []


def test_a_program_that_has_ended_is_one_clear_error(backend):
    server = backend.fork_server([sys.executable, "-c", "raise SystemExit('no such program')"], b"x" * 1_000_000)
    with pytest.raises(SandboxError, match="has ended. It said: no such program"):
        backend.enter(server, Limits())
    server.close()


def test_what_cannot_be_entered_has_no_fork_server(monkeypatch):
    monkeypatch.setattr(bubblewrap.entering, "enter", lambda first, order: os._exit(1))
    assert Bubblewrap().fork_server(["true"], b"") is None


def test_it_holds_its_own_pipes_and_nothing_of_the_grader(run):
    code = """
    import os
    for name in os.listdir("/proc/self/fd"):
        attempt(name, lambda: os.readlink(f"/proc/self/fd/{name}"))
    """
    got = attempts(run(TRY + textwrap.dedent(code))[0]).values()
    # Where it reads, where it writes, where its errors go, and the folder that it lists, which is closed by then.
    assert len({handle for handle in got if handle.startswith("'pipe:")}) <= 3
    assert all(handle.startswith(("'pipe:", "'/dev/null'", "FileNotFoundError")) for handle in got)


def test_the_thread_that_starts_a_sandbox_may_end(backend):
    started = []
    thread = threading.Thread(
        target=lambda: started.append(backend.start([backend.python, "-c", "input(); print('alive')"]))
    )
    thread.start()
    thread.join()
    time.sleep(0.2)
    with started[0] as process:
        process.stdin.write(b"\n")
        assert process.stdout.read() == b"alive\n"


def test_closing_leaves_no_thread_and_no_descriptor(backend):
    def held():
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    with backend.start(["true"]) as process:
        process.wait(30)
    before = held()
    for _ in range(5):
        with backend.start(["sleep", "60"], scratch=Scratch((("a", b"b"),))) as process:
            process.drain()
    assert held() == before


def test_entering_leaves_no_thread_no_descriptor_and_no_process(backend, server):
    def held():
        handles = [len(os.listdir(f"/proc/{process}/fd")) for process in (os.getpid(), server.pid)]
        return handles, threading.active_count()

    def children():
        return Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()

    def enter():
        with backend.enter(server, Limits()) as process:
            process.drain()

    enter()
    before = held()
    for _ in range(5):
        enter()
    assert held() == before
    # Each order makes it forget the copies that have ended.
    assert len(children()) <= 2


def test_many_start_at_once(backend):
    """Short ones end before anybody can look at them; none of them is taken for a failure."""
    failures = []

    def many():
        for _ in range(5):
            try:
                with backend.start(["true"]) as process:
                    assert process.wait(30) == 0
            except BaseException as error:
                failures.append(error)

    threads = [threading.Thread(target=many) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# --- where there is none -----------------------------------------------------------------------------------------

BROKEN = {
    "no user namespaces": 'echo "bwrap: No permissions to create a new namespace" >&2; exit 1',
    "no /proc": """[ "$1" = --version ] && exec echo bubblewrap 0.8.0; echo "bwrap: Can't mount proc" >&2; exit 1""",
    "silent": "exit 1",
    "runs nothing": "exit 0",
}


@pytest.mark.parametrize("script", BROKEN.values(), ids=BROKEN)
def test_a_broken_bubblewrap_is_one_clear_error(script, tmp_path, monkeypatch):
    fake = tmp_path / "bwrap"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxError) as caught:
        choose()
    text = str(caught.value)
    assert str(fake) in text
    assert "cannot make a sandbox here" in text
    assert "user.max_user_namespaces" in text
    assert "nothing was graded" in text
    assert "\n" not in text
    with pytest.raises(SandboxError):
        Bubblewrap().start(["true"])


def test_a_missing_bubblewrap_is_one_clear_error(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match=r"^bwrap, prlimit, setpriv, tar not found\. .*apt install bubblewrap"):
        choose()


def test_the_command_says_whether_there_is_a_sandbox_and_installs_the_kernel(backend, capsys, monkeypatch, tmp_path):
    assert command(["check"]) == 0
    assert capsys.readouterr().out == "the sandbox works: bubblewrap\n"
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    layout.visible()  # is found once, before the prefix changes
    assert command(["install"]) == 0
    spec = json.loads((tmp_path / "share/jupyter/kernels/lantern-sandbox/kernel.json").read_text())
    assert spec["metadata"]["kernel_provisioner"]["provisioner_name"] == "lantern-sandbox"
    assert command(["remove"]) == 2
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command(["check"]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: bwrap, prlimit, setpriv, tar not found.")


def test_a_back_end_is_named_or_refused():
    with pytest.raises(ValueError, match="backend must be one of bubblewrap, container, none, got 'chroot'"):
        choose("chroot")
    with pytest.raises(ValueError, match="image must be named"):
        choose("container")


def test_none_is_loud_on_every_start(capfd):
    backend = choose("none")
    assert isinstance(backend, NoSandbox)
    for _ in range(2):
        with backend.start(
            [backend.python, "-c", "import os; print(os.listdir('.'))"], scratch=Scratch((("a", b"b"),))
        ) as process:
            assert process.stdout.read() == b"['a']\n"
            here = process.inside("a").parent
        assert "WARNING: no sandbox" in capfd.readouterr().err
        assert not here.exists()


def test_the_way_of_an_ordinary_user_has_the_same_walls(run, monkeypatch):
    """A user namespace instead of another user; for root it lacks the limit of processes alone."""
    monkeypatch.setattr(bubblewrap, "spare_uid", lambda: None)
    code = """
    import ctypes, os, socket
    libc = ctypes.CDLL(None, use_errno=True)
    attempt("me", lambda: (os.getuid(), os.getgid(), os.getgroups()))
    attempt("namespace", lambda: libc.unshare(0x10000000))
    for place in ("/", "/dev", "/lantern", "/etc", "/dev/shm", "/scratch/tmp"):
        attempt(place, lambda: open(place + "/x", "w").write("x"))
    attempt("network", lambda: socket.create_connection(("192.0.2.1", 80), 2))
    attempt("caps", lambda: [line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")])
    """
    got = attempts(run(TRY + textwrap.dedent(code))[0])
    assert got["me"].startswith("(1000, 1000, ")
    assert got["namespace"] == "-1"
    assert {place for place in got if got[place] == "1"} == {"/dev/shm", "/scratch/tmp"}
    assert all(got[place].startswith(("OSError [Errno 30]", "Perm")) for place in ("/", "/dev", "/lantern", "/etc"))
    assert got["network"].startswith("OSError [Errno 101]")
    assert got["caps"] == "['0000000000000000']"


@pytest.mark.parametrize("place", ["/opt/venv", "/tmp/venv"])
def test_what_lies_below_tmp_can_be_seen_too(place):
    visible = {place: Path("/usr/bin")}
    line = bubblewrap.arguments(
        ["true"], limits=Limits(), visible=visible, files=None, info=3, wait=4, filter_=None, uid=1000
    )
    # A link at /tmp and a folder there exclude each other.
    assert ("--symlink" in line) is not place.startswith("/tmp/")
    assert line[line.index(place) - 2 : line.index(place)] == ["--ro-bind", "/usr/bin"]
