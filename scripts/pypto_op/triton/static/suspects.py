"""Arguments of forward without annotation: they count as numbers when the check then has no objection.

A first run takes every one of them for a tensor and notes which are used as tensors. If it objects, a second one takes the
others for numbers as long as nothing contradicts: a number has no methods, is no kernel's pointer, is not returned and not
copied from. Each must also be used as a number somewhere.
"""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from pypto_op.triton.static.machine import Machine
from pypto_op.triton.static.source import SourceFile
from pypto_op.triton.static.values import Buffer, Tensor, Value, holds_data, tensors_in

SUSPECT = "suspect"
"""The origin of the memory that such an argument would have."""


class Suspects:
    """Keeps the signs.

    Attributes:
        tensors, numbers: what was used as a tensor and as a number.
    """

    def __init__(self, machine: Machine) -> None:
        self.m = machine
        self.tensors: set[Buffer] = set()
        self.numbers: set[Buffer] = set()

    def as_tensor(self, values: Iterable[Value], node: cst.CSTNode, source: SourceFile) -> None:
        """Note that values are used as tensors; a value that was taken for a number before is denied."""
        for tensor in (tensor for value in values for tensor in tensors_in(value)):
            self.tensors |= tensor.buffers
            if any(buffer.origin == SUSPECT for buffer in tensor.buffers):
                self.m.deny(node, source, "an argument that seemed to be a number is used as a tensor")

    def as_number(self, values: Iterable[Value]) -> Value | None:
        """Return what arithmetic on values yields if each tensor among them may be a number; None when one of them may not."""
        given = list(values)
        tensors = [tensor for value in given for tensor in tensors_in(value)]
        if not tensors or sum(map(holds_data, given)) != sum(bool(tensors_in(value)) for value in given):
            return None
        buffers = frozenset(buffer for tensor in tensors for buffer in tensor.buffers)
        return Tensor(buffers) if all(buffer.origin == SUSPECT for buffer in buffers) else None

    def confirm(self, values: Iterable[Value]) -> None:
        """Note that values are used as numbers."""
        for tensor in (tensor for value in values for tensor in tensors_in(value)):
            self.numbers |= tensor.buffers
