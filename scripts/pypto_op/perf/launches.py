"""One launch as the cost model saw it, and which lines of the kernel its tasks come from.

Read from what a `sim` run leaves (`backends.cost.keep_launches`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pypto_op.backends import launches
from pypto_op.backends.cost import PROGRAM
from pypto_op.diagnose.log_text import of_a_package

_LOOP = re.compile(r"TENSOR_(?P<name>\w+?)_Unroll(?P<factor>\d+)")
_MOVES = frozenset({"COPY_IN", "COPY_OUT", "L1_TO_L0A", "L1_TO_L0B", "L1_COPY_IN", "L0C_COPY_OUT", "UB_COPY_IN", "UB_COPY_OUT"})


@dataclass(frozen=True)
class Leaf:
    """A leaf function: what one task does."""

    hash: str  # of the function
    loop: str  # the innermost `pypto.loop` around it, by its name; "" outside of any
    # file, line: of that loop in the kernel; "" and 0 where the graph does not say
    file: str
    line: int
    unit: str  # "cube" or "vector"
    operations: Mapping[str, int]  # opcode -> how many, without moves of data
    moves: int  # how many of its operations move data
    lines: tuple[int, ...] = ()  # of the kernel, where the graph names them


@dataclass
class Launch(launches.Launch):
    """One launch, with what its tasks do."""

    leaves: Mapping[str, Leaf] = field(default_factory=dict)  # hash -> what is known of it


def read_launch(folder: Path) -> Launch:
    """Read one launch.

    Raises:
        ContractError: the folder holds no task times, or they are damaged.
    """
    read = launches.read_launch(folder)
    return Launch(read.tasks, read.cores, read.successors, _leaves(folder / PROGRAM))


def read_launches(folder: Path) -> list[Launch]:
    """Return the launches of one call, in order."""
    return [read_launch(one) for one in sorted(folder.iterdir()) if one.is_dir()]


def _leaves(path: Path) -> dict[str, Leaf]:
    try:
        functions = json.loads(path.read_text(encoding="utf-8"))["functions"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    placed = {str(one.get("rawname")): one for one in functions if one.get("file") and one.get("line")}
    return {leaf.hash: leaf for leaf in _read_leaves(functions, placed)}


def _read_leaves(functions: Sequence[Mapping[str, Any]], placed: Mapping[str, Mapping[str, Any]]) -> Iterator[Leaf]:
    for function in functions:
        name = str(function.get("rawname", ""))
        if "_leaf" not in name:
            continue
        found = _LOOP.match(name)
        at = placed.get(found.group(0), {}) if found else {}
        counts: dict[str, int] = {}
        moves, cube, lines = 0, False, set()
        for operation in function.get("operations", ()):
            opcode = str(operation.get("opcode", ""))
            cube = cube or bool((operation.get("op_attr") or {}).get("IS_CUBE"))
            if operation.get("line") and not of_a_package(str(operation.get("file", ""))):
                lines.add(int(operation["line"]))
            if "COPY" in opcode or opcode in _MOVES or "_TO_" in opcode:
                moves += 1
            elif "SYNC" not in opcode and "BAR" not in opcode and "ALLOC" not in opcode:
                counts[opcode] = counts.get(opcode, 0) + 1
        yield Leaf(
            hash=str(function.get("hash", "")),
            loop=found["name"] if found else "",
            file=str(at.get("file", "")),
            line=int(at.get("line", 0)),
            unit="cube" if cube else "vector",
            operations=counts,
            moves=moves,
            lines=tuple(sorted(lines)),
        )
