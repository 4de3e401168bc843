"""Run a program as it is, under a recording, and print nothing of its own: `python recorded.py PROGRAM [ARGUMENT…]`."""

from __future__ import annotations

import os
import runpy
import sys

import playhead

if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    with playhead.record("matrix"):
        runpy.run_path(sys.argv[0], run_name="__main__")
