"""`pypto-op cleanup`: one file for the product, by names and not by text; what cannot be made one file is refused."""

from __future__ import annotations

import ast
import io
import json
import re
import shutil
import tokenize
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.judge.judging import REPOSITORY, Answer, place
from tests.telling import told_lines

from pypto_op.documents.kept_functions import function_hashes
from pypto_op.generators.writing.renaming import integrated
from pypto_op.workspace import OpWorkspace

Call = Callable[..., Answer]

SOURCE = '''"""M1..M2 of chain: the square of x plus y; see chain_module12_wrapper."""

import os

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

ROWS, WIDTH = 16, 32  # tiles of chain_module12_kernel
NAME = "chain_module12_wrapper"  # a string of the program is no name
__all__ = ["chain_module12_wrapper"]


def pypto_square(tile):
    """Return tile * tile. Not chain_module123_other."""
    return tile * tile


# STUB: until M3 is verified; golden-fed tensor
def chain_module12_kernel_impl(x, y, out):
    count = x.shape[0]
    for step in pypto.loop((count + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 32)
        row = step * ROWS
        rows = pypto.min(count - row, ROWS)
        x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[rows, WIDTH])
        y_tile = pypto.view(y, [ROWS, WIDTH], [row, 0], valid_shape=[rows, WIDTH])  # STUB: y
        pypto.assemble(pypto_square(x_tile) + y_tile, [row, 0], out)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def chain_module12_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    y: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
):
    chain_module12_kernel_impl(x, y, out)  # the one call


def chain_module12_wrapper(x, y):
    """x, y: [N, 32] float32, contiguous. Returns [N, 32]."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    chain_module12_kernel(x, y, out)
    return (out,)


if __name__ == "__main__":
    print(chain_module12_wrapper)
'''


@pytest.fixture
def ws(tmp_path: Path) -> OpWorkspace:
    made = place("chain", tmp_path)
    made.impl.unlink()
    made.module_impl(2).write_text(SOURCE)
    return made


@pytest.mark.slow
def test_names_change_and_nothing_else(ws: OpWorkspace, call: Call) -> None:
    told = call("cleanup", ws.root, "--json")
    assert told.code == 0, told.stdout + told.stderr
    text = ws.impl.read_text()
    names = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    assert names == {"pypto_square", "chain_kernel_impl", "chain_kernel", "chain_wrapper"}
    assert text.startswith('"""The square of x plus y; see chain_wrapper."""')
    assert "# tiles of chain_kernel\n" in text and "# the one call\n" in text, "comments stay, and follow the names"
    assert 'NAME = "chain_module12_wrapper"' in text, "a string of the program is not touched"
    assert '__all__ = ["chain_wrapper"]' in text
    assert "chain_module123_other" in text, "a longer name that begins alike is another name"
    assert "STUB" not in text and "__main__" not in text
    assert function_hashes(ws.impl, "chain") == function_hashes(ws.module_impl(2), "chain")


def _tokens(text: str) -> list[tuple[int, str]]:
    kept = (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.COMMENT)
    return [(t.type, t.string) for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type in kept]


LAST_STAGED = (REPOSITORY / "examples" / "ops").glob("*/modules/*_module12_impl.py")
STAGED = sorted(path.parents[1].name for path in LAST_STAGED if path.stat().st_size)


@pytest.mark.parametrize("op", STAGED)
def test_the_examples_integrate_token_by_token(op: str) -> None:
    """Only names differ between a real staged kernel and the product: no comment, number or operator is lost."""
    ws = OpWorkspace.at(REPOSITORY / "examples" / "ops" / op)
    n = max(ws.existing_module_phases())
    source = ws.module_impl(n)
    before, after = _tokens(source.read_text()), _tokens(integrated(ws, source))
    renamed = [(kind, re.sub(rf"\b(_*){op}_module\d+(?=_|\b)", rf"\1{op}", word)) for kind, word in before]
    assert after == renamed and after != before
    assert {word for _, word in after if "_module" in word} == set()


@pytest.mark.slow
def test_it_is_ours_until_somebody_edits_it(ws: OpWorkspace, call: Call) -> None:
    fates = lambda *more: json.loads(call("cleanup", ws.root, "--json", *more).stdout)["files"]  # noqa: E731
    assert fates() == {"chain_impl.py": "written", "README.md": "written"}
    assert fates() == {"chain_impl.py": "unchanged", "README.md": "unchanged"}
    ws.module_impl(2).write_text(SOURCE.replace("# the one call", "# the only call"))
    assert fates()["chain_impl.py"] == "replaced"
    tuned = ws.impl.read_text().replace("set_vec_tile_shapes(16, 32)", "set_vec_tile_shapes(8, 32)")
    ws.impl.write_text(tuned)
    assert fates()["chain_impl.py"] == "kept" and ws.impl.read_text() == tuned
    assert fates("--force")["chain_impl.py"] == "replaced"


@pytest.mark.slow
def test_the_readme_tells_how_to_call_it(ws: OpWorkspace, call: Call) -> None:
    call("cleanup", ws.root)
    text = ws.readme.read_text()
    for words in ("chain_wrapper(x, y) -> out", "| x | input | [N, D] | float32 |", "torch.randn(16, 32", "atol 1e-06"):
        assert words in text
    for name in ("TILE_FWK_DEVICE_ID", "LD_LIBRARY_PATH", "PTO_TILE_LIB_CODE_PATH", "test_chain.py"):
        assert name in text


@pytest.mark.slow
def test_staged_imports_are_resolved(ws: OpWorkspace, call: Call) -> None:
    helper = SOURCE[SOURCE.index("def pypto_square") : SOURCE.index("# STUB: until")].rstrip() + "\n"
    first = f"import math\n\nimport pypto\n\nFACTOR = math.floor(1.5)\nUNUSED = 3\n\n\n{helper}".replace(
        "return tile * tile", "return tile * tile * FACTOR"
    )
    ws.module_impl(1).write_text(first)
    imported = "import torch\nfrom chain_module1_impl import pypto_square\n"
    staged = SOURCE.replace(helper, "").replace("import torch\n", imported, 1)
    ws.module_impl(2).write_text(staged)
    assert call("cleanup", ws.root).code == 0
    text = ws.impl.read_text()
    assert "chain_module1_" not in text and "UNUSED" not in text and "import math" in text
    assert text.index("FACTOR = ") < text.index("def pypto_square") < text.index("def chain_wrapper")
    assert "Not chain_module123_other" in text, "with its docstring"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("import torch\n", "import torch\nimport chain_module1_impl\n", "imports the whole module"),
        ("import torch\n", "import torch\nfrom chain_module1_impl import *\n", "by `*` or `as`"),
        ("import torch\n", "import torch\nfrom chain_module1_impl import nothing\n", "defines no nothing"),
        ("import torch\n", "import torch\nfrom chain_module1_impl import kernel, WIDTH\n", "defined twice"),
        ("def pypto_square(tile):", "def chain_wrapper(tile):", "would get one name"),
        ("def pypto_square(tile):", "def pypto_square(tile:", "not valid Python"),
        ("def chain_module12_wrapper(", "def chain_module1_wrapper(", "has no function chain_module12_wrapper"),
    ],
)
def test_what_cannot_be_one_file_is_refused_in_one_line(ws: OpWorkspace, call: Call, old: str, new: str, words: str) -> None:
    ws.module_impl(2).write_text(SOURCE.replace(old, new, 1))
    told = call("cleanup", ws.root)
    assert told.code == 2 and words in told.stderr and len(told_lines(told.stderr)) == 1
    assert not ws.impl.exists() and not ws.readme.exists()


def test_no_staged_impl_and_no_stages(ws: OpWorkspace, call: Call, tmp_path: Path) -> None:
    ws.module_impl(2).unlink()
    told = call("cleanup", ws.root)
    assert told.code == 2 and "chain_module12_impl.py: is missing" in told.stderr
    other = place("sum_diff", tmp_path / "other")
    other.impl.unlink(missing_ok=True)
    told = call("cleanup", other.root)
    assert told.code == 2 and "sum_diff_impl.py: is missing" in told.stderr


def test_one_module_gets_its_readme_from_what_stands_there(call: Call, tmp_path: Path) -> None:
    """Every fact is SPEC.md's, the contract's or the kernel's; the impl stays as it is."""
    shutil.copytree(REPOSITORY / "examples/ops/rmsnorm", tmp_path / "custom/rmsnorm")
    ws = OpWorkspace.at(tmp_path / "custom/rmsnorm")
    ws.readme.unlink()
    impl = ws.impl.read_bytes()
    told = call("cleanup", ws.root)
    assert told.code == 0 and ws.impl.read_bytes() == impl, told
    text = ws.readme.read_text()
    assert "rmsnorm_wrapper(x, weight, eps) -> " in text and "| x | input | [T, H] | float32, float16, bfloat16 |" in text
    assert "| eps | input | a number |" in text and "T (from 1 to " in text and "the wrapper raises ValueError" in text


@pytest.mark.slow
def test_what_the_linter_refuses_is_told(ws: OpWorkspace, call: Call) -> None:
    ws.module_impl(2).write_text(SOURCE.replace("    chain_module12_kernel(x, y, out)\n", ""))
    told = call("cleanup", ws.root)
    assert told.code == 1 and "[PX01]" in told.stdout
