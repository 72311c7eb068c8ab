"""A sweep as a script of its own, for a test that kills it: run_swept.py RESULTS."""

from __future__ import annotations

import sys

from swept_points import numbers

from lantern_lib.simulator.sweep import sweep

if __name__ == "__main__":
    points = [{"x": x, "seconds": 0.02} for x in range(200)]
    sweep(points, path=sys.argv[1], function=numbers, workers=2, in_flight=8, progress=False)
