"""Lists the files of the workspace that impl, golden and inputs loaded: a verdict rests on these, too.

In a report, `closure` has one mapping for each role: path -> sha256. Paths are relative to the operator's directory where
they lie in the same project, else absolute; a slash at the end means the names in a folder; `absent` means that the
file was looked for, so a file that appears there would be loaded instead. Standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pypto_op.hashing import listing_hash, sha256_bytes, sha256_file
from pypto_op.vocabulary import Artifact, Loader
from pypto_op.workspace import OpWorkspace

CLOSURE = "closure"
"""The key of a report."""

_ABOVE = 2  # custom/<op>/ lies that deep in a project


class Loaded:
    """Collects what the processes of a verification loaded."""

    def __init__(self) -> None:
        self._files: dict[Loader, dict[str, str]] = {loader: {} for loader in Loader}

    def note(self, loader: Loader, files: Mapping[str, str]) -> None:
        """Add absolute path -> sha256, as one process saw them."""
        for path, digest in files.items():
            before = self._files[loader].setdefault(path, digest)
            if before != digest:  # two processes saw other bytes: no file has this hash, so the verdict cannot stand
                self._files[loader][path] = sha256_bytes(f"{before} {digest}".encode())

    def note_all(self, loaded: Mapping[str, Mapping[str, str]]) -> None:
        """Add what a session saw, by role."""
        for loader, files in loaded.items():
            self.note(Loader(loader), files)

    def files(self) -> dict[str, dict[str, str]]:
        """Return all of it, as `note_all` takes it."""
        return {str(loader): dict(files) for loader, files in self._files.items()}

    def reference_loads(self, ws: OpWorkspace) -> Path | None:
        """Return an implementation that golden or inputs loaded: a reference that asks the kernel agrees with it."""
        for loader in (Loader.GOLDEN, Loader.INPUTS):
            for path in self._files[loader]:
                if ws.artifact_of(os.path.realpath(path))[0] in (Artifact.IMPL, Artifact.MODULE_IMPL):
                    return Path(path)
        return None

    def saw_other(self, path: Path, digest: str) -> bool:
        """Whether a process loaded other bytes from `path` than those of this hash: it was replaced, and perhaps put back."""
        place = os.path.realpath(path)
        seen = (files.get(name) for files in self._files.values() for name in {str(path), place})
        return any(one is not None and one != digest for one in seen)

    def closure(self, ws: OpWorkspace, named: Iterable[Path]) -> dict[str, dict[str, str]]:
        """Return the `closure` of a report.

        Args:
            named: files that stand under `hashes`, and so need not stand here.
        """
        left_out = {os.path.realpath(path) for path in named}
        found = {}
        for loader, files in self._files.items():
            rest = sorted(item for item in files.items() if os.path.realpath(item[0]) not in left_out)
            found[str(loader)] = {_key(path, ws): digest for path, digest in rest}
        return found


def stale_closure(closure: Any, root: Path) -> list[str]:
    """Return the files of a report's closure that are not what they were; ["closure"] where it has none."""
    if not isinstance(closure, Mapping) or not all(isinstance(closure.get(str(loader)), Mapping) for loader in Loader):
        return [CLOSURE]
    return [path for path, digest in _files(closure) if hash_at(root, path) != digest]


def hash_at(root: Path, path: str) -> str:
    """Return the hash of what lies at a path of a closure now."""
    return listing_hash(root / path) if path.endswith("/") else sha256_file(root / path)


def frozen_names(report: Mapping[str, Any], ws: OpWorkspace) -> Iterator[tuple[str, str, str]]:
    """Yield (name, relative path, sha256) for each file of a report's closure, the name being fit for the state."""
    for path, digest in _files(report.get(CLOSURE) or {}):
        relative = os.path.relpath(path, ws.root) if path.startswith("/") else path.rstrip("/")
        name = f"closure_{sha256_bytes(path.encode())[:16]}"
        yield name, relative + "/" if path.endswith("/") else relative, digest


def _files(closure: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    merged = {(path, digest) for files in closure.values() for path, digest in files.items()}
    yield from sorted(merged)


def _key(path: str, ws: OpWorkspace) -> str:
    project = str(ws.root.parents[min(_ABOVE, len(ws.root.parents)) - 1])
    inside = project != "/" and path.startswith(project + "/")
    key = os.path.relpath(path, ws.root) if inside else path.rstrip("/")
    return key + "/" if path.endswith("/") else key
