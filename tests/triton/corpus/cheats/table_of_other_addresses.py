"""The table holds addresses of other memory than is returned."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def each(in_addresses, out_addresses, sizes, factor, BLOCK: tl.constexpr):
    which = tl.program_id(0)
    source = tl.load(in_addresses + which).to(tl.pointer_type(tl.float32))
    target = tl.load(out_addresses + which).to(tl.pointer_type(tl.float32))
    offsets = tl.arange(0, BLOCK)
    mask = offsets < tl.load(sizes + which)
    tl.store(target + offsets, tl.load(source + offsets, mask=mask) * factor, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, y):
        found = [torch.empty_like(x), torch.empty_like(y)]
        table = torch.tensor([x.data_ptr(), y.data_ptr()], device=x.device)
        addresses = torch.tensor([torch.empty_like(one).data_ptr() for one in found], device=x.device)
        sizes = torch.tensor([x.numel(), y.numel()], dtype=torch.int32, device=x.device)
        each[(2,)](table, addresses, sizes, 2.0, BLOCK=256)
        return found
