"""What a generated `make_inputs` draws: the knobs, SPEC.md's ranges and tables, the zones, and dtypes that the contract fixes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from tests.quickly import share

from pypto_op.documents import interfaces as interfaces_document
from pypto_op.documents import knobs, ranges
from pypto_op.documents import spec as spec_document
from pypto_op.errors import ContractError
from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.evaluation import inputs_text
from pypto_op.generators.operator.sources import Sources, gather
from pypto_op.workspace import OpWorkspace

GOLDEN = "def op_golden({names}):\n    return {first} * 1.0\n"
SHAPE = {"S": 40, "D": 32}
CASE = {"id": "c", "level": "L2", "shape": SHAPE, "dtype": "float32"}


def with_inputs(ws: OpWorkspace) -> Sources:
    """Gather an operator, and write its inputs file without a suite."""
    sources = gather(ws)
    ws.test_inputs.write_text(inputs_text(sources))
    return sources


def placed(folder: Path, ports: list[dict[str, Any]], *, body: str = "", **front: Any) -> OpWorkspace:
    """Write SPEC.md, the contract and a golden of an operator with these inputs."""
    (folder / "custom" / "op" / "eval").mkdir(parents=True)
    ws = OpWorkspace.at(folder / "custom" / "op")
    known = {
        "schema_version": "1.0",
        "op_name": "op",
        "supported_dtypes": ["float32", "bfloat16"],
        "p0_shapes": [SHAPE],
        "tolerance": {"float32": {"atol": 1e-5, "rtol": 1e-4}, "bfloat16": {"atol": 1e-2, "rtol": 1.6e-2}},
        "dynamic_axes": ["S"],
        **front,
    }
    ws.spec.write_text(f"---\n{yaml.safe_dump(known)}---\n# op\n{body}")
    names = [port["name"] for port in ports]
    ws.golden.write_text(GOLDEN.format(names=", ".join(names), first=names[0]))
    module = {
        "id": 1,
        "name": "all",
        "description": "everything",
        "heavy_ops": ["softmax"],
        "cu": 1.0,
        "inputs": [{"name": name, "source": "primary"} for name in names],
        "outputs": [{"name": "out", "shape": ["S", "D"], "dtype": "float32"}],
    }
    contract = {"schema_version": 1, "op": "op", "primary_inputs": ports, "modules": [module]}
    contract["final_outputs"] = [{"name": "out", "source": "module_1"}]
    ws.interfaces.write_text(yaml.safe_dump(contract))
    return ws


def tensor(name: str, dtype: str = "float32", shape: tuple[str, ...] = ("S", "D")) -> dict[str, Any]:
    return {"name": name, "shape": list(shape), "dtype": dtype}


def make_inputs_of(ws: OpWorkspace) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the generated `make_inputs`."""
    text = inputs_text(gather(ws)).replace("torch.device(f\"npu:{int(os.environ.get('TILE_FWK_DEVICE_ID', '0'))}\")", '"cpu"')
    space: dict[str, Any] = {}
    exec(compile(text, "test_inputs.py", "exec"), space)  # noqa: S102
    function: Callable[[dict[str, Any]], dict[str, Any]] = space["make_inputs"]
    return function


def made(ws: OpWorkspace, **case: Any) -> dict[str, Any]:
    """Return what the generated file makes of a case."""
    return make_inputs_of(ws)({**CASE, **case})


def test_a_scalar_called_scale_is_no_knob(tmp_path: Path) -> None:
    ws = placed(tmp_path, [tensor("x"), {"name": "scale", "shape": [], "dtype": "float32"}])
    plain, hot = made(ws), made(ws, scale=10_000.0)
    assert hot["scale"] == 10_000.0 and torch.equal(plain["x"], hot["x"])
    assert torch.equal(made(ws, draw_scale=2.0)["x"], 2.0 * plain["x"])


@pytest.mark.parametrize("name", ["draw_zone", "draw_mine", "seed", "shape", "dtype", "power", "level"])
def test_an_input_with_a_word_of_the_suite_is_refused(tmp_path: Path, name: str) -> None:
    ws = placed(tmp_path, [tensor("x"), {"name": name, "shape": [], "dtype": "float32"}])
    with pytest.raises(ContractError, match=f"'{name}' is a word of the suite; call the input something else"):
        interfaces_document.load(ws.interfaces)


@pytest.mark.parametrize("old", list(knobs.RENAMED))
def test_the_old_name_of_a_knob_ends_in_one_line_with_the_new_one(tmp_path: Path, old: str) -> None:
    ws = placed(tmp_path, [tensor("x")])
    text = inputs_text(gather(ws))
    with pytest.raises(ContractError, match=f"case c: '{old}' is no knob of make_inputs; write '{knobs.RENAMED[old]}'"):
        knobs.check_known([{"id": "c", old: 1.0}], ["x"], ws.test_inputs, text)
    knobs.check_known([{"id": "c", old: 1.0}], ["x", old], ws.test_inputs, text)
    knobs.check_known([{"id": "c", old: 1.0}], ["x"], ws.test_inputs, f'case.get("{old}")')
    with pytest.raises(ContractError, match="does not read the knob 'draw_scale'"):
        knobs.check_known([{"id": "c", "draw_scale": 1.0}], ["x"], ws.test_inputs, 'case.get("seed")')


DRAWS = [{}, {"draw_zone": "tiny"}, {"draw_scale": 1e4}, {"draw_offset": -300.0}]
DRAWS += [{"draw_zone": zone} for zone in ("shift", "low", "rising", "falling", "alternating", "grid", "zero_row", "largest")]
STEPS = [{"input": "g", "pattern": "mirror", "gap": 1e-3, "scale": 30.0}, {"input": "g", "pattern": "plateau", "gap": 1e-5}]
DRAWS += [{"cancellation_stress": {"recipe": [step]}} for step in STEPS]


@pytest.mark.slow
@pytest.mark.parametrize("said", ["[-4, 0)", "(0, inf)", [0, 1], "(0, 0.1)", "(-inf, 0]", "[1000, 1500]"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_no_draw_leaves_a_range(tmp_path: Path, said: Any, dtype: str) -> None:
    ws = placed(tmp_path, [tensor("g"), tensor("x")], input_ranges={"g": said})
    kept = ranges.of(spec_document.load(ws.spec).shape_constraints, "g")
    for knob in share(DRAWS):
        values = made(ws, dtype=dtype, **knob)["g"]
        assert values.isfinite().all() and not kept.left_by(values), (knob, values.min(), values.max())
    assert made(ws, dtype=dtype, draw_scale=100.0)["g"].unique().numel() > 8
    if dtype == "float32":
        assert made(ws)["x"].min() < -1.0, "the others are drawn as ever"


@pytest.mark.parametrize(
    ("said", "low", "high"), [("[-80, 80]", -70.0, 79.79), ("[-50, 50]", -43.7, 49.79), ("[0, 4]", 0.0, 3.99)]
)
def test_rows_that_are_low_or_large_throughout_lie_next_to_an_end_of_a_range(tmp_path: Path, said: str, low: float, high: float):
    ws = placed(tmp_path, [tensor("g")], input_ranges={"g": said})
    assert made(ws, draw_zone="shift")["g"].min() >= high, "folded into -50 to 50, 100 would be 0"
    if low < 0.0:
        values = made(ws, draw_zone="low")["g"]
        assert values.max() <= low and values.unique().numel() > 8, "folded into -80 to 80, -240 would be 80"


def test_a_constraint_bounds_a_floating_input_too(tmp_path: Path) -> None:
    ws = placed(tmp_path, [tensor("log_decay")], shape_constraints=["log_decay < 0", "S <= 4096"])
    assert (made(ws)["log_decay"] < 0).all() and (made(ws, draw_zone="shift")["log_decay"] < 0).all()


def test_a_range_of_whole_numbers_may_name_a_size(tmp_path: Path) -> None:
    ws = placed(tmp_path, [tensor("x"), tensor("pick", "int32", ("S",))], input_ranges={"pick": "[0, D)"})
    assert gather(ws).ranges["pick"] == ("0", "D") and made(ws)["pick"].max() == 31


@pytest.mark.parametrize(
    ("front", "words"),
    [
        ({"input_ranges": {"x": "0..1"}}, "input_ranges.x: '0..1' is no range"),
        ({"input_ranges": {"x": "(1, 0)"}}, "holds no value"),
        ({"input_ranges": {"eps": "(0, 1)"}, "default_params": {"eps": 0.0}}, "default_params.eps: 0.0 is outside its range"),
    ],
)
def test_a_senseless_range_is_one_line(tmp_path: Path, front: dict[str, Any], words: str) -> None:
    with pytest.raises(ContractError) as caught:
        spec_document.load(placed(tmp_path, [tensor("x")], **front).spec)
    assert words in caught.value.one_line() and "\n" not in caught.value.one_line()


def test_a_table_is_the_same_for_every_seed(tmp_path: Path) -> None:
    ws = placed(tmp_path, [tensor("x"), tensor("cos")], fixed_inputs=["cos"])
    one, other = made(ws, seed=1, draw_scale=3.0), made(ws, seed=2)
    assert torch.equal(one["cos"], other["cos"]) and not torch.equal(one["x"], other["x"])
    assert list(one) == ["x", "cos"]


TABLE = "## 5. Inputs\n| name | kind | dtype |\n|---|---|---|\n| x | input | float32, bfloat16 |\n| g | input | float32 |\n"


@pytest.mark.parametrize(
    ("ports", "front", "body"),
    [
        ([tensor("x", "bfloat16"), tensor("g")], {"supported_dtypes": ["bfloat16"]}, ""),
        ([tensor("x", "bfloat16"), tensor("g")], {}, ""),
        ([tensor("x"), tensor("g")], {}, TABLE),
    ],
)
def test_a_float32_tensor_beside_16_bits_keeps_its_dtype(tmp_path: Path, ports: Any, front: Any, body: str) -> None:
    values = made(placed(tmp_path, ports, body=body, **front), dtype={"default": "bfloat16"})
    assert (values["x"].dtype, values["g"].dtype) == (torch.bfloat16, torch.float32)


def test_slopes_rise_over_every_third_by_more_than_exp_takes(tmp_path: Path) -> None:
    ws = placed(tmp_path, [tensor("x")])
    up = made(ws, draw_zone="rising", draw_scale=270.0)["x"]
    down = made(ws, draw_zone="falling", draw_scale=270.0)["x"]
    assert (up[:, -1] - up[:, 0]).min() > 88 and (down[:, -1] - down[:, 0]).max() < -88
    assert up[-1].mean() - up[0].mean() > 88 > -88 > down[-1].mean() - down[0].mean(), "rows too: what a row keeps is stale"


EDGES = """## 9. Edge cases
- A row with NaN or +inf is NaN throughout. Inputs of -0.0 and subnormal inputs are as any other.
- S = 0, D > 32, other dtypes, non-contiguous x, eps < 0: the wrapper raises ValueError.
- S > 5000 is slow.
"""


def test_special_values_are_those_that_the_edge_cases_name(tmp_path: Path) -> None:
    ws = placed(tmp_path, [tensor("x"), tensor("g")], body=EDGES, input_ranges={"g": "[0, 1]"})
    zones = [case["draw_zone"] for case in suite_cases.cases(gather(ws)) if isinstance(case.get("draw_zone"), dict)]
    for zone in ("one_nan", "one_inf", "minus_zero", "denormal"):
        assert {"x": zone} in zones
    assert {"g": "one_inf"} not in zones and not any("largest" in str(zone) for zone in zones)
    assert made(ws, draw_zone="one_inf")["x"].isinf().sum() == 1
    values = made(ws, draw_zone="denormal")["x"]
    assert 0 < values[values != 0].abs().min() < torch.finfo(torch.float32).tiny


@pytest.mark.parametrize(
    ("said", "tried"),
    [
        ("A row of the mask with nothing but -inf: that row of out is 0.", True),
        ("A row of nothing but -inf is NaN (0 / 0).", True),
        ("A fully masked row (-inf throughout) gives 0.", True),
        ("-inf closes an element; a row that is masked completely gives 0.", True),
        ("-inf closes an element; every row keeps at least one.", False),
        ("-inf closes an element, but never all of a row; a row of only -inf is outside the domain.", False),
        ("-inf is the mask of an element, its probability is 0.", False),
    ],
)
def test_a_closed_row_is_a_case_where_spec_says_what_becomes_of_it(tmp_path: Path, said: str, tried: bool) -> None:
    """Kernels that answered NaN, or 1 / C, in the place of 0 passed a suite whose every row kept its last element."""
    ws = placed(tmp_path, [tensor("x")], body=f"## 9. Edge cases\n- {said}\n")
    zones = [case.get("draw_zone") for case in suite_cases.cases(gather(ws))]
    assert ({"x": "closed"} in zones) is tried
    assert {"x": "masked"} in zones
    closed = made(ws, draw_zone="closed")["x"].isneginf()
    assert bool(closed[0].all()) and bool(closed[-1].all()) and not bool(closed[1:-1].all())


def test_a_finite_number_however_low_closes_nothing(tmp_path: Path) -> None:
    """A kernel that took -10000, or -1e9, for -inf passed: no row held nothing but such numbers."""
    said = "## 9. Edge cases\n- A row of nothing but -inf gives 0.\n"
    ws = placed(tmp_path, [tensor("x")], body=said)
    [case] = [case for case in suite_cases.cases(gather(ws)) if "open_x" in case["id"]]
    assert case["dtype"]["default"] == "float32"
    x = made(ws, **{key: value for key, value in case.items() if key.startswith("draw_")})["x"]
    assert bool(x.isfinite().all()) and float(x.max()) < -1e9
    only = {"supported_dtypes": ["float16"], "tolerance": {"float16": {"atol": 1e-3, "rtol": 2e-3}}}
    half = placed(tmp_path / "half", [tensor("x")], body=said, **only)
    [case] = [case for case in suite_cases.cases(gather(half)) if "open_x" in case["id"]]
    x = made(half, dtype={"default": "float16"}, **{key: value for key, value in case.items() if key.startswith("draw_")})["x"]
    assert bool(x.isfinite().all()) and float(x.max()) < -1e4


@pytest.mark.parametrize("codes", ["float32", "int8"])
def test_beside_codes_rows_next_to_0_are_tried(tmp_path: Path, codes: str) -> None:
    """A kernel with a floor of 1e-5 under the step of a row's codes passed: no row was that small, and not 0."""
    ws = placed(tmp_path, [tensor("x"), tensor("w", codes)])
    found = [case["dtype"]["default"] for case in suite_cases.cases(gather(ws)) if case.get("draw_zone") == {"x": "small_rows"}]
    assert found == (["float32", "bfloat16"] if codes == "int8" else [])
    for dtype, most in (("float32", 1e-8), ("float16", 1e-5)):
        x = made(ws, draw_zone={"x": "small_rows"}, dtype={"default": dtype})["x"].reshape(-1, SHAPE["D"]).abs().amax(-1)
        assert bool((x[::2] > 0.1).all()) and bool((x[1::2] < most).all()) and bool((x[1::2] > 0.0).all())


@pytest.mark.parametrize(
    ("default", "legal", "far"), [(1.0, "(0, 1]", [0.1]), (0.5, "(0, 1]", [0.05]), (1.0, "[0.5, 2]", []), (1e-6, "(0, 1]", [])]
)
def test_a_float_scalar_is_tried_far_below_its_default(tmp_path: Path, default: float, legal: str, far: list[float]) -> None:
    """Of a clip in (0, 1] only 1 and 0.5 were tried: a kernel that took every smaller one for 0.5 passed."""
    ports = [tensor("x"), {"name": "clip", "shape": [], "dtype": "float32"}]
    ws = placed(tmp_path, ports, default_params={"clip": default}, input_ranges={"clip": legal})
    assert [case["clip"] for case in suite_cases.cases(gather(ws)) if "clip_far" in case["id"]] == far


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("x is finite", ["g"]),
        ("x and g are finite", []),
        ("g must be finite", ["x"]),
        ("x is finite or -inf", ["x", "g"]),
        ("out is 0 where x is finite", ["x", "g"]),
        ("| x | input | [S] | float32 | contiguous, finite |", ["g"]),
        ("| x | input | [S] | float32 | contiguous; finite or -Inf |", ["x", "g"]),
    ],
)
def test_an_input_that_spec_calls_finite_stays_finite(tmp_path: Path, said: str, kept: list[str]) -> None:
    body = f"## 9. Edge cases\n- -inf closes an element. NaN and +inf make a row NaN.\n\n{said}.\n"
    ws = placed(tmp_path, [tensor("x"), tensor("g")], body=body)
    zones = [case["draw_zone"] for case in suite_cases.cases(gather(ws)) if isinstance(case.get("draw_zone"), dict)]
    for zone in ("masked", "one_nan", "one_inf"):
        assert [name for name in ("x", "g") if {name: zone} in zones] == kept, zone


@pytest.mark.parametrize(
    ("said", "tried"),
    [
        ("A result beyond float16 is Inf.", False),
        ("A sum that overflows gives Inf.", False),
        ("A row with Inf is NaN throughout.", True),
    ],
)
def test_a_result_that_overflows_makes_no_infinity_a_legal_input(tmp_path: Path, said: str, tried: bool) -> None:
    ws = placed(tmp_path, [tensor("x")], body=f"## 9. Edge cases\n- {said}\n")
    assert any(case.get("draw_zone") == {"x": "one_inf"} for case in suite_cases.cases(gather(ws))) is tried


@pytest.mark.parametrize(
    ("said", "tried"),
    [
        ("A NaN in a row of x makes that row NaN, and no other.", True),
        ("A NaN in x of the last token reaches every token before it. Anywhere else it may reach later tokens too.", False),
        ("A NaN in x reaches its row; which other rows it reaches is not specified.", False),
        ("A NaN in x makes its row NaN. Under the flag it is not said which masked keys get NaN as well.", True),
        ("A NaN in x makes its row NaN. An empty row may be slow.", True),
        ("Rows that are left out may hold NaN: they reach nothing.\n\n| out | output | [S, D] | float32 | new |", True),
        ("A NaN may occur in x: it makes its row NaN. Later rows may also be NaN where it lies early.", False),
        ("A NaN in x makes its row NaN, and y may hold NaN in other rows.\n\n| y | output | [S, D] | float32 | new |", False),
    ],
)
def test_a_nan_whose_reach_spec_leaves_open_is_no_case(tmp_path: Path, said: str, tried: bool) -> None:
    """A right kernel in chunks spreads it where the golden, token by token, does not."""
    ws = placed(tmp_path, [tensor("x")], body=f"## 9. Edge cases\n- {said}\n")
    left_out: dict[str, str] = {}
    made_cases = suite_cases.cases(gather(ws), left_out)
    assert any(case.get("draw_zone") == {"x": "one_nan"} for case in made_cases) is tried
    assert ("leaves open how far a NaN reaches" in left_out.get("L5_one_nan", "")) is not tried


def test_an_open_end_that_16_bits_do_not_have_rules_out_no_number_of_theirs() -> None:
    """Every verdict on a right kernel ended with ERROR: huge bfloat16 below 10000 are 9984, to which torch rounds that end."""
    kept = ranges.Range(-10000.0, 10000.0, open_low=True, open_high=True)
    legal = torch.tensor([9984.0, -9984.0, float("nan")], dtype=torch.bfloat16)
    assert not kept.left_by(legal) and kept.left_by(torch.tensor([10048.0], dtype=torch.bfloat16))
    assert kept.left_by(torch.tensor([-10000.0], dtype=torch.float16)) and kept.left_by(torch.tensor([10000.0]))


@pytest.mark.parametrize(
    ("said", "tried"),
    [
        ("Padding is cleared, even a NaN in it. NaN in rows that count is outside the domain.", set()),
        ("Rows of padding may hold NaN. Elsewhere a NaN in x is illegal.", {"g"}),
        ("A NaN in x makes its row NaN. In g NaN is outside the domain.", {"x"}),
        ("A NaN in x makes its window NaN. A NaN outside of the window reaches nothing.", {"x", "g"}),
    ],
)
def test_a_nan_that_spec_rules_out_in_part_is_no_case(tmp_path: Path, said: str, tried: set[str]) -> None:
    """A right kernel that holds a weight to its legal range drops a NaN; legal it was in rows of padding alone."""
    ws = placed(tmp_path, [tensor("x"), tensor("g")], body=f"## 9. Edge cases\n- {said}\n")
    left_out: dict[str, str] = {}
    zones = [case.get("draw_zone") for case in suite_cases.cases(gather(ws), left_out)]
    assert {name for name in ("x", "g") if {name: "one_nan"} in zones} == tried
    assert {name for name in ("x", "g") if "rules NaN out" in left_out.get(f"L5_one_nan_{name}", "")} == {"x", "g"} - tried


@pytest.mark.parametrize(
    ("kept", "ends"),
    [("[0, 1]", [0.0, 1.0]), ("[-5, 0)", [0.0]), ("(-inf, 0]", [0.0]), ("[0, inf)", []), ("[1e-4, 0.1]", []), (None, [])],
)
def test_what_is_carried_over_many_tiles_by_a_share_still_counts_in_the_last(
    tmp_path: Path, kept: str | None, ends: list[float]
) -> None:
    """A product of shares dies out within a tile: a kernel that carried nothing past the fourth one passed."""
    ws = placed(tmp_path, [tensor("x"), tensor("g")], **({"input_ranges": {"g": kept}} if kept else {}))
    sources = gather(ws)
    cases = [case for case in suite_cases.cases(sources) if "g_near_" in case["id"]]
    assert list(dict.fromkeys(case["draw_offset"]["g"] for case in cases)) == ends
    assert all(case["level"] == "L4" and max(case["shape"].values()) > 100 for case in cases)
    assert len(cases) == len(ends) * len(sources.spec.supported_dtypes)
    for case in cases:
        values = made(ws, **{key: value for key, value in case.items() if key.startswith("draw_")})
        assert float((values["g"] - case["draw_offset"]["g"]).abs().max()) < 1e-3 and float(values["x"].std()) > 0.1


@pytest.mark.parametrize("walked", [False, True])
def test_next_to_an_end_one_row_is_far_longer_where_the_golden_walks_none(walked: bool, tmp_path: Path) -> None:
    """A slope next to 0 shows a distance beyond 1024; a walk of so many steps would cost each verdict its time."""
    ws = placed(tmp_path, [tensor("x"), tensor("g")], input_ranges={"g": "[0, 1]"})
    walk = "    for row in x:\n        g = g * row\n" if walked else ""
    ws.golden.write_text(f"def op_golden(x, g):\n{walk}    return x * g\n")
    cases = [case for case in suite_cases.cases(gather(ws)) if "g_near_0" in case["id"]]
    assert [case["shape"]["S"] > 1024 for case in cases] == [not walked, False], cases


def test_one_tensor_is_unlike_the_others(tmp_path: Path) -> None:
    cases = suite_cases.cases(gather(placed(tmp_path, [tensor("x"), tensor("g")])))
    zones = [case.get("draw_zone") for case in cases]
    assert {"x": "all_negative", "g": "all_positive"} in zones and {"g": "all_negative", "x": "all_positive"} in zones
    assert {"x": "row_scaled"} in zones and {"g": "zero_row"} in zones
    assert {"x": "rising", "g": "rising"} in zones and {"x": "rising", "g": "falling"} in zones
