"""Packs an operator's files for a job in another process, and unpacks the files that the job leaves.

The copy lies elsewhere, so what is said there of a path is said here of the original.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pypto_op.errors import ContractError
from pypto_op.locks import held_folder

_LEFT_OUT = ("_debug", "__pycache__")
_MOST_BYTES = 256 * 2**20
_MOST_BESIDE = 2**20
"""A larger file beside an operator's folder is no helper."""
_ROOM = "pypto-op-pool"

T = TypeVar("T")


@dataclass(frozen=True)
class Parcel:
    """An operator's folder, the files beside it, and other files that a job names."""

    root: Path  # the operator's folder here
    files: Mapping[str, bytes]  # path relative to `root`'s parent -> bytes
    others: Mapping[str, bytes] = field(default_factory=dict)  # absolute path here -> bytes

    @classmethod
    def of(cls, root: Path, others: Iterable[Path] = ()) -> Parcel:
        """Pack what a judge of the operator in `root` may read.

        Raises:
            ContractError: it is too large to send.
        """
        beside = (path for path in root.parent.iterdir() if path.is_file() and path.stat().st_size <= _MOST_BESIDE)
        files = {os.path.relpath(path, root.parent): path.read_bytes() for path in (*_below(root), *beside)}
        if sum(map(len, files.values())) > _MOST_BYTES:
            problem = f"the operator's folder holds more than {_MOST_BYTES >> 20} MiB"
            raise ContractError(problem, file=root, remedy="move out what no kernel, golden or input reads, or use --pool local")
        named = {path.resolve() for path in others}
        apart = [path for path in named if os.path.relpath(path, root.parent) not in files and path.is_file()]
        return cls(root, files, {str(path): path.read_bytes() for path in apart})

    @contextlib.contextmanager
    def unpacked(self) -> Iterator[Copy]:
        """Lay the files out in a folder of this process, and remove it afterwards."""
        with held_folder(Path(tempfile.gettempdir()), _ROOM) as folder:
            home = folder / self.root.parent.parent.name / self.root.parent.name
            for name, data in self.files.items():
                _write(home / name, data)
            places = {name: folder / "others" / str(number) / Path(name).name for number, name in enumerate(self.others)}
            for name, path in places.items():
                _write(path, self.others[name])
            yield Copy(self, home / self.root.name, places)


@dataclass(frozen=True)
class Copy:
    """A parcel that was unpacked."""

    parcel: Parcel  # it
    root: Path  # the operator's folder of this copy
    others: Mapping[str, Path]  # absolute path there -> path of this copy

    def place(self, path: Path | str) -> Path:
        """Return where a file of the sender's lies here."""
        there = Path(path).resolve()
        if str(there) in self.others:
            return self.others[str(there)]
        name = os.path.relpath(there, self.parcel.root.parent)
        travels = there.is_relative_to(self.parcel.root) or name in self.parcel.files
        return self.root.parent / name if travels else there

    def names(self) -> list[tuple[str, str]]:
        """Return what a path here is called at the sender's: (here, there)."""
        pairs = [(str(path), name) for name, path in self.others.items()]
        return [*pairs, (str(self.root.parent), str(self.parcel.root.parent))]

    def translated(self, value: T) -> T:
        """Return a value of dataclasses, mappings, sequences and strings with the sender's paths in it."""
        return translated(value, self.names())

    def taken(self, folders: Iterable[Path]) -> dict[str, bytes]:
        """Return the files below folders of this copy, by their path relative to the operator's folder, and remove them."""
        found = {}
        for folder in folders:
            for path in _below(folder):
                found[os.path.relpath(path, self.root)] = _as_there(path.read_bytes(), self.names())
            shutil.rmtree(folder, ignore_errors=True)
        return found


def translated(value: T, names: list[tuple[str, str]]) -> T:
    """Return a value of dataclasses, mappings, sequences and strings in which each (here, there) of `names` is said as there."""
    made: T = _translated(value, names)
    return made


def laid_down(files: Mapping[str, bytes], root: Path) -> None:
    """Write what another process has sent below the folder `root`; what lay there in a file's folder goes."""
    for folder in {(root / name).parent for name in files}:
        shutil.rmtree(folder, ignore_errors=True) if folder.parent.name == "failures" else None
    for name, data in files.items():
        path = (root / name).resolve()
        if path.is_relative_to(root):
            _write(path, data)


def _below(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if Path(place) != folder or name not in _LEFT_OUT)
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (path for name in sorted(names) if (path := Path(place) / name).is_file())


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _as_there(data: bytes, names: Iterable[tuple[str, str]]) -> bytes:
    for here, there in names:
        data = data.replace(here.encode(), there.encode())
    return data


def _translated(value: Any, names: list[tuple[str, str]]) -> Any:
    if isinstance(value, str) and type(value) is str:
        for here, there in names:
            value = value.replace(here, there)
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {}
        for one in dataclasses.fields(value):
            old = getattr(value, one.name)
            if (new := _translated(old, names)) is not old:
                changed[one.name] = new
        return dataclasses.replace(value, **changed) if changed else value
    if type(value) is dict:
        return {_translated(key, names): _translated(item, names) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_translated(item, names) for item in value)
    return value
