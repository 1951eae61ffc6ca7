"""The examples' own `test_<op>.py`: they pass on the right kernel and fail on a wrong one, run as a user runs them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests import program, quickly
from tests.markdown_cases.examples import kernel

from .operators import OPS, copy_of

quickly.skip_without("pypto")
pytestmark = [pytest.mark.sim, pytest.mark.slow, pytest.mark.timeout(600)]

FAULTS = {
    "flash_attention_bwd": "row_dot_ignored",
    "flash_attention_fwd": "lse_base_two",
    "gated_delta_rule_bwd": "dk_without_pull",
    "matmul_bias_gelu": "bias_ignored",
    "rmsnorm": "hidden_minus_one",
    "softmax": "last_row_unwritten",
}


def _keep_one_case(ws, name: str) -> None:
    """Let the test judge one case: it ends with the first one that differs, and a large one takes a minute."""
    text = re.sub(rf"^    \{{'id': '(?!{name}').*\n", "", ws.test.read_text(), flags=re.M)
    assert text.count("{'id': ") == 1
    ws.test.write_text(text)


def _run(ws, tmp_path) -> subprocess.CompletedProcess:
    output = tmp_path / "out"
    output.mkdir()
    env = {**os.environ, "TILE_FWK_OUTPUT_DIR": str(output), "TILE_FWK_DEVICE_ID": "0"}
    return program.with_torch(Path(__file__).with_name("run_in_sim.py"), ws.test, cwd=tmp_path, env=env)


RUN_WHOLE = OPS if quickly.EVERYTHING else ("rmsnorm",)
FAULTY = OPS if quickly.EVERYTHING else ("flash_attention_fwd", "rmsnorm")
"""The other operators' tests take up to a minute each, PYPTO_OP_ALL_CASES=1 runs them; the first one's second output is wrong."""


@pytest.mark.parametrize("op", RUN_WHOLE)
def test_it_passes_on_the_example(op, tmp_path):
    run = _run(copy_of(op, tmp_path), tmp_path)
    assert run.returncode == 0, run.stderr[-2000:]
    assert f"{op}: l0 and l1 agree with the golden" in run.stdout


@pytest.mark.parametrize("op", FAULTY)
def test_it_fails_on_a_planted_fault(op, tmp_path):
    ws = copy_of(op, tmp_path, impl=kernel("faults", op, FAULTS[op]).text)
    if op == "flash_attention_fwd" and not quickly.EVERYTHING:
        _keep_one_case(ws, "L3_tile_plus_1_fp16")
    run = _run(ws, tmp_path)
    assert run.returncode != 0
    assert f"{op}: FAIL: " in run.stderr and "differs" in run.stderr
    assert "agree with the golden" not in run.stdout
