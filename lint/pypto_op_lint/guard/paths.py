"""What a path is to the guard: outside the workspace, scratch, an operator's file, the state machine's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path

from pypto_op.workspace import OP_NAME, OPERATORS_DIR, OpWorkspace, operators_in
from pypto_op_lint.concerns import ACCOUNT_FOLDER, KEY_NAME, depends_on_process, is_operator, makes_operator, operator_candidate
from pypto_op_lint.guard.roles import glob_regex, load_roles

_DEVICES = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", "/dev/zero", "/dev/full")
_TEMP_ROOTS = ("/tmp", "/var/tmp", "/dev/shm", "/run/user")
MAX_FILES = 4000


class Place(Enum):
    """Where a path lies, as far as the rules tell places apart."""

    DEVICE = "device"
    OUTSIDE = "outside"
    TEMP = "temp"
    HARNESS = "harness"
    WORKSPACE = "workspace"
    SCRATCH = "scratch"
    MACHINE = "machine"
    SECRET = "secret"
    OPERATOR = "operator"


@dataclass(frozen=True)
class Located:
    """A path, links resolved, and what it is. `op` and `relative` are set inside an operator's directory."""

    path: Path
    place: Place
    op: OpWorkspace | None = None
    relative: str = ""


@dataclass(frozen=True)
class Surroundings:
    """What one request is judged against."""

    workspace: Path  # the folder the session works in, links resolved
    home: Path  # the user's home folder
    cwd: Path  # where a shell command would run
    key: Path | None = None  # the sealing key's file where the account names one
    hidden: Path | None = None  # the folder of an evaluation's hidden goldens, while one is running
    team: bool = False  # the request is one of the team's: whatever it makes below `custom/` is an operator
    # folders that are known as operators, since a team agent made them or they held an operator before
    known: frozenset[str] = frozenset()

    @property
    def operators_folder(self) -> Path:
        """The workspace's `custom/`."""
        return self.workspace / OPERATORS_DIR

    @cached_property
    def operators(self) -> tuple[OpWorkspace, ...]:
        """The operators under `custom/`, and the one that the shell stands in."""
        found = [op for op in operators_in(self.workspace) if self._is_operator(op.root, "")]
        own = self.owner(self.cwd / "_")
        if own and all(own.root != op.root for op in found):
            found.append(own)
        return tuple(found)

    @cached_property
    def secret_roots(self) -> tuple[Path, ...]:
        """The account's secret folders and files, links resolved."""
        named = [self.home / ACCOUNT_FOLDER, *filter(None, (self.hidden, self.key))]
        return tuple(Path(os.path.realpath(path)) for path in named)

    @property
    def key_path(self) -> Path:
        """The sealing key's file, links resolved; the last of the secret roots where the account names one."""
        return self.secret_roots[-1] if self.key else self.secret_roots[0] / KEY_NAME

    @cached_property
    def secret_files(self) -> tuple[Located, ...]:
        """The roots and every file below them, for patterns to match."""
        found = [Path(folder, name) for root in self.secret_roots for folder, _, names in os.walk(root) for name in names]
        expected = self.secret_roots[0] / KEY_NAME  # a pattern is judged the same before there is one
        return tuple(Located(path, Place.SECRET) for path in [*self.secret_roots, expected, *found[:MAX_FILES]])

    def holds_secret(self, directory: Path | str) -> bool:
        """Say whether a folder is a secret path, or lies above one."""
        real = Path(os.path.realpath(directory))
        return any(real == root or real in root.parents for root in self.secret_roots)

    @cached_property
    def has_operators(self) -> bool:
        """Whether this workspace is one where operators are made."""
        return bool(self.operators)

    @cached_property
    def _judged(self) -> dict[str, bool]:
        """Folders that were looked at for this request."""
        return {}

    def _is_operator(self, folder: Path, relative: str) -> bool:
        """Say whether `folder` is an operator's, or would be once the file at `relative` is in it."""
        text = str(folder)
        if text not in self._judged:
            self._judged[text] = text in self.known or is_operator(text)
        return self._judged[text] or (folder.parent.name == OPERATORS_DIR and makes_operator(text, relative))

    def owner(self, path: Path) -> OpWorkspace | None:
        """Return the operator that `path` (links resolved) belongs to, or None.

        What makes a folder an operator, `concerns.is_operator` says. The team's agents make nothing else below
        `custom/`, so for them every folder there is one.
        """
        for folder in path.parents:
            if OP_NAME.match(folder.name) and self._is_operator(folder, path.relative_to(folder).as_posix()):
                return OpWorkspace(folder, folder.name)
        candidate = operator_candidate(str(path)) if self.team else None
        return OpWorkspace(Path(candidate[0]), Path(candidate[0]).name) if candidate and candidate[1] else None

    @cached_property
    def guarded_files(self) -> tuple[Located, ...]:
        """The files of every operator without scratch; the first `MAX_FILES` of them."""
        found = []
        for op in self.operators:
            for path in files_below(op.root):
                located = self.locate(path)
                if located.place in (Place.OPERATOR, Place.MACHINE):
                    found.append(located)
                if len(found) >= MAX_FILES:
                    return tuple(found)
        return tuple(found)

    def locate(self, path: Path | str) -> Located:
        """Say what `path` is; a relative one counts from `cwd`, links are followed."""
        text = os.path.join(self.cwd, os.path.expanduser(path))
        if text in _DEVICES or text.startswith("/dev/fd/"):
            return Located(Path(text), Place.DEVICE)
        if depends_on_process(text):
            return Located(Path(text), Place.SECRET)
        real = Path(os.path.realpath(text))
        if any(root == real or root in real.parents for root in self.secret_roots):
            return Located(real, Place.SECRET)
        op = self.owner(real) or self.owner(real / "_")
        if op is None:
            return Located(real, self._plain_place(real))
        relative = real.relative_to(op.root).as_posix()
        outer = self.owner(op.root)
        if outer and load_roles().is_scratch(op.root.relative_to(outer.root).as_posix()):
            return Located(real, Place.SCRATCH, outer, real.relative_to(outer.root).as_posix())
        return Located(real, _place_in_operator(relative), op, relative)

    def _plain_place(self, real: Path) -> Place:
        if real == self.workspace or self.workspace in real.parents:
            return Place.WORKSPACE
        text = str(real)
        for glob in load_roles().harness_files:
            if glob_regex(glob.replace("~", str(self.home), 1)).match(text):
                return Place.HARNESS
        if any(text == root or text.startswith(root + "/") for root in _TEMP_ROOTS):
            return Place.TEMP
        return Place.OUTSIDE

    def guarded_below(self, directory: Path) -> Iterator[Located]:
        """Yield the guarded files at or below `directory` (links resolved)."""
        real = Path(os.path.realpath(directory))
        for located in self.guarded_files:
            if real == located.path or real in located.path.parents:
                yield located

    def holds_operator(self, directory: Path) -> OpWorkspace | None:
        """Return an operator whose directory is `directory` or lies below it."""
        real = Path(os.path.realpath(directory))
        return next((op for op in self.operators if real == op.root or real in op.root.parents), None)


def _place_in_operator(relative: str) -> Place:
    roles = load_roles()
    if roles.is_machine_file(relative):
        return Place.MACHINE
    return Place.SCRATCH if roles.is_scratch(relative) else Place.OPERATOR


def files_below(root: Path) -> Iterator[Path]:
    """Yield the files of an operator outside its scratch folders, and the links among them, whatever they lead to."""
    scratch = load_roles().is_scratch
    for folder, folders, files in os.walk(root):
        base = os.path.relpath(folder, root)
        prefix = "" if base == "." else base + "/"
        folders[:] = sorted(name for name in folders if not scratch(prefix + name))
        for name in sorted([*files, *(name for name in folders if os.path.islink(os.path.join(folder, name)))]):
            yield Path(folder, name)
