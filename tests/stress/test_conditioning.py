"""Condition numbers are those of the textbook, at the expressions of the file that is asked about."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from pypto_op.backends.worker.cancellation import Golden, find
from pypto_op.stress.conditioning import Conditions, Site, strongest
from pypto_op.stress.sites import normalised

GOLDEN = """
import torch


def golden(x, y):
    diff = x   -   y
    total = (diff * diff).sum(
        dim=-1
    )
    total += x.mean(-1)
    normed = torch.nn.functional.layer_norm(x, (x.shape[-1],))
    return total - torch.matmul(x, y.T).sum(-1) + normed.sum(-1) + (1.0 - x).cumsum(-1)[:, -1]
"""

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="older Pythons name whole lines")


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    path = tmp_path_factory.mktemp("golden") / "a_golden.py"
    path.write_text(GOLDEN)
    spec = importlib.util.spec_from_file_location("a_golden", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measured(golden: ModuleType, *values: torch.Tensor) -> dict[tuple[str, str], Site]:
    probe = Conditions(Path(str(golden.__file__)))
    with probe, torch.no_grad():
        golden.golden(*values)
    return {(site.expression, site.kind): site for site in probe.sites()}


def test_sites_are_the_expressions_of_the_golden(golden: ModuleType) -> None:
    sites = measured(golden, torch.randn(4, 6).double(), torch.randn(4, 6).double())
    expected = {
        ("x - y", "difference"),
        ("(diff * diff).sum(dim=-1)", "sum"),
        ("x.mean(-1)", "sum"),
        ("total + x.mean(-1)", "difference"),
        ("torch.matmul(x, y.T)", "matmul"),
        ("1.0 - x", "difference"),
        ("(1.0 - x).cumsum(-1)", "scan"),
        ("normed.sum(-1)", "sum"),
    }
    assert expected <= set(sites)
    inside = {kind for expression, kind in sites if "layer_norm" in expression}
    assert inside >= {"sum", "difference"}, "what hides in layer_norm is seen, under the expression that calls it"


def test_condition_numbers_are_the_textbooks(golden: ModuleType) -> None:
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0]], dtype=torch.float64)
    y = torch.tensor([[1.5, 2.0, -3.0, 4.0001]], dtype=torch.float64)
    sites = measured(golden, x, y)
    difference = sites["x - y", "difference"]
    # 2.5 / 0.5, nothing at 2 - 2, 1 at 3 + 3, and 8.0001 / 0.0001
    assert difference.condition(1.0) == 0.0
    assert difference.condition(0.5) == pytest.approx(5.0)
    assert difference.condition(0.25) == pytest.approx(80001.0, rel=1e-6)
    assert sites["x.mean(-1)", "sum"].condition(0.5) == pytest.approx(1.0)
    dot = float((x * y).abs().sum() / (x * y).sum().abs())
    assert sites["torch.matmul(x, y.T)", "matmul"].condition(0.5) == pytest.approx(dot)


def test_masked_cells_do_not_count() -> None:
    site = Site("a", "sum")
    assert site.condition(0.5) == 0.0
    probe = Conditions(Path(__file__))
    with probe:
        a = torch.tensor([1.0, -torch.inf, 3.0]) - torch.tensor([0.5, 1.0, torch.nan])
    assert torch.equal(a[:1], torch.tensor([0.5]))
    (found,) = probe.sites()
    assert found.condition(1.0) == found.condition(0.01) == pytest.approx(3.0)


def test_a_loop_s_cells_are_thinned_and_say_the_same() -> None:
    """Of 200 results of 4096 cells each a part is kept: early and late ones count alike."""
    site, kept = Site("a - b", "difference"), []
    for step in range(200):
        cells = torch.rand(4096, generator=torch.Generator().manual_seed(step)) + step
        site.add(cells)
        kept.append(cells)
    whole = torch.cat(kept)
    for quantile in (0.9, 0.5, 0.1):
        assert site.condition(quantile) == pytest.approx(float(whole.quantile(1.0 - quantile)), abs=1.0)
    assert sum(cells.numel() for cells in site._cells) <= 1 << 18


def test_the_named_site_wins_over_a_worse_one() -> None:
    mild, bad = Site("a - b", "difference"), Site("c - d", "difference")
    mild.add(torch.tensor([2.0]))
    bad.add(torch.tensor([1e9]))
    assert strongest([mild, bad], "a - b", 0.5) == (mild, 2.0)
    assert strongest([mild, bad], None, 0.5) == (bad, 1e9)
    assert strongest([mild, bad], "not there", 0.5) == (bad, 1e9)
    assert strongest([], None, 0.5) == (None, 0.0)


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("(x-y)", "x - y"),
        ("acc -= a@b", "acc - a @ b"),
        ("s = a - b", "a - b"),
        ("return a-b", "a - b"),
        ("a - ", "a -"),
        ("", ""),
    ],
)
def test_spaces_and_brackets_do_not_matter(written: str, wanted: str) -> None:
    assert normalised(written) == wanted


def test_of_whichever_cancels_worst_the_recipe_s_own_site_is_named(tmp_path: Path) -> None:
    path = tmp_path / "b_golden.py"
    path.write_text("def golden(x, y):\n    total = x.sum(-1)\n    return total + (y - 0.9 * y).sum(-1)\n")
    made = {"x": torch.randn(8, 16, generator=torch.Generator().manual_seed(0)), "y": torch.full((8, 16), 2.0)}
    spec = importlib.util.spec_from_file_location("b_golden", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    message = {"file": str(path), "case": {}, "expression": None, "quantile": 0.5, "condition": 1e4, "seed": 1, "runs": 60}
    assert max(measured(module, *made.values()).values(), key=lambda site: site.condition(0.5)).expression == "y - 0.9 * y"
    found = find(Golden(module.golden, path), lambda case: dict(made), ["x", "y"], message)
    assert found["expression"] == "x.sum(-1)" and found["reached"] >= 1e4


@pytest.mark.slow
def test_searches_on_one_case_share_their_runs_and_a_smaller_shape_finds_what_the_case_needs(
    golden: ModuleType,
) -> None:
    calls: list[tuple[int, ...]] = []

    def counted(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        calls.append(tuple(x.shape))
        return golden.golden(x, y)  # type: ignore[no-any-return]

    def make(case: dict[str, Any]) -> dict[str, Any]:
        draw = torch.Generator().manual_seed(case["seed"])
        return {name: torch.randn(case["shape"]["N"], 12, generator=draw) for name in ("x", "y")}

    case = {"id": "a", "level": "L5", "shape": {"N": 40}}
    plain = {"file": golden.__file__, "quantile": 0.5, "condition": 1e4, "seed": 1, "runs": 60, "case": case}
    kept: dict[str, Any] = {}
    reference = Golden(counted, Path(str(golden.__file__)))
    asked = [find(reference, make, ["x", "y"], {**plain, "expression": "x - y"}, kept) for _ in range(2)]
    assert asked[0] == asked[1] and asked[0]["reached"] >= 1e4
    first = len(calls)
    assert first <= asked[0]["runs"] + 4, "the second search of the same cost nothing"
    other = {**plain, "expression": "1.0 - x"}
    find(reference, make, ["x", "y"], other, kept)
    shared = len(calls) - first
    calls.clear()
    find(reference, make, ["x", "y"], other)
    assert shared < len(calls), "another expression takes over what is known of the same inputs"
    calls.clear()
    small = find(reference, make, ["x", "y"], {**plain, "expression": "x - y", "searched_shape": {"N": 5}})
    assert small["reached"] >= 1e4 and small["recipe"]
    assert calls.count((40, 12)) < calls.count((5, 12)), "most runs were of the small shape"


def test_no_recipe_touches_an_input_that_is_fixed(tmp_path: Path) -> None:
    path = tmp_path / "d_golden.py"
    path.write_text("def golden(table, x):\n    return table - x\n")
    spec = importlib.util.spec_from_file_location("d_golden", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = {name: torch.randn(8, 16, generator=torch.Generator().manual_seed(n)) for n, name in enumerate(("table", "x"))}
    message = {"file": str(path), "case": {}, "expression": None, "quantile": 0.5, "condition": 1e4, "seed": 1, "runs": 60}
    touched = []
    for fixed in (["x"], ["table"], ["table", "x"]):
        recipe = find(Golden(module.golden, path), lambda case: dict(made), ["table", "x"], {**message, "fixed": fixed})["recipe"]
        touched.append({step["input"] for step in recipe})
    assert touched == [{"table"}, {"x"}, set()]
