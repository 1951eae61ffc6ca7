"""`pypto-op harness new` on the two-module operator: files that work, are kept when edited, and say what they left out."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from collections.abc import Callable

import click
import pytest
import yaml
from tests.generators import few_cases
from tests.judge.judging import Answer
from tests.telling import told_lines

from pypto_op.backends.reference import ReferenceSession
from pypto_op.documents import suite as suite_document
from pypto_op.errors import ContractError
from pypto_op.generators import commands
from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.evaluation import Made, inputs_text
from pypto_op.generators.operator.sources import gather
from pypto_op.generators.rehearsing.first_candidate import Draw, FirstCandidate
from pypto_op.generators.rehearsing.rehearsal import Offers, rehearse
from pypto_op.judge.adversarial import runner_text
from pypto_op.judge.answers import measured
from pypto_op.judge.self_test import selftest
from pypto_op.judge.self_test.known import Known
from pypto_op.proof import records
from pypto_op.twins.reordering import HONEST
from pypto_op.workspace import OpWorkspace

pytestmark = pytest.mark.sim

Call = Callable[..., Answer]


def test_a_self_test_draws_anew_where_sums_cancel_on_its_fresh_seed(
    bare: OpWorkspace, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On this seed one element of L5_huge is next to 0; `verify` leaves such a draw, and the self-test refused the suite."""
    few_cases.keep(monkeypatch, '"L5_huge')
    assert call("harness", "new", bare.root).code == 0
    monkeypatch.setattr(selftest, "Known", functools.partial(Known, fresh=1176743819))
    report = json.loads(call("verify", bare.root, "--self-test", "--json").stdout)
    [row] = [row for row in report["checks"] if row["name"] == "honest_orders"]
    assert row["status"] == "PASS", row


def test_all_three_files_are_written_and_the_self_test_passes(bare: OpWorkspace, call: Call) -> None:
    made = call("harness", "new", bare.root, "--json")
    assert made.code == 0, made.stderr
    files = json.loads(made.stdout)["files"]
    assert set(files.values()) == {"written"} and len(files) == 3
    assert suite_document.check(bare.suite) == []
    assert bare.runner.read_text() == runner_text()
    told = call("verify", bare.root, "--self-test", "--json")
    assert told.code == 0, told.stdout + told.stderr
    assert {row["name"]: row["status"] for row in json.loads(told.stdout)["checks"]} == dict.fromkeys(
        (
            "runner",
            "documents",
            "inputs",
            "golden",
            "honest_orders",
            "planted_faults",
            "natural_error",
            "cancellation",
            "sanitiser",
            "composition",
        ),
        "PASS",
    )
    again = json.loads(call("harness", "new", bare.root, "--json").stdout)["files"]
    assert set(again.values()) == {"unchanged"}


def test_a_stopped_run_writes_no_suite_and_keeps_what_it_measured(
    bare: OpWorkspace, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def stop(case: str, done: int, total: int) -> None:
        if case.startswith("L3"):
            raise KeyboardInterrupt

    monkeypatch.setattr(commands, "_tell_rehearsal", stop)
    with pytest.raises(click.Abort):
        commands.harness_new.main([str(bare.root)], standalone_mode=False)
    assert "stopped before the files in eval/ were written" in capfd.readouterr().err
    assert not bare.suite.exists()
    assert list((bare.debug_dir / records.FOLDER).glob(f"{measured.KIND}-*.json")), "the next run need not measure it again"


def test_what_somebody_edited_is_kept(bare: OpWorkspace, call: Call) -> None:
    assert call("harness", "new", bare.root, "--no-rehearsal").code == 0
    for path in (bare.test_inputs, bare.runner):
        path.write_text(path.read_text() + "# mine\n")
    suite = json.loads(bare.suite.read_text())
    suite["cases"] = suite["cases"][:-1]
    bare.suite.write_text(json.dumps(suite))
    before = {path: path.read_bytes() for path in (bare.test_inputs, bare.runner, bare.suite)}
    told = call("harness", "new", bare.root, "--no-rehearsal", "--json")
    assert told.code == 0 and set(json.loads(told.stdout)["files"].values()) == {"kept"}
    assert {path: path.read_bytes() for path in before} == before
    told = call("harness", "new", bare.root, "--no-rehearsal", "--force", "--json")
    assert set(json.loads(told.stdout)["files"].values()) == {"replaced"}
    assert bare.runner.read_text() == runner_text()


def test_a_golden_that_overflows_gets_smaller_inputs_and_one_that_raises_drops_the_case(
    bare: OpWorkspace, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_cases.keep(monkeypatch, "L3_N_one", '"huge"')
    bare.golden.write_text(
        "import torch\n\n\ndef chain_golden(x, y):\n"
        "    if x.shape[0] == 1:\n        raise ValueError(f'{x}')\n"
        "    return torch.exp(x * 0.05) + y\n"
    )
    told = json.loads(call("harness", "new", bare.root, "--json").stdout)
    why = told["dropped"]["L3_N_one"]
    assert why == "the golden ended with: exception (chain_golden.py:6: ValueError: <values removed>)", "its words, no values"
    huge = next(case for case in suite_document.load(bare.suite).cases if case.get("draw_zone") == "huge")
    assert huge["draw_scale"] < 1e4
    with ReferenceSession(bare) as session:
        values = [value for _, value in session.make_inputs(huge)]
        assert session.golden(values, function="chain_golden", file=bare.golden).outputs[0].isfinite().all()


OWN_DRAWS = """

def make_inputs(case, drawn=make_inputs):
    made = drawn(case)
    return {**made, "x": made["x"] * 9.0} if case["level"] == "L4" else made
"""


def test_a_case_that_draws_what_spec_rules_out_is_left_out(bare: OpWorkspace) -> None:
    """A verdict on a right kernel ends with ERROR at such a case; the suite that held it was written without a word."""
    head, front, body = bare.spec.read_text().split("---\n", 2)
    front = yaml.safe_load(front) | {"input_ranges": {"x": "(-1, 1)"}}
    bare.spec.write_text(f"{head}---\n{yaml.safe_dump(front)}---\n{body}")
    bare.golden.write_text("def chain_golden(x, y):\n    return x * y\n")
    sources = gather(bare)
    bare.test_inputs.write_text(inputs_text(sources) + OWN_DRAWS)
    wanted = [case for case in suite_cases.cases(sources) if case["level"] in ("L2", "L4")][:9]
    done = rehearse(bare, wanted, sources.spec.policy())
    assert {case["level"] for case in done.cases} == {"L2"} and "L4" in {case["level"] for case in wanted}
    why = {done.dropped[case["id"]] for case in wanted if case["level"] == "L4"}
    assert why == {"it would draw what SPEC.md rules out: x has values outside its range in SPEC.md, (-1, 1)"}


def test_a_golden_that_turns_a_result_is_refused(bare: OpWorkspace) -> None:
    """Where sizes are equal nobody saw it, and a kernel that is written from the contract was refused elsewhere."""
    bare.golden.write_text("def chain_golden(x, y):\n    return (x * y).T.contiguous()\n")
    sources = gather(bare)
    bare.test_inputs.write_text(inputs_text(sources))
    wanted = [case for case in suite_cases.cases(sources) if case["level"] == "L2"][:1]
    with pytest.raises(ContractError, match=r"has the shape .*, the contract says"):
        rehearse(bare, wanted, sources.spec.policy())


@pytest.mark.parametrize(
    ("changes", "near"),
    [({"atol": 1.0, "rtol": 1.0}, ()), ({"atol": 1e-8, "rtol": 1e-7}, "some"), ({"policy": "twin@2"}, HONEST)],
)
def test_another_seed_asks_the_orders_that_came_near_the_tolerance(bare: OpWorkspace, changes: dict, near: object) -> None:
    bare.golden.write_text("import torch\n\n\ndef chain_golden(x, y):\n    return (x * x + y).cumsum(-1)\n")
    sources = gather(bare)
    bare.test_inputs.write_text(inputs_text(sources))
    plain = next(case for case in suite_cases.cases(sources) if case["level"] == "L2")
    case = {key: value for key, value in plain.items() if key not in ("atol", "rtol")} | changes
    with ReferenceSession(bare) as session:
        inputs = dict(session.make_inputs(case))
        first = FirstCandidate(session, bare, sources.spec.policy())
        found = Draw(first, case, inputs, first.golden(list(inputs.values()))).near()
    assert len(found) > 0 if near == "some" else found == near


LIMITED = """import torch


def chain_golden(x, y):
    return (x * x + y) / (x.shape[0] <= {most})
"""


def test_a_level_whose_cases_overflow_gets_shorter_ones_that_still_are_long(bare: OpWorkspace) -> None:
    bare.golden.write_text(LIMITED.format(most=80))
    sources = gather(bare)
    bare.test_inputs.write_text(inputs_text(sources))
    maker = suite_cases.filled(sources)
    wanted = [case for case in maker.cases if case["level"] == "L4"][:3] + [
        case for case in maker.cases if case["level"] == "L2"
    ][:2]
    assert min(case["shape"]["N"] for case in wanted[:3]) > 80, "none of these says anything"
    found = rehearse(bare, wanted, sources.spec.policy(), offers=Offers(spare=maker.spare)).cases
    level = [case for case in found if case["level"] == "L4"]
    assert len(level) == 2 and all(case["precision"] and case["shape"]["N"] > 64 for case in level)


def test_no_short_case_hides_that_nothing_long_was_judged(bare: OpWorkspace, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    few_cases.keep(monkeypatch, '"L3"', '"L4"')
    bare.golden.write_text(LIMITED.format(most=14))
    answer = call("harness", "new", bare.root)
    assert answer.code == 2
    assert "the suite still lacks something: cases: level L4 has 0 case(s), needs 2" in answer.stdout
    assert "the golden is not finite, or raises, on ordinary numbers: say in SPEC.md's input_ranges" in answer.stdout


_SCALED = re.compile("all_small|huge|rising|falling|products_low|beyond_half")


INDEXED = """import torch


def chain_golden(x, y, pick, count, shift):
    kept = torch.arange(x.shape[0]).reshape(-1, 1) < count.reshape(-1, 1).amax()
    return torch.where(kept, x, 0 * x) + x[pick.long()] * shift + y
"""


def test_indices_lengths_and_whole_numbers_are_drawn_from_what_the_golden_minds(
    bare: OpWorkspace, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_cases.keep(monkeypatch, '"shift":')
    data = yaml.safe_load(bare.interfaces.read_text())
    ports = {"pick": (["N"], "int32"), "count": (["N"], "int64"), "shift": ([], "int")}
    data["primary_inputs"] += [{"name": name, "shape": shape, "dtype": dtype} for name, (shape, dtype) in ports.items()]
    bare.interfaces.write_text(yaml.safe_dump(data))
    bare.golden.write_text(INDEXED)
    told = json.loads(call("harness", "new", bare.root, "--json").stdout)
    assert told["unlimited"] == []
    text = bare.test_inputs.read_text()
    assert '"pick": ("0", "N")' in text and '"count": ("0", "N + 1")' in text
    shifts = [case["shift"] for case in suite_document.load(bare.suite).cases if "shift" in case]
    assert shifts == [2, 7], "of 1: -1 has another sign, and 2 once"


def test_a_case_too_tight_for_honest_rounding_is_judged_by_what_is_natural_and_the_others_keep_their_tolerance(
    bare: OpWorkspace, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_cases.keep(monkeypatch, "L5_shift", "huge", "rising", each=4)
    bare.golden.write_text("def chain_golden(x, y):\n    return (x - x.mean(-1, keepdim=True)) * 2 + 0 * y\n")
    told = json.loads(call("harness", "new", bare.root, "--json").stdout)
    cases = {case["id"]: case for case in suite_document.load(bare.suite).cases}
    natural = {name for name, case in cases.items() if "policy" in case}
    assert natural == {*told["natural"], *told["blind"]} and all(share > 0.25 for share in told["natural"].values())
    assert "L5_shift" in natural and not any(name.startswith(("L1", "L2")) for name in natural)
    assert not any("draw_scale" in case for name, case in cases.items() if not _SCALED.search(name)), "inputs are never shrunk"
    assert all(("atol" in case) is (name not in natural) for name, case in cases.items())


def test_a_tolerance_that_takes_a_fault_for_right_is_named_with_the_fault_in_a_short_line(bare: OpWorkspace, call: Call) -> None:
    """The line named every case, and was 800 characters long."""
    bare.golden.write_text("def chain_golden(x, y):\n    return x + 3.5e-6 * y\n")
    told = call("harness", "new", bare.root)
    (line,) = [line for line in told.stdout.splitlines() if "would pass a wrong kernel: " in line]
    assert (
        "(y read as zeros)" in line
        and re.search(r"\), L\S+ \(.*\), L\S+ \(.*\) and \d+ more \(--json has all\)$", line)
        and len(line) < 250
    )
    assert "honest rounding takes too much" not in told.stdout


def test_cases_that_are_left_out_for_one_reason_share_a_line() -> None:
    dropped = {f"L5_{number}": "a wrong kernel would pass it (mask read as zeros)" for number in range(5)} | {
        "L3_N_one": "too short"
    }
    first, second = commands._judged_otherwise_or_left_out(Made([], 0, dropped))
    assert first == "left out L5_0, L5_1, L5_2 and 2 more (--json has all): a wrong kernel would pass it (mask read as zeros)"
    assert second == "left out L3_N_one: too short"


def test_a_subtraction_gets_inputs_on_which_it_cancels(bare: OpWorkspace, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    few_cases.keep(monkeypatch, "cancellation_stress")
    bare.golden.write_text("def chain_golden(x, y):\n    return x - y\n")
    assert call("harness", "new", bare.root).code == 0
    cases = [case for case in suite_document.load(bare.suite).cases if "cancellation_stress" in case]
    assert [case["cancellation_stress"]["expression"] for case in cases] == ["x - y"]
    assert cases[0]["cancellation_stress"]["reached"] >= 1e5, "1 / relative_gap"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda ws: ws.spec.unlink(), "SPEC.md: no such file"),
        (lambda ws: ws.interfaces.unlink(), "run `pypto-op interfaces new"),
        (lambda ws: ws.interfaces.write_text("modules: ["), "not valid YAML"),
        (lambda ws: ws.golden.write_text("x = 1\n"), "has no function chain_golden"),
        (lambda ws: ws.golden.write_text("def chain_golden(x, y):\n    raise ValueError\n"), "no case works"),
    ],
    ids=["no-spec", "no-interfaces", "broken-yaml", "no-golden", "golden-raises"],
)
def test_bad_material_is_one_line(
    bare: OpWorkspace, call: Call, spoil: Callable[[OpWorkspace], object], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_cases.keep(monkeypatch, each=1)
    spoil(bare)
    told = call("harness", "new", bare.root)
    lines = told_lines(told.stderr)
    assert told.code == 2 and len(lines) == 1 and words in lines[0]
    assert not bare.suite.exists()


def test_a_changed_runner_does_not_run(bare: OpWorkspace, call: Call) -> None:
    assert call("harness", "new", bare.root, "--no-rehearsal").code == 0
    text = bare.runner.read_text()
    bare.runner.write_text(text.replace("_compare = adversarial.compare", "_compare = lambda *_: {'all_close': True}"))
    done = subprocess.run([sys.executable, bare.runner, "--self-test"], capture_output=True, text=True, cwd=bare.root)
    assert done.returncode == 2 and done.stdout == ""
    assert "was changed" in done.stderr and "harness new" in done.stderr and len(told_lines(done.stderr)) == 1


def test_shapes_that_do_not_fit_are_told_once_and_with_their_own_remedy() -> None:
    """SPEC.md said [B, H] of a weight [H]: twenty lines, one for each size, and the advice to limit values."""
    clash = "the golden ended with: exception (op_golden.py:11: RuntimeError: The size of tensor a ({}) must match the size of "
    clash += "tensor b (2) at non-singleton dimension 1)"
    made = Made([], 0, {f"L3_T_{size}": clash.format(size) for size in (15, 16, 17)})
    assert commands._judged_otherwise_or_left_out(made) == [f"left out L3_T_15, L3_T_16, L3_T_17: {clash.format(15)}"]
    assert "the shapes in section 5 of SPEC.md" in commands._what_the_golden_asks(made)
    made.dropped["L1_runs"] = "the golden ended with: exception (op_golden.py:12: ValueError: a row of no length)"
    assert len(commands._judged_otherwise_or_left_out(made)) == 2, "another line of the golden is another reason"
    assert "input_ranges" in commands._what_the_golden_asks(Made([], 0, {"L1_runs": made.dropped["L1_runs"]}))
