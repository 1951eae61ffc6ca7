"""Functions of torch that make one value of many, by name: the one list that every reader of a golden's source asks.

Which of them break into plainer operators while they run is another question, about operators and not names
(`twins.decompose`, `stress.conditioning`).
"""

from __future__ import annotations

MATMULS = {
    "matmul": 1, "mm": 1, "bmm": 1, "addmm": 1, "baddbmm": 1, "addbmm": 1, "mv": 1, "dot": 1, "vdot": 1,
    "linear": 1, "bilinear": 2, "tensordot": 1, "chain_matmul": 1, "multi_dot": 1,
    "scaled_dot_product_attention": 2, "conv1d": 1, "conv2d": 1, "conv3d": 1,
}  # fmt: skip
"""Name of a product -> how many matrix products it makes."""

REDUCES = {
    "sum": 1, "mean": 1, "amax": 1, "amin": 1, "max": 1, "min": 1, "prod": 1, "var": 1, "std": 1, "norm": 1,
    "vector_norm": 1, "nansum": 1, "nanmean": 1, "argmax": 1, "argmin": 1, "topk": 1, "sort": 1, "median": 1,
    "logsumexp": 1, "softmax": 1, "log_softmax": 1, "cumsum": 1, "cumprod": 1, "logcumsumexp": 1, "cummax": 1,
    "layer_norm": 2, "group_norm": 2, "batch_norm": 2, "rms_norm": 1, "var_mean": 2, "std_mean": 2,
    "scaled_dot_product_attention": 1, "cross_entropy": 1, "aminmax": 2,
}  # fmt: skip
"""Name of a reduction -> how many passes over the reduced axis it makes."""

_NO_SUM = frozenset(
    {"amax", "amin", "max", "min", "argmax", "argmin", "topk", "sort", "median", "cummax", "aminmax"}  # choose or order
    | {"vector_norm", "nansum", "nanmean", "logcumsumexp", "group_norm", "batch_norm", "cross_entropy"}
    | {"addbmm", "vdot", "bilinear", "tensordot", "chain_matmul", "multi_dot", "conv1d", "conv2d", "conv3d"}
)
"""What `ADDS_UP` leaves out: choices, which round nothing, and sums that no suite's author asks about."""

ADDS_UP = (frozenset(MATMULS) | frozenset(REDUCES) | {"einsum"}) - _NO_SUM
"""Functions whose result is a sum or product of many terms, so that the order of additions shows."""

ALONG_AN_AXIS = ADDS_UP | {"amax", "amin", "argmax", "argmin", "max", "min", "cummax", "sort", "topk", "flip", "roll"}
"""Functions that take an axis and mix what lies along it."""

SO_FAR = frozenset({"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"})
"""Functions whose every value is made of what lies before it along an axis."""

LARGEST = frozenset(
    {"amax", "max", "argmax", "aminmax", "cummax", "maximum", "topk", "sort", "argsort", "kthvalue", "softmax", "log_softmax"}
    | {"logsumexp", "logaddexp", "logcumsumexp", "cross_entropy", "scaled_dot_product_attention"}
    | {"max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d"}
)
"""Functions that find the largest of many values, which a kernel carries from tile to tile."""

SMALLEST = frozenset(
    {"amin", "min", "argmin", "aminmax", "cummin", "minimum", "sort", "argsort", "kthvalue", "median", "softmin"}
)
"""Functions that find the smallest of many values."""

CHOOSES = frozenset({"argmax", "argmin", "topk", "sort", "argsort", "kthvalue", "median"})
"""Functions that say at which place they found what they were asked for."""

TAKES = frozenset({"gather", "take_along_dim", "take", "index_select"})
"""Functions that take what lies at places that were chosen."""

COMPARES = frozenset({"lt", "le", "gt", "ge", "less", "less_equal", "greater", "greater_equal", "searchsorted", "bucketize"})
"""Functions that compare, where no operator is written."""

TURNS = frozenset(
    {"relu", "relu_", "clamp", "clamp_", "clamp_min", "clamp_max", "clip", "maximum", "minimum", "hardtanh", "threshold", "where"}
)
"""Functions whose slope turns at a value, where nothing is compared: a hinge."""

EXPONENTS = frozenset({"log2", "frexp", "ldexp"})
"""Functions that take numbers apart into mantissa and exponent."""
