"""The record of what forward does lies in the candidate's process: each way to it is refused, whether it gets there or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.quickly import read_table
from tests.triton import lab

from pypto_op.back_doors import named
from pypto_op.triton.static.validate import validate_file

WAYS: dict[str, list[str]] = read_table(lab.HERE / "record.yaml")
KERNEL = """
@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets, mask=offsets < n)), mask=offsets < n)


def ours(thing):
    return str(getattr(thing, "__module__", "")).startswith("pypto_op")

"""
FORWARD = """
try:
    found = WAY
except Exception:
    found = None
return run(exp_kernel, x)
"""


def file_of(way: str) -> str:
    imported, expression = WAYS[way] if way else ("", "None")
    return lab.impl(FORWARD.replace("WAY", expression), kernels=f"{imported}\n{KERNEL}")


@pytest.mark.parametrize("way", sorted(WAYS))
def test_each_way_to_the_record_is_refused(way: str, tmp_path: Path) -> None:
    (tmp_path / "impl.py").write_text(file_of(way), encoding="utf-8")
    assert [*named(file_of(way))] or not validate_file(tmp_path / "impl.py")["valid"]


def test_the_file_without_a_way_is_valid(tmp_path: Path) -> None:
    (tmp_path / "impl.py").write_text(file_of(""), encoding="utf-8")
    assert validate_file(tmp_path / "impl.py")["valid"] and not [*named(file_of(""))]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["gettrace_by_typing", "frames_logging", "closure_attrgetter_joined", "globals_of_run"])
def test_a_right_kernel_beside_such_a_way_does_not_pass(way: str, place: Path) -> None:
    result = lab.verify(lab.folder(place, lab.task("return torch.exp(x)", "[torch.randn(4, 4)]"), file_of(way)))
    assert lab.first_error(result) in ("Degenerate", "Forbidden"), result


HONEST = {
    "a getter that names what it reaches for": ("import operator", 'operator.attrgetter("training")(self)'),
    "a method by its name": ("import operator", 'operator.methodcaller("get", 1)({1: 2})'),
    "a setting of the environment": ("import os", 'os.environ.get("A_SETTING", os.path.basename("a"))'),
    "a logger": ("import logging", "logging.getLogger(__name__).debug('x')"),
    "an attribute of an object of its own, by a computed name": ("", 'getattr(self, "train" + "ing", None)'),
}


@pytest.mark.parametrize("name", sorted(HONEST))
def test_honest_neighbours_stay_valid(name: str, tmp_path: Path) -> None:
    imported, expression = HONEST[name]
    text = lab.impl(FORWARD.replace("WAY", expression), kernels=f"{imported}\n{KERNEL}")
    (tmp_path / "impl.py").write_text(text, encoding="utf-8")
    assert validate_file(tmp_path / "impl.py")["valid"], validate_file(tmp_path / "impl.py")["checks"]
