"""The key that seals verdicts and journal lines: one per user, outside every operator's directory, 0600.

Limit, said plainly: a process that runs as the same user can read it. The hooks refuse agents the reads that they
can see, and a gate re-verifies whatever is not sealed; the seal is no defence against the owner of the account.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path

from pypto_op.errors import InfraError
from pypto_op.hashing import open_regular

KEY_ENV = "PYPTO_OP_KEY_FILE"
_KEY_BYTES = 32


def key_file() -> Path:
    """Return the path of the key; `PYPTO_OP_KEY_FILE` names another one (tests, shared accounts)."""
    override = os.environ.get(KEY_ENV)
    return Path(override) if override else Path.home() / ".local" / "state" / "pypto-op" / "seal.key"


def load_key() -> bytes:
    """Return the key, and make it on first use (0600, atomically: of several makers one wins).

    Raises:
        InfraError: the key cannot be made or read, is too short, or others may read it.
    """
    path = key_file()
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _create(path)
        with open_regular(path) as file:
            mode = os.fstat(file.fileno()).st_mode
            key = file.read(4096)
    except OSError as error:
        raise InfraError(
            f"the sealing key cannot be made or read ({error.strerror})", file=path, remedy=f"make it readable, or set {KEY_ENV}"
        ) from None
    if mode & 0o077:
        raise InfraError("others may read the sealing key", file=path, remedy=f"run `chmod 600 {path}`")
    if len(key) < _KEY_BYTES:
        raise InfraError("the sealing key is damaged", file=path, remedy="remove it; a new one is made")
    return key


def _create(path: Path) -> None:
    """Write a fresh key beside `path` and link it there; the key of a process that was faster stays."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.urandom(_KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        try:
            path.hardlink_to(draft)
        except FileExistsError:
            return
    finally:
        draft.unlink()


def key_id(key: bytes | None = None) -> str:
    """Return the public name of the key: it tells two keys apart and says nothing about either."""
    return hashlib.sha256(b"pypto-op key id\0" + (key or load_key())).hexdigest()[:16]


def mac(domain: str, data: bytes, key: bytes | None = None) -> str:
    """Return HMAC-SHA256 of `data` in hex; `domain` keeps a mac of one kind from serving as another."""
    return hmac.new(key or load_key(), domain.encode() + b"\0" + data, hashlib.sha256).hexdigest()
