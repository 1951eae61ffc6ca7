"""What ran must be what the static check read: two readers of one file, or of one path, may see two programs."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto_op.triton.program import LAMBDA, Line, Program, program_of_tree

if TYPE_CHECKING:
    from pypto_op.triton.static.validate import Reading


@dataclass
class Ran:
    """What a case showed of the code that ran.

    Attributes:
        programs: the jitted functions that the interpreter ran; empty on a device, which executes no Python.
        handed: arguments of launches that are, or hold, Python code (`handed.computes`), as "kernel.parameter".
        modules: packages and modules that the implementation brought, by the first part of their names.
        lines: of its files, that forward ran outside of kernels.
    """

    programs: set[Program] = field(default_factory=set)
    handed: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    lines: set[Line] = field(default_factory=set)

    def add(self, facts: Mapping[str, Any]) -> None:
        """Take in what a run says."""
        self.programs |= {(str(file), str(name), str(digest)) for file, name, digest in facts.get("programs") or ()}
        self.modules |= set(map(str, facts.get("modules") or ()))
        self.lines |= {(str(file), int(line), str(what)) for file, line, what in facts.get("lines") or ()}
        self.handed |= set(map(str, facts.get("handed") or ()))


def objection(found: Reading, ran: Sequence[Ran]) -> str | None:
    """Return why an implementation whose numbers are right does not count, in lines; None where nothing says so.

    Args:
        found: what the static check says of it.
        ran: of each case.
    """
    if "error" in found.result:  # nothing was looked at, so nothing is a regression
        return f"the static check cannot read the file: {found.result['error']}; {found.result['suggestion']}"
    if not found.result["valid"]:
        named = [entry for check in found.result["checks"].values() for entry in check.get("violations", ())]
        lines = [f"line {entry['line']}: {entry['call']}: {entry['reason']}" for entry in named[:5]]
        return "\n".join([f"the static check finds a regression of type {found.result['regression_type']}", *lines])
    there = sorted(found.absent & set[str]().union(*(each.modules for each in ran)))
    if there:
        return f"{there[0]} was imported, but is not installed where the static check read the file"
    handed = sorted(set[str]().union(*(each.handed for each in ran)))
    if handed:
        return f"in a kernel no device can execute: {', '.join(handed[:5])}"
    unread = sorted(set[Program]().union(*(each.programs for each in ran)) - found.programs)
    if not unread:
        return _not_followed(found, set[Line]().union(*(each.lines for each in ran)))
    names = ", ".join(f"{name} ({Path(file).name})" for file, name, _ in unread[:5])
    return (
        f"the interpreter ran what the static check did not read: {names}; launch jitted functions by their own names, one "
        "function to a name"
    )


def unlaunched(found: Reading, ran: Sequence[Collection[str]]) -> list[str]:
    """Return what to say of kernels that forward may launch, and that no case did: nobody judged them.

    Args:
        found: what the static check says of the implementation.
        ran: names of the kernels that each case launched.
    """
    called: Collection[str] = found.result["checks"]["kernel_called_from_forward"]["called"]
    missed = sorted(set(called) - set[str]().union(*ran))
    if not missed:
        return []
    return [f"no case launches {', '.join(missed)}, which forward may launch: not judged; add a case whose sizes lead there"]


def _not_followed(found: Reading, ran: set[Line]) -> str | None:
    """Return which line ran in forward though the static check did not get there, in words; None where none did."""
    for file in sorted({line[0] for line in ran}):
        text = Path(file).read_bytes()
        begins = _statements(text, file, found.programs)
        for _, line, what in sorted(one for one in ran if one[0] == file):
            at = line if what == LAMBDA else begins.get(line, 0)
            if at and (file, at, what) not in found.executed:
                shown = text.decode("utf-8", "replace").splitlines()[line - 1].strip()[:100]
                return (
                    f"line {line} of {Path(file).name} ran in forward, and the static check did not get there: {shown}\n"
                    "call functions by their own names, so that what forward does can be followed"
                )
    return None


def _statements(text: bytes, file: str, kernels: Collection[Program]) -> dict[int, int]:
    """Return, for each line, where the innermost statement on it begins; kernels, which are compared whole, are left out."""
    begins: dict[int, int] = {}
    bodies: list[ast.FunctionDef] = []
    for node in ast.walk(ast.parse(text)):  # outer ones come first
        if isinstance(node, ast.stmt):
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(one.lineno for one in decorators)])
            begins |= dict.fromkeys(range(first, (node.end_lineno or node.lineno) + 1), node.lineno)
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = []  # a program is a function without its decorators, and nobody else has this tree
            if program_of_tree(file, node.name, node) in kernels:
                bodies.append(node)
    for body in bodies:
        for line in range(body.body[0].lineno, (body.end_lineno or body.lineno) + 1):
            begins.pop(line, None)
    return begins
