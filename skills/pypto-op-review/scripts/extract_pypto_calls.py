#!/usr/bin/env python3
"""List the pypto calls of a kernel file, in order: `extract_pypto_calls.py PATH [--json]`.

A launcher: the work is done by `pypto-op extract-pypto-calls` of the bundle that this skill came with.
Any python3 can start it; it looks for the bundle's own interpreter first, then for `pypto-op` on PATH.
"""

import os
import shutil
import sys
from pathlib import Path


def main() -> None:
    """Replace this process by the bundle's command; exit with 3 when there is none."""
    beside = (parent / ".venv" / "bin" / "pypto-op" for parent in Path(__file__).resolve().parents)
    command = next((str(path) for path in beside if path.is_file()), None) or shutil.which("pypto-op")
    if command is None:
        print("pypto-op: not on PATH; put the folder of the installed command there (of a checkout: its bin/)", file=sys.stderr)
        sys.exit(3)
    os.execv(command, [command, "extract-pypto-calls", *sys.argv[1:]])


if __name__ == "__main__":
    main()
