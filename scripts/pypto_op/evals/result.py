"""A result: the trials of one plan, what they come to, and how two results differ."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from pypto_op import __version__
from pypto_op.bundle_files import bundle_root
from pypto_op.errors import ContractError
from pypto_op.evals.requests import Request
from pypto_op.evals.statistics import Share, difference
from pypto_op.evals.trials import Plan
from pypto_op.hashing import read_json

SCHEMA_VERSION = 1
_KEYS = {"schema_version", "plan", "requests", "trials", "totals"}
_GIT_SECONDS = 20
Row = Mapping[str, Any]


def summed(plan: Plan, requests: Sequence[Request], trials: Sequence[Row]) -> dict[str, Any]:
    """Return the result of an evaluation as JSON data."""
    shown = ("family", "difficulty", "hard", "probes", "outcome")
    about = {r.id: {**{name: r.data[name] for name in shown}, "sha256": r.digest()} for r in requests}
    return {
        "schema_version": SCHEMA_VERSION,
        "version": __version__,
        "revision": revision(),
        "models": sorted({row["model"] for row in trials if row.get("model")}),
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "plan": vars(plan),
        "requests": about,
        "trials": list(trials),
        "totals": totals(about, trials),
    }


@cache
def revision() -> str | None:
    """Return the checkout's commit, with a `+` where files of it were changed since; None where git knows none."""
    git = ["git", "-C", str(bundle_root())]
    try:
        commit, changed = (
            subprocess.run([*git, *words], capture_output=True, text=True, check=True, timeout=_GIT_SECONDS).stdout.strip()
            for words in (["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}{'+' if changed else ''}"


def totals(about: Mapping[str, Row], trials: Sequence[Row]) -> dict[str, Any]:
    """Return shares with their intervals, over all trials and by family, and the medians of what a trial cost."""
    held = [row for row in trials if not row["void"]]
    families = {family: _solved([r for r in held if about[r["request"]]["family"] == family]) for family in _families(about)}
    return {
        "solved": _solved(held).as_dict(),
        "hard": _solved([row for row in held if about[row["request"]]["hard"]]).as_dict(),
        "honest": Share(sum(row["honest"] for row in held), len(held)).as_dict(),
        "families": {family: share.as_dict() for family, share in families.items()},
        "void": len(trials) - len(held),
        "breaches": {name: sum(row["breaches"][name] for row in held) for name in ("refused", "reached", "leaks", "broken")},
        "medians": _medians(held),
        "strength": _strength(held),
    }


def _families(about: Mapping[str, Row]) -> list[str]:
    return sorted({row["family"] for row in about.values()})


def _solved(rows: Sequence[Row]) -> Share:
    return Share(sum(row["solved"] for row in rows), len(rows))


def _medians(rows: Sequence[Row]) -> dict[str, float | None]:
    return {name: _median(rows, name) for name in ("minutes", "tokens", "dollars", "requests")}


def _median(rows: Sequence[Row], name: str) -> float | None:
    found = [row[name] for row in rows if row[name] is not None]
    return round(float(median(found)), 4) if found else None


def _strength(rows: Sequence[Row]) -> dict[str, Any]:
    found = [row["strength"] for row in rows if row["strength"]]
    killed, survived = (sum(one[name] for one in found) for name in ("killed", "survived"))
    return Share(killed, killed + survived).as_dict()


def read(path: Path) -> dict[str, Any]:
    """Read a result.

    Raises:
        ContractError: it is none.
    """
    remedy = "name the result.json of an earlier `pypto-op eval`"
    found = read_json(path, remedy=remedy)
    if not found.keys() >= _KEYS or found["schema_version"] != SCHEMA_VERSION:
        raise ContractError("no result of an evaluation", file=path, remedy=remedy)
    try:
        totals(found["requests"], found["trials"])
        described(found)
    except (KeyError, TypeError, AttributeError):
        raise ContractError("a broken result of an evaluation", file=path, remedy=remedy) from None
    return found


def described(found: Row) -> str:
    """Return what was evaluated, in a few words: arm, runner, models, and the revision."""
    plan = found["plan"]
    models = ", ".join(found.get("models") or filter(None, [plan["model"]]))
    place = f"pypto-op {found['version']}" + (f" at {found['revision']}" if found.get("revision") else "")
    return ", ".join(filter(None, [plan["arm"], plan["runner"], models, place]))


def compared(ours: Row, base: Row) -> dict[str, Any]:
    """Compare two results on the requests that both have and that were the same in both.

    Returns:
        `altered`: requests that are not compared, since what is asked, or what it is graded by, is another now, or is not known;
        `solved`: our share minus the base's, and the ends of its 95 % interval, None where one has no trial; `sure`: the
        interval does not hold 0; `changed`: requests whose share differs, with both shares; `medians`: ours and the base's, of
        what their trials cost.

    Raises:
        ContractError: they share no request, or none that stayed the same.
    """
    both = sorted(ours["requests"].keys() & base["requests"].keys())
    altered = [name for name in both if not _is_same(ours["requests"][name], base["requests"][name])]
    common = [name for name in both if name not in altered]
    if not common:
        problem = (
            f"each request is another now, or the results do not say: {', '.join(altered)}" if altered else "they share none"
        )
        raise ContractError(f"the two results cannot be compared: {problem}", remedy="compare results of the same requests")

    def held(result: Row) -> list[Row]:
        return [row for row in result["trials"] if not row["void"] and row["request"] in common]

    def shares(result: Row) -> dict[str, Share]:
        return {name: _solved([row for row in held(result) if row["request"] == name]) for name in common}

    mine, theirs = shares(ours), shares(base)
    cost = _medians(held(base))
    gap = difference(_sum(mine), _sum(theirs))
    changed = {name: [mine[name].as_dict(), theirs[name].as_dict()] for name in common if mine[name].value != theirs[name].value}
    return {
        "base": described(base),
        "requests": len(common),
        "altered": altered,
        "solved": None if gap is None else [round(value, 4) for value in gap],
        "sure": gap is not None and (gap[1] > 0 or gap[2] < 0),
        "changed": changed,
        "medians": {name: [value, cost[name]] for name, value in _medians(held(ours)).items()},
    }


def _is_same(one: Row, other: Row) -> bool:
    """Whether two results speak of one request; one that an earlier release wrote does not say what its requests were."""
    return one.get("sha256") is not None and one.get("sha256") == other.get("sha256")


def _sum(shares: Mapping[str, Share]) -> Share:
    return Share(sum(share.hits for share in shares.values()), sum(share.total for share in shares.values()))
