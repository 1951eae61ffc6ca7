"""A target folder: what the bundle wrote there before, what it would change, and the change itself.

`.pypto-op/install.json` lists every file that was written, with its hash. Only files that are listed and unchanged
are ever replaced or removed; anything else in the way is the user's own, and the installation is refused before a
byte is written. Files of the user's own that must be changed are changed as `edits` says. Beside the manifest lies the
same in words that `.pypto-op/uninstall.sh` reads: it takes everything out where the bundle is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pypto_op import __version__
from pypto_op.documents import schema
from pypto_op.errors import ContractError, InfraError, no_folder, unwritable
from pypto_op.hashing import sha256_bytes
from pypto_op.install.edits import Edit, undone
from pypto_op.install.render import File, Plan

MANIFEST = ".pypto-op/install.json"
UNINSTALLER = ".pypto-op/uninstall.sh"
_KEPT = ".pypto-op/kept"
_RECORDS = (".pypto-op/files.sha256", ".pypto-op/edits", ".pypto-op/marketplace")
_SHOWN = 5


@dataclass
class Changes:
    """What an installation or a removal does, by path relative to the target."""

    write: list[str] = field(default_factory=list)  # files that are new or differ
    remove: list[str] = field(default_factory=list)  # files of ours that go
    keep: list[str] = field(default_factory=list)  # files of ours that the user changed since; they stay
    same: list[str] = field(default_factory=list)  # files that are there already


class Target:
    """The folder that a user works in.

    Args:
        make: it need not be there yet.

    Raises:
        ContractError: it is no folder, its manifest is broken, or a newer version wrote it.
    """

    def __init__(self, root: Path, *, make: bool = False) -> None:
        self.root = root.expanduser().resolve()
        if not self.root.is_dir() and (self.root.exists() or not make):
            raise no_folder(root, "make it, or name the workspace that holds custom/")
        self.manifest = self._read_manifest()

    @property
    def files(self) -> dict[str, str]:
        """Path to sha256 of what the bundle wrote."""
        found: dict[str, str] = self.manifest.get("files", {})
        return found

    @property
    def harnesses(self) -> list[str]:
        """Harnesses that are installed."""
        found: list[str] = self.manifest.get("harnesses", [])
        return found

    @property
    def registered(self) -> bool:
        """Whether Claude Code was told of the plugin."""
        return bool(self.manifest.get("registered", False))

    @property
    def edits(self) -> dict[str, Edit]:
        """What was changed in files of the user's own, by path."""
        return {row["path"]: Edit.from_row(row) for row in self.manifest.get("edits", [])}

    def original(self, path: str) -> bytes | None:
        """Return a file of the user's own without our edit: its bytes, None where there is none.

        Raises:
            ContractError: the file cannot be read any more.
        """
        whole, edit = self.root / path, self.edits.get(path)
        current = whole.read_bytes() if whole.is_file() else None
        if edit is None or current is None:
            return current
        kept = self.root / _KEPT / Path(path).name
        return undone(current, edit, kept.read_bytes() if kept.is_file() else None)

    def changes(self, plan: Plan) -> Changes:
        """Compare a plan with what is there.

        Raises:
            ContractError: files of the user's own are in the way, or a link leads out of the target.
        """
        found, foreign = Changes(), []
        for path, file in sorted(plan.items()):
            self._stays_inside(path)
            there = _hash_of(self.root / path)
            if there is None:
                found.write.append(path)
            elif there == sha256_bytes(file.content):
                found.same.append(path)
            elif there == self.files.get(path):
                found.write.append(path)
            else:
                foreign.append(path)
        if foreign:
            more = f" and {len(foreign) - _SHOWN} more" if len(foreign) > _SHOWN else ""
            raise ContractError(
                f"files that are not this bundle's are in the way: {', '.join(foreign[:_SHOWN])}{more}",
                file=self.root,
                remedy="move or rename them; nothing was written",
            )
        self._leaving([path for path in self.files if path not in plan], found)
        return found

    def removal(self) -> Changes:
        """Say what an uninstallation removes and keeps."""
        found = Changes()
        self._leaving(list(self.files), found)
        return found

    def apply(self, plan: Plan, found: Changes, harnesses: list[str], bundle: Path, marketplace: str) -> None:
        """Carry out `found`. The manifest is written first, so that an interrupted installation can be removed.

        Raises:
            InfraError: the target cannot be written.
        """
        files = {
            path: sha256_bytes(file.content) for path, file in sorted(plan.items()) if path in found.write or path in self.files
        }
        kept = {path: self.files[path] for path in found.keep}
        self.manifest = {
            "schema_version": 2,
            "version": __version__,
            "bundle": str(bundle),
            "harnesses": harnesses,
            "marketplace": marketplace,
            "registered": self.registered,
            "edits": self.manifest.get("edits", []),
            "files": {**files, **kept},
        }
        try:
            self._record()
            for path in found.write:
                self._write(path, plan[path].content, executable=plan[path].executable)
            for path in found.remove:
                self._remove(path)
        except OSError as error:
            raise _unwritable(self.root, error) from None

    def note(self, *, registered: bool | None = None) -> None:
        """Remember that Claude Code knows the plugin, or does not any more."""
        if registered is not None:
            self.manifest["registered"] = registered
        self._record()

    def edit(self, edit: Edit, before: bytes | None, after: bytes) -> None:
        """Change a file of the user's own; how it was is kept first.

        Raises:
            InfraError: the target cannot be written.
        """
        try:
            if before is not None:
                self._write(f"{_KEPT}/{Path(edit.path).name}", before)
            rows = {**self.edits, edit.path: edit}
            self.manifest["edits"] = [row.as_row() for _, row in sorted(rows.items())]
            self._record()
            self._put(edit.path, after)
        except OSError as error:
            raise _unwritable(self.root, error) from None

    def restore(self, path: str, content: bytes | None) -> None:
        """Give a file of the user's own back as `original` said, and forget the edit."""
        try:
            if content is not None:
                self._put(path, content)
            elif path in self.edits:
                self._remove(path)
            self._remove(f"{_KEPT}/{Path(path).name}")
            self.manifest["edits"] = [row for row in self.manifest.get("edits", []) if row["path"] != path]
            self._record()
        except OSError as error:
            raise _unwritable(self.root, error) from None

    def uninstall(self, found: Changes) -> None:
        """Remove what is ours and unchanged, the manifest, and the folders that are empty then.

        Raises:
            InfraError: the target cannot be written.
        """
        try:
            for path in found.remove:
                self._remove(path)
            for path in (MANIFEST, *_RECORDS):
                self._remove(path)
        except OSError as error:
            raise _unwritable(self.root, error) from None

    def check_writable(self) -> None:
        """Raise InfraError when the target, or a folder of ours in it, cannot be written."""
        there = next(folder for folder in (self.root, *self.root.parents) if folder.exists())
        for path in (there, self.root / ".pypto-op", self.root / ".opencode"):
            if path.exists() and not os.access(path, os.W_OK | os.X_OK):
                raise InfraError("the target cannot be written", file=path, remedy="choose another, or mend its rights")

    def _leaving(self, paths: list[str], found: Changes) -> None:
        for path in sorted(paths):
            self._stays_inside(path)
            there = _hash_of(self.root / path)
            if there == self.files[path]:
                found.remove.append(path)
            elif there is not None:
                found.keep.append(path)

    def _stays_inside(self, path: str) -> None:
        real = (self.root / path).parent.resolve()
        if real != self.root and self.root not in real.parents:
            raise ContractError("a link leads out of the target", file=self.root / path, remedy="replace the link by a folder")

    def _record(self) -> None:
        """Write the manifest, and the same for uninstall.sh."""
        self._write(MANIFEST, (json.dumps(self.manifest, indent=1, sort_keys=True) + "\n").encode())
        files = "".join(f"{sha}  {path}\n" for path, sha in sorted(self.files.items()))
        edits = "".join(f"{e.sha256}|{int(e.made)}|{Path(e.path).name}|{e.path}\n" for e in self.edits.values())
        told = f"{self.manifest['marketplace']} {int(self.registered)}\n"
        for path, text in zip(_RECORDS, (files, edits, told), strict=True):
            self._write(path, text.encode())

    def _put(self, path: str, content: bytes) -> None:
        """Write a file of the user's own in place: its rights and links stay."""
        whole = self.root / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        whole.write_bytes(content)

    def _write(self, path: str, content: bytes, *, executable: bool = False) -> None:
        whole = self.root / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        partial = whole.with_name(f".{whole.name}.{os.getpid()}")
        partial.write_bytes(content)
        if executable:
            partial.chmod(0o755)
        partial.replace(whole)

    def _remove(self, path: str) -> None:
        whole = self.root / path
        whole.unlink(missing_ok=True)
        for parent in whole.parents:
            if parent == self.root:
                return
            with contextlib.suppress(OSError):  # not empty: the user keeps something there
                parent.rmdir()

    def _read_manifest(self) -> dict[str, Any]:
        path = self.root / MANIFEST
        if not path.is_file():
            return {}
        from pypto_op.documents.reading import parse_json, read_text

        data = parse_json(read_text(path), file=path)
        schema.check(data, "install_manifest", file=path)
        if _version(data["version"]) > _version(__version__):
            raise ContractError(
                f"version {data['version']} of the bundle is installed here, and this is {__version__}",
                file=self.root,
                remedy=f"use the newer one, or uninstall with it first: {data['bundle']}",
            )
        found: dict[str, Any] = data
        return found


def uninstaller(root: Path) -> Plan:
    """Return the program that takes everything out where the bundle at `root` is gone."""
    return {UNINSTALLER: File((root / "hooks" / "uninstall.sh").read_bytes(), executable=True)}


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _hash_of(path: Path) -> str | None:
    """Return the sha256 of a file, "" for what is no file, None for nothing."""
    if path.is_symlink() or path.is_dir():
        return ""
    try:
        return sha256_bytes(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError:
        return ""


def _unwritable(root: Path, error: OSError) -> InfraError:
    told = unwritable(error, error.filename or root)
    return InfraError(told.problem, file=told.file, remedy=f"{told.remedy}, then run the same command again")
