"""What may be moved of a case that is met for the first time, and what cannot."""

from __future__ import annotations

from typing import Any

from pypto_op.triton.run.inputs import constructor, masks, neighbours, skewed, whole
from pypto_op.triton.run.inputs.packing import tensors_of


def of_case(
    own: constructor.Given, drawn: list[Any], inputs: Any, weights: dict[str, Any], forward: Any, kind: Any
) -> dict[str, Any]:
    """Return the facts that a reference tells of a case once.

    Args:
        own: what the constructor takes, as the task gives it.
        drawn: the inputs, as the task draws them.
        inputs: the same on the device.
        weights: of the model, by name.
        forward: of the model.
        kind: its class.
    """
    return {
        "one_sign": skewed.of_one_sign(inputs),
        "masks": masks.found(drawn),
        "redrawn": any(map(neighbours.is_whole, tensors_of(drawn))),
        "whole": whole.found(drawn, forward),
        "given": constructor.found(own, kind, [*tensors_of(drawn), *weights.values()]),
    }
