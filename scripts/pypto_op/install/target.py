"""A target folder: what the bundle wrote there before, what it would change, and the change itself.

`.pypto-op/install.json` lists every file that was written, with its hash. Only files that are listed and unchanged
are ever replaced or removed; anything else in the way is the user's own, and the installation is refused before a
byte is written.
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
from pypto_op.errors import ContractError, InfraError
from pypto_op.install.claude_client import SETTINGS
from pypto_op.install.render import Plan
from pypto_op.state.hashing import sha256_bytes

MANIFEST = ".pypto-op/install.json"
_SHOWN = 5


@dataclass
class Changes:
    """What an installation or a removal does, by path relative to the target.

    Attributes:
        write: files that are new or differ.
        remove: files of ours that go.
        keep: files of ours that the user changed since; they stay.
        same: files that are there already.
    """

    write: list[str] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    keep: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)


class Target:
    """The folder that a user works in.

    Args:
        root: the folder; must exist.

    Raises:
        ContractError: it is no folder, its manifest is broken, or a newer version wrote it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().resolve()
        if not self.root.is_dir():
            raise ContractError("no such folder", file=root, remedy="make it, or name the workspace that holds custom/")
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
    def made_settings(self) -> bool:
        """Whether Claude Code's settings file was not there before the first installation."""
        return bool(self.manifest.get("made_settings", not (self.root / SETTINGS).exists()))

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
            "schema_version": 1,
            "version": __version__,
            "bundle": str(bundle),
            "harnesses": harnesses,
            "marketplace": marketplace,
            "made_settings": self.made_settings,
            "files": {**files, **kept},
        }
        try:
            self._write(MANIFEST, (json.dumps(self.manifest, indent=1, sort_keys=True) + "\n").encode())
            for path in found.write:
                self._write(path, plan[path].content, executable=plan[path].executable)
            for path in found.remove:
                self._remove(path)
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
            self._remove(MANIFEST)
        except OSError as error:
            raise _unwritable(self.root, error) from None

    def check_writable(self) -> None:
        """Raise InfraError when the target, or a folder of ours in it, cannot be written."""
        for folder in (".", ".pypto-op", ".opencode"):
            path = self.root / folder
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
    place = error.filename or root
    return InfraError(
        f"cannot be written ({error.strerror})", file=place, remedy="mend the rights, then run the same command again"
    )
