"""Group normalisation followed by SiLU, for activations [N, C, S] with C = 64 channels in 8 groups.

Rows of the kernel are (sample, group) pairs: a reshape on the host makes each group one row of C/G * S numbers, so that
the statistics are plain row reductions and no value crosses a row.
"""

import dataclasses
import enum
import os
import warnings

import torch
import torch_npu  # noqa: F401

import pypto

DEVICE_ID = int(os.getenv("TILE_FWK_DEVICE_ID", "0"))
torch.npu.set_device(DEVICE_ID)


class Rows(enum.IntEnum):
    """Row tiles: rows per tile, and the smallest legal one."""

    TILE = 8
    LEAST = 1


@dataclasses.dataclass(frozen=True)
class Problem:
    """Fixed sizes from SPEC.md."""

    channels: int = 64
    groups: int = 8
    space: int = 16
    eps: float = 1e-5

    @property
    def row(self):
        """Numbers in one row."""
        return self.channels // self.groups * self.space


PROBLEM = Problem()
WIDTH = 128  # PROBLEM.row; written out because tile shapes are literals
_SEEN = set()


def _note_dtype(dtype):
    """Warn once per dtype that is computed in float32."""
    if dtype is not torch.float32 and dtype not in _SEEN:
        _SEEN.add(dtype)
        warnings.warn(f"group_norm_silu computes {dtype} in float32", stacklevel=3)


def _check(x, weight, bias):
    expected = (PROBLEM.channels, PROBLEM.space)
    if tuple(x.shape[1:]) != expected:
        raise ValueError(f"x must be [N, {expected[0]}, {expected[1]}], got {tuple(x.shape)}")
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor.numel() != PROBLEM.channels:
            raise ValueError(f"{name} must have {PROBLEM.channels} elements")
    assert WIDTH == PROBLEM.row


def _silu(t):
    return t / (pypto.exp(-t) + 1.0)


@pypto.frontend.jit(
    runtime_options={"run_mode": pypto.RunMode.NPU},
)
def group_norm_silu_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    weight: pypto.Tensor([8, WIDTH], pypto.DT_FP32),
    bias: pypto.Tensor([8, WIDTH], pypto.DT_FP32),
    y: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    eps,
):
    """One iteration per sample: its 8 groups are the 8 rows of a tile."""
    pypto.set_vec_tile_shapes(Rows.TILE, WIDTH)
    inverse = 1.0 / WIDTH
    for n in pypto.loop(x.shape[0] // Rows.TILE, name="SAMPLES", idx_name="n"):
        first_row = n * Rows.TILE
        tile = pypto.view(x, [Rows.TILE, WIDTH], [first_row, 0])
        mean = tile.sum(-1, True) * inverse
        centred = tile - mean
        variance = (centred * centred).sum(-1, True) * inverse
        normed = centred * pypto.rsqrt(variance + eps)
        y[first_row : first_row + Rows.TILE, :] = _silu(normed * weight + bias)


def group_norm_silu_wrapper(x, weight, bias):
    """x [N, 64, 16], weight [64], bias [64]; returns SiLU(GroupNorm(x)) in x's dtype."""
    _check(x, weight, bias)
    _note_dtype(x.dtype)
    samples = x.shape[0]
    rows = samples * PROBLEM.groups
    flat = x.to(torch.float32).reshape(rows, WIDTH).contiguous()
    per_row = [
        t.to(torch.float32).reshape(PROBLEM.groups, -1, 1).expand(-1, -1, PROBLEM.space).reshape(PROBLEM.groups, WIDTH).contiguous()
        for t in (weight, bias)
    ]
    y = torch.empty_like(flat)
    group_norm_silu_kernel(flat, *per_row, y, PROBLEM.eps)
    return y.reshape(x.shape).to(x.dtype)


if __name__ == "__main__":
    torch.manual_seed(42)
    sample = torch.randn(3, PROBLEM.channels, PROBLEM.space)
    gain, shift = torch.rand(PROBLEM.channels), torch.rand(PROBLEM.channels)
    reference = torch.nn.functional.silu(torch.nn.functional.group_norm(sample, PROBLEM.groups, gain, shift, PROBLEM.eps))
    print("max difference", (group_norm_silu_wrapper(sample, gain, shift) - reference).abs().max().item())
