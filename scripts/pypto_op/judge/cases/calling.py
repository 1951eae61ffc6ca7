"""Which primary inputs a function is handed: all of them, or those that its modules use.

A wrapper or golden of M_1..M_k may take every primary input, in the contract's order, or only those that modules 1..k
read (the linter's OL50 accepts both). Which one it is stands in its signature; the file is read, not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pypto_op.documents.golden import read_signature
from pypto_op.documents.interfaces import Interfaces
from pypto_op.errors import ContractError
from pypto_op.judge.cases.inspection import PREFIX


def used_inputs(interfaces: Interfaces, phase: int | None) -> tuple[str, ...]:
    """Return the names of the primary inputs that modules 1..k read, in the contract's order.

    Args:
        phase: k; None for all modules.
    """
    modules = interfaces.modules if phase is None else interfaces.modules[:phase]
    read = {port.name for module in modules for port in module.inputs if port.module is None}
    return tuple(port.name for port in interfaces.primary_inputs if port.name in read)


def positions(file: Path, function: str, names: Sequence[str], used: Sequence[str]) -> tuple[int, ...]:
    """Return the positions, among the primary inputs, of what a function is called with.

    The used ones only when its parameters are exactly those names in that order; everything else gets all inputs, and
    a function that cannot take them fails by itself, with its own message.

    Args:
        used: those of them that its modules read.
    """
    everything = tuple(range(len(names)))
    if tuple(used) == tuple(names):
        return everything
    try:
        parameters = read_signature(file, function).parameters
    except ContractError:
        return everything
    own = tuple(name for name in parameters if not name.startswith(PREFIX))
    return tuple(names.index(name) for name in used) if own == tuple(used) else everything
