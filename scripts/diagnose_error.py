#!/usr/bin/env python3
"""Launcher of `pypto-op diagnose` for callers who know the file, not the command."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from pypto_op.cli import main  # noqa: E402  (the path above makes it importable)

if __name__ == "__main__":
    main(["diagnose", *sys.argv[1:]])
