"""What is wrong with a request, told from the documents alone: before torch is imported and anything is started."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pypto_op.documents import interfaces as interfaces_document
from pypto_op.documents import suite as suite_document
from pypto_op.documents.knobs import is_drawn_id
from pypto_op.documents.policy import get_policy
from pypto_op.errors import ContractError
from pypto_op.hashing import check_readable
from pypto_op.workspace import OpWorkspace, parse_phase

ALLOWED: Mapping[str, set[str]] = {
    "sweep": {"up_to_module", "levels", "case", "policy", "seed", "suite", "error_maps"},
    "self_test": {"suite"},
    "compose": set(),
}
"""Options that the checks beside a verdict take, beside those of every run."""
_ALWAYS = {"report", "modes", "jobs", "limits", "progress", "timeout", "import_timeout", "memory_mb"}


def refuse_ignored(kind: str, options: Mapping[str, Any]) -> None:
    """Raise ContractError for an option that a check would ignore: a narrow check would look like the whole one.

    Args:
        kind: "sweep", "self_test" or "compose".
        options: what was given; None and False count as not given.
    """
    given = [name for name, value in options.items() if value not in (None, False) and name not in _ALWAYS | ALLOWED[kind]]
    if given:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ContractError(f"--{kind.replace('_', '-')} takes no {flags}", remedy="leave it out")


def check_request(
    ws: OpWorkspace,
    *,
    case: str | None = None,
    levels: Sequence[str] | None = None,
    suite: Path | None = None,
    policy: str | None = None,
    impl: Path | None = None,
    up_to_module: str | None = None,
) -> None:
    """Raise ContractError for what a judging command was asked and cannot do.

    Args:
        case: id of the only case wanted.
        levels: the only levels wanted.
        suite: a suite in the place of the operator's own.
        impl: a kernel's file.
        up_to_module: k of M_k.
    """
    if suite is not None:
        check_readable(suite, "leave --suite out to take eval/adversarial_suite.json")
    if impl is not None:
        check_readable(impl, "name the kernel's file with --impl")
    if policy is not None:
        get_policy(policy)
    if up_to_module is not None:
        k, total = parse_phase(up_to_module), _modules(ws)
        if k > total:
            raise ContractError(f"there is no M{k}, the operator has {total} module(s)", file=ws.interfaces)
    path = suite or ws.suite
    loaded = _suite(path) if case is not None or levels is not None else None
    if loaded is None:
        return
    if levels is not None:
        loaded.select(levels)
    ids = [row["id"] for row in loaded.cases]
    if case is not None and ids and case not in ids and not is_drawn_id(case, ids):
        shown = ", ".join(difflib.get_close_matches(case, ids, 3) or ids[:5]) + (", ..." if len(ids) > 5 else "")
        raise ContractError(f"no case matches the case {case!r}; it has {len(ids)}: {shown}", file=path)


def _modules(ws: OpWorkspace) -> int:
    """Return how many modules the contract names; a broken one is the judge's to tell, in a report that replaces the last."""
    try:
        return interfaces_document.load(ws.interfaces).total_modules
    except ContractError:
        return sys.maxsize


def _suite(path: Path) -> suite_document.Suite | None:
    """Return a suite, None where it cannot be read: the judge tells that too."""
    try:
        return suite_document.load(path)
    except ContractError:
        return None
