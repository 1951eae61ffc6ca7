"""What a run has done, line by line: written through to the disk before anything acts upon it, read when it goes on.

The same file is the transcript that people read and that `--replay` plays back. It holds no secret: keys and tokens are
replaced by a name, and what a name stands for lies in a file of its own (0600).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pypto_op.errors import ContractError, InfraError, unreadable
from pypto_op.hashing import open_regular
from pypto_op.proof.key import key_file
from pypto_op.runner.budget import LimitReached

Line = dict[str, Any]
TRANSCRIPT = "transcript.jsonl"
SECRETS = "secrets.json"
SCHEMA_VERSION = 1
_LOCK = "at_work"
_TOKEN = re.compile(r"pto1:[^\s\"\\]{1,200}:[0-9a-f]{32}")
"""A token of the state machine (`state/roles.py`); any other text that calls itself one is nobody's secret."""
CHANGED = "its transcript was removed or changed by another program"
"""What a run says that something ended so."""
_LEAST_SECRET = 6
"""Shorter texts than this are nobody's secret; hiding them would garble everything."""


def sessions_folder(workspace: Path) -> Path:
    """Return the folder of a workspace's runs: beside the account's key, where the guard lets no agent look."""
    mark = hashlib.sha256(str(workspace.resolve()).encode()).hexdigest()[:12]
    return key_file().parent / "sessions" / f"{workspace.name}-{mark}"


def latest_session(workspace: Path) -> Path:
    """Return the folder of the workspace's last run.

    Raises:
        ContractError: there is none.
    """
    found = sorted(path.parent for path in sessions_folder(workspace).glob(f"*/{TRANSCRIPT}"))
    if not found:
        raise ContractError("no run was begun in this folder", file=workspace, remedy='begin one: `pypto-op run "REQUEST"`')
    return found[-1]


def new_session(workspace: Path) -> Path:
    """Make and return the folder of a new run."""
    name = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{time.time_ns() % 10**9:09d}"
    folder = sessions_folder(workspace) / name
    folder.mkdir(parents=True, mode=0o700)
    return folder


class Vault:
    """Keeps secrets out of every log and out of the model's sight: a name goes where the secret would.

    Args:
        file: where names and secrets are kept for `--resume`.
        secrets: by name, what must be hidden besides.
    """

    def __init__(self, file: Path, secrets: Mapping[str, str]) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._names: dict[str, str] = {}
        if file.is_file():
            self._names = json.loads(file.read_text(encoding="utf-8"))
        self._foreign = {value: f"<{name}>" for name, value in secrets.items() if len(value) >= _LEAST_SECRET}

    def hide(self, text: str) -> str:
        """Return `text` with each secret replaced by its name; a state token that it shows for the first time gets one."""
        for token in _TOKEN.findall(text):
            self._keep(token)
        for secret, name in {**self._foreign, **self._names}.items():
            text = text.replace(secret, name)
        return text

    def fill(self, value: Any) -> Any:
        """Return a tool's input with each name of a token replaced by the token."""
        text = json.dumps(value)
        if "{{token." not in text:
            return value
        for secret, name in self._names.items():
            text = text.replace(name, json.dumps(secret)[1:-1])
        return json.loads(text)

    def _keep(self, token: str) -> None:
        with self._lock:
            if token in self._names:
                return
            self._names[token] = f"{{{{token.{len(self._names) + 1}}}}}"
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(self._names, file)
                file.flush()
                os.fsync(file.fileno())


@dataclass
class Past:
    """What the journal says of one conversation: enough to go on where it stopped."""

    replies: list[Line] = field(default_factory=list)  # each message of the model, `content` and `stop_reason`
    results: dict[str, Line] = field(default_factory=dict)  # by call, what it answered
    begun: set[str] = field(default_factory=set)  # calls that were begun, finished or not
    # what the user's side said after a reply, by that reply's number (a stop hook, the state's answer)
    notes: dict[int, str] = field(default_factory=dict)
    ended: Line | None = None  # the last text, once the conversation is over


class NotOurs(LimitReached):
    """The run's own record is not what it wrote: nothing that happens from here on could be gone on with, or graded."""


class Journal:
    """The run's file, open for appending, while `alone` holds the workspace.

    Args:
        vault: hides secrets in every line.
    """

    def __init__(self, folder: Path, vault: Vault) -> None:
        self.path = folder / TRANSCRIPT
        self.lines = read(self.path) if self.path.is_file() else []
        self._vault = vault
        self._lock = threading.Lock()
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        _cut_off_half_line(self.path)
        self._size = os.fstat(self._file).st_size

    def write(self, kind: str, **fields: Any) -> None:
        """Append one line, through to the disk.

        Raises:
            NotOurs: another program has removed or changed the file since the last line.
            InfraError: the machine cannot write it.
        """
        line = {"kind": kind, "at": round(time.time(), 3), **fields}
        text = self._vault.hide(json.dumps(line, ensure_ascii=False))
        left = memoryview((text + "\n").encode("utf-8", "backslashreplace"))  # half a character becomes JSON's word for it
        with self._lock:
            if not self._is_ours():
                raise NotOurs(CHANGED)
            try:
                while left:
                    left = left[os.write(self._file, left) :]
                os.fdatasync(self._file)
                self._size = os.fstat(self._file).st_size
            except OSError as error:
                os.ftruncate(self._file, self._size)  # half a line would spoil the next one
                raise InfraError(
                    f"cannot be written: {error.strerror}", file=self.path, remedy="make room, then --resume"
                ) from error

    def _is_ours(self) -> bool:
        """Whether the file still lies where it was made, as long as it was."""
        try:
            there, mine = self.path.stat(), os.fstat(self._file)
        except OSError:
            return False
        return (there.st_dev, there.st_ino, there.st_size) == (mine.st_dev, mine.st_ino, self._size)

    def past(self, conversation: str) -> Past:
        """Return what was written of a conversation before this process began."""
        found = Past()
        for line in self.lines:
            if line.get("conversation") != conversation:
                continue
            kind = line["kind"]
            if kind == "reply":
                found.replies.append(line)
            elif kind == "call":
                found.begun.add(line["id"])
            elif kind == "result":
                found.results[line["id"]] = line
            elif kind == "note":
                found.notes[line["after"]] = line["text"]
            elif kind == "end":
                found.ended = line
        return found

    def close(self) -> None:
        """Let go of the file; one without a line is of a run that was refused, and goes: `--resume` means the one before it."""
        if not os.fstat(self._file).st_size:
            self.path.unlink(missing_ok=True)
        os.close(self._file)


@contextmanager
def alone(workspace: Path) -> Iterator[None]:
    """Hold a workspace's runs: two teams in one folder would undo each other's work.

    Raises:
        ContractError: another process is at a run in this workspace.
    """
    folder = sessions_folder(workspace)
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    held = _locked(folder / _LOCK)
    try:
        yield
    finally:
        os.close(held)


def _locked(path: Path) -> int:
    held = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise ContractError("another process is at a run in this folder", file=path, remedy="let it end, or end it") from None
    return held


def read(path: Path) -> list[Line]:
    """Return the lines of a transcript; a last one that was cut by a kill is left out.

    Raises:
        ContractError: it cannot be read, or another line is no JSON object.
    """
    try:
        with open_regular(path) as file:
            texts = file.read().decode("utf-8", errors="surrogateescape").split("\n")
    except OSError as error:
        raise unreadable(error, path, "name a transcript") from None
    found = []
    for number, text in enumerate(texts[:-1], 1):
        try:
            line = json.loads(text)
            if not isinstance(line, dict) or "kind" not in line:
                raise ValueError
        except ValueError:
            raise ContractError("no line of a transcript", file=path, where=f"line {number}", remedy="restore it") from None
        found.append(line)
    return found


def _cut_off_half_line(path: Path) -> None:
    """Take away what a kill left of a line that was never finished, so that the next one stands alone."""
    with path.open("rb+") as file:
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)
