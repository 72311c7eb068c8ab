"""The grader's end of the pipe to a sandboxed process. It believes nothing but the form of what arrives."""

from __future__ import annotations

import os
import secrets
import select
import struct
import time
from collections.abc import Callable
from typing import Any

from lantern_grading.checker.codec import MAX_BYTES, CodecError
from lantern_grading.checker.decode import Reader
from lantern_grading.checker.encode import Writer

#: Messages that answer nothing, of which a process may send so many until it is given up.
MAX_STRAY = 1000
#: What a process may take longer than it was told before it is ended from outside.
GRACE_SECONDS = 1.0


class ProcessEnded(Exception):  # noqa: N818 (the name is what a student reads)
    """The student's process is gone."""


class ProcessLate(Exception):  # noqa: N818
    """The student's process did not answer in time, and did not stop by itself either."""


class Link:
    """Frames over two pipes, each awaited no longer than told.

    Parameters
    ----------
    incoming, outgoing : int
        File descriptors.
    writer, reader : Writer, Reader
        How values become bytes.
    """

    def __init__(self, incoming: int, outgoing: int, writer: Writer, reader: Reader) -> None:
        self._in, self._out = incoming, outgoing
        self.writer, self.reader = writer, reader
        self.lost: ProcessEnded | ProcessLate | None = None
        self._buffer = bytearray()
        self._stray = 0
        os.set_blocking(outgoing, False)
        os.set_blocking(incoming, False)

    def send(self, message: Any, deadline: float) -> None:
        """Send a value; CodecError if it is none."""
        self._check()
        data = self.writer.encode(message)
        view = memoryview(struct.pack("<I", len(data)) + data)
        while view:
            try:
                view = view[os.write(self._out, view) :]
            except BlockingIOError:
                self._await(self._out, select.POLLOUT, deadline)
            except OSError:
                self._lose(ProcessEnded("the process that runs your code has ended"))

    def receive(self, deadline: float) -> tuple[Any, ...]:
        """Return the next message, a tuple that begins with its kind."""
        self._check()
        size = struct.unpack("<I", self._read(4, deadline))[0]
        if size > MAX_BYTES:
            self._lose(ProcessEnded("the process that runs your code sent too much at once and was ended"))
        try:
            message = self.reader.decode(self._read(size, deadline))
        except CodecError:
            message = None
        if type(message) is not tuple or not message or type(message[0]) is not str:
            self._lose(ProcessEnded("the process that runs your code wrote where only the grader may, and was ended"))
        return message  # type: ignore[no-any-return]

    def request(
        self, what: str, *arguments: Any, seconds: float, serve: Callable[[tuple[Any, ...]], Any] | None = None
    ) -> tuple[Any, ...]:
        """Ask, and return the answer to this very question: seconds used, kind, and what belongs to it.

        Parameters
        ----------
        what, *arguments
            The request.
        seconds : float
            How long the answer may take [seconds].
        serve : callable, optional
            Answers the process's own questions meanwhile.
        """
        token, deadline = secrets.token_bytes(16), time.monotonic() + seconds + GRACE_SECONDS
        self.send((what, token, *arguments), deadline)
        while True:
            message = self.receive(deadline)
            # A reply that was forged in advance cannot know the token.
            if message[0] == "reply" and len(message) >= 4 and message[1] == token and type(message[2]) is float:
                return message[2:]
            if message[0] == "ask" and serve is not None and len(message) == 6:
                self.send(serve(message), deadline)
            self._stray += message[0] != "ask"
            if self._stray > MAX_STRAY:
                self._lose(ProcessEnded("the process that runs your code answered without being asked, and was ended"))

    def _check(self) -> None:
        if self.lost:
            raise type(self.lost)(str(self.lost))

    def _lose(self, why: ProcessEnded | ProcessLate) -> None:
        self.lost = why
        raise why

    def _await(self, handle: int, event: int, deadline: float) -> None:
        waiting = select.poll()
        waiting.register(handle, event)
        left = deadline - time.monotonic()
        if left <= 0 or not waiting.poll(left * 1000):
            self._lose(ProcessLate("the process that runs your code did not answer in time and was ended"))

    def _read(self, count: int, deadline: float) -> bytes:
        while len(self._buffer) < count:
            try:
                part = os.read(self._in, 1 << 20)
            except BlockingIOError:
                self._await(self._in, select.POLLIN, deadline)
                continue
            except OSError:
                part = b""
            if not part:
                self._lose(ProcessEnded("the process that runs your code has ended (os._exit, a crash, or no memory)"))
            self._buffer += part
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data
