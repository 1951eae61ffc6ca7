"""Code that runs where no call of it shows: the static check refuses it, or what ran says that it did not get there."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tests.quickly import read_table
from tests.triton import lab

from pypto_op.triton.program import LAMBDA
from pypto_op.triton.run.judging import agreement
from pypto_op.triton.run.judging.agreement import Ran
from pypto_op.triton.run.watching.lines import Lines
from pypto_op.triton.static.validate import read_file, validate_file

pytestmark = pytest.mark.slow

TABLE: dict[str, dict[str, str]] = read_table(lab.HERE / "unfollowed.yaml")
CASES = [(kind, name) for kind in TABLE for name in TABLE[kind]]
HIDE = """
import numpy as np


@triton.jit
def beyond(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + n + offsets))


kept = []


def hide(x):
    space = np.zeros(128, dtype=np.float32)
    small = torch.from_numpy(space[:64]).view(4, 16)
    small.copy_(x)
    space[64:] = np.exp(space[:64])
    kept.append(space)
    return small

"""
TASK = lab.task("return torch.exp(x)", "[torch.randn(4, 16)]")
MODEL = """
class ModelNew(nn.Module):
    def forward(self, x):
{lines}        small = make(x)
        out = torch.empty_like(x)
        beyond[(1,)](small, out, 64, BLOCK=64)
        return out
"""


def implementation(kind: str, name: str) -> str:
    """Return the text of a case."""
    text = TABLE[kind][name]
    if kind == "before":
        return lab.HEAD + HIDE + text + MODEL.format(lines="")
    return lab.HEAD + HIDE + MODEL.format(lines=textwrap.indent(text, " " * 8))


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_what_no_call_shows_is_refused(kind: str, name: str, place: Path) -> None:
    found = validate_file(lab.folder(place, TASK, implementation(kind, name)).impl)
    assert not found["valid"] and "error" not in found, found


@pytest.mark.parametrize(("kind", "name"), [CASES[0], CASES[-1]])
def test_what_the_static_check_refuses_is_no_matter_of_numbers(kind: str, name: str, place: Path) -> None:
    result = lab.verify(lab.folder(place, TASK, implementation(kind, name)))
    assert result["status"] == "FAIL" and lab.first_error(result) != "PrecisionError", result


HONEST_FILE = """

@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=offsets < n)), mask=offsets < n)


def never(x):
    return torch.exp(x)


class ModelNew(nn.Module):
    def forward(self, x):
        half = lambda n: n // 2
        if x.dim() > 8:
            raise ValueError("x has too many axes")
        return run(exp_kernel, x[: half(8)])
"""


def test_a_line_that_ran_must_be_one_that_was_followed(place: Path) -> None:
    """What ran is told by the run alone: each line of the file is tried in its place."""
    project = lab.folder(place, TASK, lab.HEAD + HONEST_FILE)
    read = read_file(project.impl, scalars=[False])
    file, text = os.path.realpath(project.impl), project.impl.read_text(encoding="utf-8").splitlines()

    def said(words: str, what: str = "") -> str:
        line = next(number for number, one in enumerate(text, 1) if words in one)
        return agreement.objection(read, [Ran(lines={(file, line, what)})]) or ""

    for followed in ("if x.dim() > 8", "half = lambda", "out = torch.empty_like(x) if"):
        assert not said(followed), followed
    assert not said("half = lambda", LAMBDA)
    assert not said("tl.store(out_ptr + offsets, tl.exp"), "kernels are compared whole"
    for _ in range(2):
        assert "the static check did not get there: return torch.exp(x)" in said("return torch.exp(x)")


def test_a_file_that_cannot_be_read_is_called_so(tmp_path: Path) -> None:
    """Python takes a comment in another encoding; "a regression of type 1" said nothing of it."""
    file = tmp_path / "copy_triton_ascend_impl.py"
    file.write_bytes(b"# \xe9\nimport torch\n")
    said = agreement.objection(read_file(file), []) or ""
    assert "line 1: is not valid UTF-8 text" in said and said.endswith("give a readable Python file in UTF-8")


def test_the_lines_of_a_call_are_noted_before_they_run(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("def f(n):\n    if n:\n        return (lambda a: a / 0)(n)\n    return sorted([2, 1])\n")
    names: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    lines = Lines(frozenset({str(file.resolve())}))
    with lines:
        names["f"](0)
        assert lines.is_active()
    assert {line for _, line, _ in lines.ran} == {2, 4}
    with pytest.raises(ZeroDivisionError), lines:
        names["f"](1)
    assert {(line, what) for _, line, what in lines.ran} == {(2, ""), (4, ""), (3, ""), (3, LAMBDA)}
    with lines:
        sys.settrace(None)
        assert not lines.is_active()


def test_a_view_that_turns_signs_is_no_copy(place: Path) -> None:
    forward = """
        pair = torch.zeros(4, 16, 2)
        pair[..., 1].copy_(x)
        return run(copy_kernel, torch.view_as_complex(pair).mH.imag.mT.contiguous())
    """
    text = lab.HEAD + "\n\nclass ModelNew(nn.Module):\n    def forward(self, x):" + forward
    result = lab.verify(lab.folder(place, lab.task("return -x", "[torch.randn(4, 16)]"), text))
    assert result["status"] == "FAIL" and "turns signs" in str(result["failures"][0]), result


HONEST = {
    "hints": "x = tl.load(x_ptr + tl.max_contiguous(tl.multiple_of(offsets, 16), 16), mask=mask)",
    "constancy": "x = tl.load(x_ptr + offsets, mask=tl.max_constancy(mask, 4))",
}


@pytest.mark.parametrize("name", sorted(HONEST))
def test_a_hint_to_the_compiler_computes_nothing(name: str, place: Path) -> None:
    kernel = f"""
@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    {HONEST[name]}
    tl.store(out_ptr + offsets, tl.exp(x), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        return run(exp_kernel, x)
"""
    result = lab.verify(lab.folder(place, TASK, lab.HEAD + kernel))
    assert result["status"] == "PASS", result["failures"]


def made_by_a_function(factor: str) -> str:
    return f"""
import numpy as np


def make(factor):
    @triton.jit
    def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n)
        tl.store(out_ptr + offsets, {factor}, mask=offsets < n)

    return exp_kernel


one = make({"tl.constexpr(1.0)" if "*" in factor else "lambda x: np.exp(x.handle.data)"})


class ModelNew(nn.Module):
    def forward(self, x):
        return run(one, x)
"""


@pytest.mark.parametrize(("factor", "status"), [("tl.exp(x * factor)", "PASS"), ("factor(x)", "FAIL")])
def test_a_kernel_sees_constants_of_its_maker_and_no_python(factor: str, status: str, place: Path) -> None:
    """Triton compiles such a kernel; its own interpreter loses the maker's names."""
    result = lab.verify(lab.folder(place, TASK, lab.HEAD + made_by_a_function(factor)))
    assert result["status"] == status, result["failures"]
