"""Inputs that cannot tell a right kernel from a wrong one are refused, by the judge and by the self-test; honest ones are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from pypto_op.errors import ContractError
from pypto_op.judge.cases.variety import Variety, check
from pypto_op.workspace import OpWorkspace

from .judging import place, verify

CASES = [
    {"id": "tile", "level": "L2", "shape": {"N": 16, "D": 32}, "atol": 1e-6, "rtol": 1e-5},
    {"id": "tail", "level": "L3", "shape": {"N": 21, "D": 32}, "atol": 1e-6, "rtol": 1e-5},
    {"id": "long", "level": "L3", "shape": {"N": 37, "D": 32}, "atol": 1e-6, "rtol": 1e-5},
]

DEGENERATE = {
    "all zero": ("x, y = x * 0, y * 0", "tile", "x is all zero (2 more cases alike)"),
    "one of two zero": ("y = y * 0", "tile", "y is all zero"),
    "constant": ("x = x * 0 + 3.5", "tile", "x is the same for every seed"),
    "constant, another for each seed": ("x = x * 0 + torch.rand((), device=x.device)", "tile", "x is constant, or nearly so"),
    "the seed is ignored": (
        "torch.manual_seed(0); x = torch.randn(x.shape, device=x.device)",
        "tile",
        "x is the same for every seed",
    ),
    "a table that was baked": (
        "x = (torch.arange(x.numel(), device=x.device) % 7.0).reshape(x.shape)",
        "tile",
        "x is the same for every seed",
    ),
    "a corner": ("keep = x[:2, :2].clone(); x = x * 0; x[:2, :2] = keep", "tile", "x changes with the seed in a part"),
    "a noisy background in a corner": (
        "keep = x[:2, :2].clone(); x = x * 0 + torch.rand((), device=x.device); x[:2, :2] = keep",
        "tile",
        "x changes with the seed in a part only (4 of 512 elements)",
    ),
    "only the first rows": (
        "x[4:] = (torch.arange(x[4:].numel(), device=x.device) % 5.0).reshape(x[4:].shape)",
        "tile",
        "x changes with the seed in a part",
    ),
    "all but the tail": (
        "x[-4:] = (torch.arange(x[-4:].numel(), device=x.device) % 5.0).reshape(x[-4:].shape)",
        "tile",
        "x changes with the seed in a part",
    ),
    "tiny": ("x = 1.0 + 1e-6 * x", "tile", "x is constant, or nearly so"),
    "a table and little noise": (
        "x = (torch.arange(x.numel(), device=x.device) % 7.0).reshape(x.shape) + 1e-6 * x",
        "tile",
        "x hardly changes with the seed",
    ),
    "rows alike": ("x = x[:1].expand(x.shape).contiguous()", "tile", "x is the same along its axis 0"),
    "columns alike": ("x = x[:, :1].expand(x.shape).contiguous()", "tile", "x is the same along its axis 1"),
    "zero in the ragged cases": ("x = x * (x.shape[0] % 16 == 0)", "tail", "x is all zero"),
    "zero for every seed but the case's own": ("x = x * (case.get('seed') == 42)", "tile", "x "),
}


def spoil(ws: OpWorkspace, code: str) -> None:
    source = ws.test_inputs.read_text()
    assert '    return {"x": x, "y": y}' in source
    ws.test_inputs.write_text(source.replace('    return {"x": x, "y": y}', f'    {code}\n    return {{"x": x, "y": y}}'))


JUDGED = ("all zero", "the seed is ignored", "a corner", "zero in the ragged cases", "zero for every seed but the case's own")
"""One of each way in which the judge comes to the sentence; `verify` costs five times what the self-test does."""


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize("how", DEGENERATE)
def test_inputs_that_tell_nothing_fail_the_self_test(tmp_path: Path, how: str) -> None:
    code, case, problem = DEGENERATE[how]
    ws = place("sum_diff", tmp_path, cases=CASES, most=80)
    spoil(ws, code)
    rows = {row["name"]: row for row in verify(ws.root, "--self-test").report["checks"]}
    assert rows["inputs"]["status"] == "FAIL" and f"case {case}: input {problem}" in rows["inputs"]["detail"]


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize("how", JUDGED)
def test_inputs_that_tell_nothing_are_refused(tmp_path: Path, how: str) -> None:
    code, case, problem = DEGENERATE[how]
    ws = place("sum_diff", tmp_path, cases=CASES, most=80)
    spoil(ws, code)
    answer = verify(ws.root)
    report = answer.report
    assert (answer.code, report["status"], report["error"]["kind"]) == (2, "ERROR", "contract")
    assert report["per_mode_status"] == {"sim": "ERROR"}
    message = report["error"]["message"]
    assert message.startswith(f"eval/test_inputs.py: case {case}: input {problem}") and "draw it anew for each seed" in message


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("x, y = x[:1], y[:1]", "x has the shape [1, 32], the contract says [16, 32]"),
        ("x, y = x.half(), y.half()", "x is float16, the case says float32"),
        ("x, y = x[:, :16], y[:, :16]", "x has the shape [16, 16]"),
    ],
)
def test_inputs_that_are_not_the_contracts_are_refused(tmp_path: Path, code: str, words: str) -> None:
    ws = place("sum_diff", tmp_path, cases=[{**case, "dtype": "float32"} for case in CASES], most=80)
    spoil(ws, code)
    answer = verify(ws.root)
    assert answer.code == 2 and words in answer.report["error"]["message"]


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_a_part_is_refused_too(tmp_path: Path) -> None:
    ws = place("sum_diff", tmp_path, cases=CASES, most=80)
    spoil(ws, "x = x * (x.shape[0] % 16 == 0)")
    assert verify(ws.root, "--case", "tile").report["status"] == "PARTIAL"
    answer = verify(ws.root, "--case", "tail")
    assert (answer.code, answer.report["error"]["kind"]) == (2, "contract")


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_a_knob_may_hold_an_input_still_in_some_cases(tmp_path: Path) -> None:
    held = [{**case, "id": f"{case['id']}_zero", "y_mode": "zero"} for case in CASES]
    ws = place("sum_diff", tmp_path, cases=[*CASES, *held], most=80)
    spoil(ws, 'y = y * (case.get("y_mode") != "zero")')
    assert verify(ws.root).report["status"] == "PASS"
    suite = json.loads(ws.suite.read_text())
    suite["cases"] = suite["cases"][2:]
    ws.suite.write_text(json.dumps(suite))
    answer = verify(ws.root)
    assert answer.code == 2 and "does not vary in 3 of 4 precision cases" in answer.report["error"]["message"]


# -- what one tensor shows --------------------------------------------------------------------------------------------


def seen(make: Callable[[int, int], Any], **knobs: Any) -> list[tuple[dict[str, Any], Variety]]:
    rows = []
    for number, size in enumerate((40, 40, 64)):
        variety = Variety()
        for seed in (42, 1234):
            torch.manual_seed(seed)
            variety.add(["x", "idx"], [torch.randn(size, 8), make(size, number)])
        rows.append(({"id": f"c{number}", "level": "L2", "shape": {"N": size}, **knobs}, variety))
    return rows


REFUSED = {
    "the same index always": lambda size, number: torch.arange(size),
    "zeros": lambda size, number: torch.zeros(size, dtype=torch.int32),
    "full lengths": lambda size, number: torch.full((4,), size, dtype=torch.int64),
    "a mask that never varies": lambda size, number: torch.ones(size, size).tril().bool(),
    "8-bit data of one value": lambda size, number: torch.full((size, 4), 3, dtype=torch.int8),
    "a list of tensors, one of them still": lambda size, number: [torch.randn(size, 4), torch.ones(size, 4)],
}
ACCEPTED = {
    "drawn indices": lambda size, number: torch.randint(0, 9, (size,)),
    "lengths that the cases name": lambda size, number: torch.tensor([number, 3, size]),
    "a drawn mask": lambda size, number: torch.rand(size, size) < 0.1,
    "8-bit data": lambda size, number: torch.randint(-9, 9, (size, 4), dtype=torch.int8),
    "a scalar": lambda size, number: 1e-6,
    "half of the values masked": lambda size, number: torch.randn(size, 9).where(torch.rand(size, 9) < 0.5, -torch.inf),
    "a NaN": lambda size, number: torch.randn(size, 9).index_fill_(1, torch.tensor([3]), torch.nan),
    "halves": lambda size, number: torch.randn(size, 9).to(torch.bfloat16),
    "few elements": lambda size, number: torch.randn(3),
}


@pytest.mark.parametrize("how", REFUSED)
def test_tensors_that_never_vary(how: str) -> None:
    with pytest.raises(ContractError, match="idx"):
        check(seen(REFUSED[how]), whole=True)


@pytest.mark.parametrize("how", ACCEPTED)
def test_tensors_that_vary(how: str) -> None:
    check(seen(ACCEPTED[how]), whole=True)


def test_a_knob_does_not_hold_an_input_still_everywhere() -> None:
    check(seen(lambda size, number: torch.ones(size, 4), zone="ones"), whole=False)
    with pytest.raises(ContractError, match="3 of 3 precision cases"):
        check(seen(lambda size, number: torch.ones(size, 4), zone="ones"), whole=True)
    with pytest.raises(ContractError, match="case c0"):
        check(seen(lambda size, number: torch.ones(size, 4), zone="normal"), whole=False)


@pytest.mark.parametrize(("chosen", "fits"), [(lambda n, size: [size, 3 + n], True), (lambda n, size: [size, size], False)])
def test_lengths_that_each_case_chooses_may_not_follow_from_its_sizes(
    chosen: Callable[[int, int], list[int]], fits: bool
) -> None:
    rows = []
    for number, size in enumerate((32, 40, 64)):
        variety, lengths = Variety(), chosen(number, size)
        for seed in (42, 1234):
            torch.manual_seed(seed)
            variety.add(["x", "lengths"], [torch.randn(size, 8), torch.tensor(lengths)])
        rows.append(({"id": f"c{number}", "level": "L2", "shape": {"N": size}, "lengths": lengths}, variety))
    if fits:
        check(rows, whole=True)
        return
    with pytest.raises(ContractError, match="input lengths is the same for every seed"):
        check(rows, whole=True)


@pytest.mark.slow
def test_a_table_that_spec_declares_fixed_may_not_change_with_the_seed(tmp_path: Path) -> None:
    check(seen(lambda size, number: torch.arange(4.0 * size)), whole=True, fixed={"idx"})
    with pytest.raises(ContractError, match="input idx changes with the seed, and SPEC.md declares it fixed"):
        check(seen(lambda size, number: torch.rand(size)), whole=True, fixed={"idx"})
    ws = place("sum_diff", tmp_path, cases=CASES[:1], most=80)
    ws.spec.write_text(ws.spec.read_text().replace("dynamic_axes:", "fixed_inputs: [x, y]\ndynamic_axes:", 1))
    answer = verify(ws.root)
    assert answer.code == 2 and "input x changes with the seed" in answer.report["error"]["message"]


def test_a_level_of_one_case_may_be_about_still_inputs() -> None:
    (case, varied), (other, _), (_, still) = seen(lambda size, number: torch.randn(size, 4) * (size < 64), zone="shift")
    check([(case, varied), ({**other, "level": "L3"}, still)], whole=True)


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_answers_that_the_tolerance_cannot_tell_apart(tmp_path: Path) -> None:
    """Every input varies; what the golden makes of them does not: a kernel that returns a table would pass."""
    ws = place("sum_diff", tmp_path, cases=CASES, most=80)
    spoil(ws, "y = x.clone()")  # diff = x - y is 0 for every seed
    answer = verify(ws.root)
    assert (answer.code, answer.report["error"]["kind"]) == (2, "contract")
    assert "the golden's diff is the same for every seed, within the tolerance, in 3 of 3" in answer.report["error"]["message"]
    rows = {row["name"]: row for row in verify(ws.root, "--self-test").report["checks"]}
    assert rows["golden"]["status"] == "FAIL" and "the golden's diff" in rows["golden"]["detail"]


def test_few_elements_of_a_floating_mask_may_be_alike_but_not_in_every_case() -> None:
    case = {"id": "c", "level": "L3", "shape": {"S": 9}}
    looks = Variety()
    for last in (0.0, 1.0):
        looks.add(["mask"], [torch.tensor([1.0] * 8 + [last])])
    with pytest.raises(ContractError, match="input mask"):
        check([(case, looks)], whole=True)
    check([(case, looks)], whole=True, masks=["mask"])
    still = Variety()
    for _ in range(2):
        still.add(["mask"], [torch.ones(9)])
    with pytest.raises(ContractError, match="input mask is the same for every seed"):
        check([(case, still)], whole=True, masks=["mask"])
