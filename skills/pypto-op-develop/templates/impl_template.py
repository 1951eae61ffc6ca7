"""op: out[t, h] = gain * x[t, h], the formula in one line.

One kernel, one launch. Say which axes are dynamic, which are fixed per build, and where values are rounded.

Replace `op` by the operator's name everywhere. Layers keep their letters in every kernel file, so that a reader, the
snapshot generator and the next coder find them; leave out what a kernel does not need, keep the order.
  A utilities        B small math       C forward reference   D host constants      E backward pieces   F golden backward
  G bridge           H sub-kernels      I kernel body, loops  J jit entry (thin)    K host wrapper      L test
  C, E, F live in <op>_golden.py, L in test_<op>.py; never in this file. A and B: plain Python on plain numbers.
"""

import os
from functools import lru_cache

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

# ---- Layer A, B: utilities and small math on plain numbers ---------------------------------------------------


def ceil_to(size, step):
    """Return the number of steps that cover `size`; works on ints and on symbols."""
    return (size + step - 1) // step


# ---- Layer D: host constants -------------------------------------------------------------------------------

T_TILE = 16
"""Rows of x per loop step."""

PYPTO_DTYPES = {torch.float32: pypto.DT_FP32, torch.float16: pypto.DT_FP16, torch.bfloat16: pypto.DT_BF16}

# ---- Layer G: bridge between host and graph (dtypes, layouts) ------------------------------------------------


def pypto_widen(tile, dtype):
    """Return `tile` as float32; a tile that is float32 already comes back as it is."""
    return tile if dtype == pypto.DT_FP32 else pypto.cast(tile, pypto.DT_FP32)


def pypto_narrow(tile, dtype):
    """Return a float32 tile rounded once, to nearest even."""
    return tile if dtype == pypto.DT_FP32 else pypto.cast(tile, dtype, pypto.CastMode.CAST_RINT)


# ---- Layer H: sub-kernels, one per stage of the algorithm, each with its own tiles ---------------------------


def pypto_scale(x_tile, gain, dtype):
    """Return gain * x_tile.

    x_tile: [T_TILE, H] of `dtype`, valid [rows, H]. Returns [T_TILE, H] of `dtype`; the valid shape is inherited.
    """
    pypto.set_vec_tile_shapes(16, 512)  # DESIGN.md 3.2.5, word for word
    return pypto_narrow(pypto_widen(x_tile, dtype) * gain, dtype)


# ---- Layer I: kernel body ----------------------------------------------------------------------------------


def _op_kernel_impl(
    x,
    out,
    # <<< SNAPSHOT:SIG_IMPL
    # >>> SNAPSHOT:SIG_IMPL
    gain,
    width,
    dtype,
):
    """Walk the dynamic axis in steps of T_TILE; the last step is short."""
    total = x.shape[0]
    # <<< SNAPSHOT:before_nt_loop
    # >>> SNAPSHOT:before_nt_loop
    for step in pypto.loop(ceil_to(total, T_TILE), name="TOKENS", idx_name="step"):
        row = step * T_TILE
        rows = pypto.min(total - row, T_TILE)
        x_tile = pypto.view(x, [T_TILE, width], [row, 0], valid_shape=[rows, width])
        y_tile = pypto_scale(x_tile, gain, dtype)
        # <<< SNAPSHOT:inside_nt_loop
        # >>> SNAPSHOT:inside_nt_loop
        pypto.assemble(y_tile, [row, 0], out)
    # <<< SNAPSHOT:after_nt_loop
    # >>> SNAPSHOT:after_nt_loop


# ---- Layer J: jit entry, thin ------------------------------------------------------------------------------


@lru_cache(maxsize=None)
def _build_kernel(dtype, width):
    """Return the kernel for one element type and one fixed width."""

    @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
    def op_kernel(
        x: pypto.Tensor([pypto.DYNAMIC, width], dtype),
        out: pypto.Tensor([pypto.DYNAMIC, width], dtype),
        # <<< SNAPSHOT:SIG_JIT
        # >>> SNAPSHOT:SIG_JIT
        gain: float,
    ):
        _op_kernel_impl(
            x,
            out,
            # <<< SNAPSHOT:CALL_IMPL
            # >>> SNAPSHOT:CALL_IMPL
            gain,
            width,
            dtype,
        )

    return op_kernel


# ---- Layer K: host wrapper: check, allocate with torch, launch once, return ------------------------------------


def _check(x, gain):
    """Raise ValueError for arguments that the kernel was not built for; SPEC.md lists them."""
    if x.dim() != 2 or 0 in x.shape:
        raise ValueError(f"x must be [T, H] and not empty, got {tuple(x.shape)}")
    if x.dtype not in PYPTO_DTYPES:
        raise ValueError(f"x must be one of {', '.join(map(str, PYPTO_DTYPES))}, got {x.dtype}")
    if x.shape[1] % 16 != 0:
        raise ValueError(f"H must be a multiple of 16 (32-byte rows), got {x.shape[1]}")
    if not x.is_contiguous():
        raise ValueError("x must be contiguous")
    if not gain > 0.0:
        raise ValueError(f"gain must be positive, got {gain}")


def op_wrapper(x, gain):
    """Return gain * x. Parameters: the primary inputs of module_interfaces.yaml, in their order, nothing else.

    x: [T, H] float32, float16 or bfloat16, contiguous; T >= 1, H a multiple of 16. gain: float > 0.
    Returns a new tensor [T, H] of x's dtype. Raises ValueError for anything else.
    """
    _check(x, gain)
    out = torch.empty((x.shape[0], x.shape[1]), dtype=x.dtype, device=x.device)
    kernel = _build_kernel(PYPTO_DTYPES[x.dtype], x.shape[1])
    # <<< SNAPSHOT:HOST_WRAPPER_INSPECT_ALLOC
    # >>> SNAPSHOT:HOST_WRAPPER_INSPECT_ALLOC
    kernel(
        x,
        out,
        # <<< SNAPSHOT:HOST_WRAPPER_INSPECT_PASS
        # >>> SNAPSHOT:HOST_WRAPPER_INSPECT_PASS
        float(gain),
    )
    return out
