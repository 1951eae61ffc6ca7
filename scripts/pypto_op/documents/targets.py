"""Where a command may put what a user named with `--report`, `--out` or `--output`: never over somebody's work."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pypto_op.errors import ContractError
from pypto_op.workspace import OpWorkspace

_LARGEST = 64 * 1024 * 1024
_HEAD = 4096

HTML_MARK = '<meta name="generator" content="pypto-op'
"""What every HTML page of this tool has in its head, so that a later page may take its place."""


def check_target(path: Path, what: str, is_ours: Callable[[Path], bool], *, own: Path | None = None) -> Path:
    """Return `path` when a result may be written there.

    Nothing is changed. Call it before the work begins, so that a mistyped path costs nothing, and write with
    `writing.write_atomically`, so that the old file stays until the new one is whole.

    Args:
        what: "report", "page", ...: the kind of result, for the message.
        is_ours: says of a file that is there whether it is an earlier result of this kind.
        own: where this result lies by default; that path is always allowed, and nobody's own work.

    Raises:
        ContractError: something else lies there, or the place belongs to another artefact of an operator.
    """
    place = path.expanduser().absolute()
    if own is not None and place.resolve() == own.resolve() and not place.is_symlink() and not place.is_dir():
        return path
    other = f"name a file for the {what} that is not there yet"
    for where in {place, place.resolve()}:
        if artefact := _artefact(where):
            raise ContractError(f"is the place of an operator's {artefact}, not of a {what}", file=path, remedy=other)
    if place.is_symlink():
        raise ContractError(f"is a link, so no {what} is written there", file=path, remedy=other)
    if not place.exists():
        return path
    if not place.is_file():
        raise ContractError(f"is no regular file, so no {what} is written there", file=path, remedy=other)
    if not is_ours(place):
        raise ContractError(f"exists and is no {what} of pypto-op; it is not overwritten", file=path, remedy=other)
    return path


def _artefact(place: Path) -> str:
    """Return what an operator keeps at `place`, "" for nothing."""
    ws = OpWorkspace.owning(place)
    if ws is None:
        return ""
    if place == ws.perf_report:
        return "benchmark result"
    kind = ws.artifact_of(place)[0].value
    return "" if kind in ("debug", "other") else kind


def json_object(path: Path) -> Mapping[str, Any]:
    """Return the JSON object that a file holds; {} for anything else."""
    try:
        data = json.loads(path.read_bytes()) if path.stat().st_size <= _LARGEST else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def is_page(path: Path) -> bool:
    """Whether a file is an HTML page of this tool."""
    try:
        with path.open("rb") as stream:
            return HTML_MARK.encode() in stream.read(_HEAD)
    except OSError:
        return False
