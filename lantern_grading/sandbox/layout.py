"""What a sandbox sees of this machine: an allow-list, and where things lie inside."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import lantern_lib

HOME = "/scratch/home"  #: the working folder; the submission's files are unpacked here
FILES = "/lantern/files.tar"  #: the submission's files, packed
RUN = "/scratch/run"  #: sockets of a kernel
LIBRARY = "/lantern/lib"  #: on the path of Python

_SYSTEM = ("/usr/lib", "/usr/lib64", "/usr/bin", "/lib", "/lib64", "/bin")
_SMALL = ("/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives")
_OF_A_PREFIX = ("bin", "lib", "lib64", "pyvenv.cfg")

# Sets the score for the machine's last resort, unpacks the files, and becomes the command.
LAUNCHER = (
    "echo 1000 2>/dev/null >/proc/self/oom_score_adj || :; "
    f"[ -d {HOME} ] || mkdir -p {HOME} {RUN} /scratch/tmp; cd {HOME}; "
    f"[ ! -e {FILES} ] || tar -xf {FILES} || exit 125; "
    'exec "$@"'
)


@functools.cache
def visible() -> dict[str, Path]:
    """Return what every sandbox sees: path inside, and path here. The interpreter, its packages, the library.

    Of a prefix only the folders of Python, so that an environment in a home folder shows no home.
    """
    found = {path: Path(path) for path in (*_SYSTEM, *_SMALL) if os.path.exists(path)}
    prefixes = [sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parent.parent)]
    for prefix in dict.fromkeys(prefixes):
        if not any(prefix == path or prefix.startswith(f"{path}/") for path in _SYSTEM):
            for part in _OF_A_PREFIX:
                if (Path(prefix) / part).exists():
                    found.setdefault(f"{prefix}/{part}", Path(prefix) / part)
    if sys.prefix == "/usr":
        found.setdefault("/usr/local/lib", Path("/usr/local/lib"))
    found[f"{LIBRARY}/lantern_lib"] = Path(next(iter(lantern_lib.__path__))).resolve()
    return found


def environment() -> dict[str, str]:
    """Return the whole environment of a sandbox; nothing of this process's own is in it."""
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": HOME,
        "TMPDIR": "/scratch/tmp",
        "IPYTHONDIR": "/scratch/tmp/ipython",
        "XDG_CACHE_HOME": "/scratch/tmp/cache",
        "XDG_CONFIG_HOME": "/scratch/tmp/config",
        "USER": "student",
        "LANG": "C.UTF-8",
        "PYTHONPATH": LIBRARY,
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "MPLBACKEND": "agg",
        # Threads count as processes, and two submissions share a processor.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",
    }


def more(visible: Mapping[str, Path] | None) -> dict[str, Path]:
    """Check what a caller wants to be seen besides: path inside, below ``/lantern/``, and path here."""
    for path, here in (visible or {}).items():
        if not path.startswith("/lantern/") or ".." in path:
            raise ValueError(f"visible must name paths below /lantern/, got {path!r}. Use /lantern/{Path(path).name}.")
        if not here.exists():
            raise ValueError(f"visible must name what exists, got {str(here)!r}. Check the path.")
    return {path: here.resolve() for path, here in (visible or {}).items()}
