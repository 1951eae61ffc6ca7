import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=m), mask=m)

def cfgs():
    out = []
    for b in (128, 256):
        out.append(triton.Config(kwargs={'B': b}))
    return out

def prune(configs, named_args, **kw):
    return configs[:1]

@triton.autotune(configs=cfgs(), key=['n'], prune_configs_by={'early_config_prune': prune})
@triton.jit
def ka(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=m), mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        ka[lambda m: (triton.cdiv(x.numel(), m['B']),)](x, o, x.numel())
        return o
