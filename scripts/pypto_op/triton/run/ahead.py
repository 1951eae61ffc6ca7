"""Asks the task for moved cases, each while the implementation still runs on the one before.

Drawing inputs, computing the golden and handing both over take as long as a kernel's call under watch does, or longer. The two
processes wait for each other where they work in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeAlias, cast

from pypto_op.triton.run.inputs.packing import tensors_of
from pypto_op.triton.run.moves import Step
from pypto_op.triton.run.processes.sessions import TaskSession
from pypto_op.triton.run.verification import Verification, asked

_MOST_BYTES = 1 << 30
"""The judge and the task hold two cases at once; where one is larger than this, they hold one."""
Found: TypeAlias = tuple[dict[str, Any], dict[str, Any]]
"""A case and facts about it, as `TaskSession.case` returns them."""


class Ahead:
    """The steps of a verification, in their order; each is asked for once it is certain enough that it comes.

    Args:
        run: the verification.
        task: its process, which nobody else asks for cases meanwhile.
        following: returns the step after one, taking that one's case for right; None: there is none.
    """

    def __init__(self, run: Verification, task: TaskSession, following: Callable[[Step], Step | None]) -> None:
        self._run, self._task, self._following = run, task, following
        self._beside = ThreadPoolExecutor(1, "ahead")
        self._next: Step | None = None  # which the task is asked for
        self._opened = -1  # the turn whose pass the task is in

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.forget()
        self._beside.shutdown(wait=False)  # after an error nobody waits: closing the task's session ends what still asks it

    def found(self, step: Step) -> Found:
        """Return a case, moved so, and facts about it.

        Raises:
            ReferenceFailed: the reference failed, or there is no such case any more.
        """
        if (asking := self._task.ahead) is not None:
            if self._next == step and asking.exception() is None:
                self._next = self._task.ahead = None
                return cast(Found, asking.result())
            self.forget()  # beside the former case there may have been too little memory
        self._run.tighten(self._task)
        return self._ask(step, holds=False)

    def begin(self, step: Step, given: dict[str, Any]) -> None:
        """Begin to ask for what follows a step, which the implementation is about to run."""
        if self._next is None and _bytes_of(given) <= _MOST_BYTES and (after := self._following(step)) is not None:
            self._run.tighten(self._task)
            self._next, self._task.ahead = after, self._beside.submit(self._ask, after, holds=True)

    def failed(self) -> bool:
        """Whether the reference failed in the next step, so that it may not have answered about the last one."""
        return self._task.ahead is not None and self._task.ahead.exception() is not None

    def forget(self) -> None:
        """Give up what was asked for; the next step opens its pass anew."""
        if self._task.ahead is not None:
            self._task.ahead.exception()
        self._next = self._task.ahead = None
        self._opened = -1

    def _ask(self, step: Step, holds: bool) -> Found:
        opens, self._opened = step.turn != self._opened, step.turn
        how = {"move": step.move, "vary": step.vary, "places": step.places, "holds": holds}
        return asked(self._task, step.case, step.seed, opens=opens, **how)


def _bytes_of(given: dict[str, Any]) -> int:
    values = [given.get(name) for name in ("inputs", "outputs", "weights")]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors_of(values))
