"""The example of an operation: a whole file that runs, made from one row of `examples.yaml`."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.documents.reading import read_yaml

TABLE = Path(__file__).with_name("examples.yaml")
_PORT = re.compile(r"(?:(\w+) )?(\w+)\[([\d,]+)\]")
_TORCH = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i16": "int16", "i32": "int32", "i64": "int64", "bool": "bool"}
_PYPTO = {"f32": "FP32", "f16": "FP16", "bf16": "BF16", "i16": "INT16", "i32": "INT32", "i64": "INT64", "bool": "BOOL"}


@dataclass(frozen=True)
class Port:
    """A tensor of the example: name, dtype word of the table, shape."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def torch_dtype(self) -> str:
        """Name of the dtype in torch."""
        return _TORCH[self.dtype]


@dataclass(frozen=True)
class Example:
    """One row of the table."""

    name: str  # the operation it shows
    inputs: tuple[Port, ...]  # tensors in the order of the wrapper's parameters
    out: Port  # the output
    body: str  # the kernel's body, with its tile set
    helper: str  # a function at module level, or ""
    torch: str  # the expression of the inputs that the output equals
    low: float | None  # inputs are positive, at least this; None for any
    distinct: bool  # index inputs hold each value at most once
    dynamic: bool  # the first axis of every tensor is DYNAMIC

    def source(self) -> str:
        """Return the whole file: one kernel and its wrapper `example_wrapper`."""
        ports = (*self.inputs, self.out)
        parameters = ", ".join(f"{port.name}: {self._annotation(port)}" for port in ports)
        names = ", ".join(port.name for port in self.inputs)
        body = "\n".join(f"    {line}" for line in self.body.splitlines())
        shape = f"[x.shape[0], {self.out.shape[1]}]" if self.dynamic else str(list(self.out.shape))
        helper = f"{self.helper}\n\n\n" if self.helper else ""
        return (
            "import pypto\nimport torch\n\n\n"
            f"{helper}"
            '@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})\n'
            f"def {self.name}_kernel({parameters}):\n{body}\n\n\n"
            f"def example_wrapper({names}):\n"
            f"    out = torch.empty({shape}, dtype=torch.{self.out.torch_dtype}, device={self.inputs[0].name}.device)\n"
            f"    {self.name}_kernel({names}, out)\n"
            "    return out\n"
        )

    def _annotation(self, port: Port) -> str:
        shape = [str(size) for size in port.shape]
        if self.dynamic:
            shape[0] = "pypto.DYNAMIC"
        return f"pypto.Tensor([{', '.join(shape)}], pypto.DT_{_PYPTO[port.dtype]})"


@functools.cache
def examples() -> dict[str, Example]:
    """Return every example by the operation's name."""
    return {name: _example(name, row) for name, row in read_yaml(TABLE)["examples"].items()}


def _example(name: str, row: Mapping[str, Any]) -> Example:
    out = _ports(row.get("out", "f32[32,64]"))[0]
    body = str(row["body"])
    if "tile_shapes(" not in body:
        rows = [1] * (len(out.shape) - 2) + [min(size, 64) for size in out.shape[-2:]]
        body = f"pypto.set_vec_tile_shapes({', '.join(map(str, rows))})\n{body}"
    return Example(
        name=name,
        inputs=_ports(row.get("in", "x f32[32,64]")),
        out=out,
        body=body,
        helper=str(row.get("helper", "")),
        torch=str(row["torch"]),
        low=row.get("low"),
        distinct=bool(row.get("distinct")),
        dynamic=bool(row.get("dynamic")),
    )


def _ports(text: str) -> tuple[Port, ...]:
    return tuple(
        Port(name or "out", dtype, tuple(int(size) for size in shape.split(","))) for name, dtype, shape in _PORT.findall(text)
    )
