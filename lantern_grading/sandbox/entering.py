"""Enters sandboxes: runs in a process that has loaded a program, and forks a copy of itself into each.

That process is outside of every sandbox, and only code of ours runs in it. A copy becomes a member of a sandbox that
bubblewrap has made, gives up every privilege, and only then hears of the work of a student. This module is sent to a
fresh Python and uses nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.machinery
import json
import os
import resource
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any, BinaryIO

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_ALL_BUT_USER = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
_SET_DUMPABLE, _SET_SECCOMP, _CAPBSET_DROP, _SET_NO_NEW_PRIVS, _CAP_AMBIENT = 4, 22, 24, 38, 47
_FILTER_MODE, _CLEAR_ALL = 2, 4
_CAPABILITIES_VERSION = 0x20080522
_MOST_HANDLES = 8
Work = Callable[[BinaryIO, BinaryIO, Any], None]
ORDER_BYTES = 65536  #: the longest order


def main(control: int, load: Callable[[], Any], work: Work) -> None:
    """Load a program, then fork into one sandbox after the other, until the grader hangs up.

    Parameters
    ----------
    control : int
        A socket of whole messages. The first names the library's parent folder here, and inside; each further one is
        an order, with its handles.
    load : callable
        Loads what takes long; of the library, from where it lies here.
    work : callable
        Works inside, over two pipes, with what `load` returned.
    """
    with socket.socket(fileno=control) as orders:
        library = _Library(*json.loads(orders.recv(ORDER_BYTES)))
        sys.meta_path.insert(0, library)
        loaded = load()
        sys.meta_path.remove(library)
        library.move()
        # What is loaded now stays: a search through it would copy it for every sandbox.
        gc.collect()
        gc.freeze()
        while True:
            text, handles, _, _ = socket.recv_fds(orders, ORDER_BYTES, _MOST_HANDLES)
            if not text:
                break
            _reap()
            child = os.fork()
            if child == 0:
                try:
                    orders.close()
                    _copy(json.loads(text), handles, lambda *pipes: work(*pipes, loaded))
                finally:
                    os._exit(125)
            for handle in handles:
                os.close(handle)
            orders.send(str(child).encode())


def enter(first: int, order: dict[str, Any]) -> None:
    """Become a member of a sandbox's namespaces; children of this process will be in its process namespace.

    Parameters
    ----------
    first : int
        Handle of the sandbox's first process.
    order : dict
        ``uid`` says whether it has a user namespace too: then it is None.
    """
    kinds = _ALL_BUT_USER | (CLONE_NEWUSER if order["uid"] is None else 0)
    _done("setns", _libc().setns(first, kinds))


def give_up(order: dict[str, Any]) -> None:
    """Take on the limits, and give up every privilege, for this process and all that it starts.

    Parameters
    ----------
    order : dict
        ``limits`` by the name of the resource, ``uid``, and the system call ``filter`` in hexadecimal.
    """
    for name, value in order["limits"].items():
        resource.setrlimit(getattr(resource, name), (value, value))
    capability = 0
    while _prctl(_CAPBSET_DROP, capability) == 0:
        capability += 1
    if order["uid"] is not None:
        os.setgroups([])
        os.setresgid(order["uid"], order["uid"], order["uid"])
        os.setresuid(order["uid"], order["uid"], order["uid"])
    _done("prctl", _prctl(_CAP_AMBIENT, _CLEAR_ALL))
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
    _done("capset", _libc().capset(header, (ctypes.c_uint32 * 6)()))
    _done("prctl", _prctl(_SET_NO_NEW_PRIVS, 1))
    _done("prctl", _prctl(_SET_DUMPABLE, 1))  # what lies in /proc about a process is its own again
    rules = bytes.fromhex(order["filter"])
    if rules:
        program = _Program(len(rules) // 8, rules)
        _done("prctl", _prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.addressof(program)))


class _Program(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("lines", ctypes.c_char_p))


def _copy(order: dict[str, Any], handles: list[int], work: Callable[[BinaryIO, BinaryIO], None]) -> None:
    """Enter a sandbox, let a child work in it, and wait for the child's end. Does not return."""
    first, ready, life, incoming, outgoing, errors = handles
    try:
        os.dup2(errors, 2)
        # The sandbox stands when its first process says so.
        if not os.read(ready, 1):
            os._exit(1)
        enter(first, order)
        child = os.fork()
        if child == 0:
            for handle in (first, ready, life, errors):
                os.close(handle)
            for handle in (incoming, outgoing):
                os.set_inheritable(handle, False)
            _settle(order)
            work(os.fdopen(incoming, "rb"), os.fdopen(outgoing, "wb"))
            os._exit(0)
        for handle in (0, 1, 2, first, ready, incoming, outgoing, errors):
            os.close(handle)
        # The sandbox ends with the child's status, whatever that has started.
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(life, b"%d\n" % (status if status >= 0 else 128 - status))
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(125)


def _settle(order: dict[str, Any]) -> None:
    """Become what a program is that was started inside."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")
    except OSError:
        pass
    give_up(order)
    os.umask(0o022)
    os.chdir(order["home"])
    os.environ.clear()
    os.environ.update(order["environment"])
    tempfile.tempdir = None


def _reap() -> None:
    """Forget copies that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


class _Library:
    """Loads the library from where it lies here, as if it lay where a sandbox sees it."""

    def __init__(self, here: str, inside: str) -> None:
        self._here, self._inside = here, inside

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> Any:
        """Find a module of the library."""
        if name.partition(".")[0] != "lantern_lib":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path or [self._here], target)
        if spec and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path, self)
        return spec

    def inside(self, path: str) -> str:
        """Return where a sandbox sees a file of the library."""
        return path.replace(self._here, self._inside, 1) if path.startswith(self._here + "/") else path

    def move(self) -> None:
        """Let what was loaded look for the rest where a sandbox sees it."""
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "lantern_lib" and module.__spec__ and module.__file__:
                spec = module.__spec__
                spec.loader = importlib.machinery.SourceFileLoader(name, self.inside(module.__file__))
                spec.origin = module.__file__ = spec.loader.path
                spec.cached = module.__cached__ = None
                module.__loader__ = spec.loader
                if spec.submodule_search_locations is not None:
                    folders = [self.inside(folder) for folder in spec.submodule_search_locations]
                    spec.submodule_search_locations = module.__path__ = folders
        sys.path[:] = [self._inside, *(folder for folder in sys.path if folder != self._inside)]
        sys.path_importer_cache.clear()


class _Loader(importlib.machinery.SourceFileLoader):
    """Names the files of code as a sandbox sees them."""

    def __init__(self, name: str, path: str, library: _Library) -> None:
        super().__init__(name, path)
        self._library = library

    def get_code(self, fullname: str) -> Any:
        """Return a module's code."""
        code = super().get_code(fullname)
        return code and _renamed(code, self._library.inside(code.co_filename))


def _renamed(code: CodeType, name: str) -> CodeType:
    inner = tuple(_renamed(part, name) if isinstance(part, CodeType) else part for part in code.co_consts)
    return code.replace(co_filename=name, co_consts=inner)


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(what: int, *arguments: int) -> int:
    padded = (*arguments, 0, 0, 0, 0)[:4]
    return int(_libc().prctl(what, *map(ctypes.c_ulong, padded)))


def _done(name: str, status: int) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
