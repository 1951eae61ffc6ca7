"""Kernels on which pypto 0.2.0's calculator is wrong though each is legal; a script, run by test_calculator_faults.py.

Each prints one line of JSON: its name, and for each row of its output whether the values are right.
"""

import json

import pypto
import torch

WIDE, ROWS = 16, 4
TWICE = 2.0


@pypto.frontend.jit()
def scratch_of_a_loop(
    x: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
    out: pypto.Tensor([2, 2, WIDE], pypto.DT_FP32),
):  # type: ignore[no-untyped-def]
    """A tensor that turns fill one after the other, and that each turn copies out: every turn finds it unwritten."""
    _scratch(x, out)


def _scratch(x, out):  # type: ignore[no-untyped-def]  # graph code
    kept = pypto.tensor([ROWS, WIDE], pypto.DT_FP32, "kept")
    for i in pypto.loop(ROWS, name="ROWS", idx_name="i"):
        pypto.set_vec_tile_shapes(1, WIDE)
        pypto.assemble(pypto.mul(pypto.view(x, [1, WIDE], [i, 0]), TWICE), [i, 0], kept)
        out[:] = pypto.reshape(kept, [2, 2, WIDE], inplace=True)


@pypto.frontend.jit()
def reshaped_output(
    x: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
    out: pypto.Tensor([2, 2, WIDE], pypto.DT_FP32),
):  # type: ignore[no-untyped-def]
    """An output that is written through an in-place reshape: it stays as it was."""
    _reshaped(x, out)


@pypto.frontend.jit()
def reshaped_dynamic_output(
    x: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, 2, WIDE], pypto.DT_FP32),
):  # type: ignore[no-untyped-def]
    """The same with a dynamic axis."""
    _reshaped(x, out)


def _reshaped(x, out):  # type: ignore[no-untyped-def]
    flat = pypto.reshape(out, [out.shape[0] * 2, WIDE], inplace=True)
    for i in pypto.loop(ROWS, name="ROWS", idx_name="i"):
        pypto.set_vec_tile_shapes(1, WIDE)
        pypto.assemble(pypto.mul(pypto.view(x, [1, WIDE], [i, 0]), TWICE), [i, 0], flat)


@pypto.frontend.jit()
def bytes_as_floats(
    x: pypto.Tensor([ROWS, 48], pypto.DT_INT8),
    out: pypto.Tensor([ROWS, 8], pypto.DT_FP32),
):  # type: ignore[no-untyped-def]
    """Bytes read as float32, in rows of which one half is valid: the second half of the rows is not read."""
    _bytes(x, out)


def _bytes(x, out):  # type: ignore[no-untyped-def]
    for i in pypto.loop(1, name="ONCE", idx_name="i"):
        pypto.set_vec_tile_shapes(ROWS, 64)
        padded = pypto.clone(pypto.view(x, [ROWS, 64], [i, 0], valid_shape=[ROWS, 48]))
        last = pypto.view(input=padded, shape=[ROWS, 32], offsets=[0, 32], valid_shape=[ROWS, 16])
        pypto.assemble(pypto.add(pypto.view(input=last, dtype=pypto.DT_FP32), 0.0), [0, 0], out)


@pypto.frontend.jit()
def sum_of_a_loop(
    x: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
    out: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
):  # type: ignore[no-untyped-def]
    """A name that a loop binds anew, read after the loop."""
    pypto.set_vec_tile_shapes(ROWS, WIDE)
    y = pypto.zeros(x.shape)
    for _ in pypto.loop(2, name="TURNS", idx_name="i"):
        y = x + y
    out.move(y)


def tell(name: str, right: torch.Tensor) -> None:
    """Print a kernel's line."""
    print(json.dumps({name: right.flatten(1).all(1).tolist()}), flush=True)


def main() -> None:
    """Run each kernel on an output full of -7."""
    x = torch.arange(1.0, ROWS * WIDE + 1).reshape(ROWS, WIDE)
    for kernel in (scratch_of_a_loop, reshaped_output, reshaped_dynamic_output):
        out = torch.full((2, 2, WIDE), -7.0)
        try:
            kernel(x, out)
        except Exception as error:
            print(json.dumps({kernel.__name__: str(error).rpartition(" ")[2]}), flush=True)
        else:
            tell(kernel.__name__, out.reshape(ROWS, WIDE) == TWICE * x)
    floats = torch.rand(ROWS, 4)
    out = torch.full((ROWS, 8), -7.0)
    bytes_as_floats(torch.cat([torch.zeros(ROWS, 32, dtype=torch.int8), floats.view(torch.int8)], 1).contiguous(), out)
    tell("bytes_as_floats", out[:, :4] == floats)
    out = torch.full((ROWS, WIDE), -7.0)
    sum_of_a_loop(x, out)
    tell("sum_of_a_loop", out == TWICE * x)


if __name__ == "__main__":
    main()
