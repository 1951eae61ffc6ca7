"""The trials of a case: which seeds it is judged with, and the inputs of each."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pypto_op.judge import stressing
from pypto_op.stress.sites import normalised
from pypto_op.tensor_bytes import bytes_in

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import Value

DEFAULT_SEED = 42
"""Seed of a case that names none (verifier seed, B.1)."""

FRESH = "fresh_shape"
"""Key of a case that a verdict has drawn (`judge.fresh`): the case it was made from; no inputs file sees it."""

BESIDE = "beside_fresh_shape"
"""Key of the same: other sizes that the wrapper is called with before, in the same process; no inputs file sees it."""

_SEED_LIMIT = 2**31 - 1


def fresh_seed() -> int:
    """Return a seed that nobody knew before this run, so no kernel can have been fitted to its inputs."""
    return secrets.randbelow(_SEED_LIMIT)


def seeds_of(case: Mapping[str, Any], extra: int) -> tuple[int, ...]:
    """Return the seeds of a case: its own, and `extra` as well when its numbers are compared; a drawn case has its own only."""
    own = int(case.get("seed", DEFAULT_SEED))
    if not checks_precision(case) or case.get(FRESH):
        return (own,)
    return (own, extra if extra != own else extra + 1)


def checks_precision(case: Mapping[str, Any]) -> bool:
    """Whether the numbers of the case are compared, not only its structure."""
    return bool(case.get("precision", True))


@dataclass(frozen=True)
class Stress:
    """What a case of `cancellation_stress` wants (verifier seed, B.6)."""

    expression: str  # of the golden; the sum that shall cancel
    quantile: float  # the share of the cells that shall reach it
    condition: float  # the wanted condition number sum|terms| / |sum|


def stress_of(case: Mapping[str, Any]) -> Stress | None:
    """Return what a case wants to cancel, None when nothing."""
    stress = case.get(stressing.KEY)
    if not stress:
        return None
    gap = float(stress.get("relative_gap", stressing.RELATIVE_GAP))
    quantile = float(stress.get("quantile", stressing.QUANTILE))
    return Stress(normalised(str(stress.get("expression", ""))), quantile, 1.0 / gap)


def with_seed(case: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return the case as `make_inputs` gets it for one trial."""
    return {**{key: value for key, value in case.items() if key not in (FRESH, BESIDE)}, "seed": seed}


def tensors_in(values: Sequence[Value]) -> list[torch.Tensor]:
    """Return every tensor among `values`, nested ones too, left to right."""
    import torch

    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(tensors_in(value))
    return found


def digest(values: Sequence[Value]) -> str:
    """Return a hash of inputs: equal for equal bytes, shapes, dtypes and scalars."""
    import torch

    state = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, torch.Tensor):
            state.update(f"{value.dtype}{tuple(value.shape)}".encode())
            state.update(bytes_in(value).numpy().tobytes())
        elif isinstance(value, (list, tuple)):
            state.update(b"[")
            for item in value:
                add(item)
            state.update(b"]")
        else:
            state.update(repr(value).encode())

    for value in values:
        add(value)
    return state.hexdigest()
