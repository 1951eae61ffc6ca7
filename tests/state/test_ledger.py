"""What the machine writes into MEMORY.md: from the sealed report and the contract, not by an agent's hand."""

import re

import pytest
from tests.state.lab import SINGLE

from pypto_op import cli
from pypto_op.documents import append_only, markdown, memory, schema
from pypto_op.documents.memory_tables import put_rows, set_status
from pypto_op.documents.reading import parse_yaml
from pypto_op.documents.scaffold import Request, new_operator
from pypto_op.errors import ContractError, Refused
from pypto_op.state.service import status, transition


def table(ws, title):
    section = markdown.find_section(markdown.sections(ws.memory.read_text()), [title])
    return markdown.tables(section.text)[0] if section else None


def status_block(ws):
    text = ws.memory.read_text()
    return parse_yaml(text[slice(*memory.status_span(text))], file=ws.memory)


@pytest.fixture
def blank(tmp_path):
    return new_operator(Request("chain", ["float32"], [{"N": 32, "D": 32}], ["N"]), tmp_path)


def test_rows_take_open_places_once_and_leave_the_rest_as_it_stands(blank):
    before = blank.memory.read_text()
    columns = ("file", "modules in one jit", "verified")
    rows = [("a_impl.py", "M1", "yes"), ("b|c_impl.py", "M1..M2", "yes")]
    put_rows(blank.memory, "staged module files", columns, rows)
    put_rows(blank.memory, "staged module files", columns, rows)
    assert table(blank, "Staged module files").rows == tuple(rows)
    assert append_only.violations(before, blank.memory.read_text()) == []
    with pytest.raises(ContractError, match="has 3 columns, not 2"):
        put_rows(blank.memory, "staged module files", ("file", "verified"), [("a", "b")])
    put_rows(blank.memory, "A new table", ("x", "y"), [("1", "2")])
    assert table(blank, "A new table").rows == (("1", "2"),)


def test_only_the_named_keys_of_the_status_block_change(blank):
    blank.memory.write_text(blank.memory.read_text().replace("blockers: []", "blockers: [waiting]  # since Monday"))
    verified = [{"id": "M1", "evidence": "report 12ab", "detailed_tensor_compare_ok": True}]
    for active in ("M1", "none"):
        set_status(blank.memory, {"module_count": 2, "decomposition_level": "L1", "active_module": active})
        set_status(blank.memory, {"modules_pypto_verified": verified, "total_complexity": 1.5})
    text = blank.memory.read_text()
    block = status_block(blank)
    assert block["modules_pypto_verified"] == verified and block["active_module"] == "none" and "# since Monday" in text
    assert len(re.findall(r"^module_count:", text, re.M)) == 1 and block["blockers"] == ["waiting"]


def test_a_recovery_is_a_row_of_the_log(blank, capsys):
    words = ["--symptom", "libc_sec.so not found", "--recipe", "sourced set_env.sh", "--again", "ok"]
    with pytest.raises(SystemExit) as end:
        cli.main(["memory", "recovery", str(blank.root), *words])
    assert end.value.code in (0, None), capsys.readouterr()
    (row,) = table(blank, "Per-module verification log").rows
    assert row[7] == "Env recovery: libc_sec.so not found -> sourced set_env.sh; run again: ok"


@pytest.mark.slow
def test_a_refused_design_is_told_in_memory_once_for_each_reason(clone, blank):
    ws = clone("staged4")
    ws.memory.write_text(blank.memory.read_text())
    good = ws.interfaces.read_text()
    for broken in ("source: module_7", "source: module_7", "source: module_9"):
        ws.interfaces.write_text(good.replace("source: module_1}", broken + "}", 1))
        with pytest.raises(Refused):
            transition(ws.root, "submit_design", stage=4)
    told = [s for s in markdown.sections(ws.memory.read_text()) if s.title.startswith("Architecture/Design Rejection - 2")]
    assert len(told) == 2 and "module_7" in told[0].text and "eval/module_interfaces.yaml" in told[1].text


@pytest.mark.slow
def test_freezing_the_plan_fills_the_decomposition_and_the_status(clone, blank):
    ws = clone("staged4")
    ws.memory.write_text(blank.memory.read_text())
    transition(ws.root, "freeze_plan")
    rows = table(ws, "Module decomposition").rows
    assert rows[0][:3] == ("M1", "square: square of x", "squared [N, D]") and rows[1][0] == "M2" and rows[1][6] == "M1"
    block = status_block(ws)
    assert block["module_count"] == 2 and block["decomposition_level"] == "L1" and block["active_module"] == "none"


@pytest.mark.sim
@pytest.mark.slow
def test_each_recorded_verdict_is_a_row_of_the_log(clone):
    ws = clone("failed")
    attempt = status(ws.root)["phases"]["M1"]["attempt"]
    assert transition(ws.root, "record_verdict", attempt=attempt)["phase_status"] == "in_debug"
    (row,) = table(ws, "Per-module verification log").rows
    cells = dict(zip(table(ws, "Per-module verification log").header, row, strict=True))
    assert cells["Module"] == "M1" and cells["Staged file"] == f"{SINGLE}_impl.py" and cells["all_close"] == "false"
    assert cells["Tensors"] == "out" and cells["rtol"] == "1e-05" and "precision" in cells["Key stats"]
    assert cells["Command"] == f"`pypto-op verify custom/{SINGLE} --modes sim`"


@pytest.mark.sim
@pytest.mark.slow
def test_the_whole_way_is_in_the_log(clone):
    ws = clone("staged7")
    rows = table(ws, "Per-module verification log").rows
    assert [row[1] for row in rows] == ["M1", "M2", "M1..M2", "M1..M2"]
    assert "reproduce chain_golden on 4 pairs" in rows[2][7]
    assert all(row[6] == "true" for row in rows) and "worst error" in rows[0][7]
    assert [row[0] for row in table(ws, "Staged module files").rows] == ["chain_module1_impl.py", "chain_module12_impl.py"]


def test_a_memory_that_cannot_be_written_holds_up_nothing_and_is_told(clone, blank):
    ws = clone("staged4")
    ws.memory.write_text(
        blank.memory.read_text()
        .replace("| M1 | TODO |", "| M1 |")
        .replace("| ID | role |", "| ID |")
        .replace("|---|---|---|---|---|---|---|", "|---|---|---|---|---|---|")
    )
    told = transition(ws.root, "freeze_plan")
    assert "has 6 columns, not 7" in told["memory"]
    schema.check({"tool": "state_transition", "result": told}, "tool_results", file=ws.memory)
