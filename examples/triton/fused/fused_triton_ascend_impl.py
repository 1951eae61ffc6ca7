"""gelu(x * scale + shift) * gate in one pass over x."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fused_kernel(x_ptr, scale_ptr, shift_ptr, gate_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < n
    x = tl.load(x_ptr + row * n + columns, mask=mask).to(tl.float32)
    scale = tl.load(scale_ptr + columns, mask=mask)
    shift = tl.load(shift_ptr + columns, mask=mask)
    gate = tl.load(gate_ptr + row).to(tl.float32)
    x = x * scale + shift
    x = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + row * n + columns, (x * gate).to(out_ptr.dtype.element_ty), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = nn.Parameter(torch.empty(n))
        self.shift = nn.Parameter(torch.empty(n))

    def forward(self, x, gate):
        out = torch.empty_like(x)
        rows, n = x.shape
        block = min(1024, triton.next_power_of_2(n))
        fused_kernel[(rows, triton.cdiv(n, block))](x, self.scale, self.shift, gate, out, n, BLOCK=block)
        return out
