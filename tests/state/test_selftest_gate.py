"""Stage 4 ends with the self-test of the bytes that freeze: what `verify --self-test` sees, the gate refuses."""

import json

import pytest
from tests.calling import command
from tests.state.operators import Operator

from pypto_op.errors import Refused
from pypto_op.state import deliverables
from pypto_op.state.deliverables import in_own_process
from pypto_op.state.service import status, transition
from pypto_op.workspace import OpWorkspace

pytestmark = pytest.mark.sim


def edit(path, old, new):
    text = path.read_text()
    assert old in text, (path, old)
    path.write_text(text.replace(old, new))


def at_stage_4(folder, *, n=1, minus=False):
    """Return an operator whose harness is written and whose plan is frozen; no kernel exists."""
    op = Operator(folder / "custom" / "square_add", op="square_add", n=n)
    ws = OpWorkspace.at(op.root)
    transition(op.root, "init")
    for stage, write in enumerate((op.planning, op.golden, op.architecture), 1):
        write()
        if stage == 2 and minus:
            edit(ws.golden, "squared + y", "squared - y")
        transition(op.root, "complete_stage", stage=stage)
    op.design()
    transition(op.root, "freeze_plan")
    return ws


def refusal(ws):
    with pytest.raises(Refused) as caught:
        transition(ws.root, "complete_stage", stage=4)
    assert status(ws.root)["current_stage"] == 4
    return str(caught.value)


def suite(ws, change):
    data = json.loads(ws.suite.read_text())
    change(data["cases"])
    ws.suite.write_text(json.dumps(data))


def one_precision_case_a_level(cases):
    for case in cases[2::2]:
        case["precision"] = False


def test_what_the_self_test_sees_does_not_freeze_and_an_honest_harness_does(tmp_path):
    ws = at_stage_4(tmp_path)
    sound = ws.test_inputs.read_text()
    for old, new, words in (
        ("    dtype = _dtype", "    raise ValueError\n    dtype = _dtype", "ValueError"),
        ('["x", "y"]', '["y", "x"]', "PRIMARY_INPUT_ORDER is y, x, the contract has x, y"),
        ('case.get("seed", 42)', "42", "seed"),
    ):
        edit(ws.test_inputs, old, new)
        told = refusal(ws)
        assert words in told and str(ws.test_inputs) in told and "the self-test of the harness fails (inputs" in told, told
        assert "--self-test` shows all" in told
        ws.test_inputs.write_text(sound)
    assert transition(ws.root, "complete_stage", stage=4)["current_stage"] == 5


def test_the_gate_takes_what_the_self_test_said_of_these_bytes(tmp_path, monkeypatch):
    """Nothing can be run any more: the answer is the one that was kept, and other bytes have none."""
    ws = at_stage_4(tmp_path)
    assert command("verify", ws.root, "--self-test", "--quiet").code == 0
    monkeypatch.setattr(deliverables, "in_own_process", in_own_process)
    monkeypatch.setattr("sys.executable", str(tmp_path / "nobody"))
    sound = ws.suite.read_text()
    ws.suite.write_text(sound + "\n")
    with pytest.raises(FileNotFoundError):
        transition(ws.root, "complete_stage", stage=4)
    ws.suite.write_text(sound)
    assert transition(ws.root, "complete_stage", stage=4)["current_stage"] == 5


def test_inputs_made_on_the_host_do_not_freeze(tmp_path):
    ws = at_stage_4(tmp_path)
    edit(ws.test_inputs, "dtype=dtype, device=DEVICE)", "dtype=dtype).to(DEVICE)")
    told = refusal(ws)
    assert "[PX13][S1]" in told and "test_inputs.py" in told and "device=DEVICE" in told


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (one_precision_case_a_level, "level L2 has 1 different case(s) that compare numbers, needs 2"),
        (lambda cases: cases[9].update(shape=cases[8]["shape"]), "level L5 has 1 different case(s) that compare numbers"),
    ],
)
def test_one_precision_case_a_level_does_not_freeze(tmp_path, change, words):
    ws = at_stage_4(tmp_path)
    suite(ws, change)
    told = refusal(ws)
    assert words in told and str(ws.suite) in told


def test_a_subtraction_needs_its_case_also_on_the_staged_path(tmp_path):
    ws = at_stage_4(tmp_path, n=2, minus=True)
    told = refusal(ws)
    assert "fails (cancellation)" in told and str(ws.suite) in told
    assert "subtracts (squared - y) and no L5 case has cancellation_stress" in told and "harness new" in told


def test_an_operator_of_one_module_needs_its_suite_too(tmp_path):
    """Deleting the suite once gave a weaker one, without the hostile draws of `harness new`."""
    ws = at_stage_4(tmp_path)
    ws.suite.unlink()
    told = refusal(ws)
    assert "adversarial_suite.json: is missing" in told and "pypto-op-designer" in told


def test_a_contract_of_two_modules_without_composition_is_refused_before_the_plan(tmp_path):
    ws = at_stage_4(tmp_path, n=2)
    transition(ws.root, "fail_stage", stage=4, reason="anew")
    transition(ws.root, "start_stage", stage=4)
    text = ws.interfaces.read_text()
    ws.interfaces.write_text(text[: text.index("composition_verification:")])
    with pytest.raises(Exception, match="composition_verification: is missing: 2 modules need seeds"):
        transition(ws.root, "freeze_plan")
