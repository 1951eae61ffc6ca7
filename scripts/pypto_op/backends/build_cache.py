"""Keeps what was compiled on this machine, one folder for each content key; several processes may share it."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pypto_op.locks import Lock

CACHE_ENV = "PYPTO_OP_CACHE"
_MANIFEST = "manifest.json"
_STALE_SECONDS = 24 * 3600.0


def cache_root() -> Path:
    """Return the folder of all caches: `$PYPTO_OP_CACHE`, or `~/.cache/pypto-op`."""
    return Path(os.environ.get(CACHE_ENV) or "~/.cache/pypto-op").expanduser()


def digest_of(*parts: str | bytes) -> str:
    """Return the sha256 of `parts`, each preceded by its length so that no two splits look alike."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "big"))
        state.update(data)
    return state.hexdigest()


def entry_path(room: str, key: str) -> Path:
    """Return where the entry `key` of `room` lies, whether it exists or not."""
    return cache_root() / room / key[:24]


def is_sound(entry: Path) -> bool:
    """Say whether `entry` is complete: its manifest is there and every file has the size and sha256 it names."""
    try:
        manifest = json.loads((entry / _MANIFEST).read_text(encoding="utf-8"))
        return bool(manifest) and all(_sha256(entry / name) == digest for name, digest in manifest.items())
    except (OSError, ValueError, AttributeError):
        return False


def ensure(room: str, key: str, build: Callable[[Path], None]) -> Path:
    """Return the entry `key` of `room`, building it first when it is missing or damaged.

    Only one process builds; the others wait for it. A half-built entry is never visible, since it is built
    beside its place and renamed into it.

    Args:
        room: what kind of thing it is, a folder name.
        key: a content key: hex digits of everything that the result depends on.
        build: fills the empty folder that it is given; what it raises goes through.
    """
    entry = entry_path(room, key)
    if is_sound(entry):
        return entry
    entry.parent.mkdir(parents=True, exist_ok=True)
    with Lock(entry.with_name(f"{entry.name}.lock"), seconds=None):
        if is_sound(entry):
            return entry
        _remove_stale(entry.parent)
        draft = Path(tempfile.mkdtemp(prefix=".building-", dir=entry.parent))
        try:
            build(draft)
            _write_manifest(draft)
            if entry.exists():
                shutil.rmtree(entry)
            draft.rename(entry)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return entry


def _write_manifest(folder: Path) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    manifest = {str(path.relative_to(folder)): _sha256(path) for path in files}
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _sha256(path: Path) -> str:
    found = path.stat()
    return _sha256_of(path, (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino))


@functools.lru_cache(maxsize=64)
def _sha256_of(path: Path, state: tuple[int, ...]) -> str:
    """Read a file once in a process as long as it stays as it is: each session asks for 15 MB of them."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _remove_stale(room: Path) -> None:
    """Remove drafts of builds that were killed; a living build renews its folder while it writes."""
    for draft in room.glob(".building-*"):
        try:
            if time.time() - draft.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(draft, ignore_errors=True)
        except OSError:
            continue
