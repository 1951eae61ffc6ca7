"""The static check follows tables of functions and kernels, whatever they are kept in and whoever fills them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from tests.quickly import read_table
from tests.triton import lab

from pypto_op.triton.static.validate import validate_file

TABLE: dict[str, dict[str, dict[str, str]]] = read_table(lab.HERE / "tables.yaml")
HEAD = """
import functools
from collections import namedtuple
from dataclasses import dataclass

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.maximum(x, 0.0), mask=offsets < n)


@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.exp(x), mask=offsets < n)


def launch(kernel, x, block=64):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), BLOCK=block)
    return out


def hide(x):
    return torch.exp(x)


def good(x):
    return launch(exp_kernel, x)

"""
MANY = "\n".join(f"def f{i}(x):\n    return launch(exp_kernel, x, {32 + i})\n\n" for i in range(60))


def file_of(entry: dict[str, str]) -> str:
    """Return an implementation."""
    init = entry.get("init", "")
    made = "    def __init__(self):\n        super().__init__()\n" + textwrap.indent(init.strip(), " " * 8) + "\n\n"
    forward = "    def forward(self, x):\n" + textwrap.indent(entry["forward"].strip(), " " * 8) + "\n"
    return HEAD + entry.get("before", "") + "\n\nclass ModelNew(nn.Module):\n" + (made if init else "") + forward


def valid(entry: dict[str, str], place: Path) -> bool:
    (place / "impl.py").write_text(file_of(entry), encoding="utf-8")
    return bool(validate_file(place / "impl.py")["valid"])


@pytest.mark.parametrize("name", sorted(TABLE["cheats"]))
def test_what_a_table_comes_to_hold_is_followed(name: str, tmp_path: Path) -> None:
    assert not valid(TABLE["cheats"][name], tmp_path)


@pytest.mark.parametrize("name", sorted(TABLE["honest"]))
def test_an_honest_table_passes(name: str, tmp_path: Path) -> None:
    assert valid(TABLE["honest"][name], tmp_path)


@pytest.mark.parametrize(("functions", "last", "right"), [(30, "f59", True), (30, "torch.exp", False), (59, "torch.exp", False)])
def test_no_member_of_a_long_table_is_left_out(functions: int, last: str, right: bool, tmp_path: Path) -> None:
    members = ", ".join([*(f"f{i}" for i in range(functions)), last])
    entry = {"before": f"{MANY}\nTABLE = [{members}]", "forward": f"return TABLE[x.shape[-1] % {functions + 1}](x)"}
    assert valid(entry, tmp_path) is right


@pytest.mark.slow
@pytest.mark.parametrize("name", ["module_cache_get", "cache_of_closures", "lazy_attribute", "registry", "dataclass_entries"])
def test_an_honest_table_is_verified(name: str, place: Path) -> None:
    task = lab.task("return torch.exp(x)", "[torch.randn(4, 16)]")
    result = lab.verify(lab.folder(place, task, file_of(TABLE["honest"][name])))
    assert result["status"] == "PASS", result["failures"]
