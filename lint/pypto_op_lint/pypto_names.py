"""What pypto offers: names, members, parameters. Read from a data file, because importing pypto takes seconds.

The shipped file was made from the pypto release that the bundle pins. When another release is installed, the same table is
made from that one, once, in a process of its own, and kept in the user's cache.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SHIPPED = Path(__file__).with_name("data") / "pypto_names.json"
_PROBE_SECONDS = 60
_notes: list[str] = []


@dataclass(frozen=True)
class PyptoNames:
    """The public names of one pypto release.

    Attributes:
        version: the release.
        members: dotted name of a module or class -> its public names; `pypto`, `pypto.Tensor`, `pypto.RunMode`, ...
        returns_tensor: dotted names of functions and methods that return a tensor.
        parameters: dotted name of a function -> names of its parameters; "*" and "**" mark catch-alls.
        positional: dotted name of a function -> how many arguments it takes by position; absent when any number.
        leaked: names that `dir(pypto)` shows although they belong to other packages.
    """

    version: str
    members: dict[str, frozenset[str]]
    returns_tensor: frozenset[str]
    parameters: dict[str, tuple[str, ...]]
    positional: dict[str, int]
    leaked: frozenset[str]

    def first_unknown(self, path: str) -> str | None:
        """Return the shortest prefix of a dotted `path` under `pypto` that names nothing public; None if all exist."""
        parts = path.split(".")
        for end in range(1, len(parts)):
            owner = ".".join(parts[:end])
            public = self.members.get(owner)
            if public is None:
                return None
            name = parts[end]
            if name not in public and not (name.startswith("__") and name.endswith("__")):
                return ".".join(parts[: end + 1])
        return None


def names() -> PyptoNames:
    """Return the table for the installed pypto; the shipped one when none is installed."""
    return _load(installed_version())


def notes() -> list[str]:
    """Return remarks on where the table came from; empty for the shipped one."""
    return list(_notes)


@functools.cache
def installed_version() -> str | None:
    """Return the version of the installed pypto without importing it.

    Reads the name of its metadata folder; `importlib.metadata` would cost a fifth of the linter's start.
    """
    for entry in sys.path:
        try:
            names_there = os.listdir(entry or ".")  # noqa: PTH208
        except OSError:
            continue
        for name in names_there:
            if name.startswith("pypto-") and name.endswith(".dist-info"):
                return name[len("pypto-") : -len(".dist-info")]
    return None


@functools.cache
def _load(version: str | None) -> PyptoNames:
    shipped = json.loads(_SHIPPED.read_text(encoding="utf-8"))
    if version in (None, shipped["pypto_version"]):
        return _table(shipped)
    cached = _cache_file(str(version))
    try:
        data = json.loads(cached.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        data = _probe_in_process(cached)
    if data is None:
        _notes.append(
            f"pypto {version} is installed but its names could not be read; "
            f"the table of pypto {shipped['pypto_version']} was used"
        )
        return _table(shipped)
    _notes.append(f"names of pypto {version} read from {cached}")
    return _table(data)


def _cache_file(version: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "pypto-op" / f"pypto_names-{version}.json"


def _probe_in_process(target: Path) -> Any:
    """Import pypto in another process, write its table to `target` and return it; None when that fails."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pypto_op_lint.pypto_probe", str(target)]
        subprocess.run(command, timeout=_PROBE_SECONDS, check=True, capture_output=True)
        return json.loads(target.read_text(encoding="utf-8"))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def _table(data: dict[str, Any]) -> PyptoNames:
    return PyptoNames(
        version=data["pypto_version"],
        members={owner: frozenset(public) for owner, public in data["members"].items()},
        returns_tensor=frozenset(data["returns_tensor"]),
        parameters={name: tuple(found) for name, found in data["parameters"].items()},
        positional=dict(data["positional"]),
        leaked=frozenset(data["leaked"]),
    )
