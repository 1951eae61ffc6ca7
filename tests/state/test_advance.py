"""`advance` takes the steps of the machine, no others, and stops where somebody has to work."""

from __future__ import annotations

import json

import pytest
from tests.calling import command
from tests.state.operators import Operator

from pypto_op.errors import Refused
from pypto_op.state.advancing import advance
from pypto_op.state.service import transition
from pypto_op.workflow import workflow

pytestmark = pytest.mark.sim


def begun(folder, n=1):
    op = Operator(folder / "custom" / ("square_add" if n == 1 else "chain"), op="square_add" if n == 1 else "chain", n=n)
    transition(op.root, "init", max_stage=6)
    return op


def test_one_module_from_the_plan_to_the_kernel(tmp_path):
    op = begun(tmp_path)
    with pytest.raises(Refused, match=r"complete_stage 1 is refused: is missing"):
        advance(op.root)
    op.planning()
    op.golden()
    op.architecture()
    with pytest.raises(Refused, match=r"complete_stage 1, complete_stage 2, complete_stage 3 done; submit_design"):
        advance(op.root)
    op.design()
    (op.root / "eval/test_inputs.py").rename(op.root / "kept")
    planned = advance(op.root)
    assert planned["done"] == ["submit_design"] and planned["due"]["subagent_type"] == "pypto-op-verifier"
    assert planned["due"]["prompt"].splitlines()[:2] == ["task: harness", "operator: custom/square_add"]
    (op.root / "kept").rename(op.root / "eval/test_inputs.py")
    frozen = advance(op.root)
    assert frozen["done"] == ["freeze_plan", "complete_stage 4", "start_phase M1"]
    assert frozen["due"]["prompt"].splitlines()[0] == "task: kernel" and frozen["stage5_active_phase"] == "M1"


def test_a_plan_in_one_go(tmp_path):
    op = begun(tmp_path)
    op.planning()
    op.golden()
    op.architecture()
    op.design()
    (op.root / "eval/test_inputs.py").unlink()
    done = advance(op.root)["done"]
    assert done == list(workflow().way[0].then)


def test_more_modules_take_one_step_at_a_time(tmp_path):
    op = begun(tmp_path, n=2)
    op.planning()
    op.golden()
    op.architecture()
    first = advance(op.root)
    assert first["done"] == ["complete_stage 1"] and first["due"]["subagent_type"] == "pypto-op-mathematician"
    second = advance(op.root)
    assert second["done"] == ["complete_stage 2"] and second["due"]["subagent_type"] == "pypto-op-architect"


def test_a_verdict_ends_the_operator(clone):
    ws = clone("passed")
    done = advance(ws.root)
    assert done["done"][0] == "record_verdict M1" and "complete_stage 6" in done["done"]
    assert done["verdict"]["status"] == "PASS" and done["ok"]


def test_a_failed_verdict_calls_the_debugger(clone):
    ws = clone("failed")
    failed = advance(ws.root)
    assert (failed["done"], failed["phase_status"]) == (["record_verdict M1"], "in_debug")
    assert failed["verdict"]["status"] == "FAIL" and failed["due"]["prompt"].startswith("task: debug\n")
    ws.impl.write_text(ws.impl.read_text() + "# mended\n")
    submitted = advance(ws.root)
    assert submitted["done"] == ["submit_for_verify M1"]
    attempt = submitted["attempt"]
    assert submitted["due"]["prompt"].splitlines() == [
        "task: verdict", f"operator: custom/{ws.name}", "phase: M1", f"attempt: {attempt}", "message: -",
    ]  # fmt: skip


def test_nothing_is_left_to_do(clone):
    with pytest.raises(Refused, match="no step is due"):
        advance(clone("finished").root)


def test_a_gate_holds_as_ever(clone):
    """What advance takes is refused where the machine refuses it, and the state is as it was."""
    ws = clone("awaiting")
    ws.impl.write_text(ws.impl.read_text() + "# changed\n")
    before = ws.state.read_bytes()
    with pytest.raises(Refused, match=r"record_verdict M1 is refused: changed since attempt"):
        advance(ws.root)
    assert ws.state.read_bytes() == before


def test_on_the_command_line(clone):
    ws = clone("passed")
    told = command("state", "advance", "--op-dir", ws.root, "--json")
    assert told.code == 0 and json.loads(told.stdout)["done"][-1].startswith("complete_stage")
    again = command("state", "advance", "--op-dir", clone("finished").root)
    assert again.code == 2 and "no step is due" in again.stderr


def test_the_way_names_steps_of_the_machine():
    for row in workflow().way:
        assert row.agent in workflow().dispatch
        assert all(words.split()[0] in workflow().actions for words in row.then)
