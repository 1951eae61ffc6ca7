"""What the star takes is an input that no kernel stores to."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rotate(q_ptr, k_ptr, cos_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    cos = tl.load(cos_ptr + offsets)
    tl.store(q_ptr + offsets, tl.load(q_ptr + offsets) * cos)
    tl.store(k_ptr + offsets, tl.load(k_ptr + offsets) * cos)


def rotated(q, k, cos):
    q, k = q.contiguous(), k.contiguous()
    rotate[(1,)](q, k, cos, BLOCK=64)
    return q, k, cos, q.shape


class ModelNew(nn.Module):
    def forward(self, q, k, cos):
        first, _, *rest = rotated(q, k, cos)
        return first, rest[0]
