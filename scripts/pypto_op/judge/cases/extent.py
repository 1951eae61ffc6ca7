"""How much of an operator a report speaks of: the whole suite, or a part, which is never called a PASS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pypto_op.documents import suite as suite_document
from pypto_op.errors import ContractError
from pypto_op.judge.cases.contract import Contract
from pypto_op.judge.cases.inputs import checks_precision
from pypto_op.vocabulary import Mode, Status

Selection = dict[str, Any]

_LIMITS = frozenset({"inspect", "suite", "policy", "seed"})
"""Keys of a selection that is never complete."""


def selection_of(
    contract: Contract | None,
    ran: Sequence[Mapping[str, Any]],
    *,
    levels: Sequence[str] | None,
    case: str | None,
    suite: Path | None,
    inspect: str | None,
    seed: int | None,
) -> Selection:
    """Return the report's `selection`.

    What was asked for does not decide: a run is complete when every case of the operator's own suite ran, with the
    tolerance of SPEC.md, and its outputs were compared. `--levels L1,L2,L3,L4,L5` is complete, `--case` is where the
    suite has one case only.

    Args:
        contract: the documents; None when they could not be read.
        ran: the cases that were judged; empty when none was.
        seed: the second seed that was asked for, which a kernel can be fitted to: its inputs and the drawn sizes are known.
    """
    selection: Selection = {"levels": list(levels) if levels is not None else None, "case": case, "complete": False}
    if inspect is not None:
        selection["inspect"] = inspect
    if seed is not None:
        selection["seed"] = seed
    if contract is None or not ran:
        return selection
    own = contract.cases if suite is None else _own_cases(contract)
    left_out = [item for item in own if item not in ran]
    if left_out:
        selection["not_judged"] = len(left_out)
        counts = Counter(str(item["level"]) for item in left_out)
        selection["not_judged_levels"] = dict(sorted(counts.items()))
    if suite is not None and (left_out or not own):
        selection["suite"] = "other"
    if contract.other_tolerance:
        selection["policy"] = "other"
    selection["complete"] = not left_out and not _LIMITS & set(selection)
    return selection


def _own_cases(contract: Contract) -> Sequence[Mapping[str, Any]]:
    """Return the cases of the operator's own suite where another was judged; [] where it has none that can be read."""
    try:
        return suite_document.load(contract.workspace.suite).cases
    except ContractError:
        return []


def named(status: Status, selection: Mapping[str, Any]) -> Status:
    """Return PARTIAL for a PASS that is no whole one; every other status as it is."""
    return Status.PARTIAL if status is Status.PASS and not selection["complete"] else status


def named_modes(per_mode: Mapping[Mode, Status], selection: Mapping[str, Any]) -> dict[str, str]:
    """Return `per_mode_status`, in which a part is PARTIAL too."""
    return {str(mode): str(named(status, selection)) for mode, status in per_mode.items()}


def nothing_compared(contract: Contract, ran: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the report's `error` for a run in which everything passed and no number was compared."""
    others = [item for item in contract.cases if checks_precision(item) and item not in ran]
    if others:
        levels = ", ".join(sorted({str(item["level"]) for item in others}))
        message = f"no selected case compares numbers, so nothing was judged; {len(others)} others do: select of {levels}"
    else:
        message = "no case of the suite compares numbers; add cases with precision: true"
    return {"kind": "contract", "message": message}


def counted(report: Mapping[str, Any]) -> str:
    """Say how many cases passed, and what the report says nothing about."""
    passed, total = report["cases_passed"], report["cases_total"]
    if report["status"] == Status.ERROR and passed == total:
        return "no verdict"  # "32 of 32 passed" beside ERROR would be read as a success
    if report["status"] != Status.PARTIAL:
        return f"{passed} of {total} cases passed"
    return f"{passed} of {total} of the selected cases passed; {left_out(report)}"


def left_out(report: Mapping[str, Any]) -> str:
    """Say in one sentence why a report is PARTIAL; "" for a complete one."""
    selection, total = report.get("selection", {}), report["cases_total"]
    missing = selection.get("not_judged", 0)
    levels = ", ".join(f"{count} of {level}" for level, count in selection.get("not_judged_levels", {}).items())
    where = f" ({levels})" if levels else ""
    parts = []
    if "inspect" in selection:
        parts.append(f"the probe {selection['inspect']} was compared, not the outputs")
    if "suite" in selection:
        parts.append(f"another suite was judged, {missing} cases of the operator's own were not{where}")
    elif missing:
        parts.append(f"{missing} of {total + missing} were not judged{where}")
    if "policy" in selection:
        parts.append("another tolerance than SPEC.md's was used")
    if "seed" in selection:
        parts.append("the second seed was named, so a kernel can be fitted to what it draws")
    return "; ".join(parts)


def covers(report: Mapping[str, Any], levels: Sequence[str]) -> bool:
    """Whether a report speaks of every case of `levels`, with the suite and tolerance of the operator."""
    selection = report["selection"]
    asked = selection["levels"]
    alone = selection["case"] is None and not _LIMITS & set(selection)
    return bool(selection["complete"]) or (alone and asked is not None and set(levels) <= set(asked))


def times_allowed(share: float) -> str:
    """Return how many times what is allowed an error is, in three figures; what is above 1 never reads as 1."""
    text = f"{share:.3g}"
    return f"1 + {share - 1:.1g}" if text == "1" and share > 1 else text
