"""`proof.meaning`: what makes another kernel, and what only looks like one."""

from __future__ import annotations

import pytest

from pypto_op.proof.meaning import meaning_of

KERNEL = '''"""A kernel."""
import pypto

ROWS = 16
COLS = 32


def pypto_twice(tile):
    """Return twice a tile."""
    return tile + tile


def kernel(x, out, rows):
    for step in pypto.loop(rows // ROWS, name="STEPS", idx_name="step"):
        tile = pypto.view(x, [ROWS, COLS], [step * ROWS, 0])
        pypto.assemble(pypto_twice(tile=tile), [step * ROWS, 0], out)
'''


@pytest.mark.parametrize(
    "edits",
    [
        [("tile", "block")],
        [("ROWS", "HEIGHT"), ("(x,", "(source,")],
        [("pypto_twice", "pypto_doubled")],
        [('"STEPS"', '"WALK"'), ('"step"', '"s"')],
        [("ROWS = 16\nCOLS = 32\n", "COLS = 32\nROWS = 16  # rows\n"), ('"""A kernel."""\n', "")],
        [("import pypto\n", "import pypto as p\n"), ("pypto.", "p.")],
    ],
)
def test_the_same_kernel_by_other_names(edits: list[tuple[str, str]]) -> None:
    other = KERNEL
    for old, new in edits:
        assert old in other
        other = other.replace(old, new)
    assert meaning_of(other.encode()) == meaning_of(KERNEL.encode())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[ROWS, COLS]", "[COLS, ROWS]"),
        ("COLS = 32", "COLS = 64"),
        ("tile + tile", "tile + 1.0"),
        ("[step * ROWS, 0], out", "[step * ROWS, 0], x"),
        ("pypto.assemble", "pypto.add"),
        ("import pypto", "import other as pypto"),
    ],
)
def test_another_kernel(old: str, new: str) -> None:
    assert old in KERNEL
    assert meaning_of(KERNEL.replace(old, new).encode()) != meaning_of(KERNEL.encode())


def test_what_is_no_python_is_known_by_its_bytes() -> None:
    assert meaning_of(b"def") != meaning_of(b"def ")
