"""`python -m pypto_op.backends.hostshim FILE [ARGS...]`: run a script that was written for the NPU on the CPU."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from pypto_op.backends import hostshim


def main() -> None:
    """Run the script named by the first argument as `__main__`, with the rest as its arguments."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m pypto_op.backends.hostshim FILE [ARGS...]")
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(Path(sys.argv[0]).resolve().parent))
    hostshim.install()
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
