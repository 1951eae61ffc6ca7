"""Errors that a user can cause: one line, naming the file, the place and the remedy."""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path

from pypto_op.vocabulary import ExitCode

REMEDIES = {
    errno.EROFS: "it lies on a read-only file system; work on a copy elsewhere",
    errno.EACCES: "change its permissions, or work on a copy",
    errno.EPERM: "change its permissions, or work on a copy",
    errno.ENOSPC: "make room on its disk",
    errno.EDQUOT: "make room within your quota",
    errno.EPIPE: "nobody reads it any more, so the rest was not told",
    errno.ENOTDIR: "a part of this path is a file; move that away",
    errno.EEXIST: "something else stands there; move it away",
    errno.EISDIR: "a folder stands where a file belongs; move it away",
    errno.ENAMETOOLONG: "choose a shorter name or folder",
    errno.ELOOP: "its links lead back to themselves; take one away",
}
"""What to do about the errors of the system that say something about the user's files."""


def near(path: Path | str) -> str:
    """Return a path for a reader in the current folder: relative where it lies below that folder, else as it is."""
    with suppress(OSError, ValueError):  # the current folder may be gone; what lies elsewhere is not relative to it
        if Path(path).is_absolute():
            return str(Path(path).relative_to(Path.cwd()))
    return str(path)


class PyptoOpError(Exception):
    """A problem that is told to the user in one line, never as a traceback.

    Args:
        problem: what is wrong, one sentence without a full stop.
        where: the place inside that file (line, JSON path, section).
        remedy: what the reader should do about it, imperative.
    """

    exit_code = ExitCode.CONTRACT

    def __init__(
        self, problem: str, *, file: Path | str | None = None, where: str | None = None, remedy: str | None = None
    ) -> None:
        self.problem, self.file, self.where, self.remedy = problem, file, where, remedy
        super().__init__(self.one_line())

    def one_line(self) -> str:
        """Return `file: place: problem; remedy`, on one line."""
        return self._line(str(self.file or ""))

    def told(self) -> str:
        """Return `one_line` for a reader in the current folder: its file is relative where it lies below that folder."""
        return self._line(near(self.file) if self.file else "")

    def _line(self, file: str) -> str:
        place = ": ".join(part for part in (file, str(self.where or "")) if part)
        text = f"{place}: {self.problem}" if place else self.problem
        return " ".join((f"{text}; {self.remedy}" if self.remedy else text).split())


class ContractError(PyptoOpError):
    """The caller broke a contract: a missing or malformed file, a wrong name, a refused action (exit 2)."""


class InfraError(PyptoOpError):
    """The machine cannot do the work: no device, no tool chain, no space (exit 3). Never a verdict."""

    exit_code = ExitCode.INFRA


class Refused(ContractError):
    """The machine or a gate says no: the state stays as it was, byte for byte (exit 2)."""


class NotRegular(FileNotFoundError):
    """A folder, a pipe, a socket or a device lies where a file is wanted; whoever asks for a file may take it for none."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(errno.ENOENT, "no regular file", str(path))


def unreadable(error: OSError, file: Path | str, remedy: str | None = None) -> ContractError:
    """Return what a user is told of a file that cannot be opened or read.

    Args:
        error: of the system, or `NotRegular`.
        file: as the user named it.
        remedy: where no file lies there and the caller knows which one is wanted.
    """
    if isinstance(error, NotRegular):
        problem, remedy = "not a regular file", remedy or "name a file: no folder, pipe or device is read"
    elif error.errno in (errno.ENOENT, errno.ENOTDIR):
        problem, remedy = "no such file", remedy or "name a file that is there"
        if Path(file).is_symlink():
            problem = "its link leads to no file"
    else:
        problem, remedy = f"cannot be read ({error.strerror})", REMEDIES.get(error.errno or 0, remedy or "repair the file")
    return ContractError(problem, file=file, remedy=remedy)


def with_kind(kind: str, words: str) -> str:
    """Return words behind the kind of an error, which they may tell already: `f.py:3: ValueError: no`."""
    return words if f"{kind}: " in words else f"{kind}: {words}"


def no_folder(path: Path | str, remedy: str) -> ContractError:
    """Return what a user is told where a folder is wanted and none is; `remedy` fits where nothing is there."""
    if Path(path).expanduser().exists():
        return ContractError("is no folder", file=path, remedy="name a folder, or move away what stands there")
    return ContractError("no such folder", file=path, remedy=remedy)


def unwritable(error: OSError, file: Path | str) -> InfraError:
    """Return what a user is told of a file or folder that cannot be made or written."""
    remedy = "make its folder first" if error.errno == errno.ENOENT else REMEDIES.get(error.errno or 0, "free its place")
    return InfraError(f"cannot be written ({error.strerror})", file=file, remedy=remedy)
