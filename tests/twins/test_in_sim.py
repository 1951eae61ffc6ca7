"""Real kernels under the twin policy: honest ones pass, faults that the tolerance cannot see fail."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.markdown_cases.examples import kernel

from pypto_op.bundle_files import bundle_root
from pypto_op.judge.cases.request import Request
from pypto_op.judge.verify import verify_operator
from pypto_op.vocabulary import Mode
from pypto_op.workspace import OpWorkspace

pytestmark = [pytest.mark.sim, pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.usefixtures("private_key", "numeric")]

ROOT = bundle_root()


def judged(
    op: str, impl: str | None, case: str, into: Path, *, policy: str | None = None, edit: Callable[[Any], None] | None = None
) -> dict[str, Any]:
    """Judge a fault or a variant of an example (`faults/softmax/narrow_state`) by one case; `edit` changes that case.

    The seed is named, so what passes is PARTIAL.
    """
    root = into / "custom" / op
    shutil.copytree(ROOT / "examples" / "ops" / op, root, ignore=shutil.ignore_patterns("_debug", "__pycache__"))
    ws = OpWorkspace.at(root)
    if impl is not None:
        kind, _, name = impl.split("/")
        ws.impl.write_bytes(kernel(kind, op, name).text)
    suite = json.loads(ws.suite.read_text())
    suite["cases"] = [c for c in suite["cases"] if c["id"] == case]
    if edit is not None:
        edit(suite["cases"][0])
    ws.suite.write_text(json.dumps(suite))
    return verify_operator(ws, Request(modes=[Mode.SIM], policy=policy, seed=5))


def small(case: dict[str, Any]) -> None:
    """Two tiles of attention are two where the second holds one row, and cost less there."""
    if "S" in case["shape"]:
        case["shape"] = {"BH": 1, "S": 129, "D": 16}


def by_twin(case: dict[str, Any]) -> None:
    small(case)
    case["twin"] = "twin@2"


UNSEEN = [
    ("softmax", "narrow_state", "L2_two_by_two_fp16", "bias"),
    ("rmsnorm", "narrow_sum", "L2_two_tiles_fp16", "bias"),
    ("rmsnorm", "no_eps", "L2_two_tiles_fp32", "mere"),
]
"""Faults that SPEC.md's tolerance passes on an ordinary case: sums kept in 16 bits, and a lost term."""


@pytest.mark.parametrize(("op", "fault", "case", "measure"), UNSEEN)
def test_a_fault_below_the_tolerance_is_no_natural_error(op: str, fault: str, case: str, measure: str, tmp_path: Path) -> None:
    path = f"faults/{op}/{fault}"
    report = judged(op, path, case, tmp_path / "plain", edit=lambda c: c.pop("twin", None))
    seen = report["checks"][0]["modes"]["sim"]["reasons"]
    assert seen in ([], ["wrong_when_changed"], ["stale_result"]), "the tolerance alone does not see it; another eps may"
    report = judged(op, path, case, tmp_path / "twin", edit=by_twin)
    check = report["checks"][0]
    assert report["status"] == "FAIL" and check["policy"].endswith("+ twin@2")
    assert measure in report["first_failure"]["summary"] or check["modes"]["sim"]["per_tensor"][0]["out_of_tolerance_count"]
    assert measure in check["modes"]["sim"]["per_tensor"][0]["measures"]
    assert report["first_failure"]["cpu_reproducer_candidate"] is False


def test_weights_rounded_before_they_are_summed_fail(tmp_path: Path) -> None:
    path = "faults/flash_attention_fwd/sum_of_rounded_weights"
    report = judged("flash_attention_fwd", path, "L2_two_tiles_fp16", tmp_path, policy="twin@2", edit=small)
    assert report["status"] == "FAIL"
    assert report["first_failure"]["first_bad_output"] == "lse"


@pytest.mark.parametrize(
    ("op", "variant", "case"),
    [
        ("softmax", None, "L2_two_by_two_fp16"),
        ("softmax", "tile_8_by_512", "L2_two_by_two_bf16"),
        ("rmsnorm", "rounds_before_weight", "L2_two_tiles_bf16"),
        ("rmsnorm", "matmul_sum", "L2_two_tiles_fp32"),
        ("flash_attention_fwd", "normalised_accumulator", "L2_two_tiles_causal_bf16"),
        ("flash_attention_fwd", "wide_weights", "L2_two_tiles_fp16"),
    ],
)
def test_an_honest_kernel_passes(op: str, variant: str | None, case: str, tmp_path: Path) -> None:
    report = judged(op, variant and f"variants/{op}/{variant}", case, tmp_path, edit=by_twin)
    assert report["status"] == "PARTIAL", report["first_failure"]
    measures = report["checks"][0]["modes"]["sim"]["per_tensor"][0]["measures"]
    assert {"mare", "mere", "rmse"} <= set(measures)


@pytest.mark.parametrize(("impl", "status"), [("variants/rmsnorm/matmul_sum", "PARTIAL"), ("faults/rmsnorm/no_eps", "FAIL")])
def test_the_policy_of_a_case_stands_in_the_place_of_its_tolerance(impl: str, status: str, tmp_path: Path) -> None:
    def edit(case: dict[str, Any]) -> None:
        case.update(atol=1e-12, rtol=1e-12, policy="twin@2")

    report = judged("rmsnorm", impl, "L2_two_tiles_fp32", tmp_path, edit=edit)
    assert report["status"] == status, report["first_failure"]
    assert report["checks"][0]["policy"] == "twin@2"


def test_a_golden_that_no_twin_can_run_blames_the_workspace(tmp_path: Path) -> None:
    def break_golden(case: dict[str, Any]) -> None:
        by_twin(case)
        golden = tmp_path / "custom" / "softmax" / "softmax_golden.py"
        watch = "from torch.utils import _python_dispatch as modes\nif modes._get_current_dispatch_mode(): raise RuntimeError\n"
        head, tail = golden.read_text().split("    wide = torch.promote_types", 1)
        indented = "".join(f"    {line}\n" for line in watch.splitlines())
        golden.write_text(f"{head}{indented}    wide = torch.promote_types{tail}")

    report = judged("softmax", None, "L2_two_by_two_fp32", tmp_path, edit=break_golden)
    assert report["status"] == "ERROR" and report["error"]["kind"] == "contract"
    assert "as the twin reversed" in report["error"]["message"]
