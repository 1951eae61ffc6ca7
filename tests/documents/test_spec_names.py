"""SPEC.md: a word that fits nothing else in it is told where it stands, and prose is left alone."""

from pathlib import Path

import pytest

from pypto_op.documents import way
from pypto_op.workspace import OpWorkspace

RIGHT = """---
schema_version: "1.0"
op_name: scaled
supported_dtypes: [float16]
p0_shapes:
  - {B: 2, H: 64}
tolerance: {float16: {atol: 0.001, rtol: 0.002}}
dynamic_axes: [B]
shape_constraints: ["H % 16 == 0", "weight has H elements", "0 < gain", "rows = B"]
default_params: {gain: 2.0}
---
# scaled
## 1. Formula
y = gain * x * weight; rows are what B counts
## 5. Inputs and outputs
| name | kind | shape | dtype | meaning |
|---|---|---|---|---|
| x | input | [B, H] | float16 | values |
| weight | input | [H] | dtype of x | scale |
| gain | input | scalar | Python float | > 0 |
| y | output | [B, H] | float16 | result |
## 7. Precision requirements
`tolerance` has atol and rtol
"""
GOLDEN = """import torch


def scaled_golden(x, weight, gain):
    return (x.float() * weight.float() * gain).to(x.dtype)
"""
SLIPS = [
    ("{B: 2, H: 64}", "{B: 2, HH: 64}", "p0_shapes[0].HH: no shape of section 5 has an axis HH", "write one of B, H"),
    ("weight | input | [H]", "weight | input | [h]", "p0_shapes[0]: gives no size for h", "write h: SIZE there"),
    ("x | input | [B, H]", "x | input | [B, H", "section 5: the shape '[B, H' of x lacks a bracket", "write it like [B, S]"),
    (
        "y | output | [B, H] | float16",
        "y | output | [B, H] | float61",
        "section 5: float61, of y, is no dtype",
        "did you mean float16",
    ),
    ("dynamic_axes: [B]", "dynamic_axes: [S]", "dynamic_axes: no shape of section 5 has an axis S", "write one of B, H"),
    ("H % 16 == 0", "K % 16 == 0", "shape_constraints[0]: K of 'K % 16 == 0' stands nowhere else", "name an axis"),
    (
        "weight | input | [H] |",
        "wieght | input | [H] |",
        "section 5: has no row for weight, a parameter",
        "rename the row wieght, or write | weight |",
    ),
    ("0 < gain", "x in B", "shape_constraints[2]: 'x in B' is never tried: B is a size", "write 0 <= x < B"),
    ("0 < gain", "0 <= q < B", "shape_constraints[2]: q of '0 <= q < B' stands nowhere else", "name an axis"),
    (
        "rows are what B counts",
        "rows are what B counts. Signature: `scaled(x, scale, gain=2.0) -> y`.",
        "section 1: tells the signature (x, scale, gain); the golden takes (x, weight, gain)",
        "mend the one that is wrong",
    ),
    ("{gain: 2.0}", "{gian: 2.0}", "default_params.gian: the golden has no parameter gian", "it has x, weight, gain"),
]


@pytest.fixture
def ws(tmp_path: Path) -> OpWorkspace:
    folder = tmp_path / "custom" / "scaled"
    folder.mkdir(parents=True)
    (folder / "SPEC.md").write_text(RIGHT)
    (folder / "scaled_golden.py").write_text(GOLDEN)
    return OpWorkspace.at(folder)


@pytest.mark.parametrize(("old", "new", "told", "remedy"), SLIPS)
def test_a_slip_is_told_by_check_and_kept_out_of_the_contract(ws: OpWorkspace, run, old: str, new: str, told: str, remedy: str):
    assert RIGHT.count(old) == 1
    ws.spec.write_text(RIGHT.replace(old, new))
    code, out, _ = run("check", ws.root)
    (line,) = [line for line in out.splitlines() if told in line]
    assert code == 1 and line.startswith("SPEC.md: ") and remedy in line
    code, _, err = run("interfaces", "new", ws.root)
    assert code == 2 and f"SPEC.md: {told}" in err and remedy in err
    assert not ws.interfaces.exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rows = B", "rows = B"),
        ("x | input | [B, H]", "x | input | any two axes"),  # prose: nobody knows the axes then
        ("dtype of x", "float16, or float8_e4m3 where x is"),
        ("| gain | input | scalar | Python float | > 0 |\n", ""),
        ("{B: 2, H: 64}", "{x: [2, 64]}"),
        ("0 < gain", "len(x) < 3"),
        ("0 < gain", "x in float16"),
        ("0 < gain", "gain in (1, 2)"),
        ("y | output |", "y | out |"),
    ],
)
def test_what_people_write_is_left_alone(ws: OpWorkspace, run, old: str, new: str) -> None:
    ws.spec.write_text(RIGHT.replace(old, new))
    assert "SPEC.md: " not in run("check", ws.root)[1]
    assert run("interfaces", "new", ws.root)[0] == 0


@pytest.mark.parametrize("shape", ["-", "", "none", "—", "scalar"])
def test_a_number_without_a_shape_leaves_the_axes_checked(ws: OpWorkspace, run, shape: str) -> None:
    number = RIGHT.replace("gain | input | scalar | Python float", f"gain | scalar | {shape} | float")
    ws.spec.write_text(number)
    assert "SPEC.md: " not in run("check", ws.root)[1]
    ws.spec.write_text(number.replace("x | input | [B, H]", "x | input | [B, E]"))
    assert "gives no size for E, an axis of section 5" in run("check", ws.root)[1]


def test_a_parameter_that_python_gives_a_value_needs_no_row(ws: OpWorkspace, run) -> None:
    ws.golden.write_text(GOLDEN.replace("gain):", "gain, eps=1e-6, *, low=0.0):"))
    assert "SPEC.md: " not in run("check", ws.root)[1]


def test_a_missing_specification_comes_before_all_that_goes_by_it(ws: OpWorkspace, run) -> None:
    ws.spec.unlink()
    (ws.root / "MEMORY.md").write_text("TODO")
    ws.golden.write_text(GOLDEN + "# TODO\n")
    code, out, _ = run("check", ws.root)
    assert code == 1 and out.splitlines()[-1].startswith("next: write custom/scaled/SPEC.md"), out
    assert way.next_step(ws).startswith("write ")


@pytest.mark.parametrize("signature", ["x, weight", "x, weight, gain = 2.0", "x: Tensor, weight, gain", "...", "x, *rest"])
def test_a_signature_may_leave_out_what_has_a_default(ws: OpWorkspace, run, signature: str):
    ws.golden.write_text(GOLDEN.replace("weight, gain)", "weight, gain=2.0)"))
    ws.spec.write_text(RIGHT.replace("B counts", f"B counts. Signature: `scaled({signature}) -> y`."))
    assert "signature" not in run("check", ws.root)[1]
