"""Run the command as ``python -m lantern_lib.cli``."""

import sys

from lantern_lib.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
