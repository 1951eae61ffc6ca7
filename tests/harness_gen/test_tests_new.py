"""`pypto-op tests new`: tests that run as scripts and under pytest, on the real kernel, and that can fail."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.judge.judging import Answer, place

from pypto_op.bundle_files import bundle_root
from pypto_op.documents import spec as spec_document
from pypto_op.harness.tests import test_text as text_of
from pypto_op.judge.contract import load_contract
from pypto_op.workspace import OpWorkspace
from pypto_op_lint.api import lint_path

Call = Callable[..., Answer]

RUN_ALL = """
import contextlib, io, json, runpy, sys
import pytest
from pypto_op.backends.sim import simulate_here

simulate_here()
impl, test, edits = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
good = open(impl).read()
for name, old, new in edits:
    assert old in good
    with open(impl, "w") as file:
        file.write(good.replace(old, new))
    for how in ("script", "pytest") if name in ("good", "wrong") else ("script",):
        for module in [m for m in sys.modules if m.startswith(("chain", "test_"))]:
            del sys.modules[module]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            try:
                if how == "pytest":
                    raise SystemExit(int(pytest.main(["-q", "-p", "no:cacheprovider", "--import-mode=importlib", test])))
                runpy.run_path(test, run_name="__main__")
                end = 0
            except SystemExit as stop:
                end = stop.code
            except Exception as error:
                end = f"{type(error).__name__}: {error}"
        print(json.dumps([name, how, end, out.getvalue()]), file=sys.__stdout__)
"""
"""One process for all runs: importing pypto and torch takes longer than the tests."""

EDITS = [
    ("good", "x_tile", "x_tile"),
    ("wrong", "x_tile * x_tile + y_tile", "x_tile * x_tile + y_tile * 1.01"),
    ("two outputs", "return (out,)", "return (out, out)"),
    ("changes its inputs", "    kernel(x, y, out)", "    kernel(x, y, out)\n    x.mul_(2.0)\n    out.mul_(4.0)"),
]


@pytest.fixture
def ws(tmp_path: Path) -> OpWorkspace:
    cases = [{"id": f"L1_{n}", "level": "L1", "shape": {"N": n, "D": 32}} for n in (3, 17)]
    return place("chain", tmp_path, cases=cases)


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


def test_small_cases_set_each_scalar_to_its_other_values() -> None:
    ws = OpWorkspace.at(bundle_root() / "examples" / "ops" / "flash_attention_bwd")
    text = text_of(ws, spec_document.load(ws.spec), load_contract(ws).interfaces, 1)
    assert "KNOBS = [{}, {'causal': True}]" in text and "**(knobs or {})}" in text


def test_each_side_gets_the_inputs_that_it_takes(ws: OpWorkspace) -> None:
    ws.module_golden(1).write_text("def chain_module1_golden(x):\n    return (x * x,)\n")
    contract = load_contract(ws)
    text = text_of(ws, spec_document.load(ws.spec), contract.interfaces, 1)
    assert 'WRAPPER_INPUTS = ("x", "y")' in text and 'GOLDEN_INPUTS = ("x",)' in text


@pytest.mark.sim
def test_they_pass_and_each_planted_fault_fails_them(ws: OpWorkspace, call: Call) -> None:
    assert call("tests", "new", ws.root).code == 0
    command = [sys.executable, "-c", RUN_ALL, str(ws.module_impl(2)), str(ws.module_test(2)), json.dumps(EDITS)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ws.root, timeout=280)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('["')]
    rows = {(name, how): (end, out) for name, how, end, out in lines}
    assert len(rows) == 6, done.stderr
    assert rows["good", "script"][0] == 0 and "l0 and l1 agree with the golden" in rows["good", "script"][1]
    assert rows["good", "pytest"][0] == 0 and "2 passed" in rows["good", "pytest"][1]
    assert "out differs" in rows["wrong", "script"][0] and "agree" not in rows["wrong", "script"][1]
    assert rows["wrong", "pytest"][0] == 1 and "2 failed" in rows["wrong", "pytest"][1]
    assert "2 outputs, the golden has 1" in rows["two outputs", "script"][0]
    assert "out differs" in rows["changes its inputs", "script"][0], "the golden's inputs are others"
