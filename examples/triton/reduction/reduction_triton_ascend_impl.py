"""Mean of squares in two launches: partial sums of large chunks, then their sum. The order of additions is fixed."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial_kernel(x_ptr, partial_ptr, n, chunk, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    begin = program.to(tl.int64) * chunk
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, chunk, BLOCK):
        place = begin + start + tl.arange(0, BLOCK)
        inside = (place < n) & (place < begin + chunk)
        x = tl.load(x_ptr + place, mask=inside, other=0.0)
        total += x * x
    tl.store(partial_ptr + program, tl.sum(total, axis=0))


@triton.jit
def final_kernel(partial_ptr, out_ptr, parts, n, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    x = tl.load(partial_ptr + place, mask=place < parts, other=0.0)
    tl.store(out_ptr, tl.sum(x, axis=0) / n)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        n = x.numel()
        block = 1024
        chunk = block * max(1, min(16, n // (block * 8)))
        parts = triton.cdiv(n, chunk)
        partial = torch.empty(parts, dtype=torch.float32, device=x.device)
        out = torch.empty((), dtype=torch.float32, device=x.device)
        partial_kernel[(parts,)](x, partial, n, chunk, BLOCK=block)
        final_kernel[(1,)](partial, out, parts, n, BLOCK=triton.next_power_of_2(parts))
        return out
