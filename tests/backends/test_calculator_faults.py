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
NONE, ALL, LAST = [False] * 4, [True] * 4, [False, False, False, True]
RIGHT_ROWS: dict[str, list[bool] | str] = {
    "scratch_of_a_loop": LAST,
    "scratch_of_a_loop_copied": LAST,
    "scratch_with_a_row_left_out": [False, False, True, False],
    "scratch_that_is_read": LAST,
    "reshaped_output": NONE,
    "reshaped_dynamic_output": NONE,
    "sum_of_a_loop": NONE,
    "sum_of_a_loop_copied": NONE,
    "sum_in_place": ALL,
    "moved_to_other_axes": "mismatch in length of strides and shape",
}
RIGHT_IN_SCRIPTS = RIGHT_ROWS | {
    "scratch_of_a_loop": ALL,
    "scratch_with_a_row_left_out": [True, True, True, False],
    "moved_to_other_axes": ALL,
    "moved_to_a_larger_one": "mismatch in length of strides and shape",
}
"""A script follows the compiled program where pypto's pages forbid what it does, or are silent; a verdict does not."""


@pytest.mark.parametrize(("words", "expected", "told"), [(["strict"], RIGHT_ROWS, 0), ([], RIGHT_IN_SCRIPTS, 2)])
def test_kernels_of_which_rows_are_wrong(words: list[str], expected: dict[str, list[bool] | str], told: int) -> None:
    command = [sys.executable, "-m", "pypto_op.cli", "script", str(KERNELS), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[str, list[bool] | str] = {}
    for line in done.stdout.splitlines():
        if line.startswith('{"'):  # pypto shows the kernel that failed there too
            found |= json.loads(line)
    assert found == expected, done.stderr[-2000:]
    assert done.stderr.count("a verdict refuses") == told, done.stderr[-2000:]


def test_the_calculator_knows_no_memory_that_devices_share() -> None:
    import pypto

    folder = Path(pypto.__file__).parent / "lib" / "calculator"
    sources = [path for path in folder.rglob("*") if path.suffix in (".cpp", ".h")]
    assert sources and not any("shmem" in path.read_text(encoding="utf-8", errors="replace").lower() for path in sources)
