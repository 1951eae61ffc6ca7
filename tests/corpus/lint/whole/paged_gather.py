"""Copy pages of a cache into a dense tensor, scaled: out[b*P:(b+1)*P] = cache[table[b]*P : ...] * alpha[b].

A data-dependent offset: the page number is read from an int32 table inside the loop.
"""

import os

import torch
import torch_npu  # noqa: F401

import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

PAGE = 16
WIDTH = 64


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def paged_gather_kernel(
    cache: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    table: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_INT32),
    gain: pypto.Tensor([1, WIDTH], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(PAGE, WIDTH)
    pages = table.shape[0]
    for b in pypto.loop(pages, name="PAGES", idx_name="b"):
        page = table[b, 0]
        block = pypto.view(cache, [PAGE, WIDTH], [page * PAGE, 0])
        out[b * PAGE : (b + 1) * PAGE, :] = block * gain


def paged_gather_wrapper(cache, table, gain):
    """cache [N*16, 64] fp32, table [B] int32, gain [64] fp32; returns [B*16, 64] fp32."""
    out = torch.empty((table.numel() * PAGE, WIDTH), dtype=cache.dtype, device=cache.device)
    paged_gather_kernel(cache, table.view(-1, 1).contiguous(), gain.unsqueeze(0), out)
    return out
