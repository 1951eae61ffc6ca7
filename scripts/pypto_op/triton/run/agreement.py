"""What ran must be what the static check read: two readers of one file, or of one path, may see two programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pypto_op.triton.program import Program
from pypto_op.triton.run.project import Project
from pypto_op.triton.static.policy import StaticPolicy
from pypto_op.triton.static.validate import read_file


@dataclass
class Ran:
    """What a case showed of the code that ran.

    Attributes:
        programs: the jitted functions that the interpreter ran; empty on a device, which executes no Python.
        handed: arguments of launches that are, or hold, Python code (`handed.computes`), as "kernel.parameter".
        modules: packages and modules that the implementation brought, by the first part of their names.
    """

    programs: set[Program] = field(default_factory=set)
    handed: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)

    def add(self, facts: Mapping[str, Any]) -> None:
        """Take in what a run says."""
        self.programs |= {(str(file), str(name), str(digest)) for file, name, digest in facts.get("programs") or ()}
        self.modules |= set(map(str, facts.get("modules") or ()))
        self.handed |= set(map(str, facts.get("handed") or ()))


def objection(project: Project, policy: StaticPolicy, scalars: Sequence[bool], ran: Sequence[Ran]) -> str | None:
    """Return why an implementation whose numbers are right does not count, in lines; None where nothing says so.

    Args:
        project: the implementation.
        policy: of the static check.
        scalars: which arguments of forward are numbers or strings.
        ran: of each case.
    """
    found, read, absent = read_file(project.impl, policy, scalars)
    if not found["valid"]:
        named = [entry for check in found["checks"].values() for entry in check.get("violations", ())]
        lines = [f"line {entry['line']}: {entry['call']}: {entry['reason']}" for entry in named[:5]]
        return "\n".join([f"the static check finds a regression of type {found['regression_type']}", *lines])
    there = sorted(absent & set[str]().union(*(each.modules for each in ran)))
    if there:
        return f"{there[0]} was imported, but is not installed where the static check read the file"
    handed = sorted(set[str]().union(*(each.handed for each in ran)))
    if handed:
        return f"in a kernel no device can execute: {', '.join(handed[:5])}"
    unread = sorted(set[Program]().union(*(each.programs for each in ran)) - read)
    if not unread:
        return None
    names = ", ".join(f"{name} ({Path(file).name})" for file, name, _ in unread[:5])
    return (
        f"the interpreter ran what the static check did not read: {names}; launch jitted functions by their own names, one "
        "function to a name"
    )
