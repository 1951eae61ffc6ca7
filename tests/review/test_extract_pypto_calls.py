"""`extract-pypto-calls` through its launchers and its library function."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.telling import told_lines

from pypto_op.review.call_sites import extract_calls
from pypto_op_lint.source import UnreadableSource

ROOT = Path(__file__).resolve().parents[2]
LAUNCHERS = (
    ROOT / "scripts" / "extract_pypto_calls.py",
    ROOT / "skills" / "pypto-op-review" / "scripts" / "extract_pypto_calls.py",
)

KERNEL = """\
import pypto as pp
from pypto import exp as e, frontend
import pypto.frontend as fe
import torch

op = pp.sigmoid


@fe.jit
def kernel(x: pp.Tensor([pp.DYNAMIC, 64], pp.DT_FP32), exp):
    # pypto.in_a_comment(1)
    pp.set_vec_tile_shapes(16, 64)
    y = pp.add(e(x), op(x)); exp(x); torch.exp(x)
    for i in pp.loop(3, name="pypto.in_a_string(2)"):
        getattr(pp, "mul")(x, x)
    frontend.jit(kernel)
"""

EXPECTED = [
    (9, 1, "pypto.frontend.jit", "attr"),
    (10, 14, "pypto.Tensor", "attr"),
    (12, 4, "pypto.set_vec_tile_shapes", "attr"),
    (13, 8, "pypto.add", "attr"),
    (13, 15, "pypto.exp", "short_import"),
    (13, 21, "pypto.sigmoid", "short_import"),
    (14, 13, "pypto.loop", "attr"),
    (15, 8, "pypto.mul", "attr"),
    (16, 4, "pypto.frontend.jit", "short_import"),
]


def run(launcher: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(launcher), *arguments], capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS, ids=["scripts", "skill"])
def test_json_lists_calls_in_order(launcher: Path, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    done = run(launcher, str(path), "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [tuple(row.values()) for row in rows] == EXPECTED
    assert list(rows[0]) == ["line", "col", "call", "kind"]


def test_text_has_one_line_per_call(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    lines = run(LAUNCHERS[0], str(path)).stdout.splitlines()
    assert [line.split()[-1] for line in lines] == [row[2] for row in EXPECTED]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, 1),
        (b"def (:\n", 2),
        (b"\x00\xff\xfe", 2),
        (b"(" * 100_000 + b")" * 100_000, 2),
        (b"x = " + b"-" * 3000 + b"1", 2),
        (b"# coding: no-such\nx = 1\n", 2),
    ],
    ids=["missing", "syntax", "binary", "deep-parentheses", "deep-unary", "bad-encoding"],
)
def test_bad_input_is_one_line_and_its_exit_code(content: bytes | None, code: int, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    if content is not None:
        path.write_bytes(content)
    done = run(LAUNCHERS[0], str(path))
    assert (done.returncode, done.stdout) == (code, "")
    assert len(told_lines(done.stderr)) == 1
    assert str(path) in done.stderr


@pytest.mark.parametrize(
    ("source", "calls"),
    [
        ("from pypto import *\nexp(print(x))\n", ["pypto.exp"]),
        ("import pypto\ndef f(pypto):\n    pypto.exp(1)\n", []),
        ("import pypto\np = pypto\nq = p\nq.frontend.jit(f)\n", ["pypto.frontend.jit"]),
        ("import pypto\n(g := pypto.exp)(x)\ng(x)\n", ["pypto.exp"] * 2),
        ("a = b\nb = a\na(x)\n", []),
        ("from .pypto import exp\nexp(x)\n", []),
        ("import pypto_tools\npypto_tools.exp(x)\n", []),
        ("import pypto\nf: object = pypto.exp\nf(x)\n", ["pypto.exp"]),
        ("\ufeffimport pypto\r\npypto.exp(x)\r\n", ["pypto.exp"]),
    ],
)
def test_names_are_resolved_by_scope(source: str, calls: list[str], tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_bytes(source.encode())
    assert [site.call for site in extract_calls(file)] == calls


@given(st.text(max_size=80))
def test_any_text_either_parses_or_is_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "any.py"
    file.write_bytes(f"import pypto\n{text}".encode())
    try:
        sites = extract_calls(file)
    except UnreadableSource:
        return
    assert sites == sorted(sites)
