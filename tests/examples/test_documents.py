"""What the examples' documents say is true of their code, and the bundle's own checks find nothing in them."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests import program
from tests.markdown_cases.examples import kernels

from pypto_op.cli import root as command
from pypto_op.documents import complexity, design, front_matter, interfaces, spec, suite
from pypto_op.documents.golden import read_signature
from pypto_op.documents.kept_functions import function_hashes, require_kept
from pypto_op.documents.tolerance import policy_of
from pypto_op.generators.writing.tests import check_test

from .operators import EXAMPLES, OPS, STAGED, original

TILES = {
    "gated_delta_rule_bwd": {"T": 64},
    "flash_attention_bwd": {"S": 128},
    "flash_attention_fwd": {"S": 128},
    "matmul_bias_gelu": {"M": 128},
    "rmsnorm": {"T": 16},
    "softmax": {"R": 16, "C": 128},
}

ZONES = {
    "gated_delta_rule_bwd": {
        "tiny",
        "strong_decay",
        "same_keys",
        "alternating",
        "last_spike",
        "shift",
        "all_negative",
        "one_nan",
    },
    "flash_attention_bwd": {"tiny", "sharp", "alternating", "last_spike", "shift", "all_negative", "opposed", "one_nan"},
    "rmsnorm": {"tiny", "huge", "alternating", "last_spike", "shift", "all_negative", "one_nan"},
    "softmax": {"tiny", "huge", "alternating", "last_spike", "shift", "all_negative", "one_nan"},
    "flash_attention_fwd": {"tiny", "alternating", "last_spike", "shift", "all_negative", "one_nan"},
    "matmul_bias_gelu": {"tiny", "saturated", "alternating", "last_spike", "shift", "all_negative", "one_nan"},
}


def test_every_example_is_listed_here():
    assert sorted(path.name for path in EXAMPLES.glob("[a-z]*")) == sorted(OPS)


@pytest.mark.slow
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("words", [["check"], ["memory", "check"], ["lint", "--op-dir"]], ids=" ".join)
def test_the_bundles_own_checks_find_nothing(op, words):
    result = CliRunner().invoke(command, [*words, str(EXAMPLES / op)])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("op", OPS)
def test_one_signature_everywhere(op):
    ws = original(op)
    names = [port.name for port in interfaces.load(ws.interfaces).primary_inputs]
    assert list(read_signature(ws.golden, f"{op}_golden").parameters) == names
    assert _parameters(ws.impl.read_text(), f"{op}_wrapper") == names
    assert _constant(ws.test_inputs.read_text(), "PRIMARY_INPUT_ORDER") == names


@pytest.mark.parametrize("op", OPS)
def test_the_design_decides_what_the_golden_gives(op):
    ws = original(op)
    decided = design.load(ws.design)
    assert decided.module_count == complexity.analyse(ws.golden).module_count
    assert decided.module_count == len(interfaces.load(ws.interfaces).modules) == (2 if op in STAGED else 1)
    said = front_matter.load(ws.design, "design").data
    assert policy_of(said["precision"], file=ws.design) == spec.load(ws.spec).policy()
    assert set(said["dynamic_axes"]) == set(spec.load(ws.spec).dynamic_axes)


@pytest.mark.parametrize("op", OPS)
def test_the_tests_are_the_generated_ones_and_have_the_shapes_of_the_spec(op):
    ws, contract = original(op), spec.load(original(op).spec)
    for phase in (None, *((1, 2) if op in STAGED else ())):
        check_test(ws, phase)
    cases = _constant(ws.test.read_text(), "L1")
    assert {case["dtype"]["default"] for case in cases} == set(contract.supported_dtypes)
    for shape in contract.p0_shapes:
        assert shape in [case["shape"] for case in cases]


@pytest.mark.parametrize("op", OPS)
def test_cases_keep_to_the_tolerance_of_the_spec(op):
    """A case may have a tolerance of its own where SPEC.md says why: attention with large float32 scores."""
    contract = spec.load(original(op).spec)
    for case in suite.load(original(op).suite).cases:
        own = (case["atol"], case["rtol"]) if "atol" in case else None
        allowed = {None, contract.tolerance_for(case["dtype"]["default"])}
        assert own in allowed | ({(2e-5, 1e-4)} if op == "flash_attention_fwd" else set()), case["id"]


@pytest.mark.parametrize("op", OPS)
def test_the_suite_covers_tile_boundaries_dtypes_and_value_zones(op):
    cases = suite.load(original(op).suite).cases
    for symbol, tile in TILES[op].items():
        lengths = {case["shape"][symbol] for case in cases}
        assert {1, tile - 1, tile, tile + 1, 2 * tile - 1, 2 * tile, 2 * tile + 1} - lengths <= {tile}, symbol
        assert any(_prime(length) and length > tile for length in lengths), symbol
    assert {case["dtype"]["default"] for case in cases if case["precision"]} == {"float32", "float16", "bfloat16"}
    assert {case.get("draw_zone") for case in cases} >= ZONES[op]
    if op not in ("rmsnorm", "matmul_bias_gelu"):
        assert any("cancellation_stress" in case for case in cases)


@pytest.mark.parametrize("op", OPS)
def test_lines_that_the_memory_names_hold_what_it_says(op):
    ws = original(op)
    lines = ws.impl.read_text().split("\n")
    text = ws.memory.read_text()
    assert f"\nmodule_count: {design.load(ws.design).module_count}\n" in text
    rows = re.findall(r"^\| \d+ \| .* \| `(.+?)` \| (\d+) \| ✅ \|$", text, re.MULTILINE)
    inventory = re.findall(r"^ *\d+\. ", ast.get_docstring(ast.parse(ws.golden.read_text())) or "", re.MULTILINE)
    assert len(rows) == len(inventory) > 0
    for call, line in rows:
        assert call in lines[int(line) - 1], (call, line)
    for phase in range(1, design.load(ws.design).module_count + 1):
        file, wrapper = (ws.module_impl(phase), ws.wrapper_name(phase)) if op in STAGED else (ws.impl, ws.wrapper_name())
        lines = file.read_text().split("\n")
        review = text.split(f"## Phase M{phase} self-review")[1].split("##")[0]
        assert f"def {wrapper}(" in lines[int(re.search(r"`primary_inputs`: line (\d+)", review)[1]) - 1]
        assert "kernel(" in lines[int(re.search(r"exactly once: line (\d+)", review)[1]) - 1]


@pytest.mark.parametrize("op", STAGED)
def test_each_staged_file_keeps_what_was_verified_before_it(op):
    ws = original(op)
    count = design.load(ws.design).module_count
    assert ws.existing_module_phases() == list(range(1, count + 1))
    chain = [ws.module_impl(k) for k in range(1, count + 1)] + [ws.impl]
    for earlier, later in itertools.pairwise(chain):
        require_kept(function_hashes(earlier, op), function_hashes(later, op), file=later, phase=earlier.stem)
    # The integrated kernel is the last staged one, renamed: nothing more, nothing less.
    assert _code(chain[-1], op) == _code(chain[-2], op)


@pytest.mark.parametrize("op", STAGED)
def test_every_phase_has_its_golden_and_its_test(op):
    ws = original(op)
    for phase in ws.existing_module_phases():
        own = read_signature(ws.module_golden(phase), ws.golden_name(phase)).parameters
        assert _parameters(ws.module_impl(phase).read_text(), ws.wrapper_name(phase)) == list(own)
        assert f"from {ws.module_impl(phase).stem} import {ws.wrapper_name(phase)}" in ws.module_test(phase).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("op", OPS)
def test_goldens_agree_with_torchs_own_operators(op):
    run = program.with_torch(original(op).golden)
    assert run.returncode == 0, run.stderr
    assert "agrees with torch" in run.stdout


@pytest.mark.parametrize("kind", ["faults", "variants"])
@pytest.mark.parametrize("op", OPS)
def test_faults_and_variants_differ_from_the_example_and_have_a_case_that_judges_them(op, kind):
    found = kernels(kind, op)
    assert len(found) >= 10
    assert {kernel.right for kernel in found} == {kind == "variants"}
    assert {kernel.case for kernel in found} <= {case["id"] for case in suite.load(original(op).suite).cases}
    assert len({kernel.text for kernel in found} - {original(op).impl.read_bytes()}) == len(found)


@pytest.mark.slow
@pytest.mark.parametrize("op", OPS)
def test_the_linter_lets_every_variant_pass(op, tmp_path):
    from pypto_op_lint.api import lint_path

    from .operators import copy_of

    ws = copy_of(op, tmp_path)
    for kernel in kernels("variants", op):
        result = lint_path(ws.impl, text=kernel.text.decode("utf-8"))
        blocking = [f for f in result.findings if f.status == "FAIL"]
        assert not result.blocks and not blocking, (kernel.name, blocking)


def _parameters(text: str, function: str) -> list[str]:
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return [argument.arg for argument in node.args.args]
    raise AssertionError(f"no function {function}")


def _code(file: Path, op: str) -> str:
    """Return a file's code without its docstring and the module suffix of its names."""
    tree = ast.parse(re.sub(rf"{op}_module\d+_", f"{op}_", file.read_text()))
    return ast.dump(ast.Module(tree.body[1:], []))


def _constant(text: str, name: str):
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == name:
            return ast.literal_eval(node.value)
    raise AssertionError(f"no constant {name}")


def _prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))
