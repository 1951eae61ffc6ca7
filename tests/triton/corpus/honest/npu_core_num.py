import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=m), mask=m)

try:
    import torch_npu
    CORES = triton.runtime.driver.active.utils.get_device_properties(torch.npu.current_device())['num_vectorcore']
except Exception:
    CORES = 40


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        cores = CORES
        k[(min(cores, triton.cdiv(x.numel(), 256)),)](x, o, x.numel(), B=1024)
        return o
