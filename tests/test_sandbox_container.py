"""The container back end, with a program in the engine's place that does what it is told and writes it down."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lantern_grading.sandbox import Container, Limits, SandboxError, Scratch, choose

# Stands in for Docker: `run` starts what follows the image, here, in the folder that would be the container's.
ENGINE = """#!{python}
import json, os, signal, subprocess, sys
arguments = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps(arguments) + chr(10))
if arguments[0] == "image":
    print("no such image", file=sys.stderr)
    sys.exit(0 if arguments[-1] == "grading:1" else 1)
if arguments[0] == "run":
    place = arguments.index("grading:1")
    command = arguments[place + 1 :]
    here = {folder!r}
    packed = [word for word in arguments if "target=/lantern/files.tar" in word]
    command = [word.replace("/scratch", here) for word in command]
    if packed:
        source = packed[0].split("source=")[1].split(",")[0]
        command = [word.replace("/lantern/files.tar", source) for word in command]
    else:
        command = [word.replace("/lantern/files.tar", "/nonexistent") for word in command]
    container = subprocess.Popen(command, start_new_session=True)
    with open(os.path.join(here, arguments[arguments.index("--name") + 1]), "w") as file:
        file.write(str(container.pid))
    sys.exit(container.wait())
if arguments[0] == "rm" and os.path.exists(os.path.join({folder!r}, arguments[-1])):
    try:
        os.killpg(int(open(os.path.join({folder!r}, arguments[-1])).read()), signal.SIGKILL)
    except ProcessLookupError:
        pass
"""


@pytest.fixture
def engine(tmp_path):
    """A fake engine, and a function that reads what it was told."""
    (tmp_path / "scratch" / "home").mkdir(parents=True)
    log, program = tmp_path / "log", tmp_path / "engine"
    program.write_text(ENGINE.format(python=sys.executable, log=str(log), folder=str(tmp_path / "scratch")))
    program.chmod(0o755)
    return str(program), lambda: [json.loads(line) for line in log.read_text().splitlines()]


def test_it_has_the_same_interface(engine):
    backend = choose("container", image="grading:1", engine=engine[0])
    scratch = Scratch((("one.txt", b"1"),))
    command = ["sh", "-c", 'cat one.txt; cat; echo "$1" >&2; exit 7', "sh", "errors"]
    with backend.start(command, scratch=scratch) as process:
        process.stdin.write(b"2")
        process.stdin.close()
        assert process.stdout.read() == b"12"
        assert process.wait(30) == 7
        assert process.errors() == "errors\n"
        with pytest.raises(SandboxError, match="Use pipes"):
            process.inside("/scratch/home")


def test_it_asks_the_engine_for_every_wall(engine, tmp_path):
    limits = Limits(processes=9, memory_bytes=10**9, scratch_bytes=10**7, scratch_files=77)
    with Container("grading:1", engine[0]).start(["true"], limits=limits, visible={"/lantern/x": tmp_path}) as process:
        process.wait(30)
    run = next(line for line in engine[1]() if line[0] == "run")
    options, command = run[: run.index("grading:1")], run[run.index("grading:1") + 1 :]

    def value(name):
        return options[options.index(name) + 1]

    assert value("--network") == "none"
    assert value("--cap-drop") == "ALL"
    assert value("--security-opt") == "no-new-privileges"
    assert value("--pids-limit") == "9"
    assert (value("--memory"), value("--memory-swap")) == ("1000000000", "1000000000")
    assert value("--user").split(":")[0] not in ("0", "root")
    assert value("--pull") == "never"
    assert {"--read-only", "--rm", "--init", "--interactive"} <= set(options)
    assert "/scratch:rw,exec,mode=1777,size=10000000,nr_inodes=77" in options
    mounts = [options[place + 1] for place, word in enumerate(options) if word == "--mount"]
    assert all(mount.endswith(",readonly") for mount in mounts)
    assert [mount.split("target=")[1] for mount in mounts] == [
        "/lantern/lib/lantern_lib,readonly",
        "/lantern/x,readonly",
    ]
    assert "--privileged" not in options
    assert "--nproc=9" in command


def test_the_container_is_removed_whatever_happened(engine, tmp_path):
    """Ending the engine's program ends no container; the engine has to be told."""
    command = ["sh", "-c", "echo here; sleep 60"]
    with Container("grading:1", engine[0]).start(command, limits=Limits(total_seconds=5)) as process:
        assert process.stdout.read(4) == b"here"
        process.wait(30)
        assert process.reason == "time"
    run, remove = [line for line in engine[1]() if line[0] in ("run", "rm")]
    name = run[run.index("--name") + 1]
    assert remove == ["rm", "--force", name]
    container = int((tmp_path / "scratch" / name).read_text())
    deadline = time.monotonic() + 10
    while Path(f"/proc/{container}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{container}").exists()


def test_the_packed_files_are_gone_afterwards(engine):
    with Container("grading:1", engine[0]).start(["true"], scratch=Scratch((("a", b"b"),))) as process:
        process.wait(30)
    run = next(line for line in engine[1]() if line[0] == "run")
    source = next(word for word in run if "target=/lantern/files.tar" in word).split("source=")[1].split(",")[0]
    assert not Path(source).parent.exists()


def test_no_engine_and_no_image_are_one_clear_error(engine, monkeypatch, tmp_path):
    with pytest.raises(SandboxError, match=r"does not have the image other:2: no such image"):
        choose("container", image="other:2", engine=engine[0])
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(SandboxError, match="docker not found"):
        choose("container", image="grading:1")


def test_the_fake_engine_is_not_the_thing_tested(engine):
    """It runs nothing that it was not told."""
    assert subprocess.run([engine[0], "rm", "--force", "x"], check=False).returncode == 0
    assert engine[1]() == [["rm", "--force", "x"]]
