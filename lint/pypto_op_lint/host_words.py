"""Which calls of torch, numpy and torch_npu compute, and which only allocate, move or ask."""

from __future__ import annotations

import re

MOVES = {
    "empty", "empty_like", "empty_strided", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like", "tensor",
    "as_tensor", "scalar_tensor", "from_numpy", "asarray", "arange", "eye", "new_empty", "new_zeros", "new_ones",
    "new_full", "reshape", "view", "view_as", "permute", "transpose", "t", "adjoint", "swapaxes", "swapdims", "movedim",
    "moveaxis", "squeeze", "unsqueeze", "flatten", "unflatten", "ravel", "cat", "concat", "concatenate", "stack",
    "hstack", "vstack", "dstack", "split", "split_with_sizes", "tensor_split", "chunk", "unbind", "narrow", "select",
    "expand", "expand_as", "broadcast_to", "broadcast_tensors", "repeat", "tile", "repeat_interleave", "roll", "flip",
    "clone", "contiguous", "detach", "requires_grad_", "to", "type_as", "type", "float", "half", "bfloat16", "double",
    "int", "long", "short", "char", "byte", "bool", "cpu", "npu", "cuda", "copy_", "zero_", "fill_", "pin_memory",
    "resize_", "set_", "as_strided", "numpy", "rand", "randn", "randint", "rand_like", "randn_like", "randperm",
    "view_as_real", "view_as_complex", "atleast_1d", "atleast_2d", "atleast_3d", "constant_pad_nd", "pad", "retain_grad",
    "register_hook", "share_memory_", "is_contiguous", "frombuffer", "block_diag", "meshgrid", "real", "imag",
    "full_tensor", "to_local",
}  # fmt: skip
"""Calls that allocate, move, reinterpret or convert data, but do not compute with it."""
COMPUTE_METHODS = {
    "matmul", "mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "softmax", "log_softmax", "sigmoid", "tanh", "relu",
    "relu_", "gelu", "silu", "exp", "exp_", "exp2", "expm1", "log", "log2", "log10", "log1p", "logsumexp", "sqrt", "sqrt_",
    "rsqrt", "rsqrt_", "reciprocal", "erf", "erfc", "sin", "cos", "tan", "sinh", "cosh", "amax", "amin", "cumsum",
    "cumprod", "addcmul", "addcmul_", "addcdiv", "addcdiv_", "mul_", "add_", "sub_", "div_", "pow_", "clamp", "clamp_",
    "clamp_min", "clamp_max", "masked_fill", "masked_fill_", "layer_norm", "einsum", "logical_and", "logical_not",
    "logical_or", "tril", "triu", "tril_", "triu_", "topk", "argmax", "argmin", "argsort", "scatter_add", "scatter_add_",
    "index_add", "index_add_", "softmax_", "norm", "lerp", "true_divide", "floor_divide", "square", "hypot", "sigmoid_",
    "mul", "div", "sub", "pow", "neg", "dot", "outer", "maximum", "minimum", "mean", "std", "prod", "gather", "scatter",
    "index_select", "cross", "multiply", "divide", "subtract", "negative", "inner", "kron", "cummax", "cummin", "var",
}  # fmt: skip
"""Methods that only tensors have, so that the object's own kind need not be known."""
_TORCH_META = (
    "torch.npu.", "torch.cuda.", "torch.library.", "torch.utils.", "torch.testing.", "torch.autograd.profiler.",
    "torch.backends.", "torch.distributed.", "torch.profiler.", "torch.jit.", "torch.ops.load", "torch.cpu.",
    "torch.compiler.", "torch.nn.init.", "torch.version.", "torch.random.", "torch.serialization.", "torch.fx.", "torch.mps.",
)  # fmt: skip
_TORCH_HIDDEN = ("torch._C._nn.", "torch._C._VariableFunctions.", "torch._VF.", "torch._foreach_")
"""Arithmetic under torch's private names; the other private names are its machinery."""
_TORCH_PLAIN = {
    "torch.is_tensor", "torch.finfo", "torch.iinfo", "torch.device", "torch.Size", "torch.numel", "torch.dtype",
    "torch.get_default_dtype", "torch.set_default_dtype", "torch.is_floating_point", "torch.is_complex",
    "torch.is_storage", "torch.manual_seed", "torch.seed", "torch.Generator", "torch.is_grad_enabled", "torch.no_grad",
    "torch.inference_mode", "torch.enable_grad", "torch.set_grad_enabled", "torch.promote_types", "torch.result_type",
    "torch.can_cast", "torch.compile", "torch.broadcast_shapes", "torch.Tensor", "torch.set_printoptions", "torch.save",
    "torch.load", "torch.typename", "torch.is_nonzero", "torch.use_deterministic_algorithms", "torch.get_device",
    "torch.set_num_threads", "torch.get_num_threads", "torch.autograd.Function", "torch.set_default_device",
    "torch.nn.Parameter", "torch.nn.Identity", "torch.nn.Flatten", "torch.nn.Unflatten",
    "torch.nn.functional.pad", "torch.allclose", "torch.equal", "torch.memory_format",
    "torch.FloatTensor", "torch.Tensor.contiguous", "torch.initial_seed", "torch.set_rng_state", "torch.get_rng_state",
}  # fmt: skip
_TORCH_VALUES = re.compile(
    r"(?:b?float|u?int|q?u?int|complex|bits)\d+\w*|cfloat|cdouble|chalf|contiguous_format|preserve_format|channels_last\w*"
    r"|strided|jagged|sparse_\w+|inf|nan|pi|e"
)
"""Names of torch that are no functions: dtypes, layouts, formats, numbers."""
MAKES_TENSOR = {"torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor", "torch.asarray"}
_NPU_PLAIN = ("torch_npu.npu.", "torch_npu.npu_format_cast", "torch_npu.get_npu_format", "torch_npu.profiler")
_PYTHON_ON_TENSORS = {
    "builtins.sum", "builtins.max", "builtins.min", "builtins.abs", "builtins.pow", "builtins.round", "builtins.divmod",
    "functools.reduce",
}  # fmt: skip
_TORCH_PADS = re.compile(r"torch\.nn\.(?:Constant|Zero|Reflection|Replication|Circular)Pad[123]d")


def computes(name: str) -> bool:
    """Whether a call of `name`, a dotted name of torch or torch_npu, computes with tensors."""
    root, last = name.partition(".")[0], name.rpartition(".")[2]
    if root == "torch":
        meta = name.startswith(_TORCH_META) or (name.startswith("torch._") and not name.startswith(_TORCH_HIDDEN))
        plain = name in _TORCH_PLAIN or meta or last in MOVES or _TORCH_VALUES.fullmatch(last) or _TORCH_PADS.fullmatch(name)
        return name != "torch" and not plain and not last.startswith(("is_", "get_", "set_"))
    return root == "torch_npu" and last.startswith("npu_") and not name.startswith(_NPU_PLAIN)


def takes_data(name: str) -> bool:
    """Whether `name`, of numpy, Python or the like, computes with tensors when it is given one."""
    root, last = name.partition(".")[0], name.rpartition(".")[2]
    return (root in ("numpy", "einops", "scipy", "operator", "cupy", "jax") or name in _PYTHON_ON_TENSORS) and last not in MOVES
