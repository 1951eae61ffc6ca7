"""The record of changes: which operator files changed since the linter last looked, by content.

A write that no tool announced (a shell command, a script, an editor) shows as a file whose content the index
does not know. Times and sizes only save the reading: a file whose size, times and inode are unchanged is not
read again, and the change time cannot be set back by a program that rewrites a file. Watched are the operators'
files, links among them, the state and journal of the state machine, and the account's sealing key.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

from pypto_op.workspace import JOURNAL_FILE, STATE_FILE
from pypto_op_lint.guard.paths import MAX_FILES, Place, Surroundings, files_below

INDEX_FILE = "index.json"
MACHINE_RECORDS = (STATE_FILE, JOURNAL_FILE)
_VERSION = 4
_MAX_HASHED = 16 << 20


@dataclass
class Seen:
    """What is known of one file."""

    sha256: str  # of its content when it was last looked at
    stamp: list[int]  # size, inode, modification and change time at that look
    session: str = ""  # the session that changed it, for the gate at the end of a turn
    author: str = ""  # the agent that changed it: its id, else its name, else empty for the main session
    blocked: bool = False  # whether the linter refused this content
    signature: list[str] = field(default_factory=list)  # the blocking findings, rule and place, to recognise a loop
    repeats: int = 0  # how often in a row the same findings came


@dataclass(frozen=True)
class Change:
    """A file that is not as it was."""

    path: Path
    deleted: bool = False  # it is gone
    made: bool = False  # it was not there before
    grown: bool = False  # its old content still stands at its beginning


class ContentIndex:
    """The index of one workspace. Without a folder it lives in memory only."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.files: dict[str, Seen] = {}
        self.begun = False
        """Whether a first look at the operators was taken; before that nothing can be called changed."""
        self.operators: set[str] = set()
        """Folders that are operators though they need not show it: a team agent makes them, or they once did."""
        self._dirty = False
        self._expected: set[Path] = set()
        self._load()

    def know(self, roots: Iterable[Path]) -> None:
        """Remember operators: a folder stays one while it exists, even where its SPEC.md is gone or not yet there."""
        new = {str(root) for root in roots} - self.operators
        if new:
            self.operators |= new
            self._dirty = True

    def expect(self, paths: Iterable[Path]) -> None:
        """Remember what an edit tool is about to write: it is not the doing of a command that ends meanwhile."""
        self._expected.update(Path(os.path.realpath(path)) for path in paths)

    def arrived(self, paths: Iterable[Path]) -> None:
        """Forget what an edit tool has written."""
        self._expected.difference_update(Path(os.path.realpath(path)) for path in paths)

    def is_expected(self, path: Path) -> bool:
        """Say whether an edit tool is about to write this file."""
        return path in self._expected

    def note(self, path: Path, *, session: str, author: str, signature: Iterable[str] = ()) -> Seen:
        """Record the present content of a file that was just linted, and what the linter said about it."""
        key, signature = str(path), list(signature)
        before = self.files.get(key)
        looked = look(path)
        repeats = before.repeats + 1 if before and signature and before.signature == signature else int(bool(signature))
        seen = Seen(*(looked or ("", [])), session, author, bool(signature), signature, repeats)
        self.files[key] = seen
        self._dirty = True
        return seen

    def begin(self, around: Surroundings) -> None:
        """Take the first look: what lies there now counts as known."""
        if not self.begun:
            self.begun = True
            for _ in self.changes(around):
                pass

    def meet_records(self, around: Surroundings) -> None:
        """Take note of the state machine's records and the key where they are new: no look follows the tool that makes them."""
        records = [op.root / name for op in around.operators for name in MACHINE_RECORDS]
        for path in [*records, around.key_path]:
            if str(path) not in self.files and _is_watchable(path):
                self._is_new(path, str(path))

    def changes(self, around: Surroundings, newer_than: float | None = None) -> Iterator[Change]:
        """Yield what changed since the last look, and take note of it.

        Args:
            around: the workspace whose operators are looked at.
            newer_than: for a first look, the time (seconds) after which a file counts as changed.
        """
        first, self.begun = not self.begun, True
        present = set()
        for path in watched_files(around):
            key = str(path)
            present.add(key)
            known = self.files.get(key)
            if self._is_new(path, key) and (not first or newer_than is None or _changed_at(path) >= newer_than):
                yield Change(path, made=known is None, grown=known is not None and _begins_with(path, known))
        # Also where the whole operator is gone, or a folder lies in the file's place.
        for key in [k for k in self.files if k not in present]:
            if not _is_watchable(Path(key)):
                del self.files[key]
                self._dirty = True
                yield Change(Path(key), deleted=True)

    def _is_new(self, path: Path, key: str) -> bool:
        known = self.files.get(key)
        if known and known.stamp and known.stamp == stamp(path):
            return False
        looked = look(path)
        if looked is None or (known and known.sha256 == looked[0]):
            if known and looked:
                known.stamp, self._dirty = looked[1], True
            return False
        self.files[key] = Seen(*looked)
        self._dirty = True
        return True

    def outstanding(self, session: str, author: str | None = None) -> list[Path]:
        """Return the files whose content the linter refuses and that this session (and author) changed."""
        return [
            Path(key)
            for key, seen in self.files.items()
            if seen.blocked and seen.session == session and author in (None, seen.author)
        ]

    def _load(self) -> None:
        try:
            raw = json.loads((self.folder / INDEX_FILE).read_bytes()) if self.folder else None
            if isinstance(raw, dict) and raw.get("version") == _VERSION:
                self.files = {key: Seen(**row) for key, row in raw["files"].items()}
                self.operators = {str(root) for root in raw["operators"] if os.path.isdir(root)}
                self.begun = True
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            self.files, self.operators, self.begun = {}, set(), False

    def save(self) -> None:
        """Write the index, whole or not at all; without a writable folder it is only forgotten."""
        if not self.folder or not self._dirty:
            return
        files = {key: asdict(seen) for key, seen in self.files.items()}
        table = {"version": _VERSION, "operators": sorted(self.operators), "files": files}
        draft = self.folder / f"{INDEX_FILE}.{os.urandom(4).hex()}"
        try:
            draft.write_text(json.dumps(table), encoding="utf-8")
            draft.replace(self.folder / INDEX_FILE)
            self._dirty = False
        except OSError:
            draft.unlink(missing_ok=True)


def watched_files(around: Surroundings) -> Iterator[Path]:
    """Yield every operator's files and links that are no scratch, the state machine's records, and the sealing key."""
    for op in around.operators:
        for path in islice(filter(_is_watchable, files_below(op.root)), MAX_FILES):
            place = around.locate(path).place
            if place is Place.OPERATOR or path.is_symlink() or (place is Place.MACHINE and path.name in MACHINE_RECORDS):
                yield path
    if around.key_path.is_file():
        yield around.key_path


def _is_watchable(path: Path) -> bool:
    """Whether it is a plain file or a link: whoever opens a pipe waits for its other end."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def stamp(path: Path) -> list[int]:
    """Return size, inode, modification and change time, of a link its own; empty when there is no such file."""
    try:
        facts = path.lstat()
    except OSError:
        return []
    return [facts.st_size, facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns]


def look(path: Path) -> tuple[str, list[int]] | None:
    """Return the hash and the stamp of a file's content, or None when it cannot be read."""
    try:
        before = stamp(path)
        if path.is_symlink():
            return f"link to {os.readlink(path)}", before
        if not before or before[0] > _MAX_HASHED:
            return (f"too big to hash: {before}", before) if before else None
        return hashlib.sha256(path.read_bytes()).hexdigest(), before
    except OSError:
        return None


def _begins_with(path: Path, known: Seen) -> bool:
    """Say whether the content that is known is still the beginning of a file."""
    try:
        with path.open("rb") as file:
            old = file.read(known.stamp[0]) if known.stamp and known.stamp[0] <= _MAX_HASHED else b""
    except OSError:
        return False
    return hashlib.sha256(old).hexdigest() == known.sha256


def _changed_at(path: Path) -> float:
    try:
        facts = path.stat()
    except OSError:
        return 0.0
    return max(facts.st_mtime, facts.st_ctime)
