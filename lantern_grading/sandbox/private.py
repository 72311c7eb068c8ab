"""Private folders for sockets, also swept when the grader that made them was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

_PREFIX = "lantern-k-"
_PATH_BYTES = 70  # a socket's whole path has 107
_YOUNG_SECONDS = 60.0


def folder() -> tuple[Path, int]:
    """Make a folder that nobody else can enter, and a lock on it that lasts as long as this process.

    Returns
    -------
    (Path, int)
        The folder, and the descriptor that holds its lock.
    """
    temporary = tempfile.gettempdir()
    place = Path(temporary if len(os.fsencode(temporary)) < _PATH_BYTES else "/tmp")
    _sweep(place)
    made = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return made, lock


def remove(made: Path, lock: int) -> None:
    """Remove the folder and give back its lock."""
    shutil.rmtree(made, ignore_errors=True)
    os.close(lock)


def _sweep(place: Path) -> None:
    """Remove the folders of graders that were killed: ours, not new, and without a lock."""
    for old in place.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            handle = os.open(old, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                state = os.fstat(handle)
                if state.st_uid == os.geteuid() and time.time() - state.st_mtime > _YOUNG_SECONDS:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(old)
            finally:
                os.close(handle)
