"""A version is looked up through importlib, by a name that the file has."""

import importlib

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + i, mask=m)), mask=m)


def run(x):
    o = torch.empty_like(x)
    k[(triton.cdiv(x.numel(), 256),)](x, o, x.numel(), B=256)
    return o



def version_of(package):
    return importlib.import_module(package).__version__


OLD = version_of("triton").startswith("2.")


class ModelNew(nn.Module):
    def forward(self, x):
        return run(x)
