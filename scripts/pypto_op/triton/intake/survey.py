"""The role of the process that runs a public task while its sizes are looked for: it may be endless, huge or wrong."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pypto_op.backends.worker.loading import Failure, failure_of
from pypto_op.dispatch_mode import DispatchMode
from pypto_op.triton.intake.constants import Site, replaced
from pypto_op.triton.intake.search import Budget, Size, smaller
from pypto_op.triton.run.inputs import arguments
from pypto_op.triton.run.inputs.describe import describe
from pypto_op.triton.run.inputs.packing import tensors_of
from pypto_op.triton.run.processes import model as models
from pypto_op.vocabulary import Outcome

_RUN_FOR_REAL = 1 << 20
"""Elements; tasks of at most so many run on the CPU too, and not only without memory (PyTorch's device `meta`)."""
_FLOPS_FOR_REAL = 1 << 32


@dataclass
class _Seen:
    size: Size
    inputs: list[dict[str, Any]]


class Survey:
    """Runs a task's text with other numbers in it.

    Messages: `survey` (answer with the numbers that make the task small enough, and what it is given before and after).
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self._device = models.prepare(document)
        self._path = Path(document["file"])
        self._runs_on_meta = self._draws = False
        sys.path.insert(0, str(self._path.parent))

    def handle(self, message: dict[str, Any]) -> tuple[list[torch.Tensor], dict[str, Any]]:
        """Answer one message."""
        facts: dict[str, Any] = {"outcome": str(Outcome.OK), "detail": "", "structure": ""}
        try:
            facts |= self._survey(message)
        except Failure as failure:
            facts |= {"outcome": str(failure.outcome), "detail": failure.detail}
        return [], facts

    def _survey(self, message: dict[str, Any]) -> dict[str, Any]:
        text = self._path.read_text(encoding="utf-8")
        sites = [Site(**site) for site in message["sites"]]
        budget = Budget(message["elements"], message["flops"])
        fixed = {sites[int(key)]: value for key, value in message["fixed"].items()}
        natural = self._seen(text if message["public"] else replaced(text, fixed))

        def tried(changes: dict[Site, int]) -> Size | None:
            try:
                return self._seen(replaced(text, changes)).size
            except Failure:
                return None

        found = fixed
        if not message["keep"]:
            start = natural.size if not fixed else self._seen(replaced(text, fixed)).size
            found = smaller(sites, fixed, start, budget, tried)
            size = tried(found) or start
            if not budget.holds(size):
                other = smaller(sites, fixed, start, budget, tried, together=True)
                found = other if (tried(other) or start).below(size) else found
        after = self._seen(replaced(text, found)) if found else natural
        chosen = {str(sites.index(site)): value for site, value in found.items()}
        return {
            "changes": chosen,
            "natural": vars(natural.size),
            "size": vars(after.size),
            "inputs_before": natural.inputs,
            "inputs": after.inputs,
            "arguments": self._names,
            "fits": budget.holds(after.size),
            "draws": self._draws,
        }

    def _seen(self, text: str) -> _Seen:
        """Return what the task is with this text; raise Failure where it does not run."""
        try:
            return self._run(text, "meta")
        except _WithoutMemory as other:
            elements, given = other.elements, other.inputs
            if self._runs_on_meta:  # with the public numbers it did
                raise other.failure from None
        if elements is not None and elements > _RUN_FOR_REAL:
            return _Seen(Size(elements, 0, known=False), given)
        return self._run(text, "cpu")

    def _run(self, text: str, device: str) -> _Seen:
        elements: int | None = None
        given: list[dict[str, Any]] = []
        try:
            with torch.device(device), torch.no_grad():
                module = self._module(text)
                torch.manual_seed(0)
                init = arguments.of_constructor(self._call(module, "get_init_inputs"), module.Model)
                group = self._first(module)
                model = module.Model(*init[0], **init[1])
                forward = getattr(model, "forward", model)
                inputs = arguments.of_case(group, forward, self._path)
                self._names = _names(forward, len(inputs))
                given = describe(inputs)
                held = [*tensors_of(inputs), *models.held_by(model)]
                elements = max((tensor.numel() for tensor in held), default=0)
                outputs, flops, draws = _counted(model, inputs)
                self._draws |= draws
        except Failure:
            raise
        except BaseException as error:
            failure = failure_of(error, self._path, Outcome.EXCEPTION)
            if device == "meta":
                raise _WithoutMemory(elements, failure, given) from None
            raise failure from None
        data = max((tensor.numel() for tensor in [*tensors_of(inputs), *tensors_of(outputs)]), default=0)
        size = Size(max(elements, data), flops, data=data)
        if device == "meta" and size.elements <= _RUN_FOR_REAL and flops <= _FLOPS_FOR_REAL:  # an index out of range, say
            return self._run(text, "cpu")
        self._runs_on_meta |= device == "meta"
        return _Seen(size, given)

    def _module(self, text: str) -> types.ModuleType:
        module = types.ModuleType(self._path.stem)
        module.__file__ = str(self._path)
        sys.modules[self._path.stem] = module
        exec(compile(text, str(self._path), "exec", dont_inherit=True), vars(module))  # noqa: S102
        return module

    def _call(self, module: types.ModuleType, name: str) -> Any:
        function = getattr(module, name, None)
        return function() if callable(function) else None

    def _first(self, module: types.ModuleType) -> Any:
        groups = getattr(module, "get_input_groups", None)
        return next(iter(groups())) if callable(groups) else module.get_inputs()


class _WithoutMemory(Exception):
    """The task does not run on the device that has no memory."""

    def __init__(self, elements: int | None, failure: Failure, inputs: list[dict[str, Any]]) -> None:
        super().__init__(failure.detail)
        self.elements, self.failure, self.inputs = elements, failure, inputs


def _counted(model: Any, inputs: list[Any]) -> tuple[Any, int, bool]:
    """Call a model; return its outputs, how many operations its products and convolutions cost, and whether it draws numbers."""
    from torch.utils.flop_counter import FlopCounterMode

    counter, draws = FlopCounterMode(display=False), _Draws()
    with counter, draws:
        outputs = arguments.call(model, inputs)
    return outputs, int(counter.get_total_flops()), draws.found


class _Draws(DispatchMode):
    """Sees whether PyTorch draws random numbers."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Execute an operator; note those that a seed decides."""
        self.found |= torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))


def _names(forward: Any, count: int) -> list[str]:
    """Return the names of forward's arguments as far as it names them."""
    try:
        names = [name for name, known in inspect.signature(forward).parameters.items() if known.kind is not known.VAR_POSITIONAL]
    except (TypeError, ValueError):
        names = []
    return [names[i] if i < len(names) else f"argument {i}" for i in range(count)]
