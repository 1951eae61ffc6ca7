"""The generated suite: complete, inside what SPEC.md allows, at the edges of the tiles. No kernel and no torch runs here."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.documents import constraints
from pypto_op.documents import suite as suite_document
from pypto_op.documents.interfaces import Port
from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.cases.values import WORST_SUM
from pypto_op.generators.evaluation import inputs_text
from pypto_op.generators.operator.sources import Sources, gather
from pypto_op.vocabulary import Level
from pypto_op.workspace import OpWorkspace

GOLDEN = "def op_golden(x, y, flag):\n    return (x - y) * (2 if flag else 1)\n"


def operator(folder: Path, *, golden: str = GOLDEN, impl: str = "", **spec: Any) -> Sources:
    """Write an operator x, y [B, S, D], flag -> out with the given front matter, and gather it."""
    root = folder / "custom" / "op"
    (root / "eval").mkdir(parents=True, exist_ok=True)
    front = {
        "schema_version": "1.0",
        "op_name": "op",
        "supported_dtypes": ["float32", "bfloat16"],
        "p0_shapes": [{"B": 4, "S": 256, "D": 64}],
        "tolerance": {"atol": 1e-5, "rtol": 1e-4},
        "dynamic_axes": ["B", "S"],
        **spec,
    }
    (root / "SPEC.md").write_text(f"---\n{yaml.safe_dump(front)}---\n# op\n")
    ports = [{"name": name, "shape": ["B", "S", "D"], "dtype": "float32"} for name in ("x", "y")]
    module = {
        "id": 1,
        "name": "only",
        "inputs": [{"name": name, "source": "primary"} for name in ("x", "y", "flag")],
        "outputs": [{"name": "out", "shape": ["B", "S", "D"], "dtype": "float32"}],
    }
    wiring = {
        "schema_version": 1,
        "op": "op",
        "primary_inputs": [*ports, {"name": "flag", "shape": [], "dtype": "bool"}],
        "modules": [module],
        "final_outputs": [{"name": "out", "source": "module_1"}],
    }
    (root / "eval" / "module_interfaces.yaml").write_text(yaml.safe_dump(wiring))
    (root / "op_golden.py").write_text(golden)
    if impl:
        (root / "op_impl.py").write_text(impl)
    return gather(OpWorkspace.at(root))


def built(sources: Sources) -> suite_document.Suite:
    data = {"schema_version": 1, "op": "op", "total_modules": 1, "cases": suite_cases.cases(sources)}
    return suite_document.build(data, "generated")


def test_two_cases_or_more_per_level_and_numbers_above_l1(tmp_path: Path) -> None:
    suite = built(operator(tmp_path))
    assert suite_document.check_complete(suite) == []
    assert {case["precision"] for case in suite.select(["L1"])} == {False}
    assert all((case["atol"], case["rtol"]) == (1e-5, 1e-4) for case in suite.cases)
    assert {case["dtype"]["default"] for case in suite.select(["L2"])} == {"float32", "bfloat16"}


def test_a_long_axis_meets_the_edges_of_the_kernel_s_own_tiles(tmp_path: Path) -> None:
    impl = "T_TILE = 48\n\ndef k(x):\n    pypto.set_vec_tile_shapes(16, 64)\n"
    suite = built(operator(tmp_path, impl=impl))
    sizes = {case["shape"]["S"] for case in suite.select(["L3"])}
    assert {1, 15, 16, 17, 31, 33, 47, 48, 49, 63, 64, 65} <= sizes
    assert {case["shape"]["B"] for case in suite.cases} <= {1, 2, 3, 4, 5, 7, 131}, "a batch is not tiled"


def test_the_only_dynamic_axis_is_tiled_wherever_it_stands(tmp_path: Path) -> None:
    """x [T, N, D] with T alone known at run time, as in a rotary embedding: T is no batch."""
    impl = "def k(x):\n    pypto.set_vec_tile_shapes(32, 64)\n"
    suite = built(operator(tmp_path, impl=impl, dynamic_axes=["B"], p0_shapes=[{"B": 64, "S": 4, "D": 32}]))
    assert {1, 31, 32, 33, 63, 65} <= {case["shape"]["B"] for case in suite.select(["L3"])}


def test_flags_zones_and_cancellation_are_there(tmp_path: Path) -> None:
    cases = built(operator(tmp_path)).cases
    assert {case["flag"] for case in cases if "flag" in case} == {True, False}
    zones = {case["draw_zone"] for case in cases if isinstance(case.get("draw_zone"), str)}
    assert zones == {"last_spike", "positions", "grid", "tiny", "huge", "alternating", "shift", "all_negative", "low"} | {
        "rising",
        "falling",
    }
    expressions = {case["cancellation_stress"]["expression"] for case in cases if "cancellation_stress" in case}
    assert expressions == {"x - y", WORST_SUM}


@pytest.mark.parametrize(
    ("said", "missing"), [({}, []), ({"y": "[0, inf)"}, ["y"]), ({"y": "(0, 1)"}, ["y"]), ({"y": "[-1, 1]"}, [])]
)
def test_what_is_never_negative_gets_no_negative_case(tmp_path: Path, said: dict[str, str], missing: list[str]) -> None:
    """Folded into its range it was the case of positive numbers, once more for each such tensor; the others keep their dtypes."""

    def known(folder: str, **front: object) -> dict[str, str]:
        cases = suite_cases.cases(operator(tmp_path / folder, **front))
        return {case["id"].rpartition("_")[0]: case["dtype"]["default"] for case in cases if case["level"] == "L3"}

    all_of_them, found = known("plain"), known("ranged", input_ranges=said)
    assert [name for name in ("x", "y") if f"L3_negative_{name}" not in found] == missing
    assert all(found[name] == dtype for name, dtype in all_of_them.items() if name in found)


def test_nan_only_where_spec_speaks_of_it(tmp_path: Path) -> None:
    sources = operator(tmp_path)
    assert not any("one_nan" in str(case.get("draw_zone")) for case in suite_cases.cases(sources))
    sources.ws.spec.write_text(sources.ws.spec.read_text() + "\nA row with NaN is NaN throughout.\n")
    found = [case for case in suite_cases.cases(gather(sources.ws)) if "one_nan" in str(case.get("draw_zone"))]
    assert [case["draw_zone"] for case in found] == [{"x": "one_nan"}, {"x": "one_nan"}, {"y": "one_nan"}]
    assert {case["dtype"]["default"] for case in found[:2]} == {"float32", "bfloat16"}, "16 bits may have a branch of their own"


@pytest.mark.parametrize(
    ("sentence", "legal"), [("-inf is a masked element", True), ("-inf is not supported", False), ("", False)]
)
def test_masked_elements_only_where_spec_allows_them(tmp_path: Path, sentence: str, legal: bool) -> None:
    sources = operator(tmp_path)
    sources.ws.spec.write_text(sources.ws.spec.read_text() + f"\n{sentence}.\n")
    assert any("masked" in str(case.get("draw_zone")) for case in suite_cases.cases(gather(sources.ws))) == legal


@pytest.mark.parametrize(("default", "other"), [(0.125, 0.075), (1e-6, 0.3), (2.0, 1.2)])
def test_a_float_scalar_gets_another_value(tmp_path: Path, default: float, other: float) -> None:
    sources = replace(operator(tmp_path), scalars={"flag": False, "alpha": default})
    ports = (*sources.interfaces.primary_inputs, Port("alpha", "primary", (), "float32"))
    sources = replace(sources, interfaces=replace(sources.interfaces, primary_inputs=ports))
    across = {0.125: 0.5625, 1e-6: 1e-9, 2.0: 3.4}[default]  # a share stays one
    tried = [case["alpha"] for case in suite_cases.cases(sources) if "alpha" in case and "flag" not in case]
    far = [default / 10] if default > 1e-2 else []
    assert tried == [other, other, other, pytest.approx(across), *far, 0.0, 0.0], (
        "in each dtype, among unlike rows, on the default's other side, far below it, and at 0"
    )
    assert all(math.frexp(value)[0] != 0.5 for value in tried), "a product with a power of two hides where it is rounded"


@pytest.mark.parametrize(("weight", "tiny"), [("(1.0 - alpha)", False), ("(2.0 - alpha)", True)])
def test_a_share_that_the_golden_mixes_by_is_not_tried_at_1_on_values_of_other_sizes(
    tmp_path: Path, weight: str, tiny: bool
) -> None:
    """A running variance as a step towards the batch's was refused: of 1e-4 + 1 * (1e-8 - 1e-4) little is left."""
    golden = GOLDEN.replace("flag):", "flag, alpha):").replace("    return ", f"    x = x * {weight}\n    return ")
    operator(tmp_path, golden=golden, default_params={"alpha": 0.25}, shape_constraints=["0 < alpha <= 1"])
    path = tmp_path / "custom" / "op" / "eval" / "module_interfaces.yaml"
    data = yaml.safe_load(path.read_text())
    data["primary_inputs"].append({"name": "alpha", "shape": [], "dtype": "float32"})
    path.write_text(yaml.safe_dump(data))
    cases = [case for case in suite_cases.cases(gather(OpWorkspace.at(tmp_path / "custom" / "op"))) if case.get("alpha") == 1.0]
    assert {case.get("draw_zone") for case in cases} == ({None, "tiny"} if tiny else {None})


@pytest.mark.parametrize(
    ("said", "ends"), [(["0 < alpha <= 0.99"], {0.99}), (["0.5 <= alpha", "alpha < 1"], {0.5}), (["0 <= alpha"], set())]
)
def test_a_float_scalar_is_tried_at_the_ends_of_its_range(tmp_path: Path, said: list[str], ends: set[float]) -> None:
    """Of 96 tokens that are all but equal each stays at top_p 0.99: a kernel that never kept the last one passed."""
    operator(tmp_path, golden=GOLDEN.replace("flag):", "flag, alpha):"), default_params={"alpha": 0.9}, shape_constraints=said)
    path = tmp_path / "custom" / "op" / "eval" / "module_interfaces.yaml"
    data = yaml.safe_load(path.read_text())
    data["primary_inputs"].append({"name": "alpha", "shape": [], "dtype": "float32"})
    path.write_text(yaml.safe_dump(data))
    sources = gather(OpWorkspace.at(tmp_path / "custom" / "op"))
    cases = [case for case in suite_cases.cases(sources) if "end_of_alpha" in case["id"]]
    assert {case["alpha"] for case in cases} == ends
    zeros = [case for case in suite_cases.cases(sources) if "zero_alpha" in case["id"]]
    assert [case["alpha"] for case in zeros] == ([0.0, 0.0] if "0 <= alpha" in said else []), "in each dtype"
    near = [(case["shape"], case["dtype"]["default"]) for case in cases if case.get("draw_zone") == "tiny"]
    dtypes = sources.spec.supported_dtypes
    assert near == [(shape, dtype) for _ in ends for shape in sources.p0_sizes() for dtype in dtypes], "on each shape of SPEC.md"


@pytest.mark.parametrize(
    ("default", "said", "values"),
    [
        (3, [], [6, 4, 1, 7, 2]),  # nothing is said: its sign stays
        (-100, [], [100, -200, -99, 1, 7, -101, 0]),
        (0, [], [1, 7]),
        (3, ["-4 <= z", "z < 5"], [4, 0, -4, -3, 1, 2]),  # the ends of what is said, and their middle, come first
        (4, ["D % z == 0", "z > 0"], [32, 1, 8]),
    ],
)
def test_a_whole_number_gets_other_values_that_spec_allows(
    tmp_path: Path, default: int, said: list[str], values: list[int]
) -> None:
    operator(tmp_path, golden=GOLDEN.replace("flag):", "flag, z):"), default_params={"z": default}, shape_constraints=said)
    path = tmp_path / "custom" / "op" / "eval" / "module_interfaces.yaml"
    data = yaml.safe_load(path.read_text())
    data["primary_inputs"].append({"name": "z", "shape": [], "dtype": "int"})
    path.write_text(yaml.safe_dump(data))
    cases = suite_cases.cases(gather(OpWorkspace.at(tmp_path / "custom" / "op")))
    assert list(dict.fromkeys(case["z"] for case in cases if "z" in case)) == values


@pytest.mark.parametrize(
    ("said", "low", "high"),
    [
        (["0 <= labels < C"], "0", "C"),
        (["labels <= C // 2 and labels > -2"], "-2 + 1", "C // 2 + 1"),
        (["C >= labels"], "", "C + 1"),
        (["labels are below C", "labels % 2 == 0", "labels < other", "C < 8"], "", ""),
    ],
)
def test_constraints_may_limit_a_whole_number(said: list[str], low: str, high: str) -> None:
    assert constraints.limits(said, "labels", ["R", "C"]) == (low, high)


@pytest.mark.parametrize(
    ("constraint", "sizes"),
    [
        ("D % 16 == 0", {16, 64, 80}),
        ("D == 64", {64}),
        ("D <= 128", {64, 128}),
        ("2 <= D <= 128", {2, 64, 128}),
        ("D > 1 and D < 65", {2, 64}),
        ("1 <= D <= S", {1, 64}),
        ("D is what the model has", {64}),
    ],
)
def test_a_fixed_axis_gets_other_sizes_where_a_constraint_promises_them(tmp_path: Path, constraint: str, sizes: set[int]) -> None:
    suite = built(operator(tmp_path, shape_constraints=[constraint]))
    assert {case["shape"]["D"] for case in suite.cases} == sizes


def test_an_operator_of_fixed_shape_gets_seeds(tmp_path: Path) -> None:
    suite = built(operator(tmp_path, dynamic_axes=[]))
    assert suite_document.check_complete(suite) == []
    assert {tuple(case["shape"].values()) for case in suite.cases} == {(4, 256, 64)}
    assert len({case["seed"] for case in suite.cases}) > 1


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    low=st.integers(1, 40),
    span=st.integers(0, 400),
    multiple=st.sampled_from([1, 2, 16]),
    tile=st.integers(2, 200),
    axes=st.sets(st.sampled_from(["B", "S", "D"])),
)
@pytest.mark.slow
def test_every_case_keeps_to_spec(tmp_path: Path, low: int, span: int, multiple: int, tile: int, axes: set[str]) -> None:
    high = low + span
    size = next((n for n in range(low, high + 1) if n % multiple == 0), None)
    if size is None:
        return
    ranges = {"S": [low, high]} if "S" in axes else {}
    sources = operator(
        tmp_path,
        impl=f"S_TILE = {tile}\n",
        dynamic_axes=sorted(axes),
        dynamic_axes_ranges=ranges,
        shape_constraints=[f"S % {multiple} == 0", "D <= 64 and D >= 1", "S is at least one tile"],
        p0_shapes=[{"B": 2, "S": size, "D": 64}],
    )
    suite = built(sources)
    assert suite_document.check_complete(suite) == []
    assert len({case["id"] for case in suite.cases}) == len(suite.cases)
    for case in suite.cases:
        shape = case["shape"]
        assert shape["S"] % multiple == 0 and shape["D"] <= 64
        assert low <= shape["S"] <= high or "S" not in axes
        ends = ("S_ragged", "D_ragged", "S_least", "D_least", "build_least")
        free = axes | {axis for axis in "SD" if any(end in case["id"] for end in ends if end[0] in ("b", axis))}
        assert all(shape[axis] == {"B": 2, "S": size, "D": 64}[axis] for axis in {"B", "S", "D"} - free)
        assert case["level"] in {str(level) for level in Level}


@pytest.mark.parametrize(
    ("text", "sizes", "holds"),
    [
        ("D == 32", {"D": 32}, True),
        ("D == 32", {"D": 33}, False),
        ("S % BT == 0", {"S": 96, "BT": 32}, True),
        ("16 <= D <= 128", {"D": 8}, False),
        ("D <= 8 or S <= 8", {"D": 9, "S": 8}, True),
        ("D must be even", {"D": 3}, False),
        ("D must be what the model has", {"D": 3}, True),
        ("S % 0 == 0", {"S": 3}, True),
        ("__import__('os')", {}, True),
        ("D == K", {"D": 3}, True),
    ],
)
def test_constraints(text: str, sizes: dict[str, int], holds: bool) -> None:
    assert constraints.satisfied([text], sizes) is holds


def test_a_weight_is_drawn_so_that_products_keep_their_size_and_an_activation_is_not(tmp_path: Path) -> None:
    golden = "def op_golden(x, y, flag):\n    return x @ y.transpose(-1, -2)\n"
    assert operator(tmp_path, golden=golden).weights == {}, "y has dynamic axes"
    text = inputs_text(operator(tmp_path, golden=golden, dynamic_axes=[]))
    made: dict[str, Any] = {}
    exec(text.replace('f"npu:', 'f"cpu:'), made)  # noqa: S102
    case = {"shape": {"B": 4, "S": 256, "D": 64}, "dtype": "float32"}
    assert made["make_inputs"](case)["y"].std().item() == pytest.approx(1 / 8, rel=0.05)
    scaled = made["make_inputs"]({**case, "draw_scale": {"x": 3.0, "y": 4.0}})
    assert [scaled[name].std().item() for name in ("x", "y")] == pytest.approx([3.0, 0.5], rel=0.05), "`draw_scale` multiplies"
