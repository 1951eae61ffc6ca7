"""The append-only journal: JSON Lines, each line bound to the one before and sealed with the key.

A line is `{"mac":"<64 hex>",<body>}` where the mac covers the body's canonical JSON. The body names the
sha256 of the previous line (`prev`), the key that sealed it (`key`), and the sha256 of the state that it
led to (`state`). What a line does not end with a newline was never acknowledged: it is a torn write, and
the next append drops it.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.errors import ContractError, InfraError, unreadable
from pypto_op.hashing import canonical_json, open_regular, parse_object, sha256_bytes
from pypto_op.proof.key import key_id, load_key, mac
from pypto_op.state.facts import Arguments, Facts
from pypto_op.workspace import to_run

NO_LINE = "0" * 64
MAX_BYTES = 256 * 1024 * 1024
_DOMAIN = "pypto-op journal"
_HEAD = b'{"mac":"'
_BODY_AT = len(_HEAD) + 64 + 2


@dataclass(frozen=True)
class Line:
    """One journal line, as it was read."""

    seq: int
    action: str
    args: Arguments
    facts: Facts
    key: str
    state: str
    hash: str
    authentic: bool
    """Whether the mac holds under this account's key; False for lines that another key sealed."""


@dataclass(frozen=True)
class Tail:
    """The last complete line's number and hash, and where it ends in the file."""

    seq: int
    hash: str
    end: int


def append(path: Path, tail: Tail, *, action: str, args: Arguments, facts: Facts, state_sha256: str) -> Tail:
    """Write one line after `tail` and make it durable; a torn write behind `tail` is dropped.

    Raises:
        ContractError: whole lines lie behind `tail`: somebody wrote without the lock.
        InfraError: the line could not be written.
    """
    body = {
        "seq": tail.seq + 1,
        "action": action,
        "args": args,
        "facts": facts,
        "key": key_id(),
        "prev": tail.hash,
        "state": state_sha256,
    }
    text = canonical_json(body)
    line = _HEAD + mac(_DOMAIN, text).encode() + b'",' + text[1:] + b"\n"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            if b"\n" in os.pread(descriptor, MAX_BYTES, tail.end):
                raise ContractError("went on while this step was taken", file=path, remedy="repeat the action")
            os.ftruncate(descriptor, tail.end)
            os.lseek(descriptor, tail.end, os.SEEK_SET)
            if os.write(descriptor, line) != len(line):
                raise OSError(28, "no space left on the device")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise InfraError(
            f"the journal cannot be written ({error.strerror})", file=path, remedy="make room or make it writable"
        ) from None
    return Tail(tail.seq + 1, sha256_bytes(line[:-1]), tail.end + len(line))


def read_tail(path: Path) -> Tail:
    """Return the last complete line; `Tail(0, NO_LINE, 0)` when there is none.

    Raises:
        ContractError: it cannot be read, or the last line makes no sense.
    """
    try:
        with open_regular(path) as file:
            size = file.seek(0, os.SEEK_END)
            window = 1 << 14
            while True:
                start = max(0, size - window)
                file.seek(start)
                block = file.read(size - start)
                last = block.rfind(b"\n")
                before = block.rfind(b"\n", 0, last) if last >= 0 else -1
                if before >= 0 or start == 0:
                    break
                window *= 8
    except FileNotFoundError:
        return Tail(0, NO_LINE, 0)
    except OSError as error:
        raise unreadable(error, path) from None
    if last < 0:
        return Tail(0, NO_LINE, 0)
    text = block[before + 1 : last]
    try:
        return Tail(int(json.loads(text)["seq"]), sha256_bytes(text), start + last + 1)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ContractError(
            "its last line is no journal line", file=path, remedy=to_run("state audit --op-dir", path.parent)
        ) from None


def read(path: Path) -> Iterator[Line]:
    """Yield the lines in order, each checked against the one before and, where this key sealed it, its mac.

    Raises:
        ContractError: it cannot be read, or a line was changed, left out, added or moved; it is named by its number.
    """
    key = load_key()
    own = key_id(key)
    previous = NO_LINE
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > MAX_BYTES:
                raise ContractError(f"is larger than {MAX_BYTES >> 20} MiB", file=path, remedy="init anew")
            for number, raw in enumerate(file, 1):
                if not raw.endswith(b"\n"):
                    return
                line = _parse(path, number, raw[:-1], previous, key, own)
                previous = line.hash
                yield line
    except FileNotFoundError:
        return
    except OSError as error:
        raise unreadable(error, path) from None


def _parse(path: Path, number: int, raw: bytes, previous: str, key: bytes, own: str) -> Line:
    def broken(problem: str) -> ContractError:
        return ContractError(
            problem, file=path, where=f"line {number}", remedy="restore the journal, or let the owner run `init`"
        )

    if not raw.startswith(_HEAD) or raw[_BODY_AT - 2 : _BODY_AT] != b'",':
        raise broken("is no journal line")
    body = b"{" + raw[_BODY_AT:]
    try:
        # A line of this key was written by this tool, so the slow check for duplicate keys is left out.
        value: dict[str, Any] = json.loads(body)
        sealed_here = value["key"] == own
        if not sealed_here:
            value = parse_object(body)
        if value["seq"] != number or value["prev"] != previous:
            raise broken("does not follow the line before it: a line was changed, removed or moved")
        line = Line(
            seq=number,
            action=value["action"],
            args=value["args"],
            facts=value["facts"],
            key=value["key"],
            state=value["state"],
            hash=sha256_bytes(raw),
            authentic=sealed_here,
        )
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise broken(f"is no journal line ({type(error).__name__})") from None
    seal = raw[len(_HEAD) : _BODY_AT - 2]
    if sealed_here and not hmac.compare_digest(seal, mac(_DOMAIN, body, key).encode()):
        raise broken("was changed by hand: its seal does not hold")
    return line
