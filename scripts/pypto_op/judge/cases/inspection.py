"""Inspection probes (verifier seed, B.5): where, within a module's loop, does the kernel begin to drift?

The wrapper takes a pre-allocated buffer as the keyword `inspection_<name>` and its kernel fills it; the golden's file
has `module_<k>_inspect(...)`, which returns {"<name>": tensor}. Both are [B, H, NT, ...]: axis 2 counts iterations.
Without `--inspect` nothing here runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto_op.documents.reading import read_text
from pypto_op.errors import ContractError
from pypto_op.python_text import functions_in, parameters, parse

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import RunResult
    from pypto_op.documents.policy import Policy

AXIS = 2
"""Axis of the iterations."""

PREFIX = "inspection_"


@dataclass(frozen=True)
class Probe:
    """One inspection buffer."""

    name: str  # the probe, without the prefix
    function: str  # the golden's companion that gives the reference

    @property
    def buffer(self) -> str:
        """The wrapper's keyword."""
        return PREFIX + self.name


def probe_of(name: str, boundary: int) -> Probe:
    """Return the probe `name` at the boundary M_k.

    Raises:
        ContractError: the name is no identifier.
    """
    bare = name.removeprefix(PREFIX)
    if not bare.isidentifier():
        raise ContractError(f"{name[:40]!r} names no probe", remedy="use the <name> of inspection_<name>")
    return Probe(bare, f"module_{boundary}_inspect")


def takes(file: Path, wrapper: str, probe: Probe) -> bool:
    """Whether a wrapper takes the buffer, as a parameter or among `**kwargs`; its file is read, not run."""
    try:
        function = functions_in(parse(read_text(file), file)).get(wrapper)
    except ContractError:
        return True  # loading it will say what is wrong
    return function is None or function.args.kwarg is not None or probe.buffer in parameters(function, keyword_only=True)


def fault_of(reference: RunResult, probe: Probe) -> str:
    """Say why the golden's probe cannot be compared, in words that hold no value of it; "" when it can."""
    from pypto_op.vocabulary import Outcome

    if reference.outcome in (Outcome.MISSING_WRAPPER, Outcome.BAD_OUTPUT):
        return reference.detail  # these are the worker's own words
    if reference.outcome is not Outcome.OK:
        return f"{probe.function} ended with: {reference.outcome}"
    shape = list(reference.outputs[0].shape)
    if len(shape) <= AXIS:
        return f"{probe.function} gives {probe.name} the shape {shape}; a probe is [B, H, NT, ...]"
    return "" if shape[AXIS] else f"{probe.function} gives {probe.name} no iteration"


def fixed(policy: Policy) -> Policy:
    """Return the tolerance that a probe is compared with: a golden's companion has no twins."""
    from pypto_op.documents.policy import get_policy

    return get_policy("allclose@1") if policy.needs_twins else policy


def per_iteration(actual: torch.Tensor, expected: torch.Tensor, policy: Policy) -> list[dict[str, Any]]:
    """Compare each iteration: [{iter, max_abs_diff, max_rel_diff, all_close}], no values.

    Args:
        actual, expected: of one shape and dtype, [B, H, NT, ...].
        policy: the tolerance (`fixed`).
    """
    from pypto_op.compare import compare_leaves

    rows = []
    for number in range(expected.shape[AXIS]):
        pair = [tensor.select(AXIS, number) for tensor in (actual, expected)]
        leaf = compare_leaves(pair[:1], pair[1:], names=[str(number)], policy=policy).per_tensor[0].as_dict()
        kept = ("max_abs_diff", "max_rel_diff", "all_close")
        rows.append({"iter": number, **{key: leaf[key] for key in kept}})
    return rows


def onset(rows: list[dict[str, Any]]) -> int | None:
    """Return the first iteration that is not close, or None."""
    return next((row["iter"] for row in rows if not row["all_close"]), None)
