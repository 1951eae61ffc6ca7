#!/usr/bin/env python3
"""Benchmark of a Triton implementation. The work is done in `pypto_op.triton`; this file only finds it."""

import sys
from pathlib import Path

_BUNDLE = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(_BUNDLE / "scripts"), str(_BUNDLE / "lint")]

from pypto_op.triton.commands import run_script  # noqa: E402  (the path above makes it importable)

if __name__ == "__main__":
    run_script("benchmark")
