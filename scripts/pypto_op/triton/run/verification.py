"""What the passes aside ask of the verification that they belong to, and of its reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pypto_op.triton.run.judging.judgement import Judgement
from pypto_op.triton.run.processes.sessions import Answered, CandidateSession, TaskSession, Told

if TYPE_CHECKING:
    from pypto_op.documents.policy import Policy
    from pypto_op.triton.run.case import Case
    from pypto_op.triton.run.judging.judge_device import JudgeDevice
    from pypto_op.triton.run.judging.provenance import Provenance
    from pypto_op.triton.run.setup.project import Project
    from pypto_op.triton.run.setup.request import Request
    from pypto_op.triton.run.setup.targets import Place


class Verification(Protocol):
    """A verification (`passes.Run`)."""

    cases: list[Case]
    calls: list[int]  # the seeds of passes and looks, in their order
    desk: JudgeDevice
    seeds: list[int]
    project: Project
    request: Request
    place: Place | None
    policy: Policy | None
    started: float

    @property
    def on_gpu(self) -> bool:
        """Whether the implementation runs on an NVIDIA GPU."""

    def tighten(self, *sessions: TaskSession | CandidateSession) -> None:
        """Give processes what is left of the time."""

    def keep(self, case: Case, number: int, judgement: Judgement, begin: float) -> None:
        """Take a pass's verdict on a case, which began then."""

    def compared(self, case: Case, right: Judgement, made: Provenance, inputs: Any, judges: str) -> Judgement:
        """Note a run of a case, and whether its host handed launches other things than in the run before; return the verdict."""

    def numbers(
        self,
        given: dict[str, Any],
        reference: dict[str, Any],
        found: Answered,
        seed: int,
        task: TaskSession,
        *,
        ties: bool = True,
    ) -> Judgement:
        """Return whether what the candidate answered is right, and came from a kernel; `ties` may fall on either side."""


class ReferenceFailed(Exception):
    """The reference failed in a pass aside; where it really fails, a main pass says so."""


def asked(task: TaskSession, case: Case, seed: int, *, opens: bool = False, **how: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a case and facts about it, as `TaskSession.case` does with the other keywords.

    Args:
        task: stands before the case.
        seed: of the pass.
        opens: the pass is begun first.

    Raises:
        ReferenceFailed: the reference failed, or there is no such case any more.
    """
    try:
        if opens:
            task.open(seed)
        found = task.case(case.index, seed, **how)
    except Told:
        raise ReferenceFailed from None
    if found is None:
        raise ReferenceFailed
    return found


def judged(
    run: Verification, task: TaskSession, given: dict[str, Any], reference: dict[str, Any], answered: Answered, seed: int
) -> Judgement:
    """Return the verdict on the numbers of one call; the arguments are those of `Verification.numbers`."""
    answer, result, facts = answered
    return run.desk.of_case(given, answer, lambda want, got: run.numbers(want, reference, (got, result, facts), seed, task))
