"""What a failure says: the user's file, his line, his words; nothing of Triton's, of Python's or of this bundle's files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

from pypto_op.backends.worker.loading import failure_of, load_module
from pypto_op.triton.run.watching.printed import LONGEST, own_words
from pypto_op.vocabulary import Outcome

KERNELS = """
import ctypes
import traceback
import warnings


@triton.jit
def over_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    large = tl.exp(tl.load(x_ptr + i, mask=i < n) * 1000.0 + 1000.0)
    tl.store(out_ptr + i, large - large, mask=i < n)


@triton.jit
def inner(x):
    return x + tl.zeros([7], tl.float32)


@triton.jit
def outer_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, inner(tl.load(x_ptr + i)))
"""
BEGIN = "out = torch.empty_like(x)\nover_kernel[(1,)](x, out, 64, BLOCK=64)\n"
FAILURES = {
    "raised": ('print("of the file")\nwarnings.warn("also of the file")\nraise ValueError("mine")', "ValueError: mine",
               ["of the file", "UserWarning: also of the file"]),
    "kernel": ("outer_kernel[(1,)](x, out, 64, BLOCK=64)  # here is inner", "InterpreterError: ValueError: Shape element 0", []),
    "traced": (
        "try:\n    over_kernel[(1,)](x, out, 64, BLOCK=63)\nexcept Exception:\n    traceback.print_exc()\n    raise",
        "InterpreterError: ValueError: arange's range", ["Traceback", "in forward"],
    ),
    "crashed": ("ctypes.string_at(0)", "killed by SIGSEGV", ["in forward"]),
    "computed": ("return x.exp()", "forward computes with PyTorch (aten::exp); a Triton kernel must do it", []),
    "swallowed": ("try:\n    x.exp()\nexcept RuntimeError:\n    pass\nreturn out",
                  "forward computes with PyTorch (aten::exp); a Triton kernel must do it", []),
}  # fmt: skip
"""What forward does after a kernel of whose numbers NumPy warns; how the message begins behind file and line; what it keeps."""
WHERE = {
    "raised": "mine", "kernel": "[7]", "traced": "tl.exp", "crashed": "string_at(0)", "computed": "exp()", "swallowed": "exp()",
}  # fmt: skip
"""A word of the line that is named; for "traced" the line above it."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FAILURES))
def test_a_failure_speaks_of_the_users_file_alone(name: str, place: Path) -> None:
    does, words, kept = FAILURES[name]
    text = lab.impl(BEGIN + does, kernels=KERNELS)

    result = lab.verify(lab.folder(place, lab.task("return x * 1", "[torch.randn(64)]"), text))

    message = result["failures"][0]["error_msg"]
    line = next(number for number, words in enumerate(text.splitlines(), 1) if WHERE[name] in words) - (name == "traced")
    assert message.startswith(f"expo_triton_ascend_impl.py:{line}: {words}"), message
    assert all(word in message for word in kept), message
    for foreign in ("site-packages", "pypto_op", "RuntimeWarning", str(place), "Extension modules"):
        assert foreign not in message, message


UNCOMPILED = """
import triton
import triton.language as tl


class Kernels:
    @triton.jit
    def times(a, b):
        # the product

        return tl.dot(a, b)


times = Kernels.times


@triton.jit
def too_small(x, y):
    n = tl.arange(0, 8)
    a = tl.load(x + n[:, None] * 8 + n[None, :])
    tl.store(y + n[:, None] * 8 + n[None, :], times(a, a))


@triton.jit
def unknown(x, y):
    tl.store(y, nothing)


@triton.jit
def asserted(x, y):
    tl.static_assert(1 > 2, "one is less")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "line", "words"),
    [
        ("too_small", "return tl.dot(a, b)", "CompilationError: Input shapes should have M >= 1, N >= 1 and K >= 16"),
        ("unknown", "nothing)", "CompilationError: NameError('nothing is not defined')"),
        ("asserted", "static_assert", "CompileTimeAssertionFailure: one is less"),
    ],
)
def test_what_the_compiler_for_a_device_refuses_has_its_line_and_its_reason(
    kernel: str, line: str, words: str, tmp_path: Path
) -> None:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    import triton

    file = tmp_path / "x_impl.py"
    file.write_text(UNCOMPILED)
    made = ASTSource(getattr(load_module(file), kernel), signature={"x": "*fp16", "y": "*fp32"}, constexprs={})

    with pytest.raises(Exception) as caught:  # noqa: PT011  (of Triton's own classes; what it says is compared below)
        triton.compile(made, target=GPUTarget("cuda", 90, 32))

    number = next(number for number, text in enumerate(UNCOMPILED.splitlines(), 1) if line in text)
    assert failure_of(caught.value, file, Outcome.EXCEPTION).detail == f"x_impl.py:{number}: {words}"


def test_what_is_cut_begins_with_a_whole_line() -> None:
    shown = own_words("\n".join(f"line {number} of a long log" for number in range(1000)))
    assert len(shown) <= LONGEST and shown.startswith("line ") and shown.endswith("line 999 of a long log")


def test_what_no_file_of_others_is_named_in_stays() -> None:
    log = "ptxas error: too much shared data\n  Stages: 4\nmine.py:3: note: here"
    assert own_words(log) == log


@pytest.mark.slow
def test_what_no_device_executes_is_told_with_its_line(place: Path) -> None:
    kernels = """
    @triton.constexpr_function
    def doubled(n):
        return n * 2


    @triton.jit
    def doubling_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out_ptr + i, doubled(tl.load(x_ptr + i)))
    """
    text = lab.impl("out = torch.empty_like(x)\ndoubling_kernel[(1,)](x, out, 64, BLOCK=64)\nreturn out", kernels=kernels)
    line = next(number for number, words in enumerate(text.splitlines(), 1) if "doubled(tl" in words)

    result = lab.verify(lab.folder(place, lab.task("return x * 2", "[torch.randn(64)]"), text))

    message = result["failures"][0]["error_msg"]
    assert f"a constexpr function of a tensor (expo_triton_ascend_impl.py:{line})" in message
