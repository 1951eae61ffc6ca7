"""Keeps the inputs and results of a call, so that later calls show whether the wrapper remembers anything.

A wrapper must not remember. So a later call can be made on the very tensors of the call before, with other values in
them; and the memory of earlier results is held, so that it shows when a later call writes there or hands it out again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pypto_op.backends.worker.given import content

_CALLERS = 2
"""Calls whose very tensors are held, as a caller would who has use for both."""

_MARGIN = 4096
"""Bytes before and behind a tensor that is a part of a larger one: whatever alignment a device wants is kept."""

_HELD_BYTES = 64 * 1024 * 1024
"""Results of so many bytes are held, and as many of inputs; the oldest go first, and those of the latest call stay."""


@dataclass(frozen=True)
class _Result:
    """One output of an earlier call."""

    call: int  # number of the call
    position: int  # of the output
    leaf: torch.Tensor  # its very memory
    digest: bytes  # of its elements when the call returned


class EarlierCalls:
    """The calls that the judge made in this process."""

    def __init__(self) -> None:
        self.count = 0  # how many
        self.values: list[Any] = []  # the inputs of the latest one
        self._results: list[_Result] = []
        self._inputs: list[torch.Tensor] = []
        self._objects: list[list[torch.Tensor]] = []

    def onto(self, values: Sequence[Any]) -> list[Any]:
        """Return `values` in the tensors of the call before, wherever shape, strides and dtype agree.

        The version counter of a tensor stays as it is, as it does when a kernel writes: a copy that a wrapper keeps by
        address and version must be seen to be old.
        """
        before = self.values if len(self.values) == len(values) else [None] * len(values)
        return [_overwritten(old, new) for old, new in zip(before, values, strict=True)]

    def are_parts(self) -> bool:
        """Whether the inputs of the latest call were parts of larger tensors."""
        return any(tensor.storage_offset() for tensor in tensors_of(self.values))

    def begin(self, values: Sequence[Any]) -> None:
        """Take note of a call with `values`."""
        self.count += 1
        self.values = list(values)
        current = tensors_of(values)
        earlier = [tensor for tensor in self._inputs if all(tensor is not one for one in current)]
        while sum(map(_bytes, earlier)) > _HELD_BYTES:
            del earlier[0]
        self._inputs = earlier + current

    def shared(self, leaves: Sequence[torch.Tensor]) -> list[int]:
        """Return the positions of the outputs that lie in the memory of an earlier call's result or input.

        Args:
            leaves: the outputs of the latest call, which `keep` was not told of.
        """
        current = {id(tensor) for tensor in tensors_of(self.values)}
        inputs = [tensor for tensor in self._inputs if id(tensor) not in current]
        taken = [_span(tensor) for tensor in (*(result.leaf for result in self._results), *inputs) if tensor.numel()]
        return [i for i, leaf in enumerate(leaves) if leaf.numel() and any(_meet(_span(leaf), span) for span in taken)]

    def keep(self, leaves: Sequence[torch.Tensor], copies: Sequence[torch.Tensor]) -> None:
        """Hold the results of the latest call, except results that are its inputs, which may change.

        Args:
            copies: the same, as they were when the call returned.
        """
        inputs = [_span(tensor) for tensor in tensors_of(self.values) if tensor.numel()]
        for position, (leaf, copy) in enumerate(zip(leaves, copies, strict=True)):
            if leaf.numel() and not any(_meet(_span(leaf), span) for span in inputs):
                self._results.append(_Result(self.count, position, leaf, content(copy)))
        while sum(_bytes(result.leaf) for result in self._results) > _HELD_BYTES and self._results[0].call != self.count:
            del self._results[0]

    def changed(self) -> list[int]:
        """Return the positions of results that changed since their call, of all calls held; each change is reported once."""
        found = [result for result in self._results if content(result.leaf) != result.digest]
        self._results = [result for result in self._results if all(result is not other for other in found)]
        return sorted({result.position for result in found})

    def hold(self, objects: list[torch.Tensor]) -> None:
        """Hold the very tensors that a call returned, for a wrapper that asks whether they live still.

        The oldest end here, and what their end sets off is code of the wrapper's: to be called while that is watched.
        """
        self._objects.append(objects)
        del self._objects[:-_CALLERS]

    def kept_by_others(self) -> bool:
        """Whether somebody else still holds a result of a call before the latest: it may be handed out again."""
        mine: dict[int, int] = {}
        for tensor in (*(result.leaf for result in self._results), *(one for held in self._objects for one in held)):
            place = tensor.untyped_storage().data_ptr()
            mine[place] = mine.get(place, 0) + 1
        old = (result.leaf for result in self._results if result.call != self.count)
        return any(_holders(leaf) > mine[leaf.untyped_storage().data_ptr()] for leaf in old)


def tensors_of(values: Iterable[Any]) -> list[torch.Tensor]:
    """Return the tensors among `values`, nested ones too."""
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += tensors_of(value)
    return found


def steering_of(values: Iterable[Any]) -> list[Any]:
    """Return all of `values` but float tensors, the items of nested ones too: what a wrapper may compute numbers from."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            found += steering_of(value)
        elif not (isinstance(value, torch.Tensor) and value.is_floating_point()):
            found.append(value)
    return found


def inside(values: Iterable[Any]) -> list[Any]:
    """Return `values` with each contiguous tensor in the middle of a larger one, which nobody has written."""
    return [_inside(value) for value in values]


def _inside(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_inside(item) for item in value)
    if not isinstance(value, torch.Tensor) or not value.is_contiguous() or not value.numel():
        return value
    margin = _MARGIN // value.element_size()
    larger = torch.empty(value.numel() + 2 * margin, dtype=value.dtype, device=value.device)
    return larger[margin : margin + value.numel()].view(value.shape).copy_(value)


def _overwritten(old: Any, new: Any) -> Any:
    if isinstance(new, torch.Tensor):
        if not (type(old) is torch.Tensor and old.layout is new.layout and old.device == new.device):
            return new
        if (old.dtype, old.shape, old.stride()) != (new.dtype, new.shape, new.stride()):
            return new
        old.data.copy_(new)
        return old
    if isinstance(new, (list, tuple)) and type(old) is type(new) and len(old) == len(new):
        return type(new)(_overwritten(one, two) for one, two in zip(old, new, strict=True))
    return new


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """Return where the whole storage of a tensor begins and ends."""
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().nbytes()


def _meet(one: tuple[int, int], two: tuple[int, int]) -> bool:
    return one[0] < two[1] and two[0] < one[1]


def _holders(leaf: torch.Tensor) -> int:
    """Return how many tensors and storages hold the memory of `leaf`."""
    count: int = torch._C._storage_Use_Count(leaf.untyped_storage()._cdata)
    return count - 1  # the object that was asked
