"""Kernels of the framework's scripts that come out wrong in `sim` (pypto 0.2.0); a script, run by test_calculator_faults.py.

docs/framework-scripts.md says of each whether pypto's calculator, its record or its documentation stands against it.

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
    """A tensor that turns fill, and that each reshapes in place into the output: every turn finds it unwritten."""
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
    pypto.set_vec_tile_shapes(ROWS, WIDE)
    for _ in pypto.loop(1, name="ONCE", idx_name="i"):
        out.move(pypto.mul(x, TWICE))


def tell(name: str, right: torch.Tensor) -> None:
    """Print a kernel's line."""
    print(json.dumps({name: right.flatten(1).all(1).tolist()}), flush=True)


def main() -> None:
    """Run each kernel on an output full of -7."""
    x = torch.arange(1.0, ROWS * WIDE + 1).reshape(ROWS, WIDE)
    for kernel in (sum_of_a_loop, sum_of_a_loop_copied, sum_in_place):
        out = torch.full((ROWS, WIDE), -7.0)
        kernel(x, out)
        tell(kernel.__name__, out == TWICE * x)
    for kernel in (scratch_of_a_loop, reshaped_output, reshaped_dynamic_output, moved_to_other_axes):  # the last one raises
        out = torch.full((2, 2, WIDE), -7.0)
        try:
            kernel(x, out)
        except Exception as error:
            print(json.dumps({kernel.__name__: str(error).strip().rpartition("\n")[2]}), flush=True)
        else:
            tell(kernel.__name__, out.reshape(ROWS, WIDE) == TWICE * x)


if __name__ == "__main__":
    main()
