"""One judged call of a reference: what it returns, and what it does to its inputs and to its own buffers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from pypto_op.backends.worker.loading import failure_of
from pypto_op.dispatch_mode import DispatchMode
from pypto_op.triton.run.inputs.packing import tensors_of
from pypto_op.triton.run.processes import model as models
from pypto_op.triton.run.watching.memory import aliased, repeated
from pypto_op.vocabulary import Outcome


def of(
    model: Any,
    call: Callable[[Any, Any], Any],
    inputs: Any,
    device: torch.device,
    path: Path,
    watches: Sequence[DispatchMode] = (),
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the golden `outputs` and `mutated` inputs of a call, and facts about it.

    Args:
        call: calls a model with inputs (`gradients.Caller`).
        inputs: any structure of tensors; the reference may write into them.
        device: where they lie.
        path: of the task, which is blamed.
        watches: see the call alone, not what is computed to find which inputs changed: a device moves bytes to the host for that.

    Raises:
        Failure: the reference raised, or returned what cannot be handed over.
    """
    marks = models.marks(inputs)
    buffers = models.states_of(model)
    stood, kept = models.marks(buffers), models.kept_by(model)
    try:
        with contextlib.ExitStack() as active:
            for watch in watches:
                active.enter_context(watch)
            outputs = call(model, inputs)
        models.synchronize(device)
    except BaseException as error:
        raise failure_of(error, path, Outcome.EXCEPTION, " in the reference's forward") from None
    models.checked(outputs, f"{path.name}: the reference's output")
    changes = [name for name, one, other in zip(buffers, stood, models.marks(buffers), strict=True) if one != other]
    shared = aliased(tensors_of(inputs), tensors_of(outputs))
    facts = {"aliased_inputs": shared, "repeated": repeated(tensors_of(outputs)), "changes": changes}
    facts["keeps"] = bool(changes) or models.kept_by(model) != kept
    return {"outputs": outputs, "mutated": models.changed(inputs, marks)}, facts
