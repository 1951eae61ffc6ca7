"""A triangular mask from arange, applied with where: out = x where col <= row, else -1; x [32, 32] float32."""

import os

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

SIZE = 32


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def triangle_mask_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, SIZE, SIZE], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, SIZE, SIZE], pypto.DT_FP32),
):
    for b in pypto.loop(x.shape[0], name="B", idx_name="b"):
        pypto.set_vec_tile_shapes(32)
        index = pypto.arange(0.0, 32.0, 1.0)  # [SIZE]; tile rank follows the tensor's rank
        pypto.set_vec_tile_shapes(1, 32, 32)
        tile = pypto.view(x, [1, SIZE, SIZE], [b, 0, 0])
        pypto.set_vec_tile_shapes(32, 32)
        flat = pypto.reshape(tile, [SIZE, SIZE])
        rows = pypto.expand_clone(pypto.reshape(index, [SIZE, 1]), [SIZE, SIZE])  # expand one axis at a time
        keep = pypto.ge(rows, pypto.reshape(index, [1, SIZE]))
        kept = pypto.where(keep, flat, -1.0)
        pypto.set_vec_tile_shapes(1, 32, 32)
        pypto.assemble(pypto.reshape(kept, [1, SIZE, SIZE]), [b, 0, 0], out)


def triangle_mask_wrapper(x):
    """x: [B, 32, 32] float32, contiguous. Returns the lower triangle, -1 elsewhere."""
    out = torch.empty((x.shape[0], SIZE, SIZE), dtype=x.dtype, device=x.device)
    triangle_mask_kernel(x, out)
    return out
