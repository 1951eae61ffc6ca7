"""What became of each candidate: one line of JSON each, kept so that a search that was killed goes on where it was.

A ledger stands for one kernel, its shapes, suite, policy, place and tool: its folder's name is their hash. What it knows of
a text is not tried again. Each line is sealed for its folder: one that somebody typed, changed or brought from elsewhere, or
that a kill cut short, is none.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from pypto_op import __version__
from pypto_op.backends.build_cache import digest_of
from pypto_op.documents.writing import write_atomically
from pypto_op.errors import ContractError, InfraError
from pypto_op.hashing import canonical_json, open_regular, parse_object
from pypto_op.judge.cases.contract import Contract
from pypto_op.locks import Lock
from pypto_op.proof import evidence
from pypto_op.proof.key import mac
from pypto_op.vocabulary import Mode, Word
from pypto_op.workspace import OpWorkspace

ROOM = "tuning"
BEFORE = "before_impl.py"
"""In the room: the kernel that the latest tuned one took the place of."""
_FILE = "candidates.jsonl"
_DOMAIN = "pypto-op candidate "


class Fate(Word):
    """What became of a candidate."""

    NO_RUN = "does not run"
    WRONG = "wrong"
    SLOWER = "slower"
    SURVIVED = "right so far"
    REFUSED = "refused"
    ACCEPTED = "accepted"


@dataclass
class Candidate:
    """One candidate."""

    number: int  # in the order of trials
    origin: str  # who proposed it: "baseline", "rule of thumb", "neighbour", "model"
    assignment: dict[str, str]  # what differs from the kernel
    digest: str  # of its text
    diff: str  # against the kernel, unified
    fate: Fate  # see there
    reason: str = ""  # why, in words; "" for survivors
    times: dict[str, float] = field(default_factory=dict)  # case -> microseconds
    ratio: float | None = None  # geometric mean of its times over the baseline's; None where it has none
    seconds: float = 0.0  # that it cost


def alone(room: Path) -> Lock:
    """Return the lock of a folder of searches, not yet taken: two searches would write one kernel."""
    path = room / "lock"
    busy = InfraError("another search of this operator is running", file=path, remedy="wait for it, or stop it, then try again")
    return Lock(path, seconds=0, busy=busy)


def any_in(room: Path) -> bool:
    """Say whether a folder of searches keeps one."""
    return next(room.glob(f"*/{_FILE}"), None) is not None


def key_of(ws: OpWorkspace, contract: Contract, source: str, mode: Mode, cases: list[dict[str, Any]]) -> str:
    """Return the hash of all that a candidate's figures and verdict depend on."""
    hashes = {**evidence.file_hashes(ws), "impl": digest_of(source)}
    tool = {"pypto-op": __version__, "pypto": metadata.version("pypto")}
    parts = [hashes, contract.policy.as_dict(), str(mode), cases, tool]
    return digest_of(json.dumps(parts, sort_keys=True, default=str))


class Ledger:
    """The candidates of one search.

    Args:
        folder: where they are kept; made where it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / _FILE
        self._known: dict[str, Candidate] = {}
        for candidate in self._read():
            self._known[candidate.digest] = candidate

    @classmethod
    def of(cls, ws: OpWorkspace, key: str) -> Ledger:
        """Return the ledger of an operator's search."""
        return cls(ws.debug_dir / ROOM / key[:16])

    def known(self, digest: str) -> Candidate | None:
        """Return what is known of a text."""
        return self._known.get(digest)

    def all(self) -> list[Candidate]:
        """Return every candidate that is known, in the order of trials."""
        return sorted(self._known.values(), key=lambda candidate: candidate.number)

    def note(self, candidate: Candidate) -> None:
        """Keep a candidate, in one line; what is said of the same text once more takes the place of its earlier line."""
        known = candidate.digest in self._known
        self._known[candidate.digest] = candidate
        self.folder.mkdir(parents=True, exist_ok=True)
        if known:
            write_atomically(self._path, "".join(map(self._line, self._known.values())))
            return
        torn = self._path.is_file() and not self._path.read_bytes().endswith(b"\n")
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write("\n" * torn + self._line(candidate))
            stream.flush()
            os.fsync(stream.fileno())

    def _line(self, candidate: Candidate) -> str:
        row = asdict(candidate) | {"fate": str(candidate.fate)}
        return json.dumps({**row, "seal": self._seal(row)}, sort_keys=True, allow_nan=False) + "\n"

    def _seal(self, row: Mapping[str, Any]) -> str:
        return mac(_DOMAIN + self.folder.name, canonical_json(row))

    def _read(self) -> Iterator[Candidate]:
        """Yield the candidates of the lines that hold; one that does not costs its candidate, which is tried again."""
        try:
            with open_regular(self._path) as stream:
                lines = stream.read().splitlines()
        except OSError:
            return
        for line in lines:
            with contextlib.suppress(ValueError, TypeError, KeyError, ContractError):
                row = parse_object(line)
                seal = str(row.pop("seal", ""))
                if hmac.compare_digest(seal.encode(), self._seal(row).encode()):
                    yield Candidate(**{**row, "fate": Fate(row["fate"])})
