"""What of the framework's scripts comes out wrong in `sim`, each with the smallest kernel; docs/framework-scripts.md names them.

A release that changes one fails here: then the page, and the limits of `sim`, say too much.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests import quickly

quickly.skip_without("pypto")
pytestmark = [pytest.mark.sim, pytest.mark.slow]

KERNELS = Path(__file__).with_name("calculator_faults.py")
RIGHT_ROWS: dict[str, list[bool] | str] = {
    "scratch_of_a_loop": [False, False, False, True],
    "reshaped_output": [False] * 4,
    "reshaped_dynamic_output": [False] * 4,
    "sum_of_a_loop": [False] * 4,
    "sum_of_a_loop_copied": [False] * 4,
    "sum_in_place": [True] * 4,
    "moved_to_other_axes": "mismatch in length of strides and shape",
}


def test_kernels_of_which_rows_are_wrong() -> None:
    command = [sys.executable, "-m", "pypto_op.cli", "script", str(KERNELS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[str, list[bool] | str] = {}
    for line in done.stdout.splitlines():
        if line.startswith('{"'):  # pypto shows the kernel that failed there too
            found |= json.loads(line)
    assert found == RIGHT_ROWS, done.stderr[-2000:]


def test_the_calculator_knows_no_memory_that_devices_share() -> None:
    import pypto

    folder = Path(pypto.__file__).parent / "lib" / "calculator"
    sources = [path for path in folder.rglob("*") if path.suffix in (".cpp", ".h")]
    assert sources and not any("shmem" in path.read_text(encoding="utf-8", errors="replace").lower() for path in sources)
