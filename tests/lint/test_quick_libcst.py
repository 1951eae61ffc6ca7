"""libcst imported quickly must be the libcst that a plain import gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_WHAT_NODES_DO = """
import dataclasses, hashlib, pathlib, sys
create = getattr(dataclasses, "_create_fn", None)
{load}
import libcst as cst
assert getattr(dataclasses, "_create_fn", None) is create
said = []
for path in sys.argv[1:]:
    module = cst.parse_module(pathlib.Path(path).read_text(encoding="utf-8"))
    said.append(repr(module) + module.with_changes(body=module.body[:3]).code)
node = cst.Name("x")
in_brackets = cst.Name(value="x", lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
said += [repr(node), repr(in_brackets), str(node.deep_equals(node.deep_clone()))]
said += [node.__init__.__qualname__, str(node == cst.Name("x")), str(hash(node) == hash(node))]
for wrong in (lambda: setattr(node, "value", "y"), lambda: delattr(node, "value"), lambda: cst.Name(), lambda: cst.Name("")):
    try:
        wrong()
        said.append("allowed")
    except Exception as error:
        said.append(f"{{type(error).__name__}}: {{error}}")
print(*said[-10:], hashlib.sha256("".join(said).encode()).hexdigest(), sep="\\n")
"""


def _said(load: str) -> str:
    files = [str(path) for path in sorted((ROOT / "examples").glob("*/*/*_impl.py"))]
    done = subprocess.run(
        [sys.executable, "-c", _WHAT_NODES_DO.format(load=load), *files], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nodes_are_those_of_a_plain_import() -> None:
    quick = _said("import pypto_op.quick_libcst")
    assert quick == _said("")
    assert "FrozenInstanceError" in quick and "allowed" not in quick


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="dataclasses works otherwise there")
def test_methods_nobody_calls_are_not_compiled() -> None:
    code = (
        "import pypto_op.quick_libcst, libcst as cst; from_file = lambda f: print(f.__code__.co_filename); "
        "from_file(cst.With.__init__); from_file(cst.Name('x').__init__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    put_off, compiled = done.stdout.split()
    assert put_off.endswith("quick_libcst.py") and compiled == "<string>"
