"""Remembers the seeds that a kernel failed on, so that nobody asks for verdicts until one draws kinder seeds.

Each verdict draws seeds that nobody knew. A kernel that is wrong for few of them would pass one day, if every verdict drew
anew and the ones before were forgotten. So the account remembers, beside its key, for exactly these bytes:

- the seed that a verdict began with, until it ended: one that was broken off is judged on that seed again;
- the seeds on which it was wrong, and in which cases. The next verdict judges them again, beside a fresh one, and no
  gate takes an earlier PASS meanwhile. What passes on its seed is forgotten: it was the machine.

Another impl, other bytes of helpers, golden, inputs, suite or documents, another tolerance or tool know nothing of it. Names,
comments, blanks and the order of definitions make no other impl (`proof.meaning`).
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pypto_op import __version__
from pypto_op.errors import PyptoOpError
from pypto_op.hashing import read_json, sha256_json
from pypto_op.proof.closure import CLOSURE, stale_closure
from pypto_op.proof.key import key_file
from pypto_op.proof.meaning import meaning_of
from pypto_op.proof.writing import write_whole
from pypto_op.vocabulary import Status
from pypto_op.workspace import OpWorkspace

_MOST_FILES = 2048
_MOST_FAILED = 16
"""Of one implementation, those with other helpers among them."""


def folder() -> Path:
    """Return the folder of all this; no candidate sees it, since it holds seeds that nobody may know yet."""
    return key_file().parent / "draws"


@dataclass
class Draws:
    """What is remembered of one implementation."""

    ws: OpWorkspace  # the operator
    boundary: int  # the module phase that is judged
    hashes: Mapping[str, str]  # of a report
    impl: Path  # the file that is judged
    begun: int | None = None  # the seed of a verdict that has not ended, or None
    # one mapping for each seed: `seed`, `cases` (case -> modes that failed there), `closure`
    failed: list[dict[str, Any]] = field(default_factory=list)
    _elsewhere: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        place = os.path.relpath(self.impl, self.ws.root)  # a copy elsewhere has other helpers
        named = {"op": self.ws.name, "boundary": self.boundary, "place": place, "tool": __version__}
        about = {**self.hashes, **named, "impl": _digest(self.impl)}
        self._path = folder() / f"{sha256_json(about)[:32]}.json"
        self._read()

    def begin(self, fresh: int) -> int:
        """Return the seed of the verdict that begins: the one of a verdict that never ended, or `fresh`, which is kept."""
        if self.begun is None:
            self.begun = fresh
            self._write()
        return self.begun

    def settle(self, seed: int, report: Mapping[str, Any]) -> None:
        """Note what a verdict on a seed has shown, before anybody reads it."""
        self._read()
        wrong = _wrong(report)
        before = next((one for one in self.failed if one["seed"] == seed), None)
        if before is not None and not wrong and _passes(report, before["cases"]):
            self.failed.remove(before)
        elif before is None and wrong:
            self.failed = [*self.failed, {"seed": seed, "cases": wrong, CLOSURE: report[CLOSURE]}]
        if seed == self.begun:
            self.begun = None
        self._write()

    def _read(self) -> None:
        self.begun, self.failed, self._elsewhere = None, [], []
        with contextlib.suppress(PyptoOpError, KeyError, TypeError):
            if self._path.is_file():
                kept = read_json(self._path, remedy="remove it")
                self.begun = kept["begun"]
                stale = [bool(stale_closure(one[CLOSURE], self.ws.root)) for one in kept["failed"]]
                self.failed = [one for one, other in zip(kept["failed"], stale, strict=True) if not other]
                self._elsewhere = [one for one, other in zip(kept["failed"], stale, strict=True) if other]

    def _write(self) -> None:
        """Keep it; where that is impossible a verdict is what it was without."""
        with contextlib.suppress(OSError):
            failed = [*self._elsewhere, *self.failed][-_MOST_FAILED:]
            if self.begun is None and not failed:
                self._path.unlink(missing_ok=True)
                return
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(self._path, json.dumps({"begun": self.begun, "failed": failed}))
            if failed:
                kept = sorted(self._path.parent.glob("*.json"), key=lambda file: file.stat().st_mtime)
                for old in kept[:-_MOST_FILES]:
                    old.unlink(missing_ok=True)


def judged_on(draws: Draws | None, asked: int | None, fresh: int, judge: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    """Judge on each seed that an implementation has to pass; return the last verdict: the first that is no PASS, if one is.

    Args:
        draws: what is remembered of it; None where a verdict is no evidence anyhow.
        asked: the one seed that was asked for; None: those on which it failed, then one that nobody knew.
        fresh: such a seed.
        judge: makes the report of a seed; what it raises is raised.
    """
    if draws is None:
        return judge(fresh if asked is None else asked)
    for seed in [asked] if asked is not None else [*(one["seed"] for one in draws.failed), draws.begin(fresh)]:
        report = judge(seed)
        draws.settle(seed, report)
        if not Status(report["status"]).passed:
            break
    return report


def failed_cases(report: Mapping[str, Any], ws: OpWorkspace) -> list[str]:
    """Return the cases in which the bytes of a report were wrong in another verdict, and have not passed since.

    Args:
        report: about the bytes that lie there now.
    """
    hashes, impl = report.get("hashes"), report.get("impl_file")
    if not isinstance(hashes, Mapping) or not isinstance(impl, str):
        return []
    kept = Draws(ws, int(report.get("up_to_module") or 0), hashes, ws.root / impl)
    return sorted({case for one in kept.failed for case in one["cases"]})


def _digest(impl: Path) -> str:
    """Return a hash of what an implementation says; "" where there is none."""
    try:
        return meaning_of(impl.read_bytes())
    except OSError:
        return ""


def _wrong(report: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the modes in which a case shows that the kernel is wrong, by case; no result may be the machine's doing."""
    found = {
        check["id"]: [mode for mode, status in check["per_mode_status"].items() if status == Status.FAIL]
        for check in report["checks"]
    }
    return {case: modes for case, modes in found.items() if modes}


def _passes(report: Mapping[str, Any], cases: Mapping[str, list[str]]) -> bool:
    """Whether all of these cases pass in these modes, as far as a report tells."""
    told = {check["id"]: check["per_mode_status"] for check in report["checks"]}
    return all(told.get(case, {}).get(mode) == Status.PASS for case, modes in cases.items() for mode in modes)
