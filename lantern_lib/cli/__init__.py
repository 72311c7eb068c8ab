"""The command ``lantern``: size a model on cards, explain a start-up log, price a fleet, simulate a replica.

It computes nothing of its own: every number comes from the functions that the book derives.
"""

from lantern_lib.cli.main import main

__all__ = ["main"]
