from __future__ import annotations

import torch
import torch.nn as nn
import triton.language as tl

import triton


@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


class Batch:
    def __init__(self, *tensors):
        self.tensors = list(tensors)

    def __len__(self):
        return len(self.tensors)

    def __iter__(self):
        return iter(self.tensors)

    def __getitem__(self, i):
        return self.tensors[i]


def launch(x):
    batch = Batch(x, torch.empty_like(x))
    assert len(batch) == 2
    src, out = batch
    exp_kernel[(triton.cdiv(x.numel(), 512),)](src, batch[1], x.numel(), BLOCK=512)
    return out


class ModelNew(nn.Module):
    def forward(self, x):
        return launch(x)
