"""What may be asked of a verification."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.backends.base import Limits
from pypto_op.documents.policy import Policy, get_policy
from pypto_op.errors import ContractError

_DEFAULT_POLICY: dict[str, Any] = {
    "name": "mere_mare",
    "version": 1,
    # What is computed in 64 bits is held to 64 bits: the rule's fallback of 2^-13 would let errors of float32 pass.
    "per_dtype": {name: {"clamp": 2.0**-13, "mere": 2.0**-24, "mare": 2.0**-20} for name in ("float64", "complex128")},
}


def policy_of(word: str | None) -> Policy:
    """Return the policy of that name; the seed's double threshold, with float64 judged as float64, for None.

    Raises:
        ContractError: there is none, or it takes twins, which only the judge of PyPTO kernels has.
    """
    policy = get_policy(_DEFAULT_POLICY if word is None else word)
    if policy.needs_twins:
        raise ContractError(f"policy {policy.id} needs twins", remedy="use mere_mare or allclose")
    return policy


@dataclass(frozen=True)
class Request:
    """How to verify."""

    target: str | None = None  # interpret, cuda, npu, or None for the device that is there
    timeout: float = 900.0  # seconds for everything
    case_timeout: float | None = None  # seconds for one case on one side; None: what is left of `timeout`
    memory_mb: int = 16384  # resident memory of each process
    policy: str | None = None  # name of the tolerance policy; None for MERE/MARE with the seed's thresholds
    seeds: int = 2  # passes over all cases with other values each; the first seed is 0, the others are drawn
    output: Path | None = None  # where the result goes besides its own place; None: only there
    static_policy: Path | None = None  # policy of the static check, which a PASS needs too; None: the built-in one

    def limits(self, begun: float) -> Limits:
        """Return what a process may use of what is left of a verification that began then (`time.monotonic`)."""
        left = max(1.0, self.timeout - (time.monotonic() - begun))
        return Limits(self.memory_mb, min(left, self.case_timeout or left), min(left, 300.0))
