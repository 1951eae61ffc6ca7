"""Is it the kernel that computes? The wrapper runs once more, with kernels that are compiled and compute nothing.

An output that is right all the same was made by something else: by torch during the launch, by a forged record of a
launch, by a method that the tensor carries. How it was done does not matter, so this holds where a check of the way
can be gone around. What a wrapper computes before the launch and hands in is another matter (`Reason.HOST_COMPUTED`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pypto_op.backends.base import FILLINGS, Backend, Limits, RunResult, Session
from pypto_op.compare import compare_leaves
from pypto_op.judge.answers.expectation import Expectation, Reference
from pypto_op.judge.answers.verdict import failed_for
from pypto_op.judge.cases.inputs import tensors_in
from pypto_op.judge.cases.subject import Subject
from pypto_op.judge.findings.reasons import Reason
from pypto_op.judge.findings.records import CaseRecord
from pypto_op.judge.running.staleness import plain
from pypto_op.proof.closure import Loaded
from pypto_op.tensor_bytes import bytes_in
from pypto_op.vocabulary import Mode, Outcome, Status

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import Value


@runtime_checkable
class CanSabotage(Protocol):
    """A backend that can run a file with kernels that compute nothing."""

    def sabotaged(self) -> Backend:
        """Return the backend whose kernels compute nothing."""


class Saboteur:
    """One sabotaged process per mode, opened when the first case passes, used for case after case.

    Args:
        backends: the modes; those that cannot be sabotaged are left out.
        loaded: collects what the processes load.
    """

    def __init__(self, subject: Subject, backends: Mapping[Mode, Backend], limits: Limits, loaded: Loaded) -> None:
        self._subject, self._limits, self._loaded = subject, limits, loaded
        self._backends = {mode: backend for mode, backend in backends.items() if isinstance(backend, CanSabotage)}
        self._sessions: dict[Mode, Session] = {}
        self._stack = ExitStack()

    def close(self) -> None:
        """End the processes; harmless when called twice."""
        self._stack.close()

    def right_outputs(
        self, mode: Mode, case: str, handed: Sequence[Value], reference: Reference, expectation: Expectation
    ) -> list[str] | None:
        """Return the names of the outputs that are right without the kernel; None where the wrapper raises without it.

        A wrapper may look at what the kernel wrote, and stumble over the pattern in fresh memory. So it is called again
        with ordinary numbers there before it counts as one that raises.
        """
        for filling in FILLINGS:
            run = self._session(mode).run(case, handed, filling=filling)
            if run.outcome is Outcome.OK:
                return right_outputs(run, reference, expectation, handed)
        return None

    def can_tell(self, mode: Mode, expectation: Expectation) -> bool:
        """Whether a case in this mode can be run without kernels, and has numbers to look at."""
        return mode in self._backends and expectation.precision

    def _session(self, mode: Mode) -> Session:
        if mode not in self._sessions:
            subject = self._subject
            backend = self._backends[mode].sabotaged()
            session = backend.open(subject.impl, subject.wrapper, subject.workspace, limits=self._limits)
            self._sessions[mode] = self._stack.enter_context(session)
            self._stack.callback(lambda: self._loaded.note_all(session.loaded))
        return self._sessions[mode]


def refuse_unshown(records: Iterable[CaseRecord]) -> None:
    """Fail what passed in a mode where no case showed that the kernel computes: the wrapper raised in each silent run."""
    cells = [cell for record in records for cell in record.modes.values()]
    for mode in {cell.mode for cell in cells}:
        silent = [cell for cell in cells if cell.mode is mode and cell.silent_runs]
        if silent and not any(ended for cell in silent for ended in cell.silent_runs):
            for cell in silent:
                if cell.status is Status.PASS:
                    cell.trials[-1] = failed_for(Reason.SILENT_RUN_RAISES, cell.trials[-1])


RAISES = "whether the kernel is used: the wrapper raises when the kernel computes nothing"
"""What was not shown of a case whose silent run raised."""


def right_outputs(run: RunResult, reference: Reference, expectation: Expectation, handed: Sequence[Value]) -> list[str]:
    """Return the names of the outputs of a sabotaged run that hold what the golden says.

    Some do not count, since an honest wrapper may hand them to the kernel as they are: a plain copy of an input (a cache
    that the kernel updates, where the golden leaves it as it is), and one value everywhere (zeros to add to, or NaN, which
    empty memory holds too).
    """
    inputs = tensors_in(handed)
    found = []
    for name, actual, expected in zip(expectation.names, run.outputs, reference.native.outputs, strict=False):
        if not expected.numel() or actual.shape != expected.shape or actual.dtype != expected.dtype:
            continue
        if _is_constant(expected) or any(_same_bytes(actual, given) for given in inputs):
            continue
        if compare_leaves([actual], [expected], names=[name], policy=plain(expectation, expected)).all_close:
            found.append(name)
    return found


def _is_constant(tensor: torch.Tensor) -> bool:
    import torch

    flat = tensor.reshape(-1)
    return bool((flat == flat[0]).all()) or (flat.is_floating_point() and bool(torch.isnan(flat).all()))


def _same_bytes(one: torch.Tensor, two: torch.Tensor) -> bool:
    import torch

    if one.dtype != two.dtype or one.numel() != two.numel():
        return False
    flat = (bytes_in(tensor) for tensor in (one, two))
    return torch.equal(*flat)
