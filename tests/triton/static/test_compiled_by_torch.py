"""Functions under torch.compile: a file may hold them (public ones do, for gradients), forward may not reach one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

from pypto_op.triton.static.validate import validate_file

HELD = """
import functools
from torch import compile
from torch import compile as made_fast

W = torch.ones(4)


@compile
def by_name(x):
    return torch.exp(x)


@made_fast(dynamic=True)
def by_other_name(x):
    return torch.exp(x)


@torch.compile
def inner(x):
    return torch.exp(x)


@torch.compile(fullgraph=True, dynamic=True)
def other(x):
    return torch.exp(x)


class Box:
    @staticmethod
    @torch.compile(mode="max-autotune")
    def made(x):
        return torch.exp(x)

    @torch.compile
    def closed(self):
        return torch.exp(W)


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return run(copy_kernel, x)

    @staticmethod
    def backward(ctx, g):
        return inner(g)
"""


def found(forward: str, folder: Path, more: str = "") -> dict[str, object]:
    path = folder / "op_triton_ascend_impl.py"
    path.write_text(lab.HEAD + HELD + more + "\n\n" + lab.nn_class("ModelNew", "", forward), encoding="utf-8")
    return validate_file(path)


@pytest.mark.parametrize("forward", ["return run(copy_kernel, x)", "return Fn.apply(x)"])
def test_a_file_may_hold_what_forward_does_not_reach(forward: str, tmp_path: Path) -> None:
    result = found(forward, tmp_path)
    assert result["valid"] is True, result


@pytest.mark.parametrize(
    "inner",
    ["inner(x)", "other(x)", "Box.made(x)", "Box().closed()", "list(map(inner, [x]))[0]", "functools.partial(inner, x)()",
     "functools.partial(inner)(x)", "{'a': inner}['a'](x)", "functools.reduce(lambda a, f: f(a), [inner], x)",
     "inner.__call__(x)",
     "getattr(Box, 'made')(x)", "sorted([x], key=inner)[0]", "inner._torchdynamo_orig_callable(x)", "Fn.backward(None, x)",
     "torch.compile(torch.exp)(x)", "by_name(x)", "by_other_name(x)", "list(map(by_name, [x]))[0]", "compile(torch.exp)(x)",
     "made_fast(lambda y: y)(x)", "functools.partial(compile, torch.exp)()(x)", "list(map(compile, [torch.exp]))[0](x)",
     "compile.__call__(torch.exp)(x)", "getattr(torch, 'compile')(torch.exp)(x)"],
)  # fmt: skip
def test_forward_may_not_reach_it(inner: str, tmp_path: Path) -> None:
    assert found(f"return run(copy_kernel, {inner})", tmp_path)["regression_type"] == 3


def test_nor_may_the_file_call_it_while_it_is_imported(tmp_path: Path) -> None:
    assert found("return run(copy_kernel, x)", tmp_path, "\nTABLE = inner(W)\n")["regression_type"] == 3
