"""State carried over tiles: out[t] = x[t] plus the sum of all rows of earlier tiles, x [T, 32] float32."""

import os

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

ROWS, WIDTH = 16, 32


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def carried_state_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
):
    total = x.shape[0]
    pypto.set_vec_tile_shapes(16, 32)
    before = pypto.tensor([1, WIDTH], pypto.DT_FP32, "before")  # storage only; nothing is in it yet
    for step in pypto.loop((total + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 32)
        row = step * ROWS
        x_tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[pypto.min(total - row, ROWS), WIDTH])
        here = pypto.sum(x_tile, 0, True)  # [1, WIDTH], valid rows only
        if pypto.is_loop_begin(step):  # inside the jit function: no pypto.cond
            pypto.assemble(pypto.add(x_tile, 0.0), [row, 0], out)
            before[:] = here
        else:
            pypto.assemble(x_tile + before, [row, 0], out)
            before[:] = before + here  # the write comes last


def carried_state_wrapper(x):
    """x: [T, 32] float32, contiguous. Returns [T, 32]."""
    out = torch.empty((x.shape[0], WIDTH), dtype=x.dtype, device=x.device)
    carried_state_kernel(x, out)
    return out
