"""What the reference returns when the present case is computed otherwise: in float64, in another order, on other inputs."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pypto_op.backends.worker.loading import failure_of
from pypto_op.triton.run.inputs.draws import seed_all
from pypto_op.triton.run.inputs.packing import elements_of, map_tensors, same_layout, tensors_of
from pypto_op.triton.run.inputs.rehearsed import MOST_ELEMENTS
from pypto_op.triton.run.judging import expanded, remote, small, trivial
from pypto_op.triton.run.processes import model as models
from pypto_op.vocabulary import Outcome

Change = Callable[[torch.Tensor], torch.Tensor]

_MOST_BESIDE_TIES = 1 << 26
"""Elements of inputs whose ties are looked for; a way holds the outputs in float64, and there may be eight."""


@dataclass(frozen=True)
class Present:
    """The case that the task's process stands at."""

    path: Path  # of the task's file
    inputs: Any  # of the case, on the device; they stay as they are
    # makes a new model of a seed, on the device or on another: forward may have changed what the present one holds
    build: Callable[..., Any]
    called: Callable[[Any, Any], Any]  # calls a model with inputs of its own
    # calls a model as it was called before the call that is judged, its inputs changed by a function
    warm: Callable[[Any, int, Change], None]
    rolled: Callable[[int], Any]  # the inputs, their values rolled by so many places

    def told(self, error: BaseException, more: str = "") -> Exception:
        """Return an error of the reference as the answer to a message."""
        return failure_of(error, self.path, Outcome.EXCEPTION, f" in the reference's forward{more}")


def truth(case: Present, message: dict[str, Any]) -> Any:
    """Return the outputs, computed in float64."""
    seed = message["seed"]
    model = case.build(seed)
    try:
        models.widen(model)
        with models.computing_wide():
            case.warm(model, seed, models.wide)
            seed_all(seed)
            return {"outputs": case.called(model, map_tensors(case.rolled(message["shift"]), models.wide))}
    except BaseException as error:
        raise case.told(error, " in float64") from None


def rounded(case: Present, message: dict[str, Any]) -> Any:
    """Return the outputs in float32, the operands of products rounded to the inputs' 16 bits.

    So a matrix unit has it: a kernel of attention rounds the softmax before its product with the values.
    """
    from pypto_op.twins.reordering import ROUNDED_OPERANDS, Reordered, storage_of

    seed = message["seed"]
    model = case.build(seed)
    try:
        if isinstance(model, torch.nn.Module):
            model.float()
        case.warm(model, seed, models.single)
        seed_all(seed)
        inputs = case.rolled(message["shift"])
        with Reordered(ROUNDED_OPERANDS, storage_of(tensors_of(inputs))):
            return {"outputs": case.called(model, map_tensors(inputs, models.single))}
    except BaseException as error:
        raise case.told(error) from None


def orders(case: Present, message: dict[str, Any]) -> Any:
    """Return the outputs for each order that an honest kernel may have (`twins.orders`, `expanded`), computed on the CPU.

    One order says little where outputs cancel: which of two is nearer to the truth there is chance.
    """
    from pypto_op.twins.orders import ORDERS
    from pypto_op.twins.reordering import Reordered

    seed, cpu = message["seed"], torch.device("cpu")
    if elements_of(case.inputs) > MOST_ELEMENTS:
        return {"outputs": []}
    found = []
    distances = expanded.Expanded()
    try:
        for expands, order in itertools.product((False, True), ORDERS):
            model = case.build(seed, cpu)
            with Reordered(order), distances if expands else contextlib.nullcontext():
                case.warm(model, seed, torch.Tensor.cpu)
                seed_all(seed)
                found.append(case.called(model, map_tensors(case.rolled(message["shift"]), torch.Tensor.cpu)))
            if expands and not distances.used:
                break
    except BaseException as error:
        raise case.told(error) from None
    return {"outputs": found}


def ties(case: Present, message: dict[str, Any]) -> Any:
    """Return the outputs in float64 for each way that values near a tie may fall in honest code.

    A tie is where the reference rounds to whole numbers, orders or compares: `round(x / scale)` and `round(x * (1 / scale))` part
    in one of some hundred thousand elements. No way is returned where nothing lies near a tie, or the inputs are very many.
    """
    from pypto_op.backends.worker.right_answers import right_answers

    if elements_of(case.inputs) > _MOST_BESIDE_TIES:
        return {"outputs": []}
    seed = message["seed"]

    def run(mode: contextlib.AbstractContextManager[Any], wide: bool) -> list[torch.Tensor]:
        change = models.wide if wide else same_layout
        model, inputs = case.build(seed), map_tensors(case.rolled(message["shift"]), change)
        with models.default_wide() if wide else contextlib.nullcontext():
            if wide:
                models.widen(model)
            case.warm(model, seed, change)
            seed_all(seed)
            with mode:
                return tensors_of(case.called(model, inputs))

    try:
        _, ways = right_answers(run)
    except BaseException as error:
        raise case.told(error, " in float64") from None
    return {"outputs": ways if len(ways) > 1 else []}


def exchanged(case: Present, message: dict[str, Any]) -> Any:
    """Return samples of the outputs for inputs of which half of the elements are exchanged (`remote`)."""
    inputs = remote.exchanged(case.inputs, [torch.Size(shape) for shape in message["shapes"]])
    return _sampled(case, message, inputs, contextlib.nullcontext())


def without_small(case: Present, message: dict[str, Any]) -> Any:
    """Return samples of the outputs without terms, at these places, that hardly change them (`small`)."""
    return _sampled(case, message, map_tensors(case.inputs, same_layout), small.Small(case.path, message["drops"]))


def _sampled(case: Present, message: dict[str, Any], inputs: Any, under: contextlib.AbstractContextManager[Any]) -> Any:
    seed = message["seed"]
    model = case.build(seed)
    seed_all(seed)
    try:
        with under:
            return {"samples": trivial.sampled(case.called(model, inputs))}
    except BaseException as error:
        raise case.told(error) from None


CALLS: dict[str, Callable[[Present, dict[str, Any]], Any]] = {
    "truth": truth,
    "rounded": rounded,
    "orders": orders,
    "ties": ties,
    "exchanged": exchanged,
    "without_small": without_small,
}
"""By the word of a message (`task.Task`)."""
