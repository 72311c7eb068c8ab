"""The engine in a process of its own, and a small client.

The process serves on this machine only, and ends when its standard input closes, so that it never outlives its caller.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

TIMEOUT_SECONDS = 600


class Engine:
    """A running server with one model.

    ``slots`` sequences run together, each with room for ``slot_tokens`` tokens.
    """

    def __init__(
        self, model: Path, *, threads: int, slots: int = 1, slot_tokens: int = 1024, full_window: bool = False
    ) -> None:
        self.slots, self.slot_tokens = slots, slot_tokens
        sizes = ["--threads", str(threads), "--slots", str(slots), "--slot-tokens", str(slot_tokens)]
        flags = ["--full-window"] if full_window else []
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(model), *sizes, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        # The engine may print before its address.
        for line in self._process.stdout:
            if line.startswith("http://"):
                self._host = line.strip().removeprefix("http://")
                return
        raise RuntimeError("the engine did not start; run engine_server.py with the same arguments to see why")

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _sent(self, body: Mapping[str, Any]) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(self._host, timeout=TIMEOUT_SECONDS)
        connection.request("POST", "/completion", json.dumps(body), {"Content-Type": "application/json"})
        return connection

    def complete(self, **body: Any) -> dict[str, Any]:
        """Return the whole answer to one request."""
        with closing(self._sent(body)) as connection:
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
        if "error" in answer:
            raise RuntimeError(f"the engine refused: {answer['error']}")
        return answer

    def stream(self, **body: Any) -> Stream:
        """Start an answer that comes token by token."""
        return Stream(self._sent({**body, "stream": True}))


class Stream:
    """Messages of one answer, read one by one; closing it makes the engine stop."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._response = connection.getresponse()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for line in self._response:
            if line.startswith(b"data: {"):
                yield json.loads(line[6:])

    def ended(self) -> bool:
        """Whether the last message is among those that wait to be read."""
        # Shorter than any step: a stream that still runs must not be read to its end.
        self._connection.sock.settimeout(0.001)
        try:
            return any(message.get("stop") for message in self)
        except (TimeoutError, OSError):
            return False

    def close(self) -> None:
        """Hang up."""
        self._response.close()
        self._connection.close()


def main() -> None:
    """Serve until standard input closes."""
    import xllamacpp

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--slot-tokens", type=int, required=True)
    parser.add_argument("--full-window", action="store_true")
    options = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = str(options.model)
    params.n_parallel = options.slots
    params.n_ctx = options.slots * options.slot_tokens
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.swa_full = options.full_window
    params.cache_ram_mib = 0  # slots alone keep a cache, so that what is found there is known
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
