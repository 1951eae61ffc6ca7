"""Functions of `triton.constexpr_function`: the static check follows those that ask for nothing but their arguments."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.triton import lab

from pypto_op.triton.program import Line
from pypto_op.triton.static.validate import read_file

FILE = """
import math
import numpy as np

NUMBERS = [1.0]


@triton.constexpr_function
def number(n, other=None):
{body}


class ModelNew(nn.Module):
    def forward(self, x):
        return run(copy_kernel, x)
"""
FOLLOWED = {
    "power_of_two": "    return n > 0 and (n & (n - 1)) == 0",
    "loop": "    count = 0\n    while n > 1:\n        n //= 2\n        count += 1\n    return count",
    "branches": "    if n > 4:\n        return min(n, 8)\n    elif n > 2:\n        return 4\n    return math.ceil(math.sqrt(n))",
    "type": "    return tl.float32 if n.is_fp16() else tl.int64 if n.is_int() else n",
    "of_a_tuple": "    return sum(n[i] for i in range(len(n)))",
}
NOT_FOLLOWED = {
    "global": "    return NUMBERS[0]",
    "numpy": "    return np.exp(n)",
    "attribute": "    return n.value",
    "language": "    return tl.load(n)",
    "getattr": "    return getattr(n, 'x')",
    "function": "    return number(n)",
    "module_kept": "    m = math\n    return m.sqrt(n)",
    "lambda": "    return (lambda: n)()",
    "import": "    import math\n    return math.sqrt(n)",
    "item_set": "    n[0] = 1\n    return n",
    "global_set": "    global NUMBERS\n    NUMBERS = n\n    return n",
    "with": "    with n:\n        return 1",
    "try": "    try:\n        return 1\n    finally:\n        n = 2",
    "shadowed": "    return oct(n)",
}


def _lines(place: Path, body: str, *, default: str = "", more: str = "", under: str = "") -> tuple[set[Line], range]:
    text = lab.HEAD + FILE.format(body=body).replace(", other=None", default) + more
    text = text.replace("triton.constexpr_function", under or "triton.constexpr_function")
    project = lab.folder(place, lab.EXPO, text)
    first = next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith("def number"))
    return set(read_file(project.impl).executed), range(first + 1, first + 1 + body.count("\n") + 1)


@pytest.mark.parametrize("name", sorted(FOLLOWED))
def test_one_that_asks_for_its_arguments_alone_is_followed(name: str, place: Path) -> None:
    executed, lines = _lines(place, FOLLOWED[name])
    assert {line for _, line, _ in executed} >= {*lines}


def test_one_under_constexpr_is_followed_too(place: Path) -> None:
    executed, lines = _lines(place, FOLLOWED["type"], under="tl.constexpr")
    assert {line for _, line, _ in executed} >= {*lines}


@pytest.mark.parametrize("name", sorted(NOT_FOLLOWED))
def test_any_other_is_not(name: str, place: Path) -> None:
    executed, lines = _lines(place, NOT_FOLLOWED[name])
    assert not {line for _, line, _ in executed} & {*lines}


@pytest.mark.parametrize(("default", "more"), [(", other=NUMBERS", ""), ("", "\nlen = np.exp\n"), ("", "\nmath = np\n")])
def test_a_default_and_a_name_that_the_file_binds_count(default: str, more: str, place: Path) -> None:
    executed, lines = _lines(place, "    return math.sqrt(len(n))", default=default, more=more)
    assert not {line for _, line, _ in executed} & {*lines}
