"""`python benchmarks/spent.py FILE WORDS...`: `pypto-op WORDS` in this process; FILE gets its processor seconds.

The kernel does not hand up the time of workers that are killed with their process space, so the launcher's own sum is taken.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pypto_op import cli


def main() -> None:
    """Run the command and write what it and its workers used."""
    code: object = 1
    try:
        cli.main(sys.argv[2:])
    except SystemExit as end:
        code = end.code
    launcher = sys.modules.get("pypto_op.backends.launcher")
    spent = launcher.cpu_seconds(children=True) if launcher else sum(os.times()[:4])
    Path(sys.argv[1]).write_text(f"{spent:.2f}", encoding="utf-8")
    sys.exit(code)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
