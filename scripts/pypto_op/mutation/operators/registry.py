"""Every mutation operator, by name."""

from __future__ import annotations

from collections.abc import Sequence

from pypto_op.errors import ContractError
from pypto_op.mutation.operators import arithmetic, decisions, dtypes, loops, state, views
from pypto_op.mutation.operators.base import Operator

OPERATORS: dict[str, Operator] = {
    operator.name: operator for group in (loops, views, arithmetic, decisions, state, dtypes) for operator in group.OPERATORS
}
"""name -> operator, in the order of the groups."""


def select(names: Sequence[str] | None) -> list[Operator]:
    """Return the operators with these names; all of them for None.

    Raises:
        ContractError: there is no such operator.
    """
    if names is None:
        return list(OPERATORS.values())
    unknown = [name for name in names if name not in OPERATORS]
    if unknown:
        raise ContractError(f"there is no mutation operator {unknown[0]!r}", remedy=f"use one of {', '.join(OPERATORS)}")
    return [OPERATORS[name] for name in dict.fromkeys(names)]
