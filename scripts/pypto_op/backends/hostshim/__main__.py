"""`python -m pypto_op.backends.hostshim FILE [ARGS...]`: run a script that was written for the NPU on the CPU.

Where pypto is installed, its kernels run in the simulator, with numbers where there is a C++ tool chain. Unlike a
verdict, this runs the script as it is, in this process, with nothing between it and the machine.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from pypto_op.backends.sim import simulate_here
from pypto_op.errors import PyptoOpError


def main() -> None:
    """Run the script named by the first argument as `__main__`, with the rest as its arguments."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m pypto_op.backends.hostshim FILE [ARGS...]")
    sys.argv = sys.argv[1:]
    try:
        simulate_here()
    except PyptoOpError as error:
        print(f"pypto-op: {error.one_line()}", file=sys.stderr)
        sys.exit(int(error.exit_code))
    script = Path(sys.argv[0]).resolve()
    if not script.is_file():
        sys.exit(f"pypto-op: {sys.argv[0]}: no such file")
    sys.path.insert(0, str(script.parent))
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    main()
