"""How a reference is called: with gradients where its forward asks for them, by `torch.autograd.grad` say."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from pypto_op.triton.run.inputs import arguments
from pypto_op.triton.run.inputs.packing import Named, map_tensors, tensors_of

_NEEDS_GRADIENTS = re.compile("does not require grad|does not have a grad_fn")


class Caller:
    """Calls models of one task.

    Args:
        renew: returns a new model for one that a call failed in, which may have changed what it holds.
    """

    def __init__(self, renew: Callable[[Any], Any]) -> None:
        self._renew = renew
        self.differentiates = False  # forward asked for gradients, which an error of torch told, so it runs with them
        self.wanted: list[bool] = []  # which tensors of the arguments were drawn with `requires_grad`

    def renewing(self, renew: Callable[[Any], Any]) -> Caller:
        """Return a caller that goes on as this one does, and renews models so."""
        caller = Caller(renew)
        caller.differentiates, caller.wanted = self.differentiates, list(self.wanted)
        return caller

    def __call__(self, model: Any, inputs: Any) -> Any:
        """Return what a model makes of inputs."""
        with torch.set_grad_enabled(self.differentiates):
            for tensor, wanted in zip(tensors_of(inputs), self.wanted, strict=True):
                tensor.requires_grad_(wanted and self.differentiates)
            try:
                return map_tensors(arguments.call(model, inputs), torch.Tensor.detach)
            except RuntimeError as error:
                if self.differentiates or not _NEEDS_GRADIENTS.search(str(error)):
                    raise
        self.differentiates = True
        return self(self._renew(model), inputs)

    def by_arguments(self, model: Any, *inputs: Any, **named: Any) -> Any:
        """Do the same with inputs as the model itself takes them."""
        return self(model, [*inputs, Named(named)])
