"""Keeps the fates of mutants for `mutate --resume`: a large kernel has 800, more than one run has time for.

Kept on this machine, by content: a fate stands for the mutant's text, the operator's files, what was asked for, and the code
and the pypto that ran it. Only `--resume` reads it, and the report says how many fates came from there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pypto_op
from pypto_op.backends.build_cache import cache_root, digest_of
from pypto_op.mutation.hunt import Fate, Result
from pypto_op.mutation.likeness import Likeness
from pypto_op.mutation.mutants import Mutant

Outcome = tuple[Result, Likeness | None, float]
"""What became of a mutant, how it differs from the kernel, and after how many seconds that was known."""

_ROOM = "mutants"
_DECIDING = ("backends", "comparison", "documents", "judge", "mutation", "stress", "twins")
"""Folders whose code decides a mutant's fate, beside the files at the top."""
_CODE = {".py", ".yaml", ".json"}


@dataclass(frozen=True)
class Spent:
    """What earlier sittings cost."""

    count: int = 0  # how many there were
    seconds: float = 0.0  # on the clock
    cpu_seconds: float = 0.0  # of processor time


class Sittings:
    """The fates of one operator's mutants under one question.

    Args:
        hashes: of the operator's files.
        asked: what else a fate depends on: seeds, levels, limits. JSON.
    """

    def __init__(self, hashes: dict[str, str], asked: dict[str, Any]) -> None:
        whole = json.dumps([hashes, asked, _tool()], sort_keys=True)
        self._file = cache_root() / _ROOM / f"{digest_of(whole)[:24]}.jsonl"
        self._lock = threading.Lock()

    def fates(self) -> dict[str, Outcome]:
        """Return what is known, by the digest of a mutant's text; a damaged line is as good as none."""
        found: dict[str, Outcome] = {}
        for line in self._lines():
            with contextlib.suppress(KeyError, TypeError, ValueError):
                told = dict(line["result"])
                result = Result(**{**told, "fate": Fate(told["fate"]), "killers": tuple(told["killers"])})
                likeness = None if line["likeness"] is None else Likeness(**line["likeness"])
                found[str(line["mutant"])] = (result, likeness, float(line["seconds"]))
        return found

    def spent(self) -> Spent:
        """Return what earlier sittings cost together."""
        told = [line["sitting"] for line in self._lines() if isinstance(line.get("sitting"), dict)]
        seconds, cpu = (sum(float(one.get(name, 0.0)) for one in told) for name in ("seconds", "cpu_seconds"))
        return Spent(len(told), seconds, cpu)

    def keep(self, mutant: Mutant, outcome: Outcome) -> None:
        """Keep what became of a mutant."""
        result, likeness, seconds = outcome
        told = {**asdict(result), "fate": str(result.fate)}
        known = None if likeness is None else asdict(likeness)
        self._add({"mutant": digest(mutant), "result": told, "likeness": known, "seconds": seconds})

    def end(self, seconds: float, cpu_seconds: float) -> None:
        """Keep what this sitting cost."""
        self._add({"sitting": {"seconds": round(seconds, 1), "cpu_seconds": round(cpu_seconds, 1)}})

    def _add(self, line: dict[str, Any]) -> None:
        with self._lock, contextlib.suppress(OSError):  # a full or read-only disk is no error
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")

    def _lines(self) -> list[dict[str, Any]]:
        try:
            text = self._file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return []
        found = []
        for line in text.splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return [line for line in found if isinstance(line, dict)]


def digest(mutant: Mutant) -> str:
    """Return what names a mutant from one sitting to the next: its text."""
    return hashlib.sha256(mutant.source.encode()).hexdigest()


def _tool() -> str:
    """Return the digest of the code that decides fates, and of pypto's version."""
    root = Path(pypto_op.__file__).parent
    files = [path for path in root.glob("*") if path.suffix in _CODE]
    files += [path for name in _DECIDING for path in (root / name).rglob("*") if path.suffix in _CODE]
    try:
        version = metadata.version("pypto")
    except metadata.PackageNotFoundError:
        version = ""
    return digest_of(version, *(part for path in sorted(files) for part in (str(path.relative_to(root)), path.read_bytes())))
