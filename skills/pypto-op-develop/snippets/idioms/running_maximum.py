"""State with fewer valid rows than its storage: the row maximum over column tiles, x [T, C] float32, both dynamic."""

import os

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

ROWS, COLS = 16, 64


def pypto_narrowed(state, valid):
    """Return the state with its valid rows: a read in a later step forgets them."""
    return pypto.view(state, [ROWS, 1], [0, 0], valid_shape=[valid, 1])


def _running_maximum_kernel_impl(x, out):
    """In a helper a condition on the loop is written with pypto.cond."""
    height, width = x.shape[0], x.shape[1]
    for r in pypto.loop((height + ROWS - 1) // ROWS, name="ROWS", idx_name="r"):
        row = r * ROWS
        valid = pypto.min(height - row, ROWS)
        best = pypto.tensor([ROWS, 1], pypto.DT_FP32, "best")
        for c in pypto.loop((width + COLS - 1) // COLS, name="COLS", idx_name="c"):
            pypto.set_vec_tile_shapes(16, 64)
            col = c * COLS
            x_tile = pypto.view(x, [ROWS, COLS], [row, col], valid_shape=[valid, pypto.min(width - col, COLS)])
            here = pypto.amax(x_tile, -1, True)  # [ROWS, 1]
            if pypto.cond(pypto.is_loop_begin(c)):
                best[:] = here
            else:
                best[:] = pypto.maximum(pypto_narrowed(best, valid), here)
            if pypto.cond(pypto.is_loop_end(c)):
                pypto.assemble(pypto.add(pypto_narrowed(best, valid), 0.0), [row, 0], out)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def running_maximum_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, pypto.DYNAMIC], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_FP32),
):
    _running_maximum_kernel_impl(x, out)


def running_maximum_wrapper(x):
    """x: [T, C] float32, contiguous. Returns [T, 1]."""
    out = torch.empty((x.shape[0], 1), dtype=x.dtype, device=x.device)
    running_maximum_kernel(x, out)
    return out
