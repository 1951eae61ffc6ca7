"""`pypto-op tests new`: tests that run as scripts and under pytest, on the real kernel, and that can fail."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.judge.judging import Answer, place

from pypto_op.documents import spec as spec_document
from pypto_op.harness.tests import test_text as text_of
from pypto_op.judge.contract import load_contract
from pypto_op.workspace import OpWorkspace
from pypto_op_lint.api import lint_path

Call = Callable[..., Answer]

UNDER_PYTEST = (
    "import sys, pytest; from pypto_op.backends.sim import simulate_here; simulate_here(); "
    "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '--import-mode=importlib', sys.argv[1]]))"
)


@pytest.fixture
def ws(tmp_path: Path) -> OpWorkspace:
    cases = [{"id": f"L1_{n}", "level": "L1", "shape": {"N": n, "D": 32}} for n in (3, 17)]
    return place("chain", tmp_path, cases=cases)


def as_script(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pypto_op.backends.hostshim", path]
    return subprocess.run(command, capture_output=True, text=True, cwd=path.parent, timeout=250)


def test_one_per_phase_and_one_for_the_whole_and_the_linter_takes_them(ws: OpWorkspace, call: Call) -> None:
    told = json.loads(call("tests", "new", ws.root, "--json").stdout)
    assert told["files"] == dict.fromkeys(
        ("modules/test_chain_module1.py", "modules/test_chain_module12.py", "test_chain.py"), "written"
    )
    for path in (ws.module_test(1), ws.module_test(2), ws.test):
        result = lint_path(path, stage=5)
        assert [f for f in result.findings if f.status == "FAIL"] == []
        assert f"def test_{path.stem.removeprefix('test_chain_') if path != ws.test else 'chain'}_l0(" in path.read_text()


def test_a_test_comes_after_impl_and_golden(ws: OpWorkspace, call: Call) -> None:
    ws.module_impl(2).unlink()
    told = call("tests", "new", ws.root, "--up-to-module", "2")
    assert told.code == 2 and "chain_module12_impl.py: is missing" in told.stderr
    ws.module_golden(1).write_text("def other(x, y):\n    return x\n")
    told = call("tests", "new", ws.root, "--up-to-module", "M1")
    assert told.code == 2 and "chain_module1_golden" in told.stderr
    assert call("tests", "new", ws.root, "--up-to-module", "3").code == 2
    assert not ws.module_test(1).exists() and not ws.module_test(2).exists()


def test_each_side_gets_the_inputs_that_it_takes(ws: OpWorkspace) -> None:
    ws.module_golden(1).write_text("def chain_module1_golden(x):\n    return (x * x,)\n")
    contract = load_contract(ws)
    text = text_of(ws, spec_document.load(ws.spec), contract.interfaces, 1)
    assert 'WRAPPER_INPUTS = ("x", "y")' in text and 'GOLDEN_INPUTS = ("x",)' in text


@pytest.mark.sim
def test_they_pass_and_a_planted_fault_fails_them(ws: OpWorkspace, call: Call) -> None:
    assert call("tests", "new", ws.root).code == 0
    good = as_script(ws.module_test(2))
    assert good.returncode == 0 and "l0 and l1 agree with the golden" in good.stdout, good.stderr
    impl = ws.module_impl(2)
    impl.write_text(impl.read_text().replace("x_tile * x_tile + y_tile", "x_tile * x_tile + y_tile * 1.01"))
    bad = as_script(ws.module_test(2))
    assert bad.returncode == 1 and "agree" not in bad.stdout and "out differs" in bad.stderr
    done = subprocess.run(
        [sys.executable, "-c", UNDER_PYTEST, ws.module_test(2)], capture_output=True, text=True, cwd=ws.root, timeout=250
    )
    assert done.returncode == 1 and "2 failed" in done.stdout and "out differs" in done.stdout


@pytest.mark.sim
@pytest.mark.slow
def test_a_lost_output_and_a_changed_input_fail_them(ws: OpWorkspace, call: Call) -> None:
    assert call("tests", "new", ws.root).code == 0
    impl = ws.module_impl(1)
    good = impl.read_text()
    impl.write_text(good.replace("return (out,)", "return (out, out)"))
    told = as_script(ws.module_test(1))
    assert told.returncode == 1 and "2 outputs, the golden has 1" in told.stderr
    impl.write_text(good.replace("    kernel(x, y, out)", "    kernel(x, y, out)\n    x.mul_(2.0)\n    out.mul_(4.0)"))
    told = as_script(ws.module_test(1))
    assert told.returncode == 1, "a wrapper that changes its inputs does not change the golden's"
