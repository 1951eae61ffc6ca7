"""The state of an abstract run: what was written where, what was found, and how deep it is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from pypto_op.triton.static.kernels import Kernel, KernelFacts
from pypto_op.triton.static.policy import StaticPolicy
from pypto_op.triton.static.source import SourceFile
from pypto_op.triton.static.values import Buffer, Container, Function, Instance, Scope, Tensor, Value

if TYPE_CHECKING:  # expressions hold calls, calls run statements, statements hold expressions: they meet in the machine
    from pypto_op.triton.static.calls import Calls
    from pypto_op.triton.static.evaluate import Expressions
    from pypto_op.triton.static.execute import Statements
    from pypto_op.triton.static.following import Following
    from pypto_op.triton.static.gradients import Gradients
    from pypto_op.triton.static.imports import Imports
    from pypto_op.triton.static.members import Members
    from pypto_op.triton.static.records import Records
    from pypto_op.triton.static.suspects import Suspects
    from pypto_op.triton.static.tables import Tables

_MOST_STEPS = 60_000
NO, MAYBE, YES = 0, 1, 2


class TooComplex(Exception):
    """The file asks for more steps than an honest kernel's does."""


class Recursion(Exception):
    """A path comes to a function that is inside itself already: what it hands on is what the function's other paths do."""


@dataclass(frozen=True)
class Finding:
    """Something that is denied.

    Attributes:
        kind: 2 (no launch, or its output does not arrive) or 3 (something else computes, or worse).
        node, source: where.
        call: the source text of what is denied.
        reason: why, one sentence.
    """

    kind: int
    node: cst.CSTNode
    source: SourceFile
    call: str
    reason: str


@dataclass
class Launch:
    """A launch that forward reaches."""

    kernel: str
    node: cst.CSTNode
    source: SourceFile


Bound: TypeAlias = tuple[MutableMapping[str, Value], str, Value | None, Value]
"""Something bound to a name that outlives forward: where, the name, what it stood for, and what it stands for now."""

Returned: TypeAlias = tuple[Value, dict[Buffer, int], cst.CSTNode, bool]
"""A return: its value, what was written by then, where, and whether it is under a condition that is not known."""


@dataclass
class Frame:
    """A function that is being executed."""

    returns: list[Returned] = field(default_factory=list)
    recurs: bool = False  # a path of it was left where it came to a recursion


@dataclass
class Machine:
    """Everything that the parts of the interpreter share; `interpreter.new_machine` makes one, with its parts."""

    policy: StaticPolicy
    phase: str = "import"  # "import", "init" or "forward": outside forward only what is forbidden everywhere is denied
    on_device: bool = False  # what forward is given is known to be tensors that lie on a GPU, and not on the CPU
    heap: dict[Buffer, int] = field(default_factory=dict)  # how surely a launch has written a buffer
    findings: list[Finding] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    loops: int = 0  # how many loops are around the present statement
    branches: int = 0  # how many conditions that are not known are in the function around it
    doubts: int = 0  # how many of them there are in all, around the function's callers too
    empty: int = 0  # how many conditions are around it that hold only where a tensor has no element (`emptiness`)
    dead: int = 0  # inside something that does not normally run (an except clause)
    steps: int = 0
    frames: list[Frame] = field(default_factory=list)
    active: list[cst.CSTNode] = field(default_factory=list)
    modules: dict[Path, Scope] = field(default_factory=dict)
    kept: set[Buffer] = field(default_factory=set)
    # identities of the containers, objects and classes that outlive a call of forward
    lasting: set[int] = field(default_factory=set)
    instances: list[Instance] = field(default_factory=list)  # objects of the file's classes, in the order in which they were made
    # the file's own operators of PyTorch ("space.name"), and the functions that they call
    operators: dict[str, list[Value]] = field(default_factory=dict)
    handed: list[Value] = field(default_factory=list)  # functions and objects that went to code which is not followed
    late_kernels: list[Kernel] = field(default_factory=list)  # kernels that were made inside functions
    # kernels, and device functions of theirs, whose bodies were read for what no device can execute
    read: dict[int, KernelFacts] = field(default_factory=dict)
    # memory whose address the host asked for; it may lie in a table of addresses
    addressed: set[Buffer] = field(default_factory=set)
    numbers: set[Buffer] = field(default_factory=set)  # memory of tensors that were made of numbers of the host (`sizes`)
    absent: set[str] = field(default_factory=set)  # packages that the file does without, since they are not installed
    compile_time: list[Function] = field(default_factory=list)  # functions that kernels call while they are compiled
    # statements and lambdas that were executed in forward, each with its file
    executed: set[tuple[SourceFile, cst.CSTNode]] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)  # names of attributes and variables that forward changes and that outlive it
    changed_containers: list[Container] = field(default_factory=list)  # containers that outlive forward and that it changes
    bound: list[Bound] = field(default_factory=list)  # what forward bound to names that outlive it
    _watched: tuple[cst.CSTNode, list[Returned]] | None = None
    _seen: set[tuple[int, str]] = field(default_factory=set)
    expressions: Expressions = field(init=False)
    statements: Statements = field(init=False)
    calls: Calls = field(init=False)
    members: Members = field(init=False)
    imports: Imports = field(init=False)
    suspects: Suspects = field(init=False)
    following: Following = field(init=False)
    records: Records = field(init=False)
    tables: Tables = field(init=False)
    gradients: Gradients = field(init=False)

    @property
    def sure(self) -> bool:
        """Whether the present statement runs, and runs once."""
        return not (self.loops or self.doubts)

    def step(self) -> None:
        """Count one step; raise TooComplex beyond the limit."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise TooComplex

    def executes(self, node: cst.CSTNode, source: SourceFile) -> None:
        """Note a statement, or the body of a lambda, that runs in forward."""
        if self.phase == "forward":
            self.executed.add((source, node))

    def deny(self, node: cst.CSTNode, source: SourceFile, reason: str, *, call: str | None = None) -> None:
        """Record that something else than a launch computes, or worse: once per place and reason."""
        key = (id(node), reason)
        if key not in self._seen:
            self._seen.add(key)
            self.findings.append(Finding(3, node, source, call or source.text_of(node), reason))

    def fresh(self, origin: str = "fresh", written: int = NO) -> Tensor:
        """Return a tensor in memory of its own."""
        buffer = Buffer(origin)
        self.heap[buffer] = written
        return Tensor(frozenset({buffer}))

    def computed(self) -> Tensor:
        """Return the result of a denied computation; nothing more is said about it."""
        return self.fresh("computed", YES)

    def written(self, tensor: Tensor) -> int:
        """Return how surely a launch has written what a tensor shows."""
        return min((self.heap.get(buffer, NO) for buffer in tensor.buffers), default=NO)

    def watch(self, node: cst.CSTNode, into: list[Returned]) -> None:
        """Copy the returns of the function `node` to `into` when it next ends."""
        self._watched = (node, into)

    def leave(self, node: cst.CSTNode, frame: Frame) -> None:
        """Note that a function ended."""
        if self._watched is not None and self._watched[0] is node:
            self._watched[1].extend(frame.returns)
            self._watched = None

    @contextlib.contextmanager
    def around(self, *, loops: int = 0, branches: int = 0, dead: int = 0, empty: int = 0) -> Iterator[None]:
        """Count loops, unknown conditions and abnormal paths while something is executed."""
        self.loops, self.branches, self.dead = self.loops + loops, self.branches + branches, self.dead + dead
        self.doubts, self.empty = self.doubts + branches, self.empty + empty
        try:
            yield
        finally:
            self.loops, self.branches, self.dead = self.loops - loops, self.branches - branches, self.dead - dead
            self.doubts, self.empty = self.doubts - branches, self.empty - empty


def join(left: dict[Buffer, int], right: dict[Buffer, int]) -> dict[Buffer, int]:
    """Return what is known where two paths meet."""
    merged = {}
    for buffer in {**left, **right}:
        one, other = left.get(buffer), right.get(buffer)
        known = [state for state in (one, other) if state is not None]
        merged[buffer] = known[0] if len(set(known)) == 1 else MAYBE
    return merged
