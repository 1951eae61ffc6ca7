"""Float scalars of which SPEC.md names no range: that is said, and with a range both signs are tried."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks import fresh, fresh_kernels
from tests.generators.test_draws import placed, tensor

from pypto_op.documents import spec
from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.operator.sources import gather

RANGE = '"0 <= counts < 100"'


@pytest.mark.sim
@pytest.mark.slow
def test_penalties_below_0_are_tried_once_spec_says_that_they_may_be(tmp_path: Path, call: Any) -> None:
    """A kernel that took a reward for no penalty passed, and nobody was told that no case has one."""
    root = fresh.workspace("penalty_softmax", tmp_path)
    told = call("harness", "new", "--no-rehearsal", root)
    assert [line.split()[0] for line in told.stdout.splitlines() if "with its sign" in line] == ["frequency", "presence"]
    spec = root / "SPEC.md"
    spec.write_text(spec.read_text().replace(RANGE, f'{RANGE}, "-2 <= frequency <= 2", "-2 <= presence <= 2"'))
    assert json.loads(call("harness", "new", "--no-rehearsal", root, "--json").stdout)["unranged"] == []
    [right] = [one.text for one in fresh_kernels.kernels("penalty_softmax") if one.kind == "right"]
    for old, new, code in (("", "", 0), ("float(frequency)", "max(float(frequency), 0.0)", 1)):
        (root / "penalty_softmax_impl.py").write_text(right.replace(old, new) if old else right, encoding="utf-8")
        assert call("verify", "--modes", "sim", "--case", "L3_end_of_frequency_float32", root).code == code


TABLE = "| name | kind | shape | dtype | meaning |\n|---|---|---|---|---|\n| gain | scalar | - | float | {} |\n"
GAIN = {"name": "gain", "shape": [], "dtype": "float32"}
SAID = [
    ("any finite number", True),
    ("factor of the sum; any real number", True),
    ("factor (any number), also of the residual", True),
    ("no limit", True),
    ("unbounded", True),
    ("factor of the sum", False),
    ("any positive number", False),
    ("any finite number above 0", False),
    ("any number up to 64", False),
    ("any number of experts", False),
    ("without limits on the rows", False),
]


@pytest.mark.parametrize(("meaning", "free"), SAID)
def test_any_finite_number_is_a_range(tmp_path: Path, meaning: str, free: bool) -> None:
    """A kernel that took the magnitude of a scaling passed: SPEC.md said "any finite number", and no case had one below 0."""
    ws = placed(tmp_path, [tensor("x"), GAIN], body=TABLE.format(meaning), default_params={"gain": 2.5})
    assert spec.unlimited(ws.spec) == ({"gain"} if free else set())
    values = {case["id"]: case["gain"] for case in suite_cases.cases(gather(ws)) if "gain" in case}
    assert values.get("L3_gain_opposite_float32") == (-1.5 if free else None)
    assert (min(values.values()) < 0.0) is free
    assert (max(values.values()) == 192.5) is free, "nor had one a far greater one"


@pytest.mark.parametrize(
    ("said", "free"), [("(-inf, inf)", True), ("[-inf, inf]", True), ("(0, inf)", False), ("[-4, 4]", False)]
)
def test_a_range_without_ends_says_the_same(tmp_path: Path, said: str, free: bool) -> None:
    ws = placed(tmp_path, [tensor("x"), GAIN], input_ranges={"gain": said}, default_params={"gain": 2.5})
    assert spec.unlimited(ws.spec) == ({"gain"} if free else set())


def test_a_limit_elsewhere_counts_more_than_such_words(tmp_path: Path) -> None:
    front = {"shape_constraints": ["0 < gain"], "default_params": {"gain": 2.5}}
    assert not spec.unlimited(placed(tmp_path, [tensor("x"), GAIN], body=TABLE.format("any real"), **front).spec)
