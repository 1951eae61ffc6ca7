"""A journal that is gone, empty or cut within its first line: each command names a remedy that leads out."""

import os

import pytest

from pypto_op.errors import ContractError
from pypto_op.state import audit, service
from pypto_op.state.service import transition


@pytest.mark.parametrize("state", ["whole", "cut", "empty"])
@pytest.mark.parametrize("journal_bytes", [None, 0, 100])
def test_the_remedies_lead_out_where_no_line_of_the_journal_is_left(planted, state, journal_bytes):
    """`replay` named `init`, and `init` named `replay`."""
    ws = planted(1)
    ws.journal.unlink() if journal_bytes is None else os.truncate(ws.journal, journal_bytes)
    {"whole": lambda: None, "cut": lambda: os.truncate(ws.state, 100), "empty": lambda: os.truncate(ws.state, 0)}[state]()
    with pytest.raises(ContractError, match="state replay" if state != "whole" else "remove .orchestrator_state.json"):
        service.status(ws.root)
    with pytest.raises(ContractError, match="remove .orchestrator_state.json and run .pypto-op state init"):
        audit.replay(ws.root)
    ws.state.unlink()
    transition(ws.root, "init")
    assert audit.audit(ws.root)["ok"] and len(ws.journal.read_text().splitlines()) == 1
