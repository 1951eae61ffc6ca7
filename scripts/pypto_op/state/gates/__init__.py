"""The gates: each looks at files and either puts a fact into the context or refuses.

`workflow.json` says which action passes which gates; `GATES` is the registry. Gates run under the operator's lock,
after the preconditions on the state hold; a gate that needs the judge raises `NeedsJudge`.
"""

from __future__ import annotations

from collections.abc import Iterable

from pypto_op.state.gates import frozen, lint, phases, stages
from pypto_op.state.gates.base import GATES, Context
from pypto_op.state.gates.frozen import frozen_problems

__all__ = ["GATES", "Context", "frozen", "frozen_problems", "lint", "phases", "run", "stages"]


def run(context: Context, names: Iterable[str]) -> None:
    """Pass the gates in order; the first that refuses ends it.

    Raises:
        ContractError, InfraError, NeedsJudge: as the gates do.
    """
    for name in names:
        GATES[name](context)
