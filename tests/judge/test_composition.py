"""`verify --compose`: the tolerance is that of the dtype that runs, and every dtype of SPEC.md runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pypto_op.workspace import OpWorkspace

from .judging import place, verify

pytestmark = pytest.mark.sim


@pytest.fixture
def ws(clean_workspace: Path) -> OpWorkspace:
    """`chain` for float32 and float16, the latter a thousand times looser."""
    made = place("chain", clean_workspace)
    _edit(made.spec, "supported_dtypes: [float32]", "supported_dtypes: [float16, float32]")
    per_dtype = "  float16: {atol: 1.0e-2, rtol: 1.0e-2}\n  float32: {atol: 1.0e-6, rtol: 1.0e-5}\n"
    _edit(made.spec, "  atol: 1.0e-6\n  rtol: 1.0e-5\n", per_dtype)
    return made


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, path
    path.write_text(text.replace(old, new))


def _golden(ws: OpWorkspace, value: str) -> None:
    ws.module_golden(2).write_text(f"import torch\n\n\ndef chain_module12_golden(x, y):\n    return ({value},)\n")


def test_every_dtype_runs_with_its_own_tolerance(ws: OpWorkspace) -> None:
    result = json.loads(verify(ws.root, "--compose").stdout)
    assert (result["status"], result["pairs"], len(result["triples"])) == ("PASS", 4, 8)
    assert {row["dtype"] for row in result["triples"]} == {"float32", "float16"}


@pytest.mark.parametrize(
    "value",
    [
        "(x * x + y) * 1.005",
        "(x * x + y) * (1.005 if x.dtype == torch.float32 else 1.0)",
        "(x * x + y) * (1.05 if x.dtype == torch.float16 else 1.0)",
    ],
)
def test_what_is_off_in_one_dtype_fails(ws: OpWorkspace, value: str) -> None:
    _golden(ws, value)
    told = verify(ws.root, "--compose")
    assert told.code == 1, told
    rows = json.loads(told.stdout)["triples"]
    assert {row["dtype"] for row in rows if not row["all_close"]} == {"float16" if "float16" in value else "float32"}


@pytest.mark.parametrize("bound", ["atol", "rtol"])
def test_the_contract_may_not_take_the_tolerance_of_another_dtype(ws: OpWorkspace, bound: str) -> None:
    kept = {"atol": "1.0e-6", "rtol": "1.0e-5"}[bound]
    _edit(ws.interfaces, f"  {bound}: {kept}", f"  {bound}: 1.0e-2")
    told = verify(ws.root, "--compose", as_json=False)
    words = " ".join(told.stderr.split())
    assert told.code == 2 and f"composition_verification.{bound}: {bound} is 0.01; SPEC.md allows" in words, told
    assert "for float32, in which the goldens are compared; write" in words


def test_a_contract_that_calls_itself_16_bit_gets_the_other_dtypes_too(ws: OpWorkspace) -> None:
    """The pair of the contract's own dtype may be loose; float32 runs with SPEC.md's all the same."""
    text = ws.interfaces.read_text().replace("dtype: float32", "dtype: float16")
    ws.interfaces.write_text(text.replace("atol: 1.0e-6", "atol: 1.0e-2").replace("rtol: 1.0e-5", "rtol: 1.0e-2"))
    _golden(ws, "(x * x + y) * 1.005")
    told = verify(ws.root, "--compose")
    assert told.code == 1
    rows = json.loads(told.stdout)["triples"]
    assert {row["dtype"] for row in rows if not row["all_close"]} == {"float32"}


def test_a_policy_without_atol_and_rtol_bounds_the_contract_too(ws: OpWorkspace) -> None:
    text = ws.spec.read_text()
    start, end = text.index("tolerance:"), text.index("dynamic_axes:")
    ws.spec.write_text(text[:start] + "tolerance: {policy: mere_mare}\n" + text[end:])
    _edit(ws.interfaces, "  rtol: 1.0e-5", "  rtol: 1.0e-2")
    told = verify(ws.root, "--compose", as_json=False)
    assert told.code == 2 and "SPEC.md allows 0.0001 for float32" in " ".join(told.stderr.split()), told


def test_a_contract_of_two_modules_without_composition_is_refused(ws: OpWorkspace) -> None:
    text = ws.interfaces.read_text()
    ws.interfaces.write_text(text[: text.index("composition_verification:")])
    told = verify(ws.root, "--compose", as_json=False)
    assert told.code == 2 and "composition_verification: is missing: 2 modules need seeds" in " ".join(told.stderr.split()), told
