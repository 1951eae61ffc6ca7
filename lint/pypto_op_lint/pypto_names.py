"""What pypto offers: names, members, parameters. Read from a data file, because importing pypto takes seconds.

The shipped files were made from the release that the bundle pins (`pypto_probe`) and from the sources of the next
(`tests/lint/pypto_sources.py`). When another release is installed, the same table is made from that one, once, in a process
of its own, and kept in the user's cache. A command may ask for a shipped release that is not installed.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op import own_python
from pypto_op.errors import ContractError

_DATA = Path(__file__).with_name("data")
_PINNED = _DATA / "pypto_names.json"
_PROBE_SECONDS = 60
_notes: list[str] = []
_asked: list[str] = []


@dataclass(frozen=True)
class PyptoNames:
    """The public names of one pypto release."""

    version: str  # the release
    # dotted name of a module or class -> its public names; `pypto`, `pypto.Tensor`, `pypto.RunMode`, ...
    members: dict[str, frozenset[str]]
    returns_tensor: frozenset[str]  # dotted names of functions and methods that return a tensor
    parameters: dict[str, tuple[str, ...]]  # dotted name of a function -> names of its parameters; "*" and "**" mark catch-alls
    positional: dict[str, int]  # dotted name of a function -> how many arguments it takes by position; absent when any number
    aliases: dict[str, str]  # dotted names that stand for another, as `pypto.jit` for `pypto.frontend.jit`

    def can(self, what: str) -> bool:
        """Whether this release does what `data/releases.json` names with the release that brought it."""
        return _numbers(self.version) >= _numbers(_since()[what])

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
    """Return the table for the pypto that was asked for, else the installed one; the pinned one when none is installed."""
    return _load(_asked[-1] if _asked else installed_version())


@contextmanager
def asked_for(version: str | None) -> Iterator[None]:
    """Have `names` answer for a release, installed or not, while entered; None changes nothing.

    Raises:
        ContractError: no table of it is there.
    """
    if version is None:
        yield
        return
    if version != installed_version() and version not in shipped():
        known = ", ".join(sorted({*shipped(), *filter(None, [installed_version()])}))
        raise ContractError(f"the names of pypto {version} are not known", remedy=f"ask for one of {known}, or install it")
    _asked.append(version)
    try:
        yield
    finally:
        _asked.pop()


@functools.cache
def shipped() -> dict[str, Path]:
    """Return the shipped tables by release."""
    pinned: str = json.loads(_PINNED.read_text(encoding="utf-8"))["pypto_version"]
    further = {path.stem.partition("-")[2]: path for path in _DATA.glob("pypto_names-*.json")}
    return {pinned: _PINNED, **further}


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
def _since() -> dict[str, str]:
    return dict(json.loads((_DATA / "releases.json").read_text(encoding="utf-8"))["since"])


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a release for comparison: (0, 2, 1) for `0.2.1rc1`."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


@functools.cache
def _load(version: str | None) -> PyptoNames:
    pinned = json.loads(_PINNED.read_text(encoding="utf-8"))
    if version in (None, pinned["pypto_version"]):
        return _table(pinned)
    if version in shipped():
        return _table(json.loads(shipped()[version].read_text(encoding="utf-8")))
    cached = _cache_file(str(version))
    try:
        data = json.loads(cached.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        data = _probe_in_process(cached)
    if data is None:
        _notes.append(
            f"pypto {version} is installed but its names could not be read; the table of pypto {pinned['pypto_version']} was used"
        )
        return _table(pinned)
    _notes.append(f"names of pypto {version} read from {cached}")
    return _table(data)


def _cache_file(version: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "pypto-op" / f"pypto_names-{version}.json"


def _probe_in_process(target: Path) -> Any:
    """Import pypto in another process, write its table to `target` and return it; None when that fails."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        command = own_python.running("pypto_op_lint.pypto_probe", str(target))
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
        aliases=dict(data["aliases"]),
    )
