"""The whole way of an operator through real documents, the real linter and the real judge."""

import json

import pytest
from tests.calling import command
from tests.passes import pass_for_bytes
from tests.state.lab import wrong

from pypto_op.documents import schema
from pypto_op.errors import Refused
from pypto_op.proof import evidence
from pypto_op.state import audit, deliverables, service
from pypto_op.state.deliverables import in_own_process
from pypto_op.state.migrate import migrate
from pypto_op.state.service import transition

pytestmark = [pytest.mark.sim, pytest.mark.slow]


def state_of(ws):
    return json.loads(ws.state.read_text())


def test_the_single_path_was_walked_to_its_end(clone):
    ws = clone("finished")
    assert set(state_of(ws)["stage_status"].values()) == {"completed"}
    assert service.status(ws.root)["problems"] == []
    report = audit.audit(ws.root)
    assert report["ok"] and [row["action"] for row in report["history"]].count("complete_stage") == 7


@pytest.mark.parametrize("name", ["stage4", "awaiting", "failed", "verified", "stage7", "finished", "module1", "staged7"])
def test_every_state_and_plan_file_on_the_way_keeps_its_schema(clone, name):
    ws = clone(name)
    schema.check(state_of(ws), "state", file=ws.state)
    if ws.plan.exists():
        schema.check(json.loads(ws.plan.read_text()), "plan", file=ws.plan)


def test_a_sealed_pass_is_taken_at_once_and_the_judge_does_not_run(clone, monkeypatch):
    ws = clone("passed")
    monkeypatch.setattr(deliverables, "judge", lambda *_: pytest.fail("the judge ran"))
    done = transition(ws.root, "complete_phase", phase="M1")
    assert done["phase_status"] == "verified" and "judged_again" not in done["verdict"]
    transition(ws.root, "complete_stage", stage=5)
    transition(ws.root, "complete_stage", stage=6)


def test_evidence_survives_the_next_verdict(clone, monkeypatch):
    ws = clone("verified")
    ws.report.write_text("{}")
    monkeypatch.setattr(deliverables, "judge", lambda *_: pytest.fail("the judge ran"))
    transition(ws.root, "complete_stage", stage=5)
    transition(ws.root, "complete_stage", stage=6)


def test_without_evidence_the_judge_runs(clone, monkeypatch):
    """In a process of its own, as everywhere but in these tests."""
    monkeypatch.setattr(deliverables, "in_own_process", in_own_process)
    ws = clone("awaiting")
    assert not ws.report.exists()
    done = transition(ws.root, "complete_phase", phase="M1")
    assert done["phase_status"] == "verified" and ws.report.exists()
    assert pass_for_bytes(ws)["cases_total"] == 10 + 1, "the written cases, and the shape that the verdict drew"


def test_a_pass_is_recorded_under_its_attempt(clone):
    ws = clone("passed")
    attempt = service.status(ws.root)["phases"]["M1"]["attempt"]
    done = transition(ws.root, "record_verdict", attempt=attempt)
    assert done["phase_status"] == "verified" and done["verdict"]["status"] == "PASS"
    with pytest.raises(Refused, match="stale"):
        transition(ws.root, "record_verdict", attempt=attempt)


def test_a_dispatch_token_names_the_attempt(clone):
    ws = clone("passed")
    sent = transition(ws.root, "dispatch", role="verifier", phase="M1")
    assert transition(ws.root, "record_verdict", attempt=sent["token"])["phase_status"] == "verified"


def test_a_fail_is_recorded_with_category_and_boundary(clone):
    ws = clone("failed")
    attempt = service.status(ws.root)["phases"]["M1"]["attempt"]
    done = transition(ws.root, "record_verdict", attempt=attempt)
    assert done["phase_status"] == "in_debug" and done["cycles"] == 1
    phase = service.status(ws.root)["phases"]["M1"]
    assert phase["failure_category"] == "precision" and phase["failing_module_boundary"] == 1
    assert "case" in phase["last_error"]
    assert service.status(ws.root)["failed_verdicts"] == 1
    transition(ws.root, "rollback_to_stage", target_stage=4, reason="the suite asks for more than float32 has")
    told = service.status(ws.root)
    assert told["failed_verdicts"] == 1, "a rollback begins the phases' counts anew, not the run's"


def test_the_verifier_s_finer_category_is_kept(clone):
    ws = clone("failed")
    done = transition(ws.root, "fail_phase", phase="M1", failure_category="workspace_overlap", last_error="zeros")
    assert done["phase_status"] == "in_debug"
    phase = service.status(ws.root)["phases"]["M1"]
    assert (phase["failure_category"], phase["last_error"]) == ("workspace_overlap", "zeros")


def test_debugging_leads_back_to_verification(clone):
    ws = clone("failed")
    good = ws.impl.read_text().replace(" * 1.01", "")
    transition(ws.root, "fail_phase", phase="M1", failure_category="precision")
    ws.impl.write_text(good)
    transition(ws.root, "submit_for_verify", phase="M1")
    assert transition(ws.root, "complete_phase", phase="M1")["phase_status"] == "verified"


def test_the_staged_path_was_walked_with_composition_and_integration(clone):
    ws = clone("staged7")
    state = state_of(ws)
    assert state["composition"]["status"] == "PASS" and state["composition"]["pairs"] == 4
    assert state["integration"]["impl_sha256"] == evidence.file_hashes(ws)["impl"]
    assert {row.get("phase") for row in state["artifact_hashes"].values()} >= {"M1", "M2"}
    assert "impl_py" not in state["artifact_hashes"] and "impl_py" in state["released"]


def test_a_tuned_kernel_is_judged_again(clone):
    ws = clone("stage7")
    ws.impl.write_text(ws.impl.read_text().replace("set_vec_tile_shapes(16, 32)", "set_vec_tile_shapes(8, 32)"))
    assert pass_for_bytes(ws) is None
    done = transition(ws.root, "complete_stage", stage=7)
    assert done["verdict"]["status"] == "PASS"


def test_the_command_line_tells_the_same(clone):
    ws = clone("passed")
    done = command("state", "complete_phase", "--phase", "M1", "--op-dir", ws.root, "--json")
    assert done.code == 0, done.stderr
    answer = done.report
    assert answer["ok"] and answer["phase_status"] == "verified" and answer["next"][0].startswith("complete_stage")


def test_migration_takes_old_claims_through_the_gates(clone):
    ws = clone("stage4")
    for path in (ws.state, ws.journal):
        path.unlink()
    claims = {str(stage): "completed" for stage in range(1, 8)}
    old = {"schema_version": "2.0", "operator_name": ws.name, "current_stage": 7, "stage_status": claims}
    ws.state.write_text(json.dumps(old))
    with pytest.raises(Exception, match="state migrate"):
        transition(ws.root, "complete_stage", stage=7)
    assert json.loads(ws.state.read_text()) == old
    done = migrate(ws.root)
    assert done["completed"] == [1, 2, 3, 4] and done["stopped_by"] is None
    assert service.status(ws.root)["current_stage"] == 5, "what 2.0 says of stage 5 and later counts for nothing"
    assert json.loads((ws.root / ".orchestrator_state.v2.json").read_text()) == old


def test_migration_stops_at_the_first_claim_that_does_not_hold(clone):
    ws = clone("stage4")
    for path in (ws.state, ws.journal):
        path.unlink()
    ws.golden.write_text("import pypto\n")
    old = {"schema_version": "2.0", "stage_status": {str(stage): "completed" for stage in range(1, 8)}}
    ws.state.write_text(json.dumps(old))
    done = migrate(ws.root)
    assert done["completed"] == [1] and "golden" in done["stopped_by"]


def test_a_wrong_kernel_does_not_pass_anywhere(clone):
    ws = clone("begun")
    ws.impl.write_text(wrong(ws.impl.read_text()))
    transition(ws.root, "submit_for_verify", phase="M1")
    with pytest.raises(Refused, match="the judge says FAIL"):
        transition(ws.root, "complete_phase", phase="M1")
    assert service.status(ws.root)["phases"]["M1"]["status"] == "awaiting_verify"


def with_helper(ws, text):
    """Let the kernel take its factor from a helper, and hand it over for judgement."""
    (ws.root.parent / "factors.py").write_text(text)
    source = ws.impl.read_text()
    assert "return tile * tile" in source
    head = (
        "import sys\nfrom pathlib import Path\n\nsys.path.insert(0, str(Path(__file__).resolve().parents[1]))\nimport factors\n"
    )
    ws.impl.write_text(head + source.replace("return tile * tile", "return tile * tile * factors.ONE"))
    transition(ws.root, "submit_for_verify", phase="M1")


def test_a_helper_that_a_verdict_rests_on_is_frozen_with_it(clone):
    ws = clone("begun")
    with_helper(ws, "ONE = 1.0\n")
    transition(ws.root, "complete_phase", phase="M1")
    transition(ws.root, "complete_stage", stage=5)
    assert audit.audit(ws.root)["ok"]
    helper = ws.root.parent / "factors.py"
    helper.write_text("ONE = 1.01\n")
    problems = audit.audit(ws.root)["problems"]
    assert len(problems) == 1 and "factors.py" in problems[0] and "was changed since M1 was verified" in problems[0]
    with pytest.raises(Refused, match="factors.py"):
        transition(ws.root, "complete_stage", stage=6)
    transition(ws.root, "reopen_phase", phase="M1", reason="the factor is another one")
    assert audit.audit(ws.root)["ok"], "what was verified no longer holds, so nothing is frozen"
    helper.write_text("ONE = 1.0\n")


def test_kernel_code_outside_the_impl_is_refused_since_no_rule_sees_it(clone):
    ws = clone("begun")
    with_helper(ws, "import pypto\n\nONE = 1.0\n")
    with pytest.raises(Refused, match="kernel code that the linter does not see"):
        transition(ws.root, "complete_phase", phase="M1")
