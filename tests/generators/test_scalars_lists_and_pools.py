"""Shapes made of scalars, axes that only whole numbers have, axes that indices point into, and cases in another dtype."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from benchmarks import fresh
from tests.generators import few_cases
from tests.judge.judging import Answer

from pypto_op.backends.reference import ReferenceSession
from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.cases import values, whole_numbers
from pypto_op.generators.evaluation import inputs_text
from pypto_op.generators.operator.sources import Sources, gather
from pypto_op.generators.rehearsing.first_candidate import Draw, FirstCandidate
from pypto_op.generators.rehearsing.rehearsal import Offers, rehearse
from pypto_op.workspace import OpWorkspace

from .test_suite import operator

Call = Callable[..., Answer]
CPU = re.compile(r"torch\.device\(f?\"npu.*\)")


def unseen(op: str, folder: Path) -> Sources:
    """Gather an operator of tests/fixtures/fresh."""
    return gather(OpWorkspace.at(fresh.workspace(op, folder)))


def drawn(sources: Sources, shape: Mapping[str, int], seed: int, **knobs: Any) -> dict[str, Any]:
    """Return what the generated inputs file makes of a case."""
    space: dict[str, Any] = {}
    exec(compile(CPU.sub('"cpu"', inputs_text(sources)), "test_inputs.py", "exec"), space)  # noqa: S102
    made: dict[str, Any] = space["make_inputs"](
        {"id": "c", "shape": dict(shape), "dtype": {"default": "float16"}, "seed": seed, **knobs}
    )
    return made


def test_a_scalar_in_a_shape_takes_the_value_of_the_case_or_its_default(tmp_path: Path) -> None:
    sources = unseen("moe_topk_gate", tmp_path)
    cases = suite_cases.cases(sources)
    assert {case["shape"]["E"] for case in cases} >= {64, 160} and len({case["shape"]["T"] for case in cases}) > 10
    interfaces = sources.interfaces
    for case, k in (({"shape": {"T": 5, "E": 64}}, 6), ({"shape": {"T": 5, "E": 64}, "k": 2}, 2)):
        shapes = interfaces.resolve_shapes(interfaces.sizes_of(case))
        assert shapes["module_1", "weights"] == shapes["module_1", "index"] == (5, k)
    assert interfaces.resolve_shapes({"T": 5, "E": 64})["module_1", "index"] == (5, 6)


def test_few_steps_of_an_iteration_are_tried_beside_the_ends_of_float_scalars(tmp_path: Path) -> None:
    """Beside 20 steps nobody sees whether the sums of rows have their eps: all has converged."""
    sources = unseen("sinkhorn_split", tmp_path)
    ends = [case for case in suite_cases.cases(sources) if "_at_ends" in case["id"]]
    assert [one["iters"] for one in ends if one["eps"] == 0.01 and whole_numbers.stays(sources, one, "iters")] == [2, 1]
    assert not [case["id"] for case in suite_cases.cases(unseen("cache_append", tmp_path / "other")) if "_at_ends" in case["id"]]


@pytest.mark.slow
def test_a_whole_number_is_tried_at_the_ends_of_its_range_and_between(tmp_path: Path) -> None:
    sources = unseen("max_pool_rows", tmp_path)
    sources.ws.test_inputs.write_text(inputs_text(sources))
    cases = [case for case in suite_cases.cases(sources) if "window" in case or "stride" in case]
    stays = partial(whole_numbers.stays, sources)
    done = rehearse(sources.ws, cases, sources.spec.policy(), scalars=sources.scalars, offers=Offers(stays=stays))
    kept = {name: {case[name] for case in done.cases if name in case} for name in ("window", "stride")}
    assert kept == {"window": {16, 7, 2}, "stride": {16, 5, 1}}, "room for 8 rows, or a step of small models, shows"
    steps = [case["step"] for case in suite_cases.cases(unseen("adamw_step", tmp_path / "other")) if "step" in case]
    assert {1_000_000, 1001} <= set(steps), "what a correction does wrong in some decade is not seen at either end"


def test_a_number_that_another_one_leaves_no_room_for_is_tried_beside_one_that_does(tmp_path: Path) -> None:
    sources = unseen("avg_pool_image", tmp_path)
    cases = suite_cases.cases(sources)
    tried = {tuple(case.get(name, sources.scalars[name]) for name in ("window", "pad")) for case in cases}
    assert (4, 2) in tried and (2, 1) in tried, "a pad of 2 is legal beside a window of 4 only"
    assert all(2 * pad <= window for window, pad in tried), "a right wrapper refuses the others"
    assert all(case.get("window", 3) <= min(case["shape"]["H"], case["shape"]["W"]) for case in cases), "and these"


def test_the_greatest_number_is_tried_on_an_axis_that_is_no_longer(tmp_path: Path) -> None:
    """No row of 196 readings has 3 of them: what a kernel does with no more readings than the correction showed nowhere."""
    cases = suite_cases.cases(unseen("masked_moments", tmp_path))
    assert {"R": 16, "C": 3} in [case["shape"] for case in cases if case.get("correction") == 3]
    cases = suite_cases.cases(unseen("max_pool_rows", tmp_path / "other"))
    assert 16 in [case["shape"]["T"] for case in cases if case.get("window") == 16]


@pytest.mark.slow
def test_a_case_in_which_every_planted_fault_says_the_same_has_no_number_for_its_power(tmp_path: Path) -> None:
    """With no row taken every answer is 0: `harness new` broke off at a power of 0, which the suite refuses."""
    sources = unseen("kl_div_temperature", tmp_path)
    sources.ws.test_inputs.write_text(inputs_text(sources))
    zone = {"student": "one_nan", "mask": "none"}
    case = next(one for one in suite_cases.cases(sources) if one.get("draw_zone") == "one_nan" or one.get("draw_zone") == zone)
    done = rehearse(sources.ws, [{**case, "draw_zone": zone}], sources.spec.policy(), scalars=sources.scalars)
    assert len(done.cases) == 1 and "power" not in done.cases[0], done


@pytest.mark.parametrize(("said", "tried"), [('  - "1 <= step"\n', {1000, 33}), ("", {2, 7})])
def test_a_whole_number_without_a_greatest_value_is_tried_far_out_where_spec_names_the_least(
    tmp_path: Path, said: str, tried: set[int]
) -> None:
    spec = unseen("adamw_step", tmp_path).ws.spec
    silent = spec.read_text().replace("from 1 on", "number of the step")
    spec.write_text(silent.replace('  - "1 <= step"\n  - "step <= 1000000"\n', said))
    steps = {case["step"] for case in suite_cases.cases(gather(OpWorkspace.at(spec.parent))) if "step" in case}
    assert tried <= steps and (1000 in steps) is bool(said)


def test_a_p0_shape_may_name_the_scalar(tmp_path: Path) -> None:
    spec = unseen("moe_topk_gate", tmp_path).ws.spec
    spec.write_text(spec.read_text().replace("{T: 64, E: 64}", "{T: 64, E: 64, k: 3}"))
    first, second = gather(OpWorkspace.at(spec.parent)).p0_sizes()
    assert first == {"T": 64, "E": 64, "k": 3} and second == {"T": 33, "E": 160}


def test_a_scalar_in_a_shape_without_a_value_is_told_with_file_and_remedy(tmp_path: Path, call: Call) -> None:
    spec = unseen("moe_topk_gate", tmp_path).ws.spec
    spec.write_text(spec.read_text().replace("default_params: {k: 6, ", "default_params: {"))
    answer = call("harness", "new", spec.parent)
    assert answer.code == 2, answer
    last = answer.stderr.strip().splitlines()[-1]
    assert str(spec) in last and "no value for k" in last and "default_params: {k: ...}" in last, last


def test_a_table_is_walked_one_by_one_and_points_into_more_pages_than_it_has_blocks(tmp_path: Path) -> None:
    sources = unseen("paged_decode", tmp_path)
    assert (sources.long, sources.pools, sources.steps_along("NB")) == (["NB"], ["P"], (1,))
    cases = suite_cases.cases(sources)
    blocks = {case["shape"]["NB"] for case in cases}
    assert {1, 2, 3, 5, 6, 7, 11} <= blocks and max(blocks) < 16, "each block costs a page of every sequence"
    apart = [case for case in cases if case["shape"]["P"] > case["shape"]["NB"] * 2]
    assert len(apart) > len(cases) * 0.8, "a wrong table shows where there are more pages than blocks"
    assert max(case["shape"]["P"] for case in cases) > 32


@pytest.mark.slow
def test_lengths_vary_and_lie_beside_whole_pages(tmp_path: Path) -> None:
    sources = unseen("paged_decode", tmp_path)
    shape = {**sources.p0_sizes()[0], "B": 7}
    lengths = torch.stack([drawn(sources, shape, seed)["lengths"] for seed in range(40)])
    assert int(lengths.min()) == 1 and int(lengths.max()) == shape["NB"] * 32
    assert bool((lengths.max(dim=1).values == shape["NB"] * 32).all()), "the longest one always"
    assert len(set(lengths.argmax(dim=1).tolist())) > 3, "at no place of its own"
    beside = lengths % 32
    for rest in (0, 1, 31):
        assert float((beside == rest).float().mean()) > 0.1, rest
    pairs = [sorted(drawn(sources, {**shape, "B": 2}, seed)["lengths"].tolist()) for seed in range(20)]
    assert sum(1 < low < shape["NB"] * 32 for low, _ in pairs) > 10, "of two, one mostly lies between"


def test_the_smallest_base_is_chosen_once_dynamic_axes_are_small(tmp_path: Path) -> None:
    cases = suite_cases.cases(unseen("swiglu_bwd", tmp_path))
    small = [case for case in cases if case["shape"]["F"] == 704]
    assert len(small) > len(cases) * 0.8, "the other P0 shape is smaller only by its dynamic axis"


def test_huge_numbers_come_in_each_dtype(tmp_path: Path) -> None:
    cases = suite_cases.cases(operator(tmp_path))
    assert {case["dtype"]["default"] for case in cases if case.get("draw_zone") == "huge"} == {"float32", "bfloat16"}


@pytest.mark.slow
def test_a_zone_that_says_nothing_in_one_dtype_is_tried_in_another(tmp_path: Path) -> None:
    maker = suite_cases.filled(operator(tmp_path))
    [tiny] = [case for case in maker.cases if case.get("draw_zone") == "tiny" and "draw_alike" not in case]
    own, other = tiny["dtype"]["default"], {"float32", "bfloat16"} - {tiny["dtype"]["default"]}
    golden = f"import torch\n\n\ndef op_golden(x, y, flag):\n    return x + y if x.dtype != torch.{own} else x * 0\n"
    sources = operator(tmp_path, golden=golden)
    sources.ws.test_inputs.write_text(inputs_text(sources))
    done = rehearse(sources.ws, [tiny], sources.spec.policy(), offers=Offers(instead=maker.in_other_dtypes))
    assert list(done.dropped) == [tiny["id"]]
    assert [case["dtype"]["default"] for case in done.cases] == list(other)
    assert done.cases[0]["draw_zone"] == "tiny" and done.cases[0]["id"] != tiny["id"]


PLACES = """import torch


def op_golden(x, y, at):
    rows = x.shape[1]
    place = torch.floor(at.to(torch.float32)).to(torch.int64)
    assert int(place.min()) >= 0 and int(place.max()) < rows, "out of the row"
    return x * at[:, None, None] + y
"""


def placed(folder: Path) -> Sources:
    """Gather an operator with a floating place in a row of S, one for each batch."""
    ws = operator(folder, golden=PLACES, shape_constraints=["0 <= at <= S - 1"], supported_dtypes=["float32"]).ws
    wiring = yaml.safe_load(ws.interfaces.read_text())
    wiring["primary_inputs"][2:] = [{"name": "at", "shape": ["B"], "dtype": "float32"}]
    wiring["modules"][0]["inputs"] = [{"name": port["name"], "source": "primary"} for port in wiring["primary_inputs"]]
    ws.interfaces.write_text(yaml.safe_dump(wiring))
    return gather(ws)


def test_a_floating_input_that_ends_at_a_size_fills_its_range_and_does_not_leave_it(tmp_path: Path) -> None:
    sources = placed(tmp_path)
    space: dict[str, Any] = {}
    exec(compile(CPU.sub('"cpu"', inputs_text(sources)), "test_inputs.py", "exec"), space)  # noqa: S102
    case = {"id": "c", "dtype": {"default": "float32"}}
    for size, seed, zone in ((1, 1, "normal"), (2, 2, "normal"), (700, 3, "normal"), (700, 4, "huge"), (700, 5, "tiny")):
        at = space["make_inputs"]({**case, "shape": {"B": 33, "S": size, "D": 16}, "seed": seed, "draw_zone": zone})["at"]
        assert float(at.min()) == 0.0 and float(at.max()) == size - 1, "both ends"
        assert size == 1 or len(set(at.tolist())) > 5
        assert size < 3 or zone == "tiny" or int(((at > 100) & (at < 600)).sum()) > 5, "and between"
        assert int((at == at.round()).sum()) > 8, "whole places, where a share is 0"


@pytest.mark.slow
def test_such_a_harness_is_sound_where_a_range_is_one_value(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    few_cases.keep(monkeypatch, '"S": 1,')
    root = placed(tmp_path).ws.root
    assert call("harness", "new", root).code == 0
    assert re.search(r'"S": 1\b', (root / "eval" / "adversarial_suite.json").read_text())
    assert call("verify", "--self-test", root).code == 0


@pytest.mark.slow
def test_another_value_of_a_scalar_is_tried_on_other_shapes_where_it_says_nothing_on_the_usual_one(tmp_path: Path) -> None:
    maker = suite_cases.filled(unseen("top_p_filter", tmp_path))
    ws, policy = maker.sources.ws, maker.sources.spec.policy()
    only_small = "    assert top_p > 0.6 or logits.shape[0] < 20\n    wide ="
    ws.golden.write_text(ws.golden.read_text().replace("    wide =", only_small, 1))
    ws.test_inputs.write_text(inputs_text(maker.sources))
    others = [case for case in maker.cases if "other_top_p" in case["id"]]
    assert others and all(case["shape"]["N"] > 20 for case in others)
    done = rehearse(ws, others, policy, scalars=maker.sources.scalars, offers=Offers(instead=maker.in_place_of))
    assert {case["dtype"]["default"] for case in done.cases} == {"float32", "bfloat16"}, "else nobody minds a fixed top_p"
    assert all(case["shape"]["N"] < 20 and case["top_p"] == 0.54 for case in done.cases) and len(done.dropped) == len(others)


BOUNDED = """import torch


def op_golden(x, y, flag, eps):
    norm = torch.sqrt(torch.sum(x * x, dim=-1, keepdim=True))
    return x / torch.clamp(norm, min=eps) {more}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "said", "default", "shows"),
    [
        ("+ 0.0 * y", [], 1e-12, ["other"]),  # a norm of 8, and one of 0.0008: less than the default shows nowhere
        ("+ 0.0 * y", [], 1, ["other", "across"]),  # a float that is written as a whole number
        ("* 0.0 + y", [], 1e-12, []),  # the golden minds none
        ("+ 0.0 * y", ["eps < 1e-9"], 1e-12, []),  # SPEC.md allows none that shows
    ],
)
def test_an_eps_that_bounds_a_norm_shows_on_small_inputs_or_it_is_told_that_none_does(
    tmp_path: Path, more: str, said: list[str], default: float, shows: list[str]
) -> None:
    sources = operator(
        tmp_path,
        golden=BOUNDED.format(more=more),
        default_params={"flag": False, "eps": default},
        shape_constraints=said,
        supported_dtypes=["float32"],
    )
    wiring = yaml.safe_load(sources.ws.interfaces.read_text())
    wiring["primary_inputs"].append({"name": "eps", "shape": [], "dtype": "float32"})
    wiring["modules"][0]["inputs"].append({"name": "eps", "source": "primary"})
    sources.ws.interfaces.write_text(yaml.safe_dump(wiring))
    maker = suite_cases.filled(gather(sources.ws))
    sources.ws.test_inputs.write_text(inputs_text(maker.sources))
    others = [case for case in maker.cases if "eps" in case and "flag" not in case]
    tell = partial(values.telling, maker)
    done = rehearse(sources.ws, others, sources.spec.policy(), scalars=maker.sources.scalars, offers=Offers(telling=tell))
    beside = [case for case in done.cases if "_beside" in case["id"] and "_rows" not in case["id"]]
    assert [case["draw_zone"] for case in beside] == ["tiny"] * len(shows)
    silent = [case["id"] for case in others if not any(word in case["id"] for word in (*shows, "_far"))]
    # A norm of 0 makes eps a guard, which a wrapper may refuse to take as 0, unless SPEC.md has a range that holds it.
    told = [name if "zero_eps" in name and not said else f"{name}_beside" for name in silent]
    assert list(done.dropped) == told, "it is told where none shows"
    assert {case["eps"] > default for case in others} == {True, False}, "a kernel may take the larger of an eps and its default"


def told_apart(sources: Sources, case: Any, name: str) -> bool:
    """Whether a case refuses what the golden answers with the default of a scalar."""
    with ReferenceSession(sources.ws) as session:
        first = FirstCandidate(session, sources.ws, sources.spec.policy())
        inputs, usual = (dict(session.make_inputs(each)) for each in (case, {**case, name: sources.scalars[name]}))
        draw = Draw(first, case, inputs, first.golden(list(inputs.values())))
        return not draw.takes(first.golden(list(usual.values())).outputs)


@pytest.mark.slow
@pytest.mark.parametrize(("word", "name"), [("other", "eps"), ("other", "weight_decay"), ("zero", "weight_decay")])
def test_a_scalar_that_another_hides_is_tried_beside_other_values_of_that(tmp_path: Path, word: str, name: str) -> None:
    """In bfloat16 no eps shows under a step of a thousandth: a kernel with an eps of its own there passed.

    Nor does a decay of 0 that a wrapper takes for "not given".
    """
    maker = suite_cases.filled(unseen("adamw_step", tmp_path))
    sources = maker.sources
    sources.ws.test_inputs.write_text(inputs_text(sources))
    alone = [case for case in maker.cases if f"{word}_{name}" in case["id"]]
    assert {case["dtype"]["default"] for case in alone if not told_apart(sources, case, name)} >= {"bfloat16"}
    tell = partial(values.telling, maker)
    done = rehearse(sources.ws, alone, sources.spec.policy(), scalars=sources.scalars, offers=Offers(telling=tell))
    telling = [case["dtype"]["default"] for case in done.cases if told_apart(sources, case, name)]
    assert sorted(telling) == ["bfloat16", "float32"] and not done.dropped, "one in each dtype, and no more"
    assert [case for case in done.cases if "_beside" not in case["id"]], "what tells other faults stays"
    assert all((case[name] == 0.0) == (word == "zero") for case in done.cases)


def test_another_value_of_a_scalar_also_stands_beside_rows_of_sizes_of_their_own(tmp_path: Path) -> None:
    """Among rows of one size an eps within each of two norms is nearly one behind their product: a cosine's passed."""
    sources = unseen("layer_norm_bwd", tmp_path)
    cases = {case["id"]: case for case in suite_cases.cases(sources)}

    def share(case: Mapping[str, Any]) -> float:
        knobs = {key: value for key, value in case.items() if key.startswith("draw_")}
        made = drawn(sources, case["shape"], 42, **knobs)
        one, two = (made[name].double().square().sum(-1) for name in ("grad_out", "x"))
        within, behind = ((one + case["eps"]) * (two + case["eps"])).sqrt(), (one * two).sqrt() + case["eps"]
        return float(((within - behind) / within).abs().max())

    rows = cases["L3_other_eps_rows_float32"]
    assert rows["shape"]["H"] == 1280 and set(rows["draw_zone"]) == {"grad_out", "x"}, "as wide as the widest P0 shape"
    assert share(cases["L3_other_eps_float32"]) < 1e-4 < 5e-4 < share(rows)
    flat = suite_cases.cases(unseen("adamw_step", tmp_path / "flat"))
    assert not any("_rows_" in case["id"] for case in flat), "tensors without rows have none"


@pytest.mark.slow
def test_a_scalar_that_nothing_shows_is_said(tmp_path: Path) -> None:
    maker = suite_cases.filled(unseen("adamw_step", tmp_path))
    ws = maker.sources.ws
    ws.golden.write_text(ws.golden.read_text().replace(" + eps)", " + 1e-8)"))
    ws.test_inputs.write_text(inputs_text(maker.sources))
    alone = [case for case in maker.cases if "other_eps_float32" in case["id"]]
    tell = partial(values.telling, maker)
    done = rehearse(ws, alone, maker.sources.spec.policy(), scalars=maker.sources.scalars, offers=Offers(telling=tell))
    said = {"L3_other_eps_float32_beside": "no case was found that tells another eps from the default"}
    assert len(done.cases) == 1 and done.dropped == said


@pytest.mark.parametrize("sentence", ["NaN and infinite x are outside the domain", "x with NaN: the wrapper raises ValueError"])
def test_nan_that_spec_rules_out_is_no_input(tmp_path: Path, sentence: str) -> None:
    sources = operator(tmp_path)
    sources.ws.spec.write_text(sources.ws.spec.read_text() + f"\n## 9. Edge cases\n\n- {sentence}.\n- S = 1 works.\n")
    assert not any("one_" in str(case.get("draw_zone")) for case in suite_cases.cases(gather(sources.ws)))


MASKED = """import torch


def op_golden(x, y, keep):
    weight = torch.softmax(torch.where(keep != 0, x[:, :, 0], torch.full_like(x[:, :, 0], -1e30)), dim=-1)
    return weight[:, :, None] * y
"""


@pytest.mark.parametrize(
    ("dtype", "said", "kept"),
    [
        ("bool", [], {}),
        ("int32", ["0 <= keep <= 1"], {}),
        ("int8", ["0 <= keep", "keep < 2"], {}),
        ("float32", [], {"keep": {"one_of": [1, 0]}}),
        ("bfloat16", [], {"keep": {"one_of": [0.0, 1.0]}}),
    ],
)
def test_a_mask_leaves_out_whole_tiles_and_a_row(tmp_path: Path, dtype: str, said: list[str], kept: dict[str, Any]) -> None:
    ws = operator(tmp_path, golden=MASKED, shape_constraints=said, supported_dtypes=["float32"]).ws
    wiring = yaml.safe_load(ws.interfaces.read_text())
    wiring["primary_inputs"][2:] = [{"name": "keep", "shape": ["B", "S"], "dtype": dtype}]
    wiring["modules"][0]["inputs"] = [{"name": port["name"], "source": "primary"} for port in wiring["primary_inputs"]]
    ws.interfaces.write_text(yaml.safe_dump(wiring))
    front = ws.spec.read_text().replace("---\n# op", f"input_ranges: {kept}\n---\n# op")
    ws.spec.write_text(front + "\n## 9. Edge cases\n\n- NaN in x reaches its row.\n")
    sources = gather(ws)
    space: dict[str, Any] = {}
    exec(compile(CPU.sub('"cpu"', inputs_text(sources)), "test_inputs.py", "exec"), space)  # noqa: S102
    drawn = {case["id"]: space["make_inputs"](case)["keep"] for case in suite_cases.cases(sources)}
    assert {value for keep in drawn.values() for value in keep.unique().tolist()} == {0, 1}, "nothing between, in no zone"
    assert {str(keep.dtype) for keep in drawn.values()} == {f"torch.{dtype}"}
    assert not any("keep" in case and "nan_keep" in case for case in drawn), "a mask is no NaN"
    made = {name: keep.to(torch.int64) for name, keep in drawn.items()}
    runs = made["L3_runs_keep"]
    assert bool((runs.sum(-1) > 0).all()), "a row that chooses nothing is a case of its own"
    changes = (runs[:, 1:] != runs[:, :-1]).sum(-1)
    assert bool((changes <= 2).all()) and bool((changes > 0).any())
    tiles = runs[:, : runs.shape[1] // 16 * 16].reshape(runs.shape[0], -1, 16).sum(-1)
    assert bool((tiles == 0).any()) and bool((tiles == 16).any()), "else a tile that is left out shows nowhere"
    assert int(made["L3_none_keep"][0].sum()) == 0 < int(made["L3_none_keep"][1].sum())
    assert int(made["L5_one_nan_x_none"].sum()) == 0 and int(made["L5_one_nan_x_all"].min()) == 1
