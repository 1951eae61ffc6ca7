"""The staged path: direct mode at a boundary, sweep, composition, inspection probes, and what refuses to be a PASS."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.passes import pass_for_bytes

from pypto_op.judge.adversarial import runner_text
from pypto_op.workspace import OpWorkspace

from .judging import Answer, place, verify
from .staged import CASES, PROBE_GOLDEN, SQUARE, SUM, change, with_probe, with_two_outputs

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]


@pytest.fixture
def ws(clean_workspace: Path) -> OpWorkspace:
    return place("chain", clean_workspace, cases=CASES)


def judge(ws: OpWorkspace, phase: int, *more: str, modes: str = "sim") -> Answer:
    return verify(ws.root, "--up-to-module", str(phase), *more, modes=modes)


# -- direct mode ------------------------------------------------------------------------------------------------------


def test_each_boundary_against_its_own_golden_in_every_mode(ws: OpWorkspace) -> None:
    ws.module_golden(2).write_text("raise SystemExit('the golden of another phase was loaded')\n")
    report = judge(ws, 1, modes="sim,npu").report
    assert (report["status"], report["up_to_module"], report["total_modules"]) == ("PASS", 1, 2)
    assert report["per_mode_status"] == {"sim": "PASS", "npu": "SKIPPED"}
    assert report["wrapper"] == "chain_module1_wrapper" and report["checks"][1]["all_close"] is True
    answer = judge(ws, 2)
    assert answer.code == 2 and answer.report["status"] == "ERROR", "and that golden's own boundary is not judged"
    assert answer.report["first_failure"]["failure_category"] == "structural"


def test_the_output_of_the_earliest_module_is_blamed(ws: OpWorkspace) -> None:
    with_two_outputs(ws)
    assert judge(ws, 1).report["status"] == "PASS", "M1's wrapper and golden take only what M1 reads"
    assert judge(ws, 2).report["status"] == "PASS"
    good = ws.module_impl(2).read_text()
    change(ws, 2, SUM, f"{SUM} * 1.01")
    failure = judge(ws, 2).report["first_failure"]
    assert (failure["first_bad_output"], failure["first_bad_producer"]) == ("out", 2)
    assert failure["failing_module_boundary"] == 2 and failure["failure_category"] == "precision"
    ws.module_impl(2).write_text(good)
    change(ws, 2, "x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[rows, WIDTH])", "x_tile = " + DOUBLED)
    failure = judge(ws, 2).report["first_failure"]
    assert failure["summary"].count("out:") == 1, "both are wrong"
    assert (failure["first_bad_output"], failure["first_bad_producer"]) == ("square", 1), "what M2 makes of it is not to blame"


DOUBLED = "pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[rows, WIDTH]) * 2.0"


def test_a_missing_wrapper_is_structural_and_names_what_was_looked_for(ws: OpWorkspace) -> None:
    change(ws, 1, "def chain_module1_wrapper", "def chain_wrapper")
    answer = judge(ws, 1)
    failure = answer.report["first_failure"]
    assert (answer.code, answer.report["status"], failure["failure_category"]) == (1, "ERROR", "structural")
    assert failure["divergence_fingerprint"] == "all_fail"
    assert "chain_module1_wrapper" in failure["summary"] and "it has chain_wrapper" in failure["summary"]


@pytest.mark.parametrize(
    ("spoil", "arguments", "words"),
    [
        (None, ("--levels", "L5"), "no case matches levels L5"),
        (lambda ws: ws.module_golden(1).unlink(), (), "the golden is missing"),
        (lambda ws: ws.module_impl(1).unlink(), (), "chain_module1_wrapper was to be judged"),
        (lambda ws: ws.suite.write_text('{"op": "chain", "cases": []'), (), "not valid JSON"),
        (lambda ws: ws.suite.write_text('{"schema_version": 1, "op": "chain", "total_modules": 2, "cases": []}'), (), "cases"),
        (lambda ws: ws.interfaces.write_text("modules: {"), (), "not valid YAML"),
        (lambda ws: ws.interfaces.write_text(ws.interfaces.read_text().replace("module_1", "module_7")), (), "module_7"),
    ],
    ids=["no-level", "no-golden", "no-impl", "suite-broken", "suite-empty", "yaml-broken", "wiring-broken"],
)
def test_what_cannot_be_judged_is_an_error_and_never_a_pass(
    ws: OpWorkspace, spoil: Callable[[OpWorkspace], object] | None, arguments: tuple[str, ...], words: str
) -> None:
    if spoil is not None:
        spoil(ws)
    answer = judge(ws, 1, *arguments)
    assert (answer.code, answer.report["status"], answer.report["cases_passed"]) == (2, "ERROR", 0)
    assert words in answer.report["error"]["message"]
    assert answer.report["first_failure"]["failure_category"] == "structural"
    assert pass_for_bytes(ws, k=1) is None


def test_a_case_that_is_not_there_ends_before_anything_is_judged(ws: OpWorkspace) -> None:
    answer = judge(ws, 1, "--case", "nothing")
    assert answer.code == 2 and "no case matches the case 'nothing'" in answer.stderr
    assert pass_for_bytes(ws, k=1) is None


def test_a_pass_on_another_suite_is_no_evidence(ws: OpWorkspace) -> None:
    other = ws.root / "_debug" / "other.json"
    other.parent.mkdir(exist_ok=True)
    data = json.loads(ws.suite.read_text())
    other.write_text(json.dumps({**data, "cases": data["cases"][1:]}))
    report = judge(ws, 1, "--suite", str(other)).report
    assert (report["status"], report["cases_total"]) == ("PARTIAL", 1)
    assert pass_for_bytes(ws, k=1) is None
    assert judge(ws, 1, "--suite", str(other.with_name("nothing.json"))).code == 2


def test_an_unknown_level_or_mode_is_refused_before_anything_runs(ws: OpWorkspace) -> None:
    for words in (("--levels", "L9"), ("--modes", "gpu")):
        told = verify(ws.root, "--up-to-module", "1", *words)
        assert told.code == 2 and not ws.report.exists() and told.stdout == ""


def test_a_suite_whose_cases_all_skip_is_no_pass(ws: OpWorkspace) -> None:
    answer = judge(ws, 1, modes="npu")
    assert (answer.code, answer.report["status"]) == (3, "ERROR") and answer.report["per_mode_status"] == {"npu": "SKIPPED"}


@pytest.mark.parametrize(
    ("golden", "words"),
    [
        ("    raise ValueError(f'the secret is {x}')", "it ended with: exception"),
        ("    return (x * x, x)", "it returned 2 output(s), the contract names 1"),
        ("    return (x.mul_(x),)", "it changes its own inputs"),
    ],
    ids=["raises", "two-outputs", "changes-inputs"],
)
def test_a_golden_that_is_none_fails_the_workspace_and_not_the_kernel(ws: OpWorkspace, golden: str, words: str) -> None:
    ws.module_golden(1).write_text(f"def chain_module1_golden(x, y):\n{golden}\n")
    answer = judge(ws, 1)
    assert (answer.code, answer.report["status"], answer.report["error"]["kind"]) == (2, "ERROR", "contract")
    assert words in answer.report["error"]["message"] and "secret" not in answer.stdout


def test_a_golden_that_prints_tells_nobody(ws: OpWorkspace) -> None:
    ws.module_golden(1).write_text("def chain_module1_golden(x, y):\n    print('GOLDEN', x)\n    return (x * x,)\n")
    answer = judge(ws, 1)
    assert answer.report["status"] == "PASS" and "GOLDEN" not in answer.stdout + answer.stderr


def test_a_golden_that_never_ends_costs_one_time_out(ws: OpWorkspace) -> None:
    ws.module_golden(1).write_text("def chain_module1_golden(x, y):\n    while True:\n        pass\n")
    answer = judge(ws, 1, "--timeout", "2")
    assert (answer.code, answer.report["error"]["kind"]) == (2, "contract")
    reasons = [check["modes"]["sim"]["reason"] for check in answer.report["checks"]]
    assert "timed_out" in reasons[0] and "not called again" in reasons[1]


# -- sweep and composition --------------------------------------------------------------------------------------------


def test_sweep_finds_the_smallest_boundary_and_spares_none(ws: OpWorkspace) -> None:
    change(ws, 1, SQUARE, f"{SQUARE} + 0.01")
    ws.impl.write_text(ws.module_impl(2).read_text())
    told = verify(ws.root, "--sweep", "--case", "ragged")
    result = json.loads(told.stdout)
    assert (told.code, result["status"], result["smallest_failing_module"]) == (1, "FAIL", 1)
    assert [(row["up_to_module"], row["status"]) for row in result["boundaries"]] == [(1, "FAIL"), (2, "PARTIAL")]
    kept = json.loads((ws.root / result["boundaries"][0]["report"]).read_text())
    assert kept["first_failure"]["failing_module_boundary"] == 1 and not ws.report.exists()
    change(ws, 1, f"{SQUARE} + 0.01", SQUARE)
    told = verify(ws.root, "--sweep", "--case", "ragged", as_json=False)
    assert "the staged files of M1 to M2 pass; chain_impl.py was not judged" in told.stdout
    change(ws, 2, SUM, f"{SUM} + 0.01")
    assert json.loads(verify(ws.root, "--sweep", "--case", "ragged").stdout)["smallest_failing_module"] == 2
    assert verify(ws.root, "--sweep", "--up-to-module", "3").code == 2


def test_composition_over_seed_shape_and_output(ws: OpWorkspace) -> None:
    with_two_outputs(ws)
    told = verify(ws.root, "--compose")
    result = json.loads(told.stdout)
    assert (told.code, result["status"], result["pairs"], len(result["triples"])) == (0, "PASS", 4, 8)
    assert {(row["seed"], row["shape"]["N"], row["tensor"]) for row in result["triples"]} == {
        (seed, n, name) for seed in (3, 17) for n in (16, 17) for name in ("out", "square")
    }
    assert result["sentence"].endswith("matches chain_golden on all 4 (seed, shape) pairs.")
    ws.module_golden(2).write_text("def chain_module12_golden(x, y):\n    return x * x + y, x * x * (1 + (x.shape[0] > 16))\n")
    told = verify(ws.root, "--compose", as_json=False)
    assert told.code == 1
    assert "FAILED. Failing pair: seed=3 shape={'N': 17, 'D': 32} tensor=square." in " ".join(told.stdout.split())
    ws.module_golden(2).write_text("def chain_module12_golden(x, y):\n    return (x * x + y,)\n")
    assert json.loads(verify(ws.root, "--compose").stdout)["status"] == "FAIL", "unequal tuples"


@pytest.mark.parametrize(
    "flags", [("--sweep", "--inspect", "a"), ("--compose", "--case", "tile"), ("--self-test", "--levels", "L1")]
)
def test_an_option_that_would_be_ignored_is_refused(ws: OpWorkspace, flags: tuple[str, ...]) -> None:
    told = verify(ws.root, *flags)
    assert told.code == 2 and "takes no" in told.stderr and told.stdout == ""


# -- inspection probes ------------------------------------------------------------------------------------------------

THREE_TILES = [{"id": "three", "level": "L2", "shape": {"N": 48, "D": 32}, "atol": 1e-6, "rtol": 1e-5}]


def test_inspection_finds_the_iteration_where_drift_begins(clean_workspace: Path) -> None:
    ws = place("chain", clean_workspace, cases=THREE_TILES)
    impl = with_probe(ws)
    report = judge(ws, 1, "--impl", impl, "--inspect", "square").report
    assert report["status"] == "PARTIAL" and report["selection"]["inspect"] == "square"
    rows = report["checks"][0]["inspection"]["per_iter"]
    assert [(row["iter"], row["all_close"]) for row in rows] == [(0, True), (1, True), (2, True)]
    assert pass_for_bytes(ws, impl=Path(impl), k=1) is None, "a probe is no evidence for the outputs"
    text = Path(impl).read_text()
    probe = "        pypto.assemble(x_tile * x_tile, [row, 0], probe)\n"
    branch = "        if step == 2:\n            pypto.assemble(x_tile * x_tile * 1.01, [row, 0], probe)\n        else:\n    "
    assert probe in text
    Path(impl).write_text(text.replace(probe, branch + probe))
    answer = judge(ws, 1, "--impl", impl, "--inspect", "inspection_square")
    failure = answer.report["first_failure"]
    assert (answer.code, failure["drift_onset_iter"], failure["first_bad_output"]) == (1, 2, "inspection_square")
    rows = answer.report["checks"][0]["inspection"]["per_iter"]
    assert [row["all_close"] for row in rows] == [True, True, False]
    assert set(rows[2]) == {"iter", "max_abs_diff", "max_rel_diff", "all_close"}, "metrics, and no values"


def test_a_probe_that_one_side_lacks_is_structural(clean_workspace: Path) -> None:
    ws = place("chain", clean_workspace, cases=THREE_TILES)
    impl = with_probe(ws, buffer="inspection_other")
    answer = judge(ws, 1, "--impl", impl, "--inspect", "square")
    failure = answer.report["first_failure"]
    assert (failure["reason"], failure["failure_category"]) == ("missing_probe", "structural")
    assert "has no parameter inspection_square" in failure["summary"]
    answer = judge(ws, 1, "--impl", impl, "--inspect", "other")
    assert answer.code == 2 and "no probe other; it has: square" in answer.report["error"]["message"]
    golden = ws.module_golden(1)
    golden.write_text(golden.read_text().replace(PROBE_GOLDEN, ""))
    answer = judge(ws, 1, "--impl", impl, "--inspect", "other")
    assert answer.code == 2 and "module_1_inspect" in answer.report["error"]["message"]


def test_the_runner_file_is_the_same_judge(ws: OpWorkspace) -> None:
    """In this process, so that it shares the warm zygote; as a script it is started by tests of the generators."""
    ws.runner.write_text(runner_text())
    names: dict[str, object] = {"__file__": str(ws.runner), "__name__": "adversarial_runner"}
    exec(compile(runner_text(), str(ws.runner), "exec"), names)
    main = names["main"]
    assert callable(main)
    impl = str(ws.module_impl(2))
    assert main(["--impl", impl, "--up-to-module", "2", "--levels", "L2", "--modes", "sim,npu"]) == 0
    report = json.loads(ws.report.read_text())
    assert (report["status"], report["impl_file"], report["selection"]["levels"]) == (
        "PARTIAL",
        "modules/chain_module12_impl.py",
        ["L2"],
    )
    for name in ("run_modes", "_phase_suffix", "_load_truth_golden", "_resolve_impl_wrapper", "_compare", "_sanitize"):
        assert callable(names[name])
    assert {"golden_output", "inputs"} <= set(names["_FORBIDDEN_REPORT_KEYS"])  # type: ignore[call-overload]
    assert main(["--impl", impl, "--up-to-module", "1"]) == 2, "the file contradicts the boundary"
