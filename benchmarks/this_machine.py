"""What a measurement says of the machine it was made on, without the machine's name."""

from __future__ import annotations

import platform
from pathlib import Path


def processor_name() -> str:
    """Return the model of the processor, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):  # not a Linux on x86
        return platform.processor() or platform.machine()
