"""State read back has its full shape, though fewer rows were written: an internal error without a line, or padding in the result."""

import pypto
import torch

ROWS, COLS = 16, 32


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def bad_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_FP32),
):
    height, width = x.shape[0], x.shape[1]
    for r in pypto.loop((height + ROWS - 1) // ROWS, name="ROWS", idx_name="r"):
        valid = pypto.min(height - r * ROWS, ROWS)
        best = pypto.tensor([ROWS, 1], pypto.DT_FP32, "best")
        for c in pypto.loop((width + COLS - 1) // COLS, name="COLS", idx_name="c"):
            pypto.set_vec_tile_shapes(16, 32)
            valid_cols = pypto.min(width - c * COLS, COLS)
            x_tile = pypto.view(x, [ROWS, COLS], [r * ROWS, c * COLS], valid_shape=[valid, valid_cols])
            here = pypto.amax(x_tile, -1, True)
            if pypto.is_loop_begin(c):
                best[:] = here
            else:
                best[:] = pypto.maximum(best, here)
            if pypto.is_loop_end(c):
                result = pypto.view(best, [ROWS, 1], [0, 0], valid_shape=[valid, 1])
                pypto.assemble(pypto.add(result, 0.0), [r * ROWS, 0], out)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def good_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_FP32),
):
    height, width = x.shape[0], x.shape[1]
    for r in pypto.loop((height + ROWS - 1) // ROWS, name="ROWS", idx_name="r"):
        valid = pypto.min(height - r * ROWS, ROWS)
        best = pypto.tensor([ROWS, 1], pypto.DT_FP32, "best")
        for c in pypto.loop((width + COLS - 1) // COLS, name="COLS", idx_name="c"):
            pypto.set_vec_tile_shapes(16, 32)
            valid_cols = pypto.min(width - c * COLS, COLS)
            x_tile = pypto.view(x, [ROWS, COLS], [r * ROWS, c * COLS], valid_shape=[valid, valid_cols])
            here = pypto.amax(x_tile, -1, True)
            if pypto.is_loop_begin(c):
                best[:] = here
            else:
                known = pypto.view(best, [ROWS, 1], [0, 0], valid_shape=[valid, 1])
                best[:] = pypto.maximum(known, here)
            if pypto.is_loop_end(c):
                result = pypto.view(best, [ROWS, 1], [0, 0], valid_shape=[valid, 1])
                pypto.assemble(pypto.add(result, 0.0), [r * ROWS, 0], out)


def bad_wrapper(x):
    out = torch.empty((x.shape[0], 1), dtype=x.dtype, device=x.device)
    bad_kernel(x, out)
    return out


def good_wrapper(x):
    out = torch.empty((x.shape[0], 1), dtype=x.dtype, device=x.device)
    good_kernel(x, out)
    return out
