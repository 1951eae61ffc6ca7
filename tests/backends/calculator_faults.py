"""Kernels of the framework's scripts that come out wrong in `sim` (pypto 0.2.0); a script, run by test_calculator_faults.py.

docs/framework-scripts.md says of each whether pypto's calculator, its record or its documentation stands against it.

Each prints one line of JSON: its name, and for each row of its output whether the values are right.
"""

import ctypes
import json
import sys

import pypto
import torch

WIDE, ROWS = 16, 4
TWICE = 2.0


@pypto.frontend.jit()
def scratch_of_a_loop(
    x: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
    out: pypto.Tensor([2, 2, WIDE], pypto.DT_FP32),
):  # type: ignore[no-untyped-def]
    """A tensor that turns fill, and that each reshapes in place into the output."""
    _scratch(x, out, ROWS, in_place=True)


@pypto.frontend.jit()
def scratch_of_a_loop_copied(
    x: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
    out: pypto.Tensor([2, 2, WIDE], pypto.DT_FP32),
):  # type: ignore[no-untyped-def]
    """The same with a reshape that copies: every turn finds the tensor unwritten."""
    _scratch(x, out, ROWS, in_place=False)


@pypto.frontend.jit()
def scratch_with_a_row_left_out(
    x: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
    out: pypto.Tensor([2, 2, WIDE], pypto.DT_FP32),
):  # type: ignore[no-untyped-def]
    """The turns fill all rows but the last one, which stays as the output was."""
    _scratch(x, out, ROWS - 1, in_place=True)


def _scratch(x, out, turns, *, in_place):  # type: ignore[no-untyped-def]  # graph code
    kept = pypto.tensor([ROWS, WIDE], pypto.DT_FP32, "kept")
    for i in pypto.loop(turns, name="ROWS", idx_name="i"):
        pypto.set_vec_tile_shapes(1, WIDE)
        pypto.assemble(pypto.mul(pypto.view(x, [1, WIDE], [i, 0]), TWICE), [i, 0], kept)
        out[:] = pypto.reshape(kept, [2, 2, WIDE], inplace=in_place)


@pypto.frontend.jit()
def scratch_that_is_read(
    x: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
    out: pypto.Tensor([2, 2, WIDE], pypto.DT_FP32),
):  # type: ignore[no-untyped-def]
    """The reshaped tensor goes through an operation, so it is not the output's memory: every turn finds it unwritten."""
    kept = pypto.tensor([ROWS, WIDE], pypto.DT_FP32, "kept")
    for i in pypto.loop(ROWS, name="ROWS", idx_name="i"):
        pypto.set_vec_tile_shapes(1, WIDE)
        pypto.assemble(pypto.view(x, [1, WIDE], [i, 0]) + 0.0, [i, 0], kept)
        reshaped = pypto.reshape(kept, [2, 2, WIDE], inplace=True)
        pypto.set_vec_tile_shapes(2, 2, WIDE)
        out[:] = pypto.mul(reshaped, TWICE)


@pypto.frontend.jit()
def reshaped_output(
    x: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
    out: pypto.Tensor([2, 2, WIDE], pypto.DT_FP32),
):  # type: ignore[no-untyped-def]
    """An output that is written through an in-place reshape: the compiled program holds no operation, and it stays as it was."""
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


@pypto.frontend.jit()
def sum_of_a_loop_copied(
    x: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
    out: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
):  # type: ignore[no-untyped-def]
    """The same with an operation after the loop: the record adds to the zeros in each turn, so it gives x, not twice x."""
    pypto.set_vec_tile_shapes(ROWS, WIDE)
    y = pypto.zeros(x.shape)
    for _ in pypto.loop(2, name="TURNS", idx_name="i"):
        y = x + y
    out[:] = y + 0.0


@pypto.frontend.jit()
def sum_in_place(
    x: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
    out: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
):  # type: ignore[no-untyped-def]
    """The form that carries: the loop writes into the tensor, and an operation after it writes the output."""
    pypto.set_vec_tile_shapes(ROWS, WIDE)
    y = pypto.zeros(x.shape)
    for _ in pypto.loop(2, name="TURNS", idx_name="i"):
        y[:] = x + y
    out[:] = y + 0.0


@pypto.frontend.jit()
def moved_to_other_axes(
    x: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
    out: pypto.Tensor([2, 2, WIDE], pypto.DT_FP32),
):  # type: ignore[no-untyped-def]
    """A tensor of two axes moved into an output of three, as into a cache: the calculator assembles between equal axes alone."""
    _moved(x, out)


@pypto.frontend.jit()
def moved_to_a_larger_one(
    x: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
    out: pypto.Tensor([2, 4, WIDE], pypto.DT_FP32),
):  # type: ignore[no-untyped-def]
    """The same into an output of twice as many elements."""
    _moved(x, out)


def _moved(x, out):  # type: ignore[no-untyped-def]  # graph code
    pypto.set_vec_tile_shapes(ROWS, WIDE)
    for _ in pypto.loop(1, name="ONCE", idx_name="i"):
        out.move(pypto.mul(x, TWICE))


def tell(name: str, right: torch.Tensor) -> None:
    """Print a kernel's line."""
    print(json.dumps({name: right.flatten(1).all(1).tolist()}), flush=True)


def run(kernel, x: torch.Tensor, shape: tuple[int, ...]) -> None:  # type: ignore[no-untyped-def]
    """Run a kernel on an output full of -7, and tell which rows are right, or the error."""
    out = torch.full(shape, -7.0)
    try:
        kernel(x, out)
    except Exception as error:
        print(json.dumps({kernel.__name__: str(error).strip().rpartition("\n")[2]}), flush=True)
    else:
        tell(kernel.__name__, out.reshape(-1, WIDE)[:ROWS] == TWICE * x)


def main() -> None:
    """Run each kernel; the word `strict` follows pypto's pages alone, as a verdict does."""
    strict = "strict" in sys.argv
    if strict:
        ctypes.CDLL(None).pypto_op_follow_program(0)
    x = torch.arange(1.0, ROWS * WIDE + 1).reshape(ROWS, WIDE)
    for kernel in (sum_of_a_loop, sum_of_a_loop_copied, sum_in_place):
        run(kernel, x, (ROWS, WIDE))
    for kernel in (
        scratch_of_a_loop, scratch_of_a_loop_copied, scratch_with_a_row_left_out, scratch_that_is_read,
        reshaped_output, reshaped_dynamic_output, moved_to_other_axes,
    ):  # fmt: skip
        run(kernel, x, (2, 2, WIDE))
    if not strict:  # there the one before raised, after which pypto starts no other
        run(moved_to_a_larger_one, x, (2, 4, WIDE))


if __name__ == "__main__":
    main()
