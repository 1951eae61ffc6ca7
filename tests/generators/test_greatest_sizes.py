"""Labels that a golden ignores, the greatest sizes of axes, and indices that reach beyond the P0 shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.generators.test_scalars_lists_and_pools import CPU, drawn, unseen

from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.cases.refusals import refusals
from pypto_op.generators.evaluation import inputs_text
from pypto_op.generators.operator.sources import Sources, gather

from .test_suite import operator

LABELS = """import torch


def op_golden(x, y, labels, flag, ignore_index):
    keep = labels.to(torch.int64) != ignore_index
    return torch.where(keep[:, None, None], x + y, torch.zeros_like(x))
"""


def labelled(folder: Path) -> Sources:
    """Gather an operator with labels below D, or `ignore_index`, which the golden sets apart."""
    ws = operator(folder, golden=LABELS, default_params={"flag": False, "ignore_index": -100}).ws
    wiring = yaml.safe_load(ws.interfaces.read_text())
    wiring["primary_inputs"][2:] = [
        {"name": "labels", "shape": ["B"], "dtype": "int32"},
        {"name": "flag", "shape": [], "dtype": "bool"},
        {"name": "ignore_index", "shape": [], "dtype": "int"},
    ]
    wiring["modules"][0]["inputs"] = [{"name": port["name"], "source": "primary"} for port in wiring["primary_inputs"]]
    ws.interfaces.write_text(yaml.safe_dump(wiring))
    said = "shape_constraints: ['0 <= labels < D', 'D % 16 == 0', 'D <= 512']\n---\n# op"
    ws.spec.write_text(ws.spec.read_text().replace("---\n# op", said))
    return gather(ws)


def test_labels_that_the_golden_ignores_are_in_cases_by_default_and_by_other_numbers(tmp_path: Path) -> None:
    sources = labelled(tmp_path)
    cases = [case for case in suite_cases.cases(sources) if "draw_set" in case]
    usual = [(case["dtype"]["default"], tuple(case["shape"].values())) for case in cases if "ignore_index" not in case]
    shapes = {tuple(sizes.values()) for sizes in sources.p0_sizes()}
    assert {dtype for dtype, _ in usual} == {"float32", "bfloat16"} and len(usual) == len(set(usual)) == 2 * (1 + len(shapes))
    assert shapes < {shape for _, shape in usual}, "each of the request's, too"
    assert {case["ignore_index"] for case in cases if "ignore_index" in case} == {-7, 0, 1, 63}, (
        "one that is a label too, and the last one"
    )
    assert all(case["draw_set"] == {"labels": case.get("ignore_index", -100)} for case in cases)
    space: dict[str, Any] = {}
    exec(compile(CPU.sub('"cpu"', inputs_text(sources)), "test_inputs.py", "exec"), space)  # noqa: S102
    for case in cases:
        labels = space["make_inputs"]({**case, "shape": {**case["shape"], "B": 7}})["labels"]
        ignored = labels == case.get("ignore_index", -100)
        assert 3 <= int(ignored.sum()) < 7 and int(labels[~ignored].min()) >= 0


def test_the_greatest_size_that_spec_allows_a_fixed_axis_is_tried(tmp_path: Path) -> None:
    cases = suite_cases.cases(labelled(tmp_path))
    assert [case["shape"]["D"] for case in cases if "D_greatest" in case["id"]] == [512]


@pytest.mark.parametrize(
    ("said", "met"),
    [("D <= 70", {"greatest": 70}), ("D >= 3", {"least": 3}), ("3 <= D <= 70", {"least": 3, "greatest": 70}), ("D <= 64", {})],
)
def test_a_named_end_of_an_axis_is_tried_though_the_request_has_one_size(tmp_path: Path, said: str, met: dict[str, int]) -> None:
    """A convolution with room for four taps passed where SPEC.md allowed seven, and asked for three."""
    ws = operator(tmp_path).ws
    ws.spec.write_text(ws.spec.read_text().replace("---\n# op", f"shape_constraints: ['{said}']\n---\n# op"))
    cases = suite_cases.cases(gather(ws))
    assert {case["id"].split("_")[2]: case["shape"]["D"] for case in cases if case["id"].startswith("L3_D_")} == met


def test_the_greatest_size_is_tried_beside_smaller_axes_where_the_usual_ones_make_it_too_large(tmp_path: Path) -> None:
    maker = suite_cases.filled(unseen("int8_linear", tmp_path))
    assert [case["shape"] for case in maker.cases if "K_greatest" in case["id"]] == [{"T": 19, "K": 4096, "N": 32}]
    [beyond] = [made["shape"] for made in refusals(maker) if made["id"] == "raises_K_4128"]
    assert beyond["K"] == 4128 and beyond["N"] % 32 == 0, "only K may be what the wrapper refuses"


@pytest.mark.slow
@pytest.mark.parametrize(("op", "indices"), [("rotary_pairs", "positions"), ("paged_decode", "block_table")])
def test_indices_reach_beyond_what_float16_holds_where_memory_allows(tmp_path: Path, op: str, indices: str) -> None:
    sources = unseen(op, tmp_path)
    [large] = [case for case in suite_cases.cases(sources) if "P_large" in case["id"]]
    made = [drawn(sources, large["shape"], seed)[indices] for seed in (large["seed"], 5, 6)]
    assert all(int((found > 2048).sum()) >= 3 for found in made), "of a few tokens one in two"


def test_a_count_of_heads_is_tried_beyond_the_p0_shapes(tmp_path: Path) -> None:
    sources = unseen("rotary_pairs", tmp_path)
    assert suite_cases.filled(sources).counted == {"H": 4}
    assert [case["shape"]["H"] for case in suite_cases.cases(sources) if "H_more" in case["id"]] == [17], "past room for 8, or 16"
    sources.ws.spec.write_text(sources.ws.spec.read_text().replace('  - "C % 8 == 0"', '  - "C % 8 == 0"\n  - "H <= 4"'))
    assert not suite_cases.filled(gather(sources.ws)).counted, "what SPEC.md limits is no count that it leaves open"
    assert not suite_cases.filled(unseen("swiglu_bwd", tmp_path / "other")).counted


@pytest.mark.parametrize(
    ("said", "tried"),
    [
        ('  - "E <= 8"\n', 8),
        ('  - "E < 7"\n', 6),
        ('  - "2 <= E <= 6"\n', 6),
        ("", 17),
        ('  - "E >= 2"\n', 17),
    ],
)
def test_what_an_index_chooses_is_tried_in_greater_number_than_the_p0_shapes_have(tmp_path: Path, said: str, tried: int) -> None:
    sources = unseen("lora_linear", tmp_path)
    text = sources.ws.spec.read_text()
    assert '"-1 <= index < E"' in text, "a condition that names E and leaves its number open"
    sources.ws.spec.write_text(text.replace('  - "E <= 8"\n', said))
    sizes = [case["shape"]["E"] for case in suite_cases.cases(gather(sources.ws))]
    assert max(sizes) == tried and max(shape["E"] for shape in sources.spec.p0_shapes) == 4
