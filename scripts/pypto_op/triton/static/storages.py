"""`x.untyped_storage()`: how long it is and where it lies is no data; whatever else is asked of it is."""

from __future__ import annotations

import libcst as cst

from pypto_op.triton.static.machine import Machine
from pypto_op.triton.static.source import SourceFile
from pypto_op.triton.static.values import Host, Storage, Value

MAKES = "untyped_storage"
"""The method of a tensor that returns one. Others (`storage`) return what compares and prints numbers."""
_SIZES = frozenset({"size", "nbytes", "element_size", "__len__"})


def method(machine: Machine, owner: Storage, name: str, node: cst.CSTNode, source: SourceFile) -> Value:
    """Call a method of a tensor's storage."""
    if name == "data_ptr":
        machine.addressed |= owner.tensor.buffers
    elif name not in _SIZES:
        if machine.phase == "forward":
            machine.deny(node, source, "it brings a tensor's data to the host; keep it on the device, in a kernel")
        return Host(data=True)
    return Host()
