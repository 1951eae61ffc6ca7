"""A search on a device, through the NPU backend's stand-in layer: it times there, and a device that goes away ends it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.backends.standin_npu import Layer
from tests.judge.judging import CASES, place, sim_problem

from pypto_op.backends import npu
from pypto_op.backends.base import Limits
from pypto_op.errors import InfraError
from pypto_op.judge.cases.contract import load_contract
from pypto_op.judge.cases.subject import resolve
from pypto_op.tuning import clock as clocks
from pypto_op.tuning.clock import Clock
from pypto_op.tuning.kernel import Kernel
from pypto_op.tuning.ledger import Candidate, Ledger
from pypto_op.tuning.search import Search, Wish
from pypto_op.vocabulary import Mode

pytestmark = pytest.mark.sim


@pytest.mark.slow
def test_a_device_that_vanishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search stops, blames no candidate, and goes on when the device is back."""
    if problem := sim_problem():
        pytest.skip(problem)
    here = tmp_path / "device"
    here.touch()
    layer = Layer(worker_class="standin_npu:Vanishing")
    layer.variables["STANDIN_HERE"] = str(here)
    monkeypatch.setattr(clocks, "get_backend", lambda mode: npu.NpuBackend(layer))
    monkeypatch.setattr(sys, "path", [*sys.path])
    ws = place("sum_diff", tmp_path, cases=CASES[:1])
    contract = load_contract(ws)
    subject = resolve(ws, contract.total_modules)
    kernel = Kernel(subject.impl.read_text(encoding="utf-8"), subject.wrapper)
    ledger = Ledger(tmp_path / "ledger")

    def lose(candidate: Candidate, best: float) -> None:
        here.unlink(missing_ok=True)

    with Clock(contract, subject, Mode.NPU, Limits(), few=False) as clock:
        with pytest.raises(InfraError, match="the device is gone.*device is lost"):
            Search(kernel, clock, ledger, Wish(3600.0, 3), lose).run()
        assert [one.number for one in ledger.all()] == [0, 1], "what was tried while the device was there, and no more"
        cost = ledger.all()[0].seconds
        here.touch()
        outcome = Search(kernel, clock, Ledger(tmp_path / "ledger"), Wish(3600.0, 2)).run()
    assert outcome.tried == 1 and len(outcome.candidates) == 2
    assert outcome.baseline.seconds == cost, "else a busy machine would have the search that goes on try others first"
    assert all(took > 0 for took in outcome.baseline.times.values())
    here.unlink()
    with (
        Clock(contract, subject, Mode.NPU, Limits(), few=False) as clock,
        pytest.raises(InfraError, match="does not run on the device.*is lost"),
    ):
        Search(kernel, clock, Ledger(tmp_path / "other"), Wish(3600.0, 1)).run()
