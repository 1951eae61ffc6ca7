"""Reads what pypto dumps of a run in `sim`: every operation's result, in order, and the recorded graph with its lines.

`verify_*/verify_result_metadata.csv` has a row for each result; the result lies in `verify_*/tensor_graph/`, as the bytes of its
valid part. `TENSOR_*/Begin_TensorGraph.json` has the operations of each function, with file and line.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto_op.errors import InfraError

if TYPE_CHECKING:
    import torch

MOVES = frozenset({"VIEW", "ASSEMBLE", "RESHAPE", "EXPAND", "TRANSPOSE", "COPY_IN", "COPY_OUT"})
"""Operations that compute nothing."""

_DTYPES = {
    "DT_FP32": "float32",
    "DT_FP16": "float16",
    "DT_BF16": "bfloat16",
    "DT_INT32": "int32",
    "DT_INT64": "int64",
    "DT_INT16": "int16",
    "DT_INT8": "int8",
    "DT_UINT8": "uint8",
    "DT_BOOL": "bool",
}


@dataclass
class Step:
    """One run of one operation: its result in one turn of the loops around it."""

    number: int  # its place in the order of the run, from 1
    function: str  # name of the graph that holds it
    magic: int  # number of the operation in that graph
    opcode: str  # for instance "EXP"
    loops: tuple[tuple[str, int], ...]  # (name of the loop's index, value), innermost first
    offset: tuple[int, ...]  # where a VIEW reads or an ASSEMBLE writes; () for others
    valid: tuple[int, ...]  # sizes of the result's valid part
    dtype: str  # word of pypto
    name: str  # of the result, by which other rows call it
    data: Path  # file of the result
    inputs: tuple[str, ...]  # names of the operands
    symbol: str  # name of what is written, where there is one
    line: int | None = None  # line of the kernel's file, None where pypto told none
    parents: list[int] = field(default_factory=list)  # numbers of the steps that made the operands
    scalar: float | None = None  # the number that it takes beside its operands, None where it takes none

    @property
    def moves(self) -> bool:
        """Whether it computes nothing."""
        return self.opcode in MOVES

    @property
    def given(self) -> bool:
        """Whether it is a whole argument of the kernel, or a whole tensor that another function of the graph wrote."""
        return self.opcode == "VIEW" and any("Incast" in name for name in self.inputs)

    @property
    def loop(self) -> str:
        """The loop that records it, by its graph's name; the index of an ended loop keeps its last value, so `loops` may lie."""
        return self.function.partition("_Unroll")[0]

    @property
    def names_tensor(self) -> bool:
        """Whether what is written is a tensor or a state of the kernel's, and no name that pypto made up."""
        return bool(self.symbol) and not self.symbol.startswith(("View_", "OUTCAST"))

    @property
    def turn(self) -> str:
        """The turn of the loops as people write it: `r=0, c=1`."""
        return ", ".join(f"{name}={value}" for name, value in reversed(self.loops) if not name.startswith("loop_idx_"))

    @cached_property
    def content(self) -> bytes:
        """What tells the result from others: a hash of its bytes."""
        try:
            return hashlib.sha1(self._bytes).digest()
        except OSError:
            return str(self.number).encode()

    @cached_property
    def _bytes(self) -> bytearray:
        return bytearray(self.data.read_bytes())

    def tensor(self) -> torch.Tensor:
        """Return the valid part of the result; it is read once, so nobody may write to it.

        Raises:
            InfraError: the file does not hold what the table says.
        """
        return self._tensor

    @cached_property
    def _tensor(self) -> torch.Tensor:
        import torch

        word = _DTYPES.get(self.dtype)
        if word is None:
            raise InfraError(f"{self.dtype} of the dump is a dtype that is not known here", file=self.data)
        dtype = getattr(torch, word)
        data = self._bytes
        if len(data) != math.prod(self.valid) * dtype.itemsize:
            raise InfraError(f"the dump has {len(data)} bytes for {list(self.valid)} {word}", file=self.data)
        flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
        return flat.reshape(self.valid)


def slices(offset: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    """Return where a block lies in a whole tensor."""
    return tuple(slice(at, at + size) for at, size in zip(offset, sizes, strict=True))


def without_ones(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape without its axes of size 1."""
    return tuple(size for size in shape if size != 1)


def read_steps(folder: Path) -> list[Step]:
    """Return the operations of all launches below `folder`, in the order of the run, with the links between them.

    Raises:
        InfraError: no dump lies there.
    """
    tables = sorted(folder.glob("output_*/verify_*/verify_result_metadata.csv"))
    if not tables:
        raise InfraError("pypto left no dump of its tensors", file=folder, remedy="run `pypto-op doctor --build`")
    steps: list[Step] = []
    for table in tables:
        folder = table.parent / "tensor_graph"
        there = frozenset(one.name for one in folder.iterdir()) if folder.is_dir() else frozenset()
        with table.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row.get("passName") == "tensor_graph" and row.get("outputTensor"):
                    step = _step(len(steps) + 1, row, folder, there)
                    if step is not None:
                        steps.append(step)
    _link(steps)
    return steps


def set_lines(steps: list[Step], graphs: Path, kernel: Path) -> None:
    """Fill in each step's line and number from the recorded graphs below `graphs`; only lines of the file `kernel` count."""
    recorded = _recorded(graphs)
    for step in steps:
        place = recorded.get((step.function, step.magic))
        if place is not None:
            step.line = place.line if place.line and place.file.name == kernel.name else None
            step.scalar = place.scalar
    by_number = {step.number: step for step in steps}
    for step in steps:  # what pypto inserts has no line; it belongs to what it was inserted behind
        if step.line is None and not step.moves:
            step.line = next((line for one in step.parents if (line := by_number[one].line) is not None), None)


def lines_of_graphs(folder: Path) -> dict[tuple[str, int], tuple[Path, int]]:
    """Return file and line of each operation, by function and number, from the recorded graphs below `folder`."""
    return {key: (place.file, place.line) for key, place in _recorded(folder).items() if place.line}


@dataclass(frozen=True)
class _Place:
    """What a recorded graph tells of an operation: file, line (0 for none) and the number that it takes."""

    file: Path
    line: int
    scalar: float | None


def _recorded(folder: Path) -> dict[tuple[str, int], _Place]:
    found: dict[tuple[str, int], _Place] = {}
    for path in folder.glob("output_*/*/Begin_TensorGraph.json"):
        for function in json.loads(path.read_text(encoding="utf-8"))["functions"]:
            for operation in function["operations"]:
                told = (operation.get("op_attr") or {}).get("SCALAR")
                number = told.get("value") if isinstance(told, dict) else None
                scalar = float(number) if isinstance(number, (int, float)) else None
                place = _Place(Path(operation.get("file") or ""), int(operation.get("line") or 0), scalar)
                found[function["func_magicname"], operation["opmagic"]] = place
    return found


def _step(number: int, row: dict[str, str], folder: Path, there: frozenset[str]) -> Step | None:
    """Return a row as a step; None where its result is not `there`, nor the one operand that it passes on."""
    inputs = tuple(name.strip() for name in row["inputTensors"].split(",") if name.strip())
    named = row["outputTensor"]
    if named not in there and len(inputs) == 1:
        named = inputs[0]  # a whole argument is dumped once
    if named not in there:
        return None
    loops = [part.partition("=") for part in row["loopInfo"].split("@") if "=" in part]
    return Step(
        number=number,
        function=row["verifyType"],
        magic=int(row["opMagic"] or 0),
        opcode=row["opCode"],
        loops=tuple((name, int(value)) for name, _, value in loops if value.lstrip("-").isdigit()),
        offset=_numbers(row["offset"]),
        valid=_numbers(row["outputValidShape"]),
        dtype=row["outputDtype"],
        name=row["outputTensor"],
        data=folder / named,
        inputs=inputs,
        symbol=row["outputSymbol"],
    )


@lru_cache(maxsize=4096)
def _numbers(text: str) -> tuple[int, ...]:
    try:
        value: Any = ast.literal_eval(text) if text.strip() else []
    except (ValueError, SyntaxError):
        return ()
    return tuple(int(one) for one in value) if isinstance(value, list) else ()


def _link(steps: list[Step]) -> None:
    """Find each step's parents: by the file that it reads; across functions, whose inputs carry no name, by the bytes."""
    by_name: dict[str, int] = {}
    written: dict[bytes, int] = {}
    for step in steps:
        known = [by_name[name] for name in step.inputs if name in by_name]
        if len(known) < len(step.inputs) and step.opcode == "VIEW":
            known += _writers(step, written)
        step.parents = sorted(set(known))
        by_name[step.name] = step.number
        if step.opcode == "ASSEMBLE":
            written[step.content] = step.number


def _writers(step: Step, written: dict[bytes, int]) -> Iterator[int]:
    number = written.get(step.content)
    if number is not None:
        yield number
