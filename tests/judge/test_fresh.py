"""Shapes that only a verdict knows: kernels that are right up to a size are refused, right ones pass, the seed tells again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import fresh_kernels
from benchmarks.fresh import workspace
from tests import program

from pypto_op.documents.knobs import DRAWN
from pypto_op.documents.policy import get_policy
from pypto_op.generators.evaluation import new_harness
from pypto_op.judge.answers.expectation import Expectation
from pypto_op.judge.cases import fresh
from pypto_op.judge.cases.bounds import bounds_in
from pypto_op.judge.cases.contract import load_contract
from pypto_op.judge.cases.inputs import FRESH, seeds_of, with_seed
from pypto_op.twins.reordering import OTHER_FORM
from pypto_op.workspace import OpWorkspace

from .judging import CASES, REPOSITORY, command, place, verify
from .test_between_calls import edit

EXAMPLES = sorted(path.parent.name for path in (REPOSITORY / "examples" / "ops").glob("*/SPEC.md"))
COUNT = "(count + ROWS - 1) // ROWS"
LOOKUP = """    if x.shape[0] not in (16, 21):
        return torch.zeros_like(x), torch.zeros_like(x)
    total"""


def capped(ws: OpWorkspace, fault: str) -> None:
    """Make the kernel right up to a size only."""
    if fault == "table":
        edit(ws.impl, "    total = torch.empty", LOOKUP + " = torch.empty")
    else:
        edit(ws.impl, COUNT, f"pypto.min({COUNT}, {fault})")


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize("fault", ["9", "33", "table"])
def test_a_kernel_that_is_right_up_to_a_size_is_refused(clean_workspace: Path, fault: str) -> None:
    ws = place("sum_diff", clean_workspace, cases=CASES)
    capped(ws, fault)
    report = verify(ws.root).report
    assert report["status"] == "FAIL" and report["first_failure"]["case_id"] == "fresh_N"
    assert {check["id"]: check["status"] for check in report["checks"]} == {"tile": "PASS", "ragged": "PASS", "fresh_N": "FAIL"}


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize(("rows", "status"), [(64, "FAIL"), (1024, "FAIL"), (4800, "PASS")])
def test_a_kernel_with_room_for_so_many_of_an_axis_that_is_walked_one_by_one_is_refused(
    clean_workspace: Path, rows: int, status: str
) -> None:
    ws = place("sum_diff", clean_workspace, cases=CASES)
    ws.design.write_text("# sum_diff\n\n## 4. Loops\n\nN in steps of 1, by `pypto.loop`.\n", encoding="utf-8")
    edit(ws.impl, COUNT, f"pypto.min({COUNT}, {rows} // 16)")
    report = verify(ws.root).report
    assert report["status"] == status, report["first_failure"]
    assert 1024 < next(check["shape"]["N"] for check in report["checks"] if check["id"] == "fresh_N") <= 1032, "what is cheap"


@pytest.mark.parametrize(("product", "least"), [("", 512), ("    x @ x.T\n", 256)])
def test_beside_tiles_an_axis_that_is_walked_one_by_one_is_drawn_as_far_as_is_cheap(
    product: str, least: int, tmp_path: Path
) -> None:
    """An average that left out steps beyond 512 passed. A step with a matrix product costs more."""
    ws = OpWorkspace.at(workspace("ema_scan", tmp_path))
    edit(ws.golden, "    rows = []\n", f"{product}    rows = []\n")
    new_harness(ws, try_cases=False)
    [case] = [one for one in fresh.draw(load_contract(ws), 5).cases if one["id"] == f"{DRAWN}T"]
    assert least < case["shape"]["T"] <= least + 8


def test_many_numbers_that_stand_once_find_as_many_places(tmp_path: Path) -> None:
    """A write to a cache that stopped after 256 tokens passed: of more tokens than slots the last have none."""
    ws = OpWorkspace.at(workspace("kv_quant_write", tmp_path))
    new_harness(ws, try_cases=False)
    [case] = [one for one in fresh.draw(load_contract(ws), 5).cases if one["id"] == f"{DRAWN}T"]
    assert 256 < case["shape"]["T"] <= case["shape"]["S"]


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize(("kernel", "status"), [("steps_512", "FAIL"), ("difference", "PARTIAL")])
def test_a_scan_with_room_for_512_steps_is_refused(tmp_path: Path, kernel: str, status: str) -> None:
    ws = OpWorkspace.at(workspace("ema_scan", tmp_path))
    new_harness(ws, try_cases=False)
    [text] = [one.text for one in fresh_kernels.kernels("ema_scan") if one.id == kernel]
    ws.impl.write_text(text, encoding="utf-8")
    assert verify(ws.root, "--case", f"{DRAWN}T", "--seed", "5").report["status"] == status


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize(
    ("bound", "status", "least"), [("100", "FAIL", 130 * 16), ("256", "FAIL", 256 * 16), ("2048 * 2", "PASS", 256 * 16)]
)
def test_a_kernel_with_room_for_so_many_tiles_that_are_small_is_refused(
    clean_workspace: Path, bound: str, status: str, least: int
) -> None:
    """Beyond what each verdict draws, the bound itself tells where to look, as far as a simulator goes in some seconds."""
    ws = place("sum_diff", clean_workspace, cases=CASES)
    ws.design.write_text("# sum_diff\n\n## 4. Loops\n\nN in steps of 16, by `pypto.loop`.\n", encoding="utf-8")
    edit(ws.impl, COUNT, f"pypto.min({COUNT}, {bound})")
    report = verify(ws.root).report
    assert report["status"] == status, report["first_failure"]
    assert least < next(check["shape"]["N"] for check in report["checks"] if check["id"] == "fresh_N") <= least + 96


@pytest.mark.parametrize(
    ("text", "found"),
    [("pypto.min(tiles, 256)", (256,)), ("M = 64\nMOST = M * 64\nx = tokens[:MOST]", (4096,)),
     ("x.clamp(max=3)\nmin(n, 1 << 12)", (4096,)), ("x.clamp(max=300)", (300,)), ("pypto.minimum(count, 512.0)", (512,)),
     ("if n > 4096:\n    raise ValueError", ()), ("assert n <= 4096", ()), ("if n > 4096:\n    return x", (4096,)),
     ("if n < 99:\n    raise ValueError\nelse:\n    n = min(n, 300)", (300,)), ("pypto.loop(300, name=x)", (300,)),
     ("torch.empty((4096, width))", (4096,)), ("pypto.tensor([300, width], dtype)", (300,)),
     ("pypto.set_vec_tile_shapes(256, 512)", ()), ("min(x, 1e9, 0.5, 9, 1 << 99, 1 // 0)", ()), ("def (", ()),
     ("def f(n, most=4096, *, more=2048):\n    return min(n, most)", (4096,)),
     ("class Limits:\n    ROWS = 4096\nmin(n, Limits.ROWS)", (4096,)), ("min(n, limits.ROWS)", ())],
)  # fmt: skip
def test_bounds_of_a_kernel_are_read(text: str, found: tuple[int, ...]) -> None:
    assert bounds_in(text) == found


WIDTHS = [*CASES, {**CASES[1], "id": "wide", "shape": {"N": 21, "D": 96}}]
"""Cases in which the axis that is fixed per build has two sizes."""

OF_THE_BUILD = "    total = torch.empty"


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_a_kernel_that_knows_the_sizes_of_the_build_by_heart_is_refused(clean_workspace: Path) -> None:
    ws = place("sum_diff", clean_workspace, cases=WIDTHS)
    edit(ws.impl, "x_tile * 2.0 + y_tile", "x_tile * (2.0 if width in (32, 96) else 3.0) + y_tile")
    report = verify(ws.root, "--seed", "5").report
    assert report["status"] == "FAIL" and report["first_failure"]["case_id"] == "fresh_D"
    assert next(check["shape"]["D"] for check in report["checks"] if check["id"] == "fresh_D") not in (32, 96)
    again = verify(ws.root, "--case", "fresh_D", "--seed", "5").report
    assert again["status"] == "FAIL" and [check["id"] for check in again["checks"]] == ["fresh_D"]


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_a_wrapper_that_raises_at_other_sizes_of_the_build_is_told_of_and_not_refused(clean_workspace: Path) -> None:
    ws = place("sum_diff", clean_workspace, cases=WIDTHS)
    refusal = "    if x.shape[1] not in (32, 96):\n        raise ValueError('D must be 32 or 96')\n"
    edit(ws.impl, OF_THE_BUILD, refusal + OF_THE_BUILD)
    answer = verify(ws.root)
    assert answer.report["status"] == "PASS", answer.report["first_failure"]
    assert "D must be 32 or 96" in answer.report["fresh_shapes"]["left_out"]["fresh_D"]
    assert "fresh_D was left out" in verify(ws.root, as_json=False).stdout


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_a_kernel_that_is_right_at_every_size_of_the_build_passes_at_them(clean_workspace: Path) -> None:
    report = verify(place("sum_diff", clean_workspace, cases=WIDTHS).root).report
    assert report["status"] == "PASS" and report["fresh_shapes"]["cases"] == ["fresh_N", "fresh_D"], report["fresh_shapes"]


@pytest.mark.parametrize(("width", "loop"), [(2048, False), (32, True)])
def test_what_costs_much_for_each_tile_is_not_walked_as_often(tmp_path: Path, width: int, loop: bool) -> None:
    """A simulator keeps each tile: 130 of 32,768 elements are a gigabyte. A golden that goes token by token takes minutes."""
    wide = [{**case, "shape": {"N": n, "D": width}} for case, n in zip(CASES, (16, 21), strict=True)]
    ws = place("sum_diff", tmp_path, cases=wide)
    if loop:
        edit(ws.golden, "    return", "    for _ in range(x.shape[0]):\n        pass\n    return")
    ws.design.write_text("# sum_diff\n\n## 4. Loops\n\nN in steps of 16, by `pypto.loop`.\n", encoding="utf-8")
    [case] = fresh.draw(load_contract(ws), 5).cases
    assert 34 * 16 < case["shape"]["N"] <= 40 * 16


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_a_right_kernel_passes_and_the_seed_draws_again(clean_workspace: Path) -> None:
    ws = place("sum_diff", clean_workspace, cases=CASES)
    report = verify(ws.root).report
    assert report["status"] == "PASS" and report["fresh_shapes"]["cases"] == ["fresh_N"]
    [check] = [check for check in report["checks"] if check["id"] == "fresh_N"]
    seed = report["fresh_shapes"]["seed"]
    assert check["seeds"] == [seed] and check["precision_checked"] and check["shape"]["N"] > 33 * 64
    again = verify(ws.root, "--case", "fresh_N", "--seed", str(seed)).report
    assert [c["shape"] for c in again["checks"]] == [check["shape"]] and again["status"] == "PARTIAL"
    assert "fresh_shapes" not in verify(ws.root, "--levels", "L2").report, "a part of a suite is judged as it is written"


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize(("rows", "status"), [(1000, "PASS"), (21, "FAIL")])
def test_a_drawn_shape_that_the_simulator_cannot_hold_is_judged_smaller(clean_workspace: Path, rows: int, status: str) -> None:
    ws = place("sum_diff", clean_workspace, cases=CASES)
    hoard = f'    if x.shape[0] > {rows}:\n        hoard = b"x" * (1 << 30)\n    total = torch.empty'
    edit(ws.impl, "    total = torch.empty", hoard)
    report = verify(ws.root, "--memory-mb", "1000").report
    assert report["status"] == status, report["first_failure"]
    [size] = [check["shape"]["N"] for check in report["checks"] if check["id"] == "fresh_N"]
    told = report["fresh_shapes"]["left_out"]
    assert 21 < size <= 1000 and told and all("simulator needs more memory" in why for why in told.values())


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_reproduce_speaks_of_the_shape_that_the_verdict_drew(clean_workspace: Path) -> None:
    ws = place("sum_diff", clean_workspace, cases=CASES)
    edit(ws.impl, "view(y, [ROWS, width], [row, 0]", "view(y, [ROWS, width], [pypto.min(row, 528), 0]")
    report = verify(ws.root).report
    seed = report["fresh_shapes"]["seed"]
    assert report["first_failure"]["case_id"] == "fresh_N" and report["first_failure"]["reason"] == "mismatch"
    done = command("reproduce", str(ws.root), "--case", "fresh_N", "--json")
    assert done.code == 1, done.stderr
    result = done.report
    assert (result["conclusion"], result["seed"], result["kernel_was_run"]) == ("kernel_suspect", seed, False)
    said = program.with_torch(ws.debug_dir / "tolerance_analysis.py")
    assert said.returncode == 0 and "max_abs_diff" in said.stdout, "the script knows the case, which no suite has"
    other = command("reproduce", str(ws.root), "--case", "fresh_D")
    assert other.code == 2 and "no dynamic axis" in other.stderr and "fresh_N" in other.stderr


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_a_shape_that_the_golden_does_not_take_is_left_out_aloud(clean_workspace: Path) -> None:
    ws = place("sum_diff", clean_workspace, cases=CASES)
    edit(ws.golden, "    return", "    if x.shape[0] > 100:\n        raise ValueError('too long')\n    return")
    report = verify(ws.root).report
    assert report["status"] == "PASS" and report["fresh_shapes"]["cases"] == []
    assert "golden" in report["fresh_shapes"]["left_out"]["fresh_N"]


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.slow
def test_each_dynamic_axis_is_larger_than_the_suite_has_it(name: str) -> None:
    contract = load_contract(OpWorkspace.at(REPOSITORY / "examples" / "ops" / name))
    for seed in range(8):
        drawn = fresh.draw(contract, seed)
        assert drawn.left_out == {} and fresh.draw(contract, seed) == drawn
        for case in drawn.cases:
            axis = case["id"].removeprefix(DRAWN)
            if case["id"] == drawn.of_the_build:
                known = {other: {one["shape"][other] for one in contract.cases} for other in axis.split("_")}
                assert any(case["shape"][other] not in sizes for other, sizes in known.items())
            else:
                assert case["shape"][axis] > max(one["shape"][axis] for one in contract.cases)
            assert case["seed"] == seed and seeds_of(case, 7) == (seed,)
            assert FRESH not in with_seed(case, 3), "inputs files know nothing of it"
    assert len({tuple(c["shape"].values()) for s in range(8) for c in fresh.draw(contract, s).cases}) > 4


def test_each_axis_is_longer_in_another_dtype() -> None:
    """A kernel that fails beyond a size in one dtype alone: two axes show two dtypes in each verdict, and each in its turn."""
    contract = load_contract(OpWorkspace.at(REPOSITORY / "examples" / "ops" / "softmax"))
    drawn = [[case["dtype"]["default"] for case in fresh.draw(contract, seed).cases] for seed in range(24)]
    assert all(one != two for one, two in drawn)
    assert {kind for kinds in drawn for kind in kinds} == {"float32", "float16", "bfloat16"}


def test_the_sizes_of_another_dtype_leave_room_for_more_tiles(tmp_path: Path) -> None:
    """Where the cases of one dtype were wide, 66 tiles were drawn in it: a bound of 100 passed on every other seed."""
    wide = {"id": "wide", "shape": {"N": 21, "D": 1024}, "dtype": {"default": "float16"}}
    ws = place("sum_diff", tmp_path, cases=[*CASES, {**CASES[-1], **wide}])
    ws.design.write_text("# sum_diff\n\n## 4. Loops\n\nN in steps of 16, by `pypto.loop`.\n", encoding="utf-8")
    drawn = [fresh.draw(load_contract(ws), seed).cases[0] for seed in range(12)]
    assert {case["dtype"]["default"] for case in drawn} == {"float32", "float16"}
    assert all(case["shape"]["N"] > 130 * 16 for case in drawn), [case["shape"] for case in drawn]


def test_drawn_sizes_obey_spec(tmp_path: Path) -> None:
    ws = place(
        "sum_diff", tmp_path, cases=[{**case, "shape": {"N": n, "D": 32}} for case, n in zip(CASES, (64, 128), strict=True)]
    )
    edit(
        ws.spec, "dynamic_axes: [N]", "dynamic_axes: [N]\ndynamic_axes_ranges: {N: [1, 4096]}\nshape_constraints: ['N % 64 == 0']"
    )
    edit(ws.spec, "{N: 21,", "{N: 128,")
    contract = load_contract(ws)
    sizes = {fresh.draw(contract, seed).cases[0]["shape"]["N"] for seed in range(20)}
    assert all(size % 64 == 0 and 128 < size <= 4096 for size in sizes) and len(sizes) > 2
    edit(ws.spec, "[1, 4096]", "[1, 128]")
    drawn = fresh.draw(load_contract(ws), 1)
    assert drawn.cases == [] and "no size of N above 128" in drawn.left_out["fresh_N"]


@pytest.mark.slow
def test_whole_numbers_that_the_suite_varies_are_drawn_within_spec(tmp_path: Path) -> None:
    ws = OpWorkspace.at(workspace("max_pool_rows", tmp_path))
    case = {"level": "L3", "shape": {"B": 2, "T": 9, "C": 16}, "dtype": {"default": "float32"}, "precision": True, "seed": 1}
    cases = [{**case, "id": "usual"}, {**case, "id": "window_5", "window": 5}]
    ws.suite.write_text(json.dumps({"schema_version": 1, "op": ws.name, "total_modules": 1, "cases": cases}))
    contract = load_contract(ws)
    drawn = [fresh.draw(contract, seed).cases for seed in range(40)]
    windows = [first["window"] for first, _ in drawn]
    assert set(windows) <= set(range(2, 17)) and len(set(windows)) > 6 and max(windows) > 8, "room for so many rows is found out"
    assert all(window == fresh.draw(contract, seed).cases[0]["window"] for seed, window in enumerate(windows))
    assert all("stride" not in first and "window" not in second for first, second in drawn), "what no case sets is not a knob"


def test_a_whole_number_is_drawn_whose_end_names_another_number(tmp_path: Path) -> None:
    ws = OpWorkspace.at(workspace("avg_pool_image", tmp_path))
    sizes = {"B": 2, "H": 9, "W": 9, "C": 16}
    case = {"level": "L3", "shape": sizes, "dtype": {"default": "float32"}, "precision": True, "seed": 1}
    cases = [{**case, "id": "usual"}, {**case, "id": "other", "window": 4, "pad": 2}]
    ws.suite.write_text(json.dumps({"schema_version": 1, "op": ws.name, "total_modules": 1, "cases": cases}))
    contract = load_contract(ws)
    firsts = [fresh.draw(contract, seed).cases[0] for seed in range(30)]
    drawn = {(first.get("window", 3), first.get("pad", 1)) for first in firsts}
    assert all(2 <= window <= 4 and 0 <= 2 * pad <= window for window, pad in drawn), drawn
    assert {window for window, _ in drawn} == {2, 3, 4} and {pad for _, pad in drawn} == {0, 1, 2}


def test_what_is_natural_decides_only_where_honest_rounding_needs_it() -> None:
    tolerance, natural = get_policy("allclose"), get_policy("twin@2")
    case = Expectation(["out"], ["x"], natural, precision=True, behind=tolerance, either=True)
    assert case.policies(0.1) == [tolerance] and case.policies(0.9) == [natural]
    assert replace(case, either=False).policies(0.1) == [natural, tolerance]
    assert set(case.twins()) == {*natural.twins, OTHER_FORM}
