"""``python -m lantern_grading.sandbox check|install``: is there a sandbox here, and a kernel that uses it."""

from __future__ import annotations

import sys

from lantern_grading.sandbox.backends import choose
from lantern_grading.sandbox.errors import SandboxError
from lantern_grading.sandbox.kernelspec import install


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    if given not in (["check"], ["install"]):
        print("usage: python -m lantern_grading.sandbox check|install", file=sys.stderr)
        return 2
    try:
        print(f"the sandbox works: {choose().name}")
    except SandboxError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if given == ["install"]:
        print(install())
    return 0


if __name__ == "__main__":
    sys.exit(main())
