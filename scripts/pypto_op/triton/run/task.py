"""The role of the process that holds the task: inputs, weights and golden outputs, case by case."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from pypto_op.backends.worker.loading import Failure, failure_of, load_module
from pypto_op.triton.run import model as models
from pypto_op.triton.run.clock import Clock, refresh
from pypto_op.triton.run.memory import address
from pypto_op.triton.run.packing import map_tensors, tensors_of
from pypto_op.vocabulary import Outcome

_END = object()


class Task:
    """`Model`, `get_init_inputs` and `get_input_groups` (or `get_inputs`) of the task's file.

    Messages: `open` (start a pass over the cases, seeded), `case` (the next one: inputs, weights, golden), `again` (golden
    of the present case, its values rolled), `truth` (the same in float64), `time` (time the present case).
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self._device = models.prepare(document)
        self._path = Path(document["file"])
        self._module = load_module(self._path, sha256=document["sha256"])
        for name in ("Model", "get_init_inputs"):
            self._needed(name)
        self._clock = Clock(self._device)
        self._cases: Iterator[Any] = iter(())
        self._position = 0
        self._model: Any = None
        self._inputs: Any = None

    def handle(self, message: dict[str, Any]) -> tuple[list[torch.Tensor], dict[str, Any]]:
        """Answer one message."""
        facts: dict[str, Any] = {"outcome": str(Outcome.OK), "detail": "", "structure": ""}
        try:
            answer, more = getattr(self, f"_{message['call']}")(message)
            values = models.packed(answer, self._path.name)
            facts |= more
        except Failure as failure:
            values = []
            facts |= {"outcome": str(failure.outcome), "detail": failure.detail}
        return values, facts

    def _needed(self, name: str) -> Any:
        found = getattr(self._module, name, None)
        if not callable(found):
            raise Failure(Outcome.MISSING_WRAPPER, f"{self._path.name} has no {name}")
        return found

    def _ask(self, name: str) -> Any:
        try:
            return self._needed(name)()
        except Failure:
            raise
        except BaseException as error:
            raise failure_of(error, self._path, Outcome.EXCEPTION, f" in {name}") from None

    def _open(self, message: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        torch.manual_seed(message["seed"])
        total: int | None = 1
        if callable(getattr(self._module, "get_input_groups", None)):
            groups = self._ask("get_input_groups")
            total = len(groups) if hasattr(groups, "__len__") else None
            self._cases = iter(groups)
        else:
            self._cases = iter([self._ask("get_inputs")])
        self._position = 0
        return None, {"total": total}

    def _case(self, message: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Advance to the case of that index and answer with everything about it."""
        group: Any = _END
        while self._position <= message["index"]:
            try:
                group = next(self._cases, _END)
            except BaseException as error:
                raise failure_of(error, self._path, Outcome.EXCEPTION, " while it made the inputs") from None
            self._position += 1
        if group is _END:
            return None, {"end": True}
        inputs = _arguments(group, self._path)
        torch.manual_seed(message["seed"])
        init = self._ask("get_init_inputs")
        self._model = models.build(self._needed("Model"), list(init or ()), message["seed"], self._device, self._path)
        weights = {name: value.detach().clone() for name, value in models.weights_of(self._model).items()}
        self._inputs = models.placed(inputs, self._device)
        sent = map_tensors(self._inputs, torch.clone)
        answer = {"init": list(init or ()), "weights": weights, "inputs": sent}
        golden, facts = self._golden(map_tensors(self._inputs, _same_layout), message["seed"])
        return {**answer, **golden}, facts

    def _again(self, message: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        inputs = map_tensors(self._inputs, _same_layout)
        refresh(inputs, self._inputs, message["shift"])
        return self._golden(inputs, message["seed"])

    def _truth(self, message: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Answer with the outputs of the present case, computed in float64."""
        inputs = map_tensors(self._inputs, _same_layout)
        refresh(inputs, self._inputs, message["shift"])
        torch.manual_seed(message["seed"])
        try:
            with torch.no_grad():
                model = copy.deepcopy(self._model)
                model = model.double() if isinstance(model, torch.nn.Module) else model
                outputs = model(*map_tensors(inputs, lambda leaf: leaf.double() if leaf.is_floating_point() else leaf))
        except BaseException as error:
            raise failure_of(error, self._path, Outcome.EXCEPTION, " in the reference's forward in float64") from None
        return {"outputs": outputs}, {}

    def _golden(self, inputs: Any, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
        before = models.marks(inputs)
        torch.manual_seed(seed)
        try:
            with torch.no_grad():
                outputs = self._model(*inputs)
            models.synchronize(self._device)
        except BaseException as error:
            raise failure_of(error, self._path, Outcome.EXCEPTION, " in the reference's forward") from None
        mutated = models.changed(inputs, before)
        held = {address(tensor): i for i, tensor in enumerate(tensors_of(inputs)) if tensor.numel()}
        aliased = sorted({held[address(leaf)] for leaf in tensors_of(outputs) if leaf.numel() and address(leaf) in held})
        return {"outputs": outputs, "mutated": mutated}, {"aliased_inputs": aliased}

    def _time(self, message: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        try:
            return None, self._clock.time(self._model, self._inputs, message).facts()
        except BaseException as error:
            raise failure_of(error, self._path, Outcome.EXCEPTION, " while it was timed") from None


def _arguments(group: Any, path: Path) -> list[Any]:
    """Return the positional arguments of one case; a single tensor is one argument, not a list of its rows."""
    if isinstance(group, torch.Tensor):
        return [group]
    if isinstance(group, dict):
        raise Failure(Outcome.BAD_OUTPUT, f"{path.name}: a case is a dict; inputs are positional, so return a list of arguments")
    if isinstance(group, (list, tuple)):
        return list(group)
    raise Failure(Outcome.BAD_OUTPUT, f"{path.name}: a case is a {type(group).__name__}, not a list of arguments")


def _same_layout(tensor: torch.Tensor) -> torch.Tensor:
    copy = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    return copy.copy_(tensor) if tensor.numel() else copy
