#!/usr/bin/env python3
"""Launcher of the bundle's MCP server (stdio); harness configurations name this file."""

import sys
from pathlib import Path

_BUNDLE = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_BUNDLE / "scripts"), str(_BUNDLE / "lint")]

from pypto_op.mcp.server import main  # noqa: E402  (the paths above make it importable)

if __name__ == "__main__":
    main()
