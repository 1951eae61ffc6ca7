"""The sizes of generated suites: which axes are walked, in which steps, how many tiles, and in what order. No kernel runs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from pypto_op.documents.steps import steps_of
from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.cases import walks
from pypto_op.generators.cases.case_maker import Maker
from pypto_op.generators.operator.sources import Sources, gather
from pypto_op.judge.running.lanes import lanes_of
from pypto_op.workspace import OpWorkspace

from .test_suite import built, operator

REPOSITORY = Path(__file__).resolve().parents[2]
WALKED = {
    "rmsnorm": {"T": 16},
    "softmax": {"R": 16, "C": 128},
    "matmul_bias_gelu": {"M": 128},
    "flash_attention_fwd": {"S": 128},
    "flash_attention_bwd": {"S": 128},
    "gated_delta_rule_bwd": {"T": 64},
}
"""Example -> the axes that its kernel walks, and in which steps."""


def example(name: str, folder: Path) -> Sources:
    """Copy an example's documents, not its suite, and gather them."""
    source, root = REPOSITORY / "examples" / "ops" / name, folder / "custom" / name
    (root / "eval").mkdir(parents=True)
    for file in ("SPEC.md", "DESIGN.md", f"{name}_golden.py", "eval/module_interfaces.yaml"):
        shutil.copy(source / file, root / file)
    return gather(OpWorkspace.at(root))


def shaped(folder: Path, shape: list[str], golden: str = "", **spec: Any) -> Sources:
    """The operator of `test_suite`, with inputs of another shape."""
    sources = operator(folder, **spec)
    path = sources.ws.interfaces
    data = yaml.safe_load(path.read_text())
    for port in [*data["primary_inputs"][:2], *data["modules"][0]["outputs"]]:
        port["shape"] = list(shape)
    path.write_text(yaml.safe_dump(data))
    if golden:
        sources.ws.golden.write_text(golden)
    return gather(sources.ws)


@pytest.mark.parametrize("name", WALKED)
def test_examples_are_walked_in_the_steps_of_their_designs(name: str, tmp_path: Path) -> None:
    sources = example(name, tmp_path)
    assert {axis: sources.steps_along(axis)[-1] for axis in sources.long} == WALKED[name]
    cases = suite_cases.cases(sources)
    for axis, step in WALKED[name].items():
        edges = {case["shape"][axis] for case in cases if case["level"] == "L3"}
        assert {1, step - 1, step, step + 1, 2 * step - 1, 2 * step + 1} <= edges
        for case in cases:
            if "draw_zone" in case or "cancellation_stress" in case:
                least = step if "draw_zone" in case else min(step, sources.tiles[0])
                assert case["shape"][axis] > 3 * least and case["shape"][axis] % step, (case["id"], "three tiles and a rest")
    for axis in set(sources.spec.dynamic_axes) - set(sources.long):
        assert {1, 3, 7, 33} <= {case["shape"][axis] for case in cases}
        [long] = sources.long
        assert {3, 7} <= {case["shape"][axis] for case in cases if case["shape"][long] > sources.tiles[0]}, "with a rest, too"
    assert all(any(case["shape"] == sizes for case in cases) for sizes in sources.p0_sizes())
    by_level = [case["level"] for case in cases if case["precision"]]
    assert all(by_level.count(level) >= 3 for level in ("L2", "L3", "L4", "L5"))


@pytest.mark.parametrize("name", WALKED)
def test_some_process_sees_an_axis_shrink(name: str, tmp_path: Path) -> None:
    sources = example(name, tmp_path)
    cases = suite_cases.cases(sources)
    for axis in sources.spec.dynamic_axes:
        shrunk = 0
        for lane in lanes_of(cases):
            largest: dict[str, int] = {}
            for case in (cases[position] for position in lane):
                dtype, size = case["dtype"]["default"] if axis in sources.long else "any", case["shape"][axis]
                shrunk += size < largest.get(dtype, 0)
                largest[dtype] = max(size, largest.get(dtype, 0))
        assert shrunk, axis


def test_steps_come_from_table_prose_and_code(tmp_path: Path) -> None:
    design = tmp_path / "DESIGN.md"
    design.write_text(
        "# op\n\n## 3. Tiling\n\n16 x 128 tiles, chunks of 64; 8 rows per step was slower.\n\n## 4. Loops\n\n"
        "| axis | loop | tail |\n|---|---|---|\n| B | `pypto.loop`, step 1 | none |\n| S of q | `pypto.loop`, step 32 | yes |\n\n"
        "```python\ntiles = (length + 31) // 32\nfor i in pypto.loop(tiles, name='Q'):\n"
        "    for j in pypto.loop(tiles, name='K'):\n"
        "        pass\n```\n\n## 5. Other\n\ntile 999\n"
    )
    steps = steps_of(design, ["B", "S", "D"])
    assert steps.of == {"B": (1,), "S": (32,)} and steps.nested
    assert steps.named == (8, 16, 32, 64, 128)
    design.write_text(design.read_text().replace("    for j", "for j").replace("        pass", "    pass"))
    assert not steps_of(design, ["B", "S", "D"]).nested, "two walks one after another"
    assert steps_of(tmp_path / "none.md", ["S"]).named == ()


@pytest.mark.parametrize(
    ("sentence", "steps"),
    [
        ("T in steps of 32 by `pypto.loop`; the last step has a valid shape of [rows, F].", {"T": (32,)}),
        ("B, then H, then T in chunks of 64 by `pypto.loop`.", {"B": (1,), "H": (1,), "T": (64,)}),
        ("B, then HKV, then the pages that the length needs.", {"B": (1,)}),
        ("T is walked in tiles of 16, then the sums are added.", {"T": (16,)}),
        ("The state is kept in steps of 8.", {}),
        ("T * H in steps of 32 by `pypto.loop`; then B one by one.", {"T": (32,)}),
    ],
)
def test_loops_told_in_a_sentence_are_steps_too(sentence: str, steps: dict[str, tuple[int, ...]], tmp_path: Path) -> None:
    design = tmp_path / "DESIGN.md"
    design.write_text(f"## 3. Tiles\n\nX in steps of 999\n\n## 4. Loops\n\n{sentence}\n\n## 5. Self check\n")
    assert steps_of(design, ["B", "H", "T", "F", "X"]).of == steps
    design.write_text(design.read_text().replace("## 5", "| axis | loop |\n|---|---|\n| T | step 128 |\n\n## 5"))
    assert steps_of(design, ["B", "H", "T", "F", "X"]).of == steps | {"T": (128,)}, "the table is the better source"


def test_every_named_step_has_its_edges(tmp_path: Path) -> None:
    sources = operator(tmp_path)
    sources.ws.design.write_text(
        "## Tiling\n\n`pypto.set_vec_tile_shapes(16, 128)`, 64 rows per step.\n\n## Loops\n\n"
        "| axis | loop |\n|---|---|\n| S | step 128 |\n"
    )
    sizes = {case["shape"]["S"] for case in built(gather(sources.ws)).select(["L3"])}
    assert {15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 257} <= sizes


@pytest.mark.parametrize(
    ("shape", "dynamic", "p0", "long"),
    [
        (["B", "S", "D"], ["B", "S"], {"B": 4, "S": 256, "D": 64}, ["S"]),
        (["B", "H", "S", "D"], ["B", "H", "S"], {"B": 2, "H": 8, "S": 256, "D": 64}, ["S"]),
        (["B", "S", "H", "D"], ["B", "S", "H"], {"B": 2, "H": 8, "S": 256, "D": 64}, ["S"]),
        (["T", "D"], ["T"], {"T": 64, "D": 64}, ["T"]),
        (["T", "H", "D"], ["T"], {"T": 64, "H": 8, "D": 64}, ["T"]),
        (["R", "C"], ["R", "C"], {"R": 64, "C": 64}, ["R", "C"]),
        (["B", "S", "D"], ["B", "S", "D"], {"B": 4, "S": 256, "D": 64}, ["S", "D"]),
    ],
)
def test_heads_and_batches_are_told_from_what_is_walked(
    tmp_path: Path, shape: list[str], dynamic: list[str], p0: dict[str, int], long: list[str]
) -> None:
    assert shaped(tmp_path, shape, dynamic_axes=dynamic, p0_shapes=[p0]).long == long


@pytest.mark.parametrize("how", ["x.float().mean(dim=0)", "torch.sum(x, 0)", "x.cumsum(-3)"])
def test_an_axis_that_the_golden_reduces_over_is_walked(tmp_path: Path, how: str) -> None:
    golden = f"import torch\n\n\ndef op_golden(x, y, flag):\n    return {how} + y\n"
    assert set(shaped(tmp_path, ["B", "S", "D"], golden).long) == {"B", "S"}


@pytest.mark.parametrize(
    ("constraint", "rule"),
    [
        ("S % 64 == 0", lambda shape: shape["S"] % 64 == 0),
        ("S is a multiple of 64", lambda shape: shape["S"] % 64 == 0),
        pytest.param("S == 64 * B", lambda shape: shape["S"] == 64 * shape["B"], marks=pytest.mark.slow),
        ("S % B == 0", lambda shape: shape["S"] % shape["B"] == 0),
    ],
)
def test_sizes_are_rounded_and_no_level_runs_empty(tmp_path: Path, constraint: str, rule: Any) -> None:
    suite = built(operator(tmp_path, shape_constraints=[constraint]))
    assert all(rule(case["shape"]) for case in suite.cases)
    assert {case["shape"]["S"] for case in suite.cases if "draw_zone" in case} != {suite.cases[0]["shape"]["S"]}
    for level in ("L3", "L4", "L5"):
        assert len({tuple(case["shape"].values()) for case in suite.select([level])}) >= 3, level


def test_what_has_no_legal_size_is_told(tmp_path: Path) -> None:
    dropped: dict[str, str] = {}
    cases = suite_cases.cases(operator(tmp_path, shape_constraints=["S == 256"]), dropped)
    assert {case["shape"]["S"] for case in cases} == {256}
    assert any(name.startswith("S = ") and "256" in why for name, why in dropped.items())


LOOPS = """
def op_golden(x, y, flag):
    rows = [x[:, 0]]
    for t in range(1, x.shape[1]):
        rows.append(rows[-1] * 0.5 + y[:, t])
    return torch.stack(rows, 1)
"""


@pytest.mark.parametrize(("golden", "tile"), [("", 64), (f"import torch\n{LOOPS}", 16)])
def test_a_search_walks_the_smallest_tile_where_the_golden_walks_it_in_python(tmp_path: Path, golden: str, tile: int) -> None:
    """A search runs the golden some hundred times; a loop says the same of 19 tokens as of 67."""
    assert Maker(shaped(tmp_path, ["B", "S", "D"], golden)).searched["S"] == tile + walks.REST
