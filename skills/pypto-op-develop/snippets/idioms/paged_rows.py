"""Addresses that are data: out[i] = pages[table[i]], table [B] int32, pages [P, 16, 32] float32."""

import os

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

PAGE, WIDTH = 16, 32


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def paged_rows_kernel(
    table: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_INT32),
    pages: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
):
    count = table.shape[0]
    for b in pypto.loop(count, name="B", idx_name="b"):
        pypto.set_vec_tile_shapes(16, 32)
        page = table[b, 0]  # a scalar read; usable as an offset
        tile = pypto.view(pages, [PAGE, WIDTH], [page * PAGE, 0])
        pypto.assemble(tile * 2.0, [b * PAGE, 0], out)


def paged_rows_wrapper(table, pages):
    """table: [B] int32; pages: [P, 16, 32] float32, contiguous. Returns 2 * pages[table], [B, 16, 32]."""
    count = table.shape[0]
    out = torch.empty((count, PAGE, WIDTH), dtype=pages.dtype, device=pages.device)
    paged_rows_kernel(table.reshape(count, 1), pages.reshape(-1, WIDTH), out.reshape(-1, WIDTH))
    return out
