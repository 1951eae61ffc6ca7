"""How the scripted frauds of a rogue team are registered and run."""

import json
import re

import pytest

from pypto_op.errors import ContractError, InfraError
from pypto_op.hashing import sha256_json
from pypto_op.locks import Lock
from pypto_op.proof import evidence
from pypto_op.state import deliverables, service
from pypto_op.state.service import transition

THE_JUDGE = deliverables.judge


class Cheats(list):
    """The cheats of one file of tests."""

    def cheat(self, snapshot, words):
        """Register a cheat: it begins at `snapshot`, and the refusal of its last step must match `words`."""

        def register(function):
            self.append(pytest.param(snapshot, words, function, id=function.__name__))
            return function

        return register


def refused(clone, lab, snapshot, words, fraud, monkeypatch):
    """Run a cheat up to its last step, which must be refused and change nothing."""
    ws = clone(snapshot)
    fraud.context = {"clone": clone, "monkeypatch": monkeypatch}
    monkeypatch.setattr(deliverables, "judge", lambda ws, demand: judged_once(lab, ws, demand))
    last_step = fraud(ws)
    before = [path.read_bytes() if path.exists() else None for path in (ws.state, ws.journal)]
    with pytest.raises((ContractError, InfraError)) as caught:
        last_step()
    text = caught.value.one_line()
    assert re.search(words, text), text
    assert [path.read_bytes() if path.exists() else None for path in (ws.state, ws.journal)] == before


def judged_once(lab, ws, demand):
    """Ask the real judge, but only once about the same bytes: many cheats end with the same wrong kernel."""
    key = sha256_json([evidence.file_hashes(ws, demand.phase), repr(demand)])
    kept = lab.folder / f"verdict_{key}.json"
    with Lock(kept.with_suffix(".lock"), seconds=None):
        if not kept.exists():
            kept.write_text(json.dumps(THE_JUDGE(ws, demand)))
    return json.loads(kept.read_text())


def step(ws, action, **given):
    return lambda: transition(ws.root, action, **given)


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def attempt_of(ws):
    return service.status(ws.root)["phases"]["M1"]["attempt"]


def resubmit(ws, source):
    """Hand a changed kernel to the judge."""
    ws.impl.write_text(source)
    transition(ws.root, "submit_for_verify", phase="M1")


def fraud_clone(function, name):
    return function.context["clone"](name)


def account_of(ws, key=None):
    from tests.state.lab import account

    return account(key or ws.root.parent.parent / "account" / "seal.key")
