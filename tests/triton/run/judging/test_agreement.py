"""What the interpreter runs is what the static check read, however names, texts and files are arranged."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from tests.triton import lab

pytestmark = pytest.mark.slow

TASK = lab.task("return x * torch.tanh(x) + 1", "[torch.randn(19, 23)]")

HEAD = """
import contextlib
import functools

import torch
import torch.nn as nn
import triton
import triton.language as tl

"""

RIGHT = """
@triton.jit
def {name}(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x * (2 * tl.sigmoid(2 * x) - 1) + 1, mask=offsets < n)
"""

COMPUTES = """
@triton.jit
def {name}(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    values = x.{handle}.{data}
    x.{handle}.{data} = values * __import__("numpy").tanh(values) + 1
    tl.store(out_ptr + offsets, x, mask=offsets < n)
"""

LAUNCH = """
    out = torch.empty_like(x)
    {kernel}[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out
"""


def right(name: str = "kernel") -> str:
    """Return a right kernel."""
    return RIGHT.format(name=name)


def computes(name: str = "kernel", handle: str = "handle", data: str = "data") -> str:
    """Return a kernel that lets NumPy compute."""
    return COMPUTES.format(name=name, handle=handle, data=data)


def model(kernel: str = "kernel", *, head: str = "class ModelNew(nn.Module):", before: str = "") -> str:
    """Return a ModelNew that launches what `kernel` says, after the lines `before`."""
    body = textwrap.indent(textwrap.dedent(before), "    ") + LAUNCH.format(kernel=kernel)
    return f"\n\n{head}\n    def forward(self, x):\n" + textwrap.indent(body.strip("\n"), "    ") + "\n"


WORDS = textwrap.indent(computes("kernel").replace("@triton.jit\n", ""), "    ")

CHEATS: dict[str, str] = {
    "two spellings of one name": right("a_kernel") + computes("a_ｋernel") + model("a_kernel"),
    "two spellings of an attribute": computes(handle="ｈandle", data="ｄata") + model(),
    "two spellings of a class": right("good")
    + computes("evil")
    + model("good")
    + model("evil", head="class ModelNeｗ(nn.Module):"),
    "a private name": right("__k") + computes("_ModelNew__k") + model("__k"),
    "an order of classes": right("good")
    + computes("evil")
    + "\n\nclass A(nn.Module):\n    k = good\n\n\nclass L(A):\n    pass\n\n\nclass R(A):\n    k = evil\n"
    + model("self.k", head="class ModelNew(L, R):"),
    "a lambda that looks its name up late": right("good")
    + computes("evil")
    + "\n\nfound = [lambda: k for k in (good, evil)]\n"
    + model("k", before="k = found[0]()\n"),
    "an exception that is swallowed": right("good")
    + computes("evil")
    + """

def pick():
    k = evil
    with contextlib.suppress(ValueError):
        int("x")
        k = good
    return k
"""
    + model("k", before="k = pick()\n"),
    "an object whose operator computes": """

class Times:
    def __mul__(self, x):
        x.handle.data = __import__("numpy").tanh(x.handle.data)
        return x


@triton.jit
def kernel(x_ptr, out_ptr, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    y = FACTOR * tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x * y + 1, mask=offsets < n)


found = [lambda: k for k in (2.0, Times())]
"""
    + model().replace("x.numel(), BLOCK", "x.numel(), FACTOR=found[0](), BLOCK"),
    "a device function that computes": computes("part").replace(
        "@triton.jit\ndef part(x_ptr, out_ptr", "@triton.jit\ndef part(x_ptr, out_ptr"
    )
    + "\n\n@triton.jit\ndef kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):\n    part(x_ptr, out_ptr, n, BLOCK)\n"
    + model(),
}


@pytest.mark.parametrize("name", sorted(CHEATS))
def test_a_program_that_was_not_read_is_refused(name: str, place: Path) -> None:
    result = lab.verify(lab.folder(place, TASK, HEAD + CHEATS[name]), seeds=1)
    assert lab.first_error(result) in ("Degenerate", "Forbidden"), result["failures"] or result


@pytest.mark.parametrize(
    ("kept", "also"),
    [
        pytest.param("helper.py", "helper/__init__.py", id="a package before a module"),
        pytest.param("helper.py", None, id="names that __all__ leaves out"),
    ],
)
def test_another_file_than_python_imports_is_refused(kept: str, also: str | None, place: Path) -> None:
    lines = HEAD + right()
    text = HEAD + ("" if also else computes()) + "\nfrom helper import *\n" + model()
    project = lab.folder(place, TASK, text)
    (place / kept).write_text(lines if also else lines + '\n__all__ = ["LIMIT"]\nLIMIT = 1\n', encoding="utf-8")
    if also:
        (place / also).parent.mkdir()
        (place / also).write_text(HEAD + computes(), encoding="utf-8")
    result = lab.verify(project, seeds=1)
    assert lab.first_error(result) == "Degenerate", result["failures"] or result


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            right().replace("Constexpr):\n", "constexpr):\n") + f'    """\n{WORDS}    # """\n' + model(),
            id="words after the body",
        ),
        pytest.param(
            computes("plain").replace("@triton.jit\n", "")
            + right().replace("@triton.jit\n", "@triton.jit\n@functools.wraps(plain)\n")
            + model(),
            id="a function that wraps names",
        ),
        pytest.param(
            right().replace("constexpr):\n", 'constexpr):\n    """Computes.\n\n    def kernel(x, out): the old form.\n    """\n')
            + model(),
            id="a docstring with a definition",
        ),
    ],
)
def test_the_function_that_python_compiled_runs(text: str, place: Path) -> None:
    # Triton's own search for the source would run the words, or the wrapped function, which both add 1.
    wrong = text.replace("(values) + 1", "(values) + 2")
    result = lab.verify(lab.folder(place, TASK, HEAD + wrong), seeds=1)
    # What runs here is right. But a device compiles the wrapped function's text, and Triton's compiler does not take that.
    refused = "CompilationError" if "functools.wraps" in text else ""
    assert lab.first_error(result) == refused, result["failures"] or result["error"]


def test_an_index_that_cuts_a_tensor_is_a_read(place: Path) -> None:
    forward = """
        big = torch.empty(1).expand(1 << 40)
        bits = run(bits_kernel, x, torch.empty(24, dtype=torch.int64))
        found = [torch.tensor_split(big, bits[i : i + 1])[0].shape[0] for i in range(24)]
        table = run(count_kernel, bits, torch.empty_like(bits))
        return table[found.index(max(found))]
    """
    kernels = """
        @triton.jit
        def bits_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
            o = tl.arange(0, BLOCK)
            x = tl.load(x_ptr + o, mask=o < n)
            tl.store(out_ptr + o, ((x + 100) * 1000000).to(tl.int64), mask=o < n)


        @triton.jit
        def count_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
            o = tl.arange(0, BLOCK)
            tl.store(out_ptr + o, o.to(tl.int64), mask=o < n)
    """
    task = lab.task("return torch.argmax(x)", "[torch.randn(24)]")
    result = lab.verify(lab.folder(place, task, lab.impl(forward, kernels=kernels)))
    assert lab.first_error(result) in ("HostComputed", "Degenerate"), result["failures"] or result
    assert "tensor_split" in str(result["failures"])


BODIES: dict[str, tuple[str, str]] = {
    # what the kernel does with `x`, and what stands before the kernel
    "a private method": ('x.__getattribute__("han" + "dle").data', ""),
    "a function of another library": ('operator.attrgetter("handle")(x)', "import operator\n"),
    "a class that is called": ("x = Act(x)", "class Act:\n    def __new__(cls, x):\n        return x\n"),
    "an item of a class": ("x = Act[x]", "class Act:\n    def __class_getitem__(cls, x):\n        return x\n"),
    "an operator of an object": ("x = ACT == x", "class Act:\n    def __eq__(self, x):\n        return x\n\n\nACT = Act()\n"),
    "a builtin that Triton's compiler does not know": ("builtins.vars(x)", "import builtins\n"),
    "Triton's own libraries": ("x = x + triton.runtime.interpreter.np.tanh(0.0)", ""),
    "a list that grows": ("BOX.append(x)", "BOX = []\n"),
    "a Python function by way of a walrus": (
        "x = act(x)",
        "def evil(x):\n    return x\n\n\nact = tl.sigmoid\n[act := f for f in (evil,)]\n",
    ),
}


SCALAR = "tl.load(x_ptr + tl.program_id(0)).to(tl.int32)"
CHOSEN = " + ".join(f"math.exp(1.0 if tl.load(x_ptr + {i}) > 0 else 0.0)" for i in range(20))
BODIES |= {
    "a number that Python takes of a tensor": (f"x = x + 0.0 * int({SCALAR})", ""),
    "a tensor as a place in a tuple": (f"x = x + 0.0 * (1.0, 2.0)[0 * {SCALAR}]", ""),
    "an end of a slice that is a tensor": (f"x = x + 0.0 * len((1.0, 2.0)[: 0 * {SCALAR}])", ""),
    "a word made of a tensor": ('x = x + 0.0 * len(f"{x}")', ""),
    "a remainder that makes a word": ('x = x + 0.0 * len("%s" % x)', ""),
    "a number of a loop to a tensor": (f"x = x + 0.0 * len(range({SCALAR}))", ""),
    "a function that Triton is to call": ("x = tl.reduce(x[None, :], 0, math.fmod)", "import math\n"),
    "Python's function of numbers that branches chose": (f"x = x + 0.0 * ({CHOSEN})", "import math\n"),
}


HIDDEN = "\n\nact = tl.sigmoid\n[act := f for f in ({},)]\n"
"""The static check takes `act` for tl.sigmoid."""
BODIES |= {
    "a combining function that asks behind a value": (
        "x = x + 0.0 * tl.reduce(x, 0, combined)",
        "@triton.jit\ndef combined(a, b):\n    return a + b + 0.0 * len(str(a))\n",
    ),
    "a scanning function that asks behind a value": (
        "x = x + 0.0 * tl.associative_scan(x, 0, combined)",
        "@triton.jit\ndef combined(a, b):\n    return a + b + 0.0 * len(str(a))\n",
    ),
    "a function with the name of Triton's range": (
        "x = [each for each in act(x)][0]",
        "def _new_range(x):\n    return [x]\n" + HIDDEN.format("_new_range"),
    ),
    "a property of a tuple": (
        "x = act((x, x)).first",
        "class Pair(tuple):\n    first = property(lambda self: self[0])\n" + HIDDEN.format("Pair"),
    ),
    "a tuple that is made otherwise": (
        "x = act(x)",
        "class Pair(tuple):\n    __new__ = staticmethod(lambda cls, x: x)\n" + HIDDEN.format("Pair"),
    ),
    "a method that says it is Triton's": (
        "x = act((x,)) * (x,)",
        "class Pair(tuple):\n    def __mul__(self, other):\n        return other[0]\n"
        + '\n\nPair.__mul__.__module__ = "triton.language"\n'
        + HIDDEN.format("Pair"),
    ),
    "a jitted function of another class": (
        "x = act(x)",
        "@triton.jit\ndef same(x):\n    return x\n\n\nclass InterpretedFunction(type(same)):\n"
        + "    __call__ = functools.partialmethod(lambda self, x: x)\n"
        + HIDDEN.format("InterpretedFunction(same.fn)"),
    ),
    "a function of Triton's that is none of its language": (
        "act(1, (1, 2), 0)",
        "from triton.runtime.interpreter import ReduceScanOpInterface\n" + HIDDEN.format("ReduceScanOpInterface.check_axis"),
    ),
    "an operation of the interpreter that was replaced": (
        "x = x + 0.0 * tl.exp(x)",
        "B = triton.runtime.interpreter.InterpreterBuilder\nkept = B.create_exp\n"
        'setattr(B, "".join(("create", "_exp")), lambda self, a: kept(self, a))\n',
    ),
    "a function of NumPy's that was replaced": (
        "x = x + 0.0 * tl.exp(x)",
        'import numpy\n\nkept = numpy.exp\nsetattr(numpy, "".join(("ex", "p")), lambda *a, **k: kept(*a, **k))\n',
    ),
    "numbers that branches chose, after many that are constant": (
        "for j in tl.static_range(1100):\n"
        "        x = x + 0.0 * math.exp(j * 1e-3 if tl.load(x_ptr + j % 19) * (j // 1050) <= 0 else -1.0)",
        "import math\n",
    ),
    "a loop that ends in the middle": ("for j in range(3):\n        if j == 1:\n            break", ""),
    "a table of words": ('x = x + 0.0 * len({"a": 1})', ""),
}


@pytest.mark.parametrize("name", sorted(BODIES))
def test_a_body_asks_for_nothing_that_no_device_has(name: str, place: Path) -> None:
    line, before = BODIES[name]
    kernel = right().replace("    tl.store(", f"    {line}\n    tl.store(")
    result = lab.verify(lab.folder(place, TASK, HEAD + before + kernel + model()), seeds=2 if "chose" in name else 1)
    assert result["status"] == "FAIL", result
    assert lab.first_error(result) != "PrecisionError"


def test_python_may_compute_with_what_is_constant(place: Path) -> None:
    lines = """
    tl.static_assert(K == 1, f"K is {K}, not {1:d}")
    count = tl.abs(tl.load(x_ptr).to(tl.int32)) % 5
    turns = 0
    for i in range(count):
        turns += 1
    for i in range(0, count):
        turns -= 1
    for k in tl.static_range(3):
        x += 2**k - (1 << k) + (1.0, 2.0, 4.0)[k] - 2**k
    if MODE == "twice":
        x = max(x, min(x, x)) * math.log2(2 * K) / int(K) + turns
    if x_ptr is not None and tl.load(x_ptr) > 0:
        x += 2**K - 2
"""
    kernel = right().replace("constexpr):", "constexpr, K: tl.constexpr = 1, MODE: tl.constexpr = 'twice'):")
    kernel = kernel.replace("    tl.store(", lines.lstrip("\n") + "    tl.store(")
    result = lab.verify(lab.folder(place, TASK, HEAD + "import math\n" + kernel + model()))
    assert result["status"] == "PASS", result["failures"] or result
