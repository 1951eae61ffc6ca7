"""A file may not forge the record of its run: by text that becomes code, by memory, by names, by methods that the judge calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.quickly import read_table
from tests.triton import lab

from pypto_op.back_doors import named
from pypto_op.triton.run.watching import texts
from pypto_op.triton.run.watching.dispatch import Gate
from pypto_op.triton.run.watching.intact import Intact
from pypto_op.triton.run.watching.lines import Lines
from pypto_op.triton.static.validate import validate_file

WAYS: dict[str, list[str]] = read_table(lab.HERE / "forged.yaml")
KERNEL = """
@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=offsets < n)), mask=offsets < n)

"""
TASK = "return torch.exp(x)", "[torch.randn(4, 6)]"


def file_of(imported: str, statements: str) -> str:
    return lab.impl("return run(exp_kernel, x)", kernels=f"{imported}\n{KERNEL}\nTEXT = 'print(1) or int'\n{statements}\n")


@pytest.mark.parametrize("way", sorted(set(WAYS) - {"annotation_set_later"}))
def test_each_way_at_import_is_refused(way: str, tmp_path: Path) -> None:
    text = file_of(*WAYS[way])
    (tmp_path / "impl.py").write_text(text, encoding="utf-8")
    assert [*named(text)] or not validate_file(tmp_path / "impl.py")["valid"]


HONEST = """
import collections
import dataclasses
import enum
import functools
import json
import logging
import typing

import numpy as np

logger = logging.getLogger(__name__)
Pair = collections.namedtuple("Pair", "a b", defaults=(1, 2))
TABLE = np.array([0.0, 0.5, 1.0], dtype=np.float32)
SIZES = json.loads('{"block": 512}')


class Act(enum.Enum):
    EXP = 0


class Named(typing.NamedTuple):
    block: "int" = 512


@dataclasses.dataclass(frozen=True, order=True)
class Config:
    block: "int" = 512
    warps: typing.Optional["typing.List[int]"] = None
    names: list = dataclasses.field(default_factory=list, hash=False)

    def __post_init__(self):
        assert self.block > 0


@functools.singledispatch
def pick(a):
    return a


@pick.register
def _(a: int):
    return Config(a)


@pick.register
def _(a: "str"):
    return Config(int(a))


assert pick(512) == Config() == pick("512") and repr(Config())
"""


@pytest.mark.slow
def test_honest_classes_and_tables_at_import_pass(place: Path) -> None:
    result = lab.verify(lab.folder(place, lab.task(*TASK), lab.impl("return run(exp_kernel, x)", kernels=KERNEL + HONEST)))
    assert result["status"] == "PASS", result["failures"]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["annotation_set_later", "text_by_numpy", "text_by_sympy"])
def test_text_that_becomes_code_is_refused_when_it_does(way: str, place: Path) -> None:
    result = lab.verify(lab.folder(place, lab.task(*TASK), file_of(*WAYS[way])))
    assert lab.first_error(result) == "Forbidden", result
    assert "turn text into code" in result["failures"][0]["error_msg"]


@pytest.mark.parametrize("text", ["torch.Tensor", "Optional[List[int]]", "int | None", "Tuple['A', ...]"])
def test_the_name_of_a_type_is_no_code(text: str) -> None:
    assert texts._names_a_type(text)


@pytest.mark.parametrize("text", ["f()", "a.__class__", "[x for x in y]", "lambda: 1", "(a := b)", "import os"])
def test_code_is_no_name_of_a_type(text: str) -> None:
    assert not texts._names_a_type(text)


UNWATCHED = {
    "state_dict": """
        def state_dict(self, *args, **more):
            TOLD.append("state_dict")
            return {}
        def named_parameters(self, *args, **more):
            TOLD.append("named_parameters")
            return iter(())
        def modules(self):
            TOLD.append("modules")
            return iter([self])
    """,
    "attributes": """
        def __init__(self):
            super().__init__()
            self.kept = Kept(a=torch.zeros(3))
    """,
}
HEAD = """
TOLD = []

class Kept(dict):
    def values(self):
        TOLD.append("values")
        return super().values()
    def items(self):
        TOLD.append("items")
        return super().items()
    def __iter__(self):
        TOLD.append("iter")
        return super().__iter__()

"""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(UNWATCHED))
def test_the_judge_calls_no_method_of_the_candidate_between_two_calls_of_forward(name: str, place: Path) -> None:
    text = lab.impl("out = run(exp_kernel, x)\nassert not TOLD, TOLD\nreturn out", kernels=KERNEL + HEAD)
    text += "\n" + "\n".join(line[4:] for line in UNWATCHED[name].splitlines())

    result = lab.verify(lab.folder(place, lab.task(*TASK), text))

    assert result["status"] == "PASS", result["failures"]


@pytest.mark.slow
def test_a_returned_list_of_a_class_of_its_own_cannot_exchange_the_outputs(place: Path) -> None:
    kernels = (
        KERNEL.replace("tl.exp(", "(")
        + """
import numpy as np

class Out(list):
    def __iter__(self):
        return iter([torch.from_numpy(np.exp(one.numpy())) for one in list.__iter__(self)])

"""
    )
    result = lab.verify(lab.folder(place, lab.task(*TASK), lab.impl("return Out([run(exp_kernel, x)])", kernels=kernels)))
    assert result["status"] == "FAIL"
    assert lab.first_error(result) == "PrecisionError", result["failures"]


def test_a_function_on_an_object_that_watches_is_found() -> None:
    lines = Lines(frozenset())
    intact = Intact([lines])
    assert intact.replaced() is None
    lines.is_active = lambda: True  # type: ignore[method-assign]
    assert intact.replaced() == "Lines.is_active"


def test_a_dict_of_a_class_of_the_file_in_an_object_that_watches_is_found() -> None:
    space: dict[str, Any] = {}
    exec(compile("class Own(dict):\n    def get(self, *a):\n        return None\n", "/elsewhere/impl.py", "exec"), space)
    gate = Gate(frozenset())
    intact = Intact([gate])
    gate.denied = space["Own"]()
    assert intact.replaced() == "Gate.denied"


def test_other_code_of_a_function_of_this_bundle_is_found() -> None:
    function = Lines.is_active
    intact, code = Intact([]), function.__code__
    try:
        function.__code__ = (lambda self: True).__code__
        assert intact.replaced() == "the code of Lines.is_active"
    finally:
        function.__code__ = code
    assert intact.replaced() is None
