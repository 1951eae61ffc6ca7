"""Bytes that mean one thing: canonical JSON, tables of rows, sha256, and reading that cannot hang or swell."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import IO, Any

from pypto_op.errors import ContractError, NotRegular, unreadable

ABSENT = "absent"
"""Stands for the hash of a file that is not there; no sha256 has this form."""

MAX_JSON_BYTES = 64 * 1024 * 1024


def canonical_json(value: Any) -> bytes:
    """Return the one JSON text of `value`: sorted keys, no spaces, ASCII, no NaN.

    Raises:
        ContractError: `value` holds something that JSON cannot carry, NaN and infinities included.
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise ContractError(f"cannot be written as canonical JSON ({error})", remedy="write NaN and infinities as null") from None


def json_rows(value: Any, indent: str = "") -> str:
    """Return JSON for people to compare: sorted, a key a line, a list or a word in the line of its key."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value)
    rows = ",\n".join(f"{indent} {json.dumps(key)}: {json_rows(value[key], indent + ' ')}" for key in sorted(value))
    return f"{{\n{rows}\n{indent}}}"


def sha256_bytes(data: bytes) -> str:
    """Return the sha256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def sha256_json(value: Any) -> str:
    """Return the sha256 of the canonical JSON of `value`."""
    return sha256_bytes(canonical_json(value))


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file for reading.

    A FIFO or a device would block or never end, so anything else counts as missing.

    Raises:
        FileNotFoundError: there is no file, or something else lies there (`NotRegular`).
        OSError: it cannot be read; `errors.unreadable` says it to a user.
    """
    try:
        file = open(path, "rb", opener=_nonblocking)  # noqa: SIM115 - handed to the caller
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.ENXIO):  # a folder; a socket
            raise NotRegular(path) from None
        raise
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise NotRegular(path)
    return file


def check_readable(path: Path, remedy: str) -> None:
    """Raise ContractError for what is no regular file, or cannot be read; `remedy` is told where no file is there."""
    try:
        open_regular(path).close()
    except OSError as error:
        raise unreadable(error, path, remedy) from None


def sha256_file(path: Path) -> str:
    """Return the sha256 of a regular file's bytes, or `ABSENT`.

    Raises:
        ContractError: the file is there and cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with open_regular(path) as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError as error:
        raise unreadable(error, path) from None
    return digest.hexdigest()


def listing_hash(folder: Path | str) -> str:
    """Return the sha256 of a folder's names, or `ABSENT`; what tools leave there does not count."""
    try:
        names = sorted(path.name for path in Path(folder).iterdir())
    except OSError:
        return ABSENT
    return sha256_json([name for name in names if not name.startswith((".", "_debug", "__pycache__"))])


def read_json(path: Path, *, remedy: str, limit: int = MAX_JSON_BYTES) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        ContractError: it is missing, huge, not JSON, no object, or names a key twice; `remedy` is told.
    """
    try:
        with open_regular(path) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise unreadable(error, path, remedy) from None
    if len(data) > limit:
        raise ContractError(f"is larger than {limit} bytes", file=path, remedy=remedy)
    try:
        return parse_object(data)
    except ValueError as error:
        raise ContractError(f"is not valid JSON: {error}", file=path, remedy=remedy) from None


def parse_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object in `data`.

    Raises:
        ValueError: it is not JSON, no object, nested too deep, or names a key twice.
    """
    try:
        value = json.loads(data, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    return value


def _nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {next(n for n in names if names.count(n) > 1)!r} occurs twice")
    return result


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")
