"""Router of a mixture of experts: the k largest of 64 logits per token, with softmax weights over the chosen ones.

Outputs: weights [T, 8] fp32 and expert numbers [T, 8] int32. Ties are not resolved the same way everywhere; the test
avoids them, and this file says so.
"""

import os

import torch
import torch_npu  # noqa: F401

import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

EXPERTS, CHOSEN = 64, 8
TOKENS = EXPERTS // 4
TILES = {"rows": TOKENS, "experts": EXPERTS}


def _softmax_rows(scores):
    """Softmax of the chosen logits, one row per token."""
    shifted = pypto.exp(scores - pypto.amax(scores, -1, keepdim=True))
    return shifted / pypto.sum(shifted, -1, keepdim=True)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def topk_router_kernel(
    logits: pypto.Tensor([pypto.DYNAMIC, EXPERTS], pypto.DT_FP32),
    weights: pypto.Tensor([pypto.DYNAMIC, CHOSEN], pypto.DT_FP32),
    experts: pypto.Tensor([pypto.DYNAMIC, CHOSEN], pypto.DT_INT32),
    tiles: int,
):
    pypto.set_vec_tile_shapes(TILES["rows"], TILES["experts"])
    for t in pypto.loop(tiles, name="TOKENS", idx_name="t"):
        at = [t * TOKENS, 0]
        tile = pypto.view(logits, [TOKENS, EXPERTS], at)
        values, numbers = pypto.topk(tile, CHOSEN, -1)
        pypto.assemble(_softmax_rows(values), at, weights)
        pypto.assemble(numbers, at, experts)


def topk_router_wrapper(logits: torch.Tensor):
    """logits [T, 64] fp32, T a multiple of 16; returns (weights [T, 8] fp32, experts [T, 8] int32)."""
    tokens, width = logits.shape
    if width != EXPERTS or tokens % TOKENS != 0:
        raise ValueError(f"need [16 n, {EXPERTS}], got {tuple(logits.shape)}")
    weights = logits.new_empty((tokens, CHOSEN))
    experts = torch.empty((tokens, CHOSEN), dtype=torch.int32, device=logits.device)
    topk_router_kernel(logits, weights, experts, tokens // TOKENS)
    return weights, experts
