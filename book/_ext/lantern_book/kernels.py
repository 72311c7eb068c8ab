"""How the book's runner talks to kernels: over private sockets, and without missing an answer."""

from __future__ import annotations

import os
import time
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.channels import AsyncZMQSocketChannel
from traitlets import Type
from traitlets.config import Config

LOOK_SECONDS = 1.0
"""How often a waiting client looks by itself [s]."""


class AttentiveChannel(AsyncZMQSocketChannel):
    """A channel that looks for a message every second, and does not only wait to be woken.

    nbclient answers a kernel's output widget on the very socket on which it waits for the end of the cell. Sending
    takes the note "there is something to read" off the socket, so that now and then the wait for an answer that has
    come goes on until the cell's time is over.
    """

    async def get_msg(self, timeout: float | None = None) -> dict[str, Any]:  # type: ignore[override]
        """Return the next message, or raise ``queue.Empty`` after `timeout` [s]."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = LOOK_SECONDS if end is None else min(LOOK_SECONDS, max(0.0, end - time.monotonic()))
            try:
                return await super().get_msg(left)
            except Empty:
                if end is not None and time.monotonic() >= end:
                    raise


class AttentiveClient(AsyncKernelClient):
    """A kernel client that looks for the end of a cell by itself."""

    shell_channel_class = Type(AttentiveChannel)


def kernel_config(sockets: str) -> Config:
    """Return the settings of kernels that papermill starts.

    Parameters
    ----------
    sockets : str
        A folder for the sockets: where the system can, kernels talk through files of this user, not through ports.

    Returns
    -------
    Config
        For ``papermill.execute_notebook(config=...)``.
    """
    settings: dict[str, Any] = {"client_factory": AttentiveClient}
    if os.name == "posix":
        settings |= {"transport": "ipc", "ip": str(Path(sockets) / "k")}
    return Config({"AsyncKernelManager": settings})
