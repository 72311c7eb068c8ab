"""Starts Jupyter kernels in the sandbox, for every tool that chooses a kernel by its name."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from jupyter_client.provisioning import KernelProvisionerBase
from traitlets import Dict

from lantern_grading.sandbox import layout, private
from lantern_grading.sandbox.bubblewrap import Bubblewrap
from lantern_grading.sandbox.limits import Limits
from lantern_grading.sandbox.process import Process
from lantern_grading.sandbox.relay import Relay
from lantern_grading.sandbox.scratch import Scratch

_PORTS = {"shell_port": 1, "iopub_port": 2, "stdin_port": 3, "hb_port": 4, "control_port": 5}
_CONNECTION = "/lantern/kernel.json"
_EXTENSION = "lantern_kernel.py"
#: Messages are larger than what they show, and pictures larger than text.
_MESSAGES_FOR_OUTPUT = 64


@functools.cache
def _backend(program: str | None) -> Bubblewrap:
    """Return the sandbox of a program, checked once."""
    return Bubblewrap(program or "bwrap")


class SandboxProvisioner(KernelProvisionerBase):
    """The provisioner `lantern-sandbox`: bubblewrap, Unix sockets in a private folder, interrupts by message."""

    limits = Dict(help="Limits that differ from the default, by the names of lantern_grading.sandbox.Limits.").tag(
        config=True
    )

    _process: Process | None = None
    _relay: Relay | None = None
    _folder: Path | None = None
    _lock = -1
    _told = False

    @property
    def has_process(self) -> bool:
        """Whether there is a kernel, alive or not yet waited for."""
        return self._process is not None

    async def poll(self) -> int | None:
        """Return None while the kernel runs."""
        status = self._process.poll() if self._process else 0
        if status is not None and self._process and self._process.reason and not self._told:
            self._told = True
            self.log.error("The kernel was ended: the submission exceeded its limit of %s.", self._process.reason)
        return status

    async def wait(self) -> int | None:
        """Wait for the kernel's end."""
        while (status := await self.poll()) is None:
            await asyncio.sleep(0.02)
        self._close()
        return status

    async def send_signal(self, signum: int) -> None:
        """End the kernel for signals that end; an interrupt comes by message instead."""
        if self._process and signum in (signal.SIGKILL, signal.SIGTERM):
            self._process.kill()

    async def kill(self, restart: bool = False) -> None:
        """End everything in the sandbox."""
        if self._process:
            self._process.kill()

    async def terminate(self, restart: bool = False) -> None:
        """End everything in the sandbox; a submission has nothing to tidy up."""
        await self.kill(restart)

    async def cleanup(self, restart: bool = False) -> None:
        """Give back sockets, folder and threads, and make sure that no process is left."""
        self._close()

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Choose the sockets; the tool's environment is built as always, and then not used."""
        manager = self.parent
        self._told = False
        self._folder, self._lock = private.folder()
        self.connection_info = {
            "transport": "ipc",
            "ip": str(self._folder / "k"),
            "key": manager.session.key,
            "signature_scheme": manager.session.signature_scheme,
            "kernel_name": manager.kernel_name,
            **_PORTS,
        }
        words = [*self.kernel_spec.argv[1:], *kwargs.pop("extra_arguments", [])]
        command = [sys.executable, *(word.replace("{connection_file}", _CONNECTION) for word in words)]
        return await super().pre_launch(cmd=command, **kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Start the kernel in a sandbox, with the files of the folder it is started in."""
        try:
            self._launch(cmd, Path(kwargs.get("cwd") or os.getcwd()))
        except BaseException:
            self._close()  # nobody else will
            raise
        return self.connection_info

    def _launch(self, cmd: list[str], cwd: Path) -> None:
        assert self._folder is not None
        limits = Limits(**self.limits)
        scratch = Scratch.of_folder(cwd, limits)
        for sentence in scratch.refused:
            self.log.warning("%s", ascii(sentence))
        file = self._folder / "kernel.json"
        inner = self.connection_info | {"ip": f"{layout.RUN}/k", "key": self.connection_info["key"].decode()}
        inner["lantern_output"] = limits.output_bytes  # for the extension; the kernel takes no notice
        file.write_text(json.dumps(inner), encoding="utf-8")
        file.chmod(0o444)  # the folder is ours alone; inside it belongs to somebody else
        shown = {
            _CONNECTION: file,
            f"{layout.LIBRARY}/{_EXTENSION}": Path(__file__).with_name(_EXTENSION),
        }
        process = _backend(shutil.which("bwrap")).start(cmd, scratch=scratch, limits=limits, visible=shown)
        self._process = process
        process.drain()
        process.stdin.close()
        self._relay = Relay(
            {self._folder / f"k-{port}": f"{layout.RUN}/k-{port}" for port in _PORTS.values()},
            process.inside("/"),
            _MESSAGES_FOR_OUTPUT * limits.output_bytes,
            lambda: process.kill("output"),
        )

    def _close(self) -> None:
        process, self._process = self._process, None
        relay, self._relay = self._relay, None
        folder, self._folder = self._folder, None
        try:
            if process:
                process.close()
        finally:
            if relay:
                relay.close()
            if folder:
                private.remove(folder, self._lock)
