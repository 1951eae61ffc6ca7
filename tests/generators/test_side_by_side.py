"""`harness new` tries cases in several references at once: it finds what one reference finds, and leaves no process behind."""

from __future__ import annotations

import os
import threading
import time

import psutil
import pytest

from pypto_op.backends.base import Limits
from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.evaluation import inputs_text
from pypto_op.generators.operator.sources import gather
from pypto_op.generators.rehearsing import rehearsal, side_by_side
from pypto_op.generators.rehearsing.first_candidate import FirstCandidate
from pypto_op.workspace import OpWorkspace

pytestmark = pytest.mark.slow


def _at_work() -> set[int]:
    """Return the processes below this one; a launcher stays for the next session, what it began does not."""
    below = psutil.Process().children()
    return {child.pid for launcher in below for child in launcher.children(recursive=True)}


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(4))


@pytest.mark.usefixtures("four_cores")
def test_several_references_find_what_one_finds(bare: OpWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    bare.golden.write_text("import torch\n\n\ndef chain_golden(x, y):\n    return (x * x + y) / (x.shape[0] <= 40)\n")
    sources = gather(bare)
    bare.test_inputs.write_text(inputs_text(sources))
    cases = suite_cases.in_order(suite_cases.filled(sources))[::3]
    begun: set[str] = set()
    rehearsed = rehearsal.rehearsed

    def seen(first: FirstCandidate, *given: object, **how: object) -> object:
        begun.add(threading.current_thread().name)
        return rehearsed(first, *given, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(rehearsal, "rehearsed", seen)
    several = rehearsal.rehearse(bare, cases, sources.spec.policy(), scalars=sources.scalars)
    assert len(cases) >= 10 and len(begun) > 1
    monkeypatch.setattr(side_by_side, "MOST", 1)
    begun.clear()
    assert rehearsal.rehearse(bare, cases, sources.spec.policy(), scalars=sources.scalars) == several
    assert len(begun) == 1 and several.cases and several.dropped


@pytest.mark.usefixtures("four_cores")
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interruption_ends_what_is_under_way(bare: OpWorkspace, error: type[BaseException]) -> None:
    bare.golden.write_text("import time\n\n\ndef chain_golden(x, y):\n    time.sleep(3600)\n")
    sources = gather(bare)
    bare.test_inputs.write_text(inputs_text(sources))
    case = suite_cases.filled(sources).cases[0]
    before, asking = _at_work(), threading.Event()

    def asks(first: FirstCandidate) -> None:
        inputs = first.session.make_inputs(case)
        asking.set()
        first.golden([value for _, value in inputs])

    with (
        pytest.raises(error),
        side_by_side.SideBySide(bare, sources.spec.policy(), Limits(case_seconds=600), 20) as side,
    ):
        begun = [side.begin(asks) for _ in range(12)]
        assert asking.wait(120) and not _at_work() <= before
        raise error
    assert all(future.cancelled() or future.done() for future in begun)
    deadline = time.monotonic() + 30
    while not _at_work() <= before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _at_work() <= before
