"""Layer normalisation that also returns the statistics its backward pass needs.

Three outputs from one launch: y [T, H], mean [T, 1] and rstd [T, 1], all fp32.
"""

import os

import torch
import torch_npu  # noqa: F401

import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

H = 128
BT = 8
INV_H = 1.0 / H
EPS = 1.0e-5


def _mean(tile):
    return pypto.sum(tile, -1, keepdim=True) * INV_H


def _layer_norm_stats_kernel_impl(x, gamma, beta, y, mean, rstd):
    """One pass over tiles of BT rows; every row's statistics come from that row alone."""
    pypto.set_vec_tile_shapes(BT, H)
    total = x.shape[0]
    for t in pypto.loop((total + BT - 1) // BT, name="T", idx_name="t"):
        rows = pypto.min(total - t * BT, BT)
        tile = pypto.view(x, [BT, H], [t * BT, 0], valid_shape=[rows, H])
        mu = _mean(tile)
        centred = tile - mu
        inv = pypto.rsqrt(_mean(centred * centred) + EPS)
        pypto.assemble(centred * inv * gamma + beta, [t * BT, 0], y)
        pypto.assemble(mu, [t * BT, 0], mean)
        pypto.assemble(inv, [t * BT, 0], rstd)


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def layer_norm_stats_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, H], pypto.DT_FP32),
    gamma: pypto.Tensor([1, H], pypto.DT_FP32),
    beta: pypto.Tensor([1, H], pypto.DT_FP32),
    y: pypto.Tensor([pypto.DYNAMIC, H], pypto.DT_FP32),
    mean: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_FP32),
    rstd: pypto.Tensor([pypto.DYNAMIC, 1], pypto.DT_FP32),
):
    _layer_norm_stats_kernel_impl(x, gamma, beta, y, mean, rstd)


def layer_norm_stats_wrapper(x, gamma, beta):
    """Returns (y, mean, rstd); mean and rstd keep the last axis with size 1."""
    rows = x.shape[0]
    y = torch.empty_like(x)
    mean = torch.empty((rows, 1), dtype=x.dtype, device=x.device)
    rstd = torch.empty((rows, 1), dtype=x.dtype, device=x.device)
    layer_norm_stats_kernel(x, gamma.view(1, H), beta.view(1, H), y, mean, rstd)
    return y, mean, rstd
