"""How far a golden drifts from itself when it adds up in another order: what the reproducer's script calls."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from pypto_op.backends.worker.outputs import leaves_of
from pypto_op.backends.worker.reference import truths
from pypto_op.compare import compare_leaves
from pypto_op.documents.policy import get_policy
from pypto_op.reproduce.metrics import METRICS
from pypto_op.twins.orders import ORDERS
from pypto_op.twins.other_form import counted, form_of
from pypto_op.twins.reordering import GOLDEN, OTHER_FORM, TWINS, Reordered, storage_of

FLOAT64 = "float64"
"""What the golden in float64 goes by among the twins."""


def differences(
    canonical_form: Callable[..., Any], inputs: Sequence[Any], outputs: Sequence[str], policy: Mapping[str, Any]
) -> dict[str, list[dict[str, Any]]]:
    """Return the drift of each twin from the canonical form.

    Args:
        canonical_form: the golden.
        policy: the tolerance that `max_violation` and `fail_fraction` are about (`get_policy`).

    Returns:
        Twin -> one dict of `METRICS` per output. The twins that change nothing here are left out. `FLOAT64` is the golden
        without its own rounding: a golden that adds nothing up rounds all the same.
    """
    canonical = _run(canonical_form, inputs, GOLDEN)
    names = list(outputs) if len(outputs) == len(canonical) else [f"output_{i}" for i in range(len(canonical))]
    rule = get_policy(policy)
    found: dict[str, list[dict[str, Any]]] = {}

    def note(twin: str, answer: Sequence[torch.Tensor]) -> None:
        comparison = compare_leaves(answer, canonical, names=names, policy=rule)
        found[twin] = [{key: leaf.as_dict()[key] for key in METRICS} for leaf in comparison.per_tensor]

    for twin in TWINS:
        if Reordered(twin, storage_of(inputs)).changes_nothing:
            continue
        note(twin, _run(canonical_form, inputs, twin))
    form = form_of(canonical_form)
    exact, facts = truths(canonical_form, copy.deepcopy(list(inputs)), Path("golden"))
    exact = exact[: len(exact) // facts["ways"]]
    note(FLOAT64, [leaf.to(own.dtype) for leaf, own in zip(exact, canonical, strict=True)])
    if form is not None:
        note(OTHER_FORM, counted(canonical, exact, [_run(form, inputs, twin) for twin in (GOLDEN, *ORDERS)]))
    return found


def _run(canonical_form: Callable[..., Any], inputs: Sequence[Any], twin: str) -> list[torch.Tensor]:
    copies = [value.clone() if isinstance(value, torch.Tensor) else value for value in inputs]
    with Reordered(twin, storage_of(inputs)), torch.no_grad():
        return [leaf.detach().contiguous() for leaf in leaves_of(canonical_form(*copies))]
