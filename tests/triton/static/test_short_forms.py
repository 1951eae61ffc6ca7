"""Honest files that write things short: statements behind a colon, Triton's functions by names of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

CALL = "out = torch.empty_like(x)\nexp_kernel[({grid},)](x, out, x.numel(), BLOCK={block})\nreturn out"
ON_ONE_LINE = {
    "a function": "def blocks(n): return -(-n // 64)",
    "a function of several statements": "def blocks(n): m = n + 63; return m // 64",
    "both sides of a condition": "def blocks(n):\n    if n <= 64: return 1\n    else: return -(-n // 64)",
    "an elif": "def blocks(n):\n    if n == 0: m = 0\n    elif n == 1: m = 1\n    else: m = -(-n // 64)\n    return m",
    "an attempt": "def blocks(n):\n    try: return -(-n // 64)\n    except TypeError: return 1",
    "what comes in the end": "def blocks(n):\n    try: m = n + 63\n    finally: k = 64\n    return m // k",
    "a loop": "def blocks(n):\n    m = 0\n    while 64 * m < n: m += 1\n    return m",
    "behind a loop": "def blocks(n):\n    for m in range(99): pass\n    else: m = -(-n // 64)\n    return m",
    "a method": "class Sizes:\n    def blocks(self, n): return -(-n // 64)\n\n\nblocks = Sizes().blocks",
    "a return over two lines": "def blocks(n): return (\n    -(-n // 64))",
}


@pytest.mark.parametrize("name", ON_ONE_LINE)
def test_a_statement_behind_a_colon_was_followed(name: str, place: Path) -> None:
    kernels = f"{ON_ONE_LINE[name]}\n{lab.EXP_KERNEL}"
    result = lab.verify(lab.folder(place, lab.EXPO, lab.impl(CALL.format(grid="blocks(x.numel())", block=64), kernels=kernels)))
    assert result["status"] == "PASS", result["failures"]


def test_what_such_a_statement_computes_is_still_seen(place: Path) -> None:
    forward = "out = torch.empty_like(x)\nexp_kernel[(8,)](x, out, x.numel(), BLOCK=64)\nreturn mended(x)"
    result = lab.verify(
        lab.folder(place, lab.EXPO, lab.impl(forward, kernels=f"def mended(x): return torch.exp(x)\n{lab.EXP_KERNEL}"))
    )
    assert lab.first_error(result) in ("Forbidden", "Degenerate"), result["failures"]


PRUNED = """
def fitting(configs, named, **kwargs): return [one for one in configs if one.kwargs["BLOCK"] <= 64]


SIZES = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})]


@triton.autotune(SIZES, key=["n"], prune_configs_by={"early_config_prune": fitting})"""


def test_a_short_function_that_triton_calls_was_followed(place: Path) -> None:
    forward = "out = torch.empty_like(x)\nexp_kernel[lambda meta: (triton.cdiv(512, meta['BLOCK']),)](x, out, 512)\nreturn out"
    result = lab.verify(lab.folder(place, lab.EXPO, lab.impl(forward, kernels=PRUNED + lab.EXP_KERNEL)))
    assert result["status"] == "PASS", result["failures"]


LOADED = "tl.load(x_ptr + i, mask=i < n)"
NAMES = {
    "a name of the file": ("exp, load = tl.exp, tl.load", "exp(load(x_ptr + i, mask=i < n))"),
    "imported by name": ("from triton.language import exp, program_id", f"exp({LOADED}) + 0 * program_id(0)"),
    "of the module of mathematics": ("from triton.language.math import exp2 as raised", f"raised({LOADED} * 1.4426950408889634)"),
    "in a jitted function": ("power = tl.exp\n\n\n@triton.jit\ndef up(x):\n    return power(x)", f"up({LOADED})"),
    "a kind of loop": ("from triton.language import static_range as turns", "sum_of(x_ptr, i, n)"),
}
SUM_OF = """
@triton.jit
def sum_of(x_ptr, i, n):
    x = tl.zeros_like(i).to(tl.float32)
    for _ in turns(0, 2):
        x += tl.load(x_ptr + i, mask=i < n) * 0.5
    return tl.exp(x)
"""


@pytest.mark.parametrize("name", NAMES)
def test_functions_of_tritons_language_by_another_name_run(name: str, place: Path) -> None:
    """On a device they do; Triton's own interpreter knows them by the names of its modules alone."""
    line, body = NAMES[name]
    helper = SUM_OF if "sum_of" in body else ""
    kernels = f"{line}\n{helper}" + lab.EXP_KERNEL.replace(f"tl.exp({LOADED})", body)
    result = lab.verify(lab.folder(place, lab.EXPO, lab.impl(CALL.format(grid="8", block=64), kernels=kernels)))
    assert result["status"] == "PASS", result["failures"]


def test_another_function_by_such_a_name_stays_what_it_is(place: Path) -> None:
    kernels = "@triton.jit\ndef exp(x):\n    return tl.exp(x) + 1.0\n" + lab.EXP_KERNEL.replace("tl.exp(", "exp(", 1)
    result = lab.verify(lab.folder(place, lab.EXPO, lab.impl(CALL.format(grid="8", block=64), kernels=kernels)))
    assert lab.first_error(result) == "PrecisionError", result["failures"]
