"""How wrong numbers look, from what a verdict measured: what is left to go by when no text says anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

EMPTY, NON_FINITE, FEW, TAIL, MIXED, ALL = "empty", "non_finite", "few", "tail", "mixed", "all"

_FEW, _ALL, _LAST = 0.01, 0.95, 0.9


def look_of(leaves: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Return how the wrong outputs look and a sentence on it; ("", "") where no number was compared or none is wrong.

    Args:
        leaves: `per_tensor` of a case in a mode.
    """
    wrong = [leaf for leaf in leaves if not leaf.get("all_close", True)]
    if not wrong:
        return "", ""
    # What no write reached explains what is wrong beside it, and says nothing of mathematics.
    first = next((leaf for leaf in wrong if leaf.get("unwritten_elements")), wrong[0])
    name, share = first["name"], first.get("fail_fraction")
    if first.get("zero_output") or first.get("constant_output") or first.get("unwritten_elements"):
        return EMPTY, f"{name} is {_emptiness(first)}"
    if first.get("special_mismatch_count"):
        return NON_FINITE, f"{name} has NaN or Inf in {first['special_mismatch_count']} wrong places"
    if share is None:
        return MIXED, f"{name} is off"
    said = f"{share:.2%} of {name} is off, the worst at {first.get('worst_index')} of {first.get('shape')}"
    if share >= _ALL:
        return ALL, said
    if _at_the_end(first):
        return TAIL, said
    return (FEW if share < _FEW else MIXED), said


def _emptiness(leaf: Mapping[str, Any]) -> str:
    if leaf.get("zero_output"):
        return "all zeros"
    return "one constant" if leaf.get("constant_output") else f"unwritten in {leaf['unwritten_elements']} places"


def _at_the_end(leaf: Mapping[str, Any]) -> bool:
    """Whether the worst element lies in the last tenth of an axis, where ragged tiles are."""
    place, shape = leaf.get("worst_index") or (), leaf.get("shape") or ()
    return any(size > 1 and index >= _LAST * size for index, size in zip(place, shape, strict=False))
