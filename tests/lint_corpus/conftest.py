from __future__ import annotations

import sys
from pathlib import Path

ROOM = Path(__file__).parent
# This room's own modules, and tests/lint/linting.py, which lays out a rule's examples.
sys.path[:0] = [str(ROOM), str(ROOM.parent / "lint")]
