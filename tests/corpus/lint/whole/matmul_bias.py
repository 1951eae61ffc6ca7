"""Static-shape matrix product with a bias row: c = a @ b + bias. Tiles live in a class of constants."""

import os

import torch
import torch_npu  # noqa: F401

import pypto

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))


class Shape:
    """Problem size, fixed by SPEC.md."""

    M = 64
    K = 128
    N = 64


class Tile:
    """Tile sizes from DESIGN.md 3.2.5; L1 holds two L0 tiles along K."""

    L0 = 32
    M = [L0, L0]
    K = [L0, L0 * 2]
    N = [L0, L0]
    VEC = (16, Shape.N)


@pypto.frontend.jit
def matmul_bias_kernel(
    a: pypto.Tensor([Shape.M, Shape.K], pypto.DT_FP16),
    b: pypto.Tensor([Shape.K, Shape.N], pypto.DT_FP16),
    bias: pypto.Tensor([1, Shape.N], pypto.DT_FP32),
    c: pypto.Tensor([Shape.M, Shape.N], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(*Tile.VEC)
    pypto.set_cube_tile_shapes(Tile.M, Tile.K, Tile.N)
    for _ in pypto.loop(1, name="ONCE", idx_name="once"):
        product = pypto.matmul(a, b, pypto.DT_FP32)
        c[:] = product + bias


def matmul_bias_wrapper(a, b, bias):
    """a [64, 128] fp16, b [128, 64] fp16, bias [64] fp32; returns [64, 64] fp32."""
    c = torch.empty((Shape.M, Shape.N), dtype=torch.float32, device=a.device)
    matmul_bias_kernel(a, b, bias.reshape(1, -1), c)
    return c
