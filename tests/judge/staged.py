"""Faults and probes for the two-module operator `chain`, made from its own files."""

from __future__ import annotations

from pypto_op.workspace import OpWorkspace

CASES = [
    {"id": "tile", "level": "L1", "shape": {"N": 16, "D": 32}, "precision": False},
    {"id": "ragged", "level": "L2", "shape": {"N": 21, "D": 32}, "atol": 1e-6, "rtol": 1e-5},
]
"""Two tiny cases; the second compares numbers, on two tiles."""

SQUARE = "x_tile * x_tile + y_tile * 0.0"
SUM = "x_tile * x_tile + y_tile"


def change(ws: OpWorkspace, phase: int, old: str, new: str) -> None:
    """Replace something in the impl of a phase; it must be there."""
    path = ws.module_impl(phase)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


TWO_OUTPUTS = """\
schema_version: 1
op: chain
primary_inputs:
  - {name: x, shape: [N, D], dtype: float32}
  - {name: y, shape: [N, D], dtype: float32}
modules:
  - id: 1
    name: square
    inputs: [{name: x, source: primary}]
    outputs: [{name: square, shape: [N, D], dtype: float32}]
  - id: 2
    name: add
    inputs: [{name: square, source: module_1}, {name: y, source: primary}]
    outputs: [{name: out, shape: [N, D], dtype: float32}]
    live_out: [out, square]
final_outputs:
  - {name: out, source: module_2}
  - {name: square, source: module_1}
composition_verification:
  {atol: 1.0e-6, rtol: 1.0e-5, seeds: [3, 17], shapes: [{N: 16, D: 32}, {N: 17, D: 32}]}
"""
"""The contract in which M2's wrapper passes the square of M1 through, after its own output."""


def with_two_outputs(ws: OpWorkspace) -> None:
    """Let M_1..M_2 return (out, square), and M1's wrapper and golden take only x, which is all that M1 reads."""
    ws.interfaces.write_text(TWO_OUTPUTS)
    ws.golden.write_text("def chain_golden(x, y):\n    return x * x + y, x * x\n")
    ws.module_golden(2).write_text("def chain_module12_golden(x, y):\n    return x * x + y, x * x\n")
    ws.module_golden(1).write_text("def chain_module1_golden(x):\n    return (x * x,)\n")
    change(ws, 1, "    y: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),\n", "")
    change(ws, 1, "        y_tile = pypto.view(y, [ROWS, WIDTH], [row, 0], valid_shape=[rows, WIDTH])\n", "")
    change(ws, 1, SQUARE, "x_tile * x_tile")
    change(ws, 1, "def chain_module1_wrapper(x, y):", "def chain_module1_wrapper(x):")
    change(ws, 1, "kernel(x, y, out)", "kernel(x, out)")
    parameter = "    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),\n"
    change(ws, 2, parameter, parameter + parameter.replace("out", "square"))
    write = "        pypto.assemble(x_tile * x_tile + y_tile, [row, 0], out)\n"
    change(ws, 2, write, write + "        pypto.assemble(x_tile * x_tile, [row, 0], square)\n")
    change(ws, 2, "    kernel(x, y, out)\n", "    square = torch.empty_like(out)\n    kernel(x, y, out, square)\n")
    change(ws, 2, "return (out,)", "return (out, square)")


PROBE_GOLDEN = '''

def module_1_inspect(x, y):
    """Return the square of each tile of 16 rows: [1, 1, NT, 16, D]."""
    return {"square": (x * x).reshape(1, 1, -1, 16, x.shape[1])}
'''


def with_probe(ws: OpWorkspace, *, drift: str = "", buffer: str = "inspection_square") -> str:
    """Write `_debug/probe.py`, M1 with an inspection buffer, and the golden's companion; return the file.

    Args:
        ws: the operator.
        drift: appended to what is written into the probe (code, in the loop over `step`).
        buffer: the wrapper's keyword.
    """
    golden = ws.module_golden(1)
    golden.write_text(golden.read_text() + PROBE_GOLDEN)
    text = ws.module_impl(1).read_text()
    parameter = "    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),\n"
    text = text.replace(parameter, parameter + parameter.replace("out", "probe"))
    write = f"        pypto.assemble({SQUARE}, [row, 0], out)\n"
    assert write in text
    text = text.replace(write, f"{write}        pypto.assemble(x_tile * x_tile{drift}, [row, 0], probe)\n")
    text = text.replace("def chain_module1_wrapper(x, y):", f"def chain_module1_wrapper(x, y, {buffer}=None):")
    text = text.replace("    kernel(x, y, out)", f"    kernel(x, y, out, {buffer}.view(-1, WIDTH))")
    path = ws.debug_dir / "probe.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return str(path)
