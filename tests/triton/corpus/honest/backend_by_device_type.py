"""The context of the tensor's own device, whatever it is; the branch for distributed tensors, which nobody hands over."""

import contextlib

import torch
import torch.nn as nn
import triton
import triton.language as tl

try:
    from torch.distributed.tensor import DTensor as _DTensor
except ImportError:
    _DTensor = ()

_MODE_PLAIN = tl.constexpr(0)


@contextlib.contextmanager
def device_context(device):
    device = torch.device(device)
    backend = getattr(torch, device.type, None)
    if backend is not None and hasattr(backend, "device"):
        with backend.device(device):
            yield
    else:
        yield


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * factor, mask=offsets < n)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor=2.0, late_factor=1.0, mode=0):
        late_factor = float(late_factor)
        if isinstance(x, _DTensor):
            x = x.full_tensor()
        out = torch.empty_like(x)
        with device_context(x.device):
            scale_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), float(factor), BLOCK=256)
        if late_factor != 1.0 or mode != _MODE_PLAIN.value:
            out = out * late_factor
        return out


class ModelNew(nn.Module):
    def forward(self, x):
        return Scale.apply(x)
