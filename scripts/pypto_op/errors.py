"""Errors that a user can cause: one line, naming the file, the place and the remedy."""

from __future__ import annotations

from pathlib import Path

from pypto_op.vocabulary import ExitCode


class PyptoOpError(Exception):
    """A problem that is told to the user in one line, never as a traceback.

    Args:
        problem: what is wrong, one sentence without a full stop.
        file: the file it is in.
        where: the place inside that file (line, JSON path, section).
        remedy: what the reader should do about it, imperative.
    """

    exit_code = ExitCode.CONTRACT

    def __init__(
        self,
        problem: str,
        *,
        file: Path | str | None = None,
        where: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.problem, self.file, self.where, self.remedy = problem, file, where, remedy
        super().__init__(self.one_line())

    def one_line(self) -> str:
        """Return `file: place: problem; remedy`, on one line."""
        place = ": ".join(str(part) for part in (self.file, self.where) if part)
        text = f"{place}: {self.problem}" if place else self.problem
        return " ".join((f"{text}; {self.remedy}" if self.remedy else text).split())


class ContractError(PyptoOpError):
    """The caller broke a contract: a missing or malformed file, a wrong name, a refused action (exit 2)."""


class InfraError(PyptoOpError):
    """The machine cannot do the work: no device, no tool chain, no space (exit 3). Never a verdict."""

    exit_code = ExitCode.INFRA


class Refused(ContractError):
    """The machine or a gate says no: the state stays as it was, byte for byte (exit 2)."""
