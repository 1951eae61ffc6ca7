"""Operators of Triton's language that a file replaces, and what a kernel does to the host that runs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab
from tests.triton.run.judging.test_agreement import HEAD, TASK, model, right

pytestmark = pytest.mark.slow

OPERATOR = """
def evil(self, other):
    out = self + other
    values = self.handle.data
    out.handle.data = values * __import__("numpy").tanh(values) + 1
    return out


"""


MINUS = right().replace("x * (2 * tl.sigmoid(2 * x) - 1) + 1", "x - 1.5")


PUT = "def put(*given):\n    pass\n\n\n[put := f for f in (setattr,)]\n"


REPLACED = {
    "by a name that a comprehension binds": "class Held:\n    pass\n\n\nkind = Held\n"
    "[kind := c for c in (tl.tensor,)]\nkind.__sub__ = evil\n",
    "by a function that a comprehension binds": f"{PUT}put(tl.tensor, '__sub__', evil)\n",
    "of a base class": f"{PUT}put(tl.core.base_value, '__sub__', evil)\ndelattr(tl.tensor, '__sub__')\n",
}


@pytest.mark.parametrize("how", sorted(REPLACED))
def test_an_operator_of_the_language_is_not_replaced(how: str, place: Path) -> None:
    result = lab.verify(lab.folder(place, TASK, HEAD + OPERATOR + REPLACED[how] + MINUS + model()), seeds=1)
    assert lab.first_error(result) in ("Forbidden", "Degenerate"), result["failures"] or result


def test_an_operator_is_not_replaced_for_one_launch(place: Path) -> None:
    grid = f"""
{PUT}
old = tl.tensor.__sub__


def grid(meta):
    put(tl.tensor, "__sub__", evil)
    return (triton.cdiv(437, 256),)


"""
    text = (
        model()
        .replace("(triton.cdiv(x.numel(), 256),)", "grid")
        .replace("        return out", '        put(tl.tensor, "__sub__", old)\n        return out')
    )
    result = lab.verify(lab.folder(place, TASK, HEAD + OPERATOR + grid + MINUS + text), seeds=1)
    assert lab.first_error(result) in ("Forbidden", "Degenerate"), result["failures"] or result


def test_numpy_may_remember_what_forward_asks_it(place: Path) -> None:
    """NumPy keeps the range of a dtype in a table of a class; it holds another dtype's when the file is loaded."""
    asked = model().replace(
        "        return out",
        "        self.most = [int(np.iinfo(kind).max) for kind in (np.int32, np.int16, np.uint64)]\n        return out",
    )
    result = lab.verify(lab.folder(place, TASK, HEAD + "import numpy as np\n" + right() + asked))
    assert result["status"] == "PASS", result["failures"] or result


def test_what_a_kernel_prints_goes_past_the_candidate(place: Path) -> None:
    forward = """
        class Heard(io.StringIO):
            pass
        heard = Heard()
        with contextlib.redirect_stdout(heard):
            out = run(printing_kernel, x)
        if "x" in heard.getvalue():
            return run(copy_kernel, x * 0)
        return out
    """
    kernels = """
        import contextlib, io


        @triton.jit
        def printing_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
            o = tl.arange(0, BLOCK)
            x = tl.load(x_ptr + o, mask=o < n)
            tl.device_print("x", x)
            tl.store(out_ptr + o, x, mask=o < n)
    """
    result = lab.verify(
        lab.folder(place, lab.task("return x * 1", "[torch.randn(8)]"), lab.impl(forward, kernels=kernels)), seeds=1
    )
    assert lab.first_error(result) in ("", "Degenerate"), result["failures"]


def test_forward_does_not_go_on_after_a_kernel_that_raised(place: Path) -> None:
    raising = right("raising").replace(
        "    tl.store(", '    tl.device_assert(offsets < 0, "always")\n    assert n < 0\n    tl.store('
    )
    body = "try:\n    raising[(1,)](x, torch.empty_like(x), x.numel(), BLOCK=256)\nexcept Exception as error:\n    pass\n"
    result = lab.verify(lab.folder(place, TASK, HEAD + raising + right() + model(before=body)), seeds=1)
    assert lab.first_error(result) == "Degenerate", result["failures"] or result
