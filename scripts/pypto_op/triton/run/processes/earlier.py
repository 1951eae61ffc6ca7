"""The calls of a reference before the one that is judged: whatever it keeps of them must be carried on, and nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from pypto_op.backends.worker.loading import Failure
from pypto_op.triton.run.inputs import before, reloaded
from pypto_op.triton.run.inputs.packing import map_tensors, same_layout, tensors_of
from pypto_op.triton.run.processes import model as models


class Earlier:
    """What the calls before the judged one of the present case are made with.

    Attributes:
        inputs: of the case.
        other: inputs of another case or draw, in their place (`neighbours`); None: they are made of the case's own (`before`).
        reloads: they are made with other parameters (`reloaded`).
        turn: how they were made (`before`); None: there were none.
        first: what the last of them returned.
    """

    def __init__(self) -> None:
        self.inputs: Any = None
        self.other: Any = None
        self.reloads = False
        self.turn: int | None = None
        self.first: Any = None

    def begin(self, inputs: Any, *, reloads: bool) -> None:
        """Stand before a case with these inputs, of which no call was made."""
        self.inputs, self.reloads = inputs, reloads
        self.other, self.turn, self.first = None, None, None

    def make(self, model: Any, call: Callable[[Any, Any], Any], renewed: Callable[[], Any], what: str) -> Any:
        """Call a model on other values in the first way that it takes; it may keep a state (an RNN's).

        Args:
            model: the present one.
            call: calls it with inputs, and returns its outputs.
            renewed: returns a new model, where a call raised.
            what: the name of the pass: that of `before.KEPT`, of `neighbours`, or none.

        Returns:
            The model whose next call is judged.
        """
        floats = any(tensor.is_floating_point() for tensor in tensors_of(self.inputs))
        turns = (before.SHARED, before.ROLLED, before.SAME)[0 if floats else 2 :]  # other integers may be no valid ones
        turns = (before.SEVERAL,) if what == before.KEPT else (before.OTHER,) if self.other is not None else turns
        self.turn = before.SAME
        for turn in turns:
            try:
                with self._reloading(model):
                    for shift in before.calls(turn):
                        self.first = call(model, self._values(turn, shift))
            except Failure:
                model = renewed()
            else:
                self.turn = turn
                break
        return model

    def repeat(self, model: Any, call: Callable[[Any, Any], Any], change: Callable[[Any], Any]) -> None:
        """Call another model as the present one was called, its inputs changed by a function."""
        for shift in [] if self.turn is None else before.calls(self.turn):
            with self._reloading(model):
                call(model, map_tensors(self._values(self.turn or 0, shift), change))

    def _reloading(self, model: Any) -> contextlib.AbstractContextManager[None]:
        return reloaded.others(models.weights_of(model), reloaded.names(model) if self.reloads else ())

    def _values(self, turn: int, shift: int) -> Any:
        if turn == before.OTHER:
            return map_tensors(self.other, same_layout)
        inputs = map_tensors(self.inputs, same_layout)
        before.fill(inputs, self.inputs, turn, shift)
        return inputs
