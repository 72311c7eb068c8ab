"""Carries bytes between sockets of this side and sockets of a sandbox, and counts what comes out."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

_PART_BYTES = 65536
_RETRY_SECONDS = 0.005


def connect(root: Path, path: str) -> socket.socket:
    """Connect to a Unix socket inside a sandbox, through no link on the way: it could lead to a socket out here.

    Parameters
    ----------
    root : Path
        Where this side sees the sandbox's files.
    path : str
        The socket's path inside.

    Raises
    ------
    OSError
        If there is no socket, or nobody listens.
    """
    *folders, name = [part for part in path.split("/") if part]
    here = os.open(root, os.O_PATH | os.O_DIRECTORY)
    try:
        for folder in folders:
            inner = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = inner
        target = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=here)
    finally:
        os.close(here)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if not stat.S_ISSOCK(os.fstat(target).st_mode):
            raise OSError(f"{path} is no socket")
        connection.connect(f"/proc/self/fd/{target}")
    except BaseException:
        connection.close()
        raise
    finally:
        os.close(target)
    return connection


class Relay:
    """Listens on sockets in a folder of this side and carries each connection into a sandbox.

    Parameters
    ----------
    pairs : dict of Path to str
        A socket to make here, and the path of the one inside.
    root : Path
        Where this side sees the sandbox's files.
    most_bytes : int
        What may come out of the sandbox in all.
    over : callable
        Called once when that is exceeded.
    """

    def __init__(self, pairs: dict[Path, str], root: Path, most_bytes: int, over: Callable[[], None]) -> None:
        self._pairs, self._root, self._left, self._over = pairs, root, most_bytes, over
        self._loop = asyncio.new_event_loop()
        self._ready, self._failure = threading.Event(), ""
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, daemon=True, name="sandbox-relay")
        self._thread.start()
        self._ready.wait()
        if self._failure:
            raise OSError(self._failure)

    def close(self) -> None:
        """End all connections and take the sockets away."""
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        for path in self._pairs:
            path.unlink(missing_ok=True)

    def _run(self) -> None:
        try:
            servers = [self._loop.run_until_complete(self._listen(path)) for path in self._pairs]
        except OSError as error:
            self._failure = str(error)
            self._loop.close()
            return
        finally:
            self._ready.set()
        self._loop.run_forever()
        for server in servers:
            server.close()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _listen(self, path: Path) -> Coroutine[Any, Any, asyncio.AbstractServer]:
        def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(self._carry(reader, writer, self._pairs[path]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return asyncio.start_unix_server(met, path)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> None:
        inner = None
        try:
            while inner is None:
                try:
                    inner_reader, inner = await asyncio.open_unix_connection(sock=connect(self._root, path))
                except (FileNotFoundError, ConnectionRefusedError):
                    await asyncio.sleep(_RETRY_SECONDS)  # the kernel does not listen yet
            ways = [self._copy(reader, inner, False), self._copy(inner_reader, writer, True)]
            tasks = [self._loop.create_task(way) for way in ways]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        except OSError:
            pass  # the sandbox has ended, or holds something else in the socket's place
        finally:
            for end in (writer, inner):
                if end is not None:
                    end.transport.abort()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while part := await reader.read(_PART_BYTES):
                if counted:
                    self._left -= len(part)
                    if self._left < 0:
                        self._over()
                        return
                writer.write(part)
                await writer.drain()
