"""`pypto-op tests new`: tests that run as scripts and under pytest, on the real kernel, and that can fail."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import program
from tests.judge.judging import Answer, place

from pypto_op.bundle_files import bundle_root
from pypto_op.errors import ContractError
from pypto_op.generators.writing.tests import check_test
from pypto_op.generators.writing.tests import test_text as text_of
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
    cases = [{"id": f"L1_{n}", "level": "L1", "shape": {"N": n, "D": 32}, "dtype": "float32"} for n in (3, 17)]
    cases[1]["policy"] = "twin@2"
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
    small = cases_of(text_of(ws, 1), "L0")
    assert {case["causal"] for case in small} == {False, True}


def cases_of(text: str, name: str) -> list[dict[str, Any]]:
    (value,) = (
        node.value
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name
    )
    cases = ast.literal_eval(value)
    assert isinstance(cases, list)
    return cases


def test_cases_are_those_of_the_suite_with_their_tolerance_and_p0_is_always_there(ws: OpWorkspace) -> None:
    own = {"dtype": {"default": "float32"}, "precision": True, "seed": 42}
    suite = [
        {"id": "structure", "level": "L1", "shape": {"N": 1, "D": 32}, **own, "precision": False},
        {"id": "tight", "level": "L2", "shape": {"N": 3, "D": 32}, **own, "atol": 1e-9, "rtol": 1e-6, "x_why": "remark"},
        {"id": "natural", "level": "L3", "shape": {"N": 17, "D": 32}, **own, "policy": "twin@2"},
        {"id": "large", "level": "L3", "shape": {"N": 900, "D": 32}, **own},
    ]
    ws.suite.write_text(json.dumps({"schema_version": 1, "op": "chain", "total_modules": 2, "cases": suite}))
    small = cases_of(text_of(ws, None), "L0")
    assert [case["id"] for case in small] == ["tight", "natural"]
    assert small[0]["atol"] == 1e-9 and small[1]["policy"] == "twin@2" and "x_why" not in small[0]
    assert [case["shape"] for case in cases_of(text_of(ws, None), "L1")] == [{"N": 16, "D": 32}]


@pytest.mark.parametrize("phase", [1, None])
def test_an_edited_test_is_told_from_a_generated_one(ws: OpWorkspace, call: Call, phase: int | None) -> None:
    path = ws.test if phase is None else ws.module_test(phase)
    with pytest.raises(ContractError, match="is missing"):
        check_test(ws, phase)
    assert call("tests", "new", ws.root).code == 0
    check_test(ws, phase)
    path.write_text(path.read_text().replace("assert not bad", "assert True or not bad"))
    with pytest.raises(ContractError, match=r"is not what pypto-op generates.*tests new .* --force"):
        check_test(ws, phase)


def test_each_side_gets_the_inputs_that_it_takes(ws: OpWorkspace) -> None:
    ws.module_golden(1).write_text("def chain_module1_golden(x):\n    return (x * x,)\n")
    text = text_of(ws, 1)
    assert 'WRAPPER_INPUTS = ("x", "y")' in text and 'GOLDEN_INPUTS = ("x",)' in text


def run_all(ws: OpWorkspace, edits: list[tuple[str, str, str]]) -> tuple[dict[tuple[str, str], tuple[Any, str]], str]:
    """Run the test of M2 after each edit of its impl: (edit, how) -> (exit code or last words, what it printed)."""
    done = program.python("-c", RUN_ALL, ws.module_impl(2), ws.module_test(2), json.dumps(edits), cwd=ws.root)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('["')]
    return {(name, how): (end, out) for name, how, end, out in lines}, done.stderr


@pytest.mark.sim
def test_they_pass_and_each_planted_fault_fails_them(ws: OpWorkspace, call: Call) -> None:
    assert call("tests", "new", ws.root).code == 0
    rows, errors = run_all(ws, EDITS)
    assert len(rows) == 6, errors
    assert rows["good", "script"][0] == 0 and "l0 and l1 agree with the golden" in rows["good", "script"][1]
    assert rows["good", "pytest"][0] == 0 and "2 passed" in rows["good", "pytest"][1]
    assert "out differs" in rows["wrong", "script"][0] and "agree" not in rows["wrong", "script"][1]
    assert rows["wrong", "pytest"][0] == 1 and "2 failed" in rows["wrong", "pytest"][1]
    assert "2 outputs, the golden has 1" in rows["two outputs", "script"][0]
    assert "out differs" in rows["changes its inputs", "script"][0], "the golden's inputs are others"


WIDE = [
    ("x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32)", "x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP16)"),
    ("y: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32)", "y: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP16)"),
    (
        "pypto.assemble(x_tile",
        "x_tile, y_tile = pypto.cast(x_tile, pypto.DT_FP32), pypto.cast(y_tile, pypto.DT_FP32)\n        pypto.assemble(x_tile",
    ),
    ("dtype=x.dtype", "dtype=torch.float32"),
]


@pytest.mark.sim
def test_a_float32_output_of_float16_inputs_keeps_the_tolerance_of_float32(ws: OpWorkspace, call: Call) -> None:
    spec = ws.spec.read_text().replace("supported_dtypes: [float32]", "supported_dtypes: [float16]")
    rows = "  float32: {atol: 1.0e-6, rtol: 1.0e-5}\n  float16: {atol: 2.0e-3, rtol: 2.0e-3}\n"
    ws.spec.write_text(spec.replace("  atol: 1.0e-6\n  rtol: 1.0e-5\n", rows))
    ws.suite.write_text(ws.suite.read_text().replace("float32", "float16").replace(', "policy": "twin@2"', ""))
    golden = "def chain_module12_golden(x, y):\n    return (x.float() * x.float() + y.float(),)\n"
    ws.module_golden(2).write_text(golden)
    impl = ws.module_impl(2).read_text()
    for old, new in WIDE:
        assert old in impl
        impl = impl.replace(old, new)
    ws.module_impl(2).write_text(impl)
    assert call("tests", "new", ws.root, "--up-to-module", "2").code == 0
    rounded = [("good", "x_tile", "x_tile"), ("wide lost", "return (out,)", "return (out.half().float(),)")]
    rows, errors = run_all(ws, rounded)
    assert rows["good", "script"][0] == 0, errors + rows["good", "script"][1]
    assert "out differs" in rows["wide lost", "script"][0]
