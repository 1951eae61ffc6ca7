"""Kernels that read the bytes of a part of a tensor as another type; a script, run by test_byte_views.py.

Each prints one line of JSON: its name, and for each row of its output whether the values are right.
"""

import json

import pypto
import torch

ROWS, WIDE = 4, 64


@pypto.frontend.jit()
def bytes_as_floats(
    x: pypto.Tensor([ROWS, 48], pypto.DT_INT8),
    out: pypto.Tensor([ROWS, 8], pypto.DT_FP32),
):  # type: ignore[no-untyped-def]
    """Bytes read as float32, in rows of which one half is valid."""
    for i in pypto.loop(1, name="ONCE", idx_name="i"):
        pypto.set_vec_tile_shapes(ROWS, 64)
        padded = pypto.clone(pypto.view(x, [ROWS, 64], [i, 0], valid_shape=[ROWS, 48]))
        last = pypto.view(input=padded, shape=[ROWS, 32], offsets=[0, 32], valid_shape=[ROWS, 16])
        pypto.assemble(pypto.add(pypto.view(input=last, dtype=pypto.DT_FP32), 0.0), [0, 0], out)


@pypto.frontend.jit()
def columns_as_halves(
    x: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
    out: pypto.Tensor([ROWS, 32], pypto.DT_FP16),
):  # type: ignore[no-untyped-def]
    """The third quarter of the columns, two numbers for each float32."""
    pypto.set_vec_tile_shapes(ROWS, WIDE)
    for i in pypto.loop(1, name="ONCE", idx_name="i"):
        quarter = pypto.view(x, [ROWS, 16], [i, 32])
        pypto.assemble(pypto.add(pypto.view(input=quarter, dtype=pypto.DT_FP16), 0.0), [0, 0], out)


@pypto.frontend.jit()
def middle_of_three_axes(
    x: pypto.Tensor([2, ROWS, WIDE], pypto.DT_FP32),
    out: pypto.Tensor([2, 2, WIDE], pypto.DT_FP16),
):  # type: ignore[no-untyped-def]
    """Two rows of each block, half of the columns."""
    pypto.set_vec_tile_shapes(1, 2, WIDE)
    for i in pypto.loop(1, name="ONCE", idx_name="i"):
        part = pypto.view(x, [2, 2, 32], [i, 1, 32])
        pypto.assemble(pypto.add(pypto.view(input=part, dtype=pypto.DT_FP16), 0.0), [0, 0, 0], out)


@pypto.frontend.jit()
def all_of_it(
    x: pypto.Tensor([ROWS, WIDE], pypto.DT_FP32),
    out: pypto.Tensor([ROWS, 2 * WIDE], pypto.DT_FP16),
):  # type: ignore[no-untyped-def]
    """A whole tensor."""
    pypto.set_vec_tile_shapes(ROWS, WIDE)
    for i in pypto.loop(1, name="ONCE", idx_name="i"):
        pypto.assemble(pypto.add(pypto.view(input=x, dtype=pypto.DT_FP16), 0.0), [i, 0], out)


def tell(name: str, found: torch.Tensor, expected: torch.Tensor) -> None:
    """Print a kernel's line."""
    print(json.dumps({name: (found == expected).flatten(1).all(1).tolist()}), flush=True)


def main() -> None:
    """Run each kernel on an output full of -7, beside torch's own view."""
    floats = torch.rand(ROWS, 4)
    out = torch.full((ROWS, 8), -7.0)
    bytes_as_floats(torch.cat([torch.zeros(ROWS, 32, dtype=torch.int8), floats.view(torch.int8)], 1).contiguous(), out)
    tell("bytes_as_floats", out[:, :4], floats)
    pairs = torch.rand(2, ROWS, 2 * WIDE).to(torch.float16)
    half = {"fill_value": -7.0, "dtype": torch.float16}
    quarter, middle, same = torch.full((ROWS, 32), **half), torch.full((2, 2, WIDE), **half), torch.full((ROWS, 2 * WIDE), **half)
    columns_as_halves(pairs[0].view(torch.float32), quarter)
    tell("columns_as_halves", quarter, pairs[0, :, 64:96])
    middle_of_three_axes(pairs.view(torch.float32), middle)
    tell("middle_of_three_axes", middle, pairs[:, 1:3, 64:])
    all_of_it(pairs[0].view(torch.float32), same)
    tell("all_of_it", same, pairs[0])


if __name__ == "__main__":
    main()
