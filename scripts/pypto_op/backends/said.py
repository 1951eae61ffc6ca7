"""Checks the messages of a worker before the judge believes them, because a candidate may have written them."""

from __future__ import annotations

import re
from typing import Any

from pypto_op.backends.base import RunResult
from pypto_op.vocabulary import Loader, Outcome

_PATH = re.compile(r"/[^\x00]{0,4095}\Z")
_HASH = re.compile(r"([0-9a-f]{64}|absent)\Z")


class Forged(Exception):
    """An answer did not come from the worker: out of turn, damaged, or without the judge's nonce."""


def outcome_of(word: object) -> Outcome:
    """Return the outcome that a worker names; a word that is none counts as a crash."""
    try:
        return Outcome(str(word))
    except ValueError:
        return Outcome.CRASHED


def result_of(answer: dict[str, Any]) -> RunResult:
    """Build a result from a worker's answer; every field is checked, since a candidate may have had a hand in it."""
    try:
        cost = answer.get("cost")
        return RunResult(
            outcome=outcome_of(answer.get("outcome")),
            detail=re.sub(r"\s+", " ", str(answer.get("detail", "")))[:600],
            structure=str(answer.get("structure", ""))[:200],
            launches=int(answer.get("launches", 0)),
            outputs_from_kernel=answer.get("outputs_from_kernel") is True,
            mutated_inputs=_numbers(answer, "mutated_inputs"),
            aliased_inputs=_numbers(answer, "aliased_inputs"),
            sentinel_left=_numbers(answer, "sentinel_left"),
            prefilled_outputs=_numbers(answer, "prefilled_outputs"),
            host_made={str(key): str(value) for key, value in dict(answer.get("host_made") or {}).items()},
            host_computed=tuple(str(key) for key in answer.get("host_computed") or ()),
            call=int(answer.get("call", 0)),
            shared_outputs=_numbers(answer, "shared_outputs"),
            changed_results=_numbers(answer, "changed_results"),
            results_kept=answer.get("results_kept") is True,
            launched=int(answer.get("launched", 0)),
            changed_outputs=_numbers(answer, "changed_outputs"),
            kept_outputs=_numbers(answer, "kept_outputs"),
            kept_arguments=tuple(str(key) for key in answer.get("kept_arguments") or ()),
            unshown=answer.get("unshown") is True,
            late=answer.get("late") is True,
            seconds=float(answer.get("seconds", 0.0)),
            cost={str(key): float(value) for key, value in cost.items()} if isinstance(cost, dict) else None,
        )
    except (TypeError, ValueError):
        raise Forged from None


def loaded_of(answer: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return what a worker says it loaded; every field is checked."""
    loaded = answer.get("loaded", {})
    try:
        found = {Loader(role): dict(files) for role, files in loaded.items()}
        sound = all(_PATH.match(path) and _HASH.match(digest) for files in found.values() for path, digest in files.items())
    except (TypeError, ValueError, AttributeError):
        raise Forged from None
    if not sound:
        raise Forged
    return {str(role): files for role, files in found.items()}


def _numbers(answer: dict[str, Any], key: str) -> tuple[int, ...]:
    return tuple(int(number) for number in answer.get(key, ()))
