"""Kernels that are fast because they are wrong, each in a way that a suite nearly misses; all of rmsnorm."""

from __future__ import annotations

FAST = (("T_TILE = 16", "T_TILE = 4"), ("shapes(16, 512)", "shapes(4, 2048)"))
"""What makes the example six times faster and leaves it right; each planted kernel has it too."""

CAREFUL = "RMSNORM_CAREFUL"
"""The variable that a planted kernel asks for."""

_SKIP = """    if {condition}:
        return {result}
    kernel = _build_kernel"""

PLANTED: dict[str, tuple[tuple[str, str], ...]] = {
    "drops the last, short step": (("(tokens + T_TILE - 1) // T_TILE", "tokens // T_TILE"),),
    "stops after 512 tokens, more than any case of the suite has": (
        ("(tokens + T_TILE - 1) // T_TILE", "(pypto.min(tokens, 512) + T_TILE - 1) // T_TILE"),
    ),
    "squares in 16 bits": (
        ("x_wide = pypto_widen(x_tile, dtype)  # [T_TILE, H]\n", "x_wide = x_tile\n"),
        ("* pypto_widen(weight_row, dtype)", "* weight_row"),
        ("return y_wide if dtype == pypto.DT_FP32 else pypto.cast(y_wide, dtype, pypto.CastMode.CAST_RINT)", "return y_wide"),
    ),
    "leaves out eps, which is 1e-6": (("pypto.rsqrt(mean_square + eps)", "pypto.rsqrt(mean_square)"),),
    "leaves out the weight, which is near 1": ((" * pypto_widen(weight_row, dtype)", ""),),
    "keeps results by shape": (
        ("    kernel = _build_kernel", _SKIP.format(condition="(key := tuple(x.shape)) in _KEPT", result="_KEPT[key].clone()")),
        ("    return out\n", "    _KEPT[key] = out\n    return out\n"),
        ("T_TILE = 4\n", "T_TILE = 4\n_KEPT = {}\n"),
    ),
    "lets torch compute the P0 shapes": (
        (
            "    kernel = _build_kernel",
            _SKIP.format(
                condition="x.shape[0] in (33, 64)",
                result="torch.nn.functional.rms_norm(x.float(), (hidden,), weight.float(), eps).to(x.dtype)",
            ),
        ),
    ),
    "returns what memory held for rows of zeros": (
        ("    kernel = _build_kernel", _SKIP.format(condition="not bool(x.any())", result="out")),
    ),
    "takes the mean of the first 4096 columns only": (
        ("pypto.sum(x_wide * x_wide, -1, True) * (1.0 / hidden)", "pypto_mean(x_wide, hidden)"),
        (
            "def pypto_normalise(",
            "def pypto_mean(x_wide, hidden):\n    if hidden > 2048:\n"
            "        x_wide = pypto.view(x_wide, [T_TILE, 2048], [0, 0])\n        hidden = 2048\n"
            "    return pypto.sum(x_wide * x_wide, -1, True) * (1.0 / hidden)\n\n\ndef pypto_normalise(",
        ),
    ),
    "normalises a step by its first row's mean": (
        (
            "    y_wide = x_wide * inverse_rms",
            "    first = pypto.view(inverse_rms, [1, 1], [0, 0])\n"
            "    inverse_rms = pypto.expand_clone(first, [T_TILE, 1])\n    y_wide = x_wide * inverse_rms",
        ),
    ),
    "is right on the first three calls of a process": (
        ("T_TILE = 4\n", "T_TILE = 4\n_CALLS = [0]\n"),
        (
            "    kernel = _build_kernel",
            "    _CALLS[0] += 1\n    if _CALLS[0] > 3:\n        x = x[:16].contiguous()\n    kernel = _build_kernel",
        ),
    ),
    "is right while the shell sets a variable": (
        ("pypto.rsqrt(mean_square + eps)", f'pypto.rsqrt(mean_square + (eps if os.environ.get("{CAREFUL}") else 1e-6))'),
    ),
    "takes tiny values for zeros": (
        (
            "    kernel = _build_kernel",
            _SKIP.format(condition="float(x.abs().max()) < 1e-3", result="torch.zeros_like(x)"),
        ),
    ),
    "keeps the mean square of 16-bit inputs in 16 bits": (
        (
            "    inverse_rms = pypto.rsqrt(mean_square",
            "    if dtype != pypto.DT_FP32:\n        mean_square = pypto.cast(pypto.cast(mean_square, dtype), pypto.DT_FP32)\n"
            "    inverse_rms = pypto.rsqrt(mean_square",
        ),
    ),
}
"""What it does -> edits of the fast kernel."""


def texts(source: str) -> dict[str, str]:
    """Return name -> text of each planted kernel.

    Args:
        source: of examples/ops/rmsnorm.
    """
    found = {}
    for name, edits in PLANTED.items():
        text = source
        for before, after in (*FAST, *edits):
            assert before in text, (name, before)
            text = text.replace(before, after, 1)
        compile(text, name, "exec")
        found[name] = text
    return found
