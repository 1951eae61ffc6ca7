"""Writing a state consumes its source: use the value first, write last."""

import pypto
import torch

ROWS, WIDTH = 16, 32


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def bad_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
):
    total = x.shape[0]
    pypto.set_vec_tile_shapes(16, 32)
    low = pypto.tensor([1, WIDTH], pypto.DT_FP32, "low")
    for step in pypto.loop((total + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 32)
        row = step * ROWS
        x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[pypto.min(total - row, ROWS), WIDTH])
        here = pypto.amin(x_tile, 0, True)
        if pypto.is_loop_begin(step):
            low[:] = here
            pypto.assemble(x_tile - here, [row, 0], out)
        else:
            new = pypto.minimum(low, here)
            low[:] = new
            pypto.assemble(x_tile - new, [row, 0], out)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def good_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
):
    total = x.shape[0]
    pypto.set_vec_tile_shapes(16, 32)
    low = pypto.tensor([1, WIDTH], pypto.DT_FP32, "low")
    for step in pypto.loop((total + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 32)
        row = step * ROWS
        x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[pypto.min(total - row, ROWS), WIDTH])
        here = pypto.amin(x_tile, 0, True)
        if pypto.is_loop_begin(step):
            pypto.assemble(x_tile - here, [row, 0], out)
            low[:] = here
        else:
            new = pypto.minimum(low, here)
            pypto.assemble(x_tile - new, [row, 0], out)
            low[:] = new


def bad_wrapper(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    bad_kernel(x, out)
    return out


def good_wrapper(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    good_kernel(x, out)
    return out
