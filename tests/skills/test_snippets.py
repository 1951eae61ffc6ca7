"""Every snippet of `pypto-op-develop` runs for real: idioms are right, traps do what their page says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import quickly
from tests.quickly import read_table

torch = pytest.importorskip("torch")
quickly.skip_without("pypto")

from pypto_op.backends import sim  # noqa: E402
from pypto_op.backends.base import Limits, RunResult  # noqa: E402
from pypto_op.vocabulary import Outcome  # noqa: E402
from pypto_op.workspace import OpWorkspace  # noqa: E402
from pypto_op_lint.api import lint_path  # noqa: E402

SNIPPETS = Path(__file__).parents[2] / "skills" / "pypto-op-develop" / "snippets"
TABLE = read_table(SNIPPETS / "outcomes.yaml")
LIMITS = Limits(memory_mb=2000, case_seconds=60, startup_seconds=100)

pytestmark = pytest.mark.sim


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpWorkspace]:
    """An empty operator whose `_debug/` takes what the runs leave."""
    root = tmp_path_factory.mktemp("snippets") / "custom" / "demo"
    root.mkdir(parents=True)
    yield OpWorkspace.at(root)


def test_the_table_names_every_file() -> None:
    """A snippet without a row would be a page that nobody checks."""
    for kind in ("idioms", "traps"):
        assert sorted(TABLE[kind]) == sorted(path.stem for path in (SNIPPETS / kind).glob("*.py"))


def test_every_snippet_is_explained_on_its_page() -> None:
    """references/idioms.md and references/traps.md name each file."""
    for kind in ("idioms", "traps"):
        page = (SNIPPETS.parent / "references" / f"{kind}.md").read_text()
        for name in TABLE[kind]:
            assert f"{kind}/{name}.py" in page, name


@pytest.mark.parametrize("name", sorted(TABLE["idioms"]))
def test_idiom_is_right_and_clean(name: str, operator: OpWorkspace) -> None:
    """An idiom agrees with torch on a ragged shape, and the linter lets it through."""
    row, path = TABLE["idioms"][name], SNIPPETS / "idioms" / f"{name}.py"
    inputs = _inputs(row)
    result = _run(path, f"{name}_wrapper", inputs, operator)
    assert result.outcome is Outcome.OK, result.detail
    assert _agrees(result, row, inputs)
    assert result.launches == 1
    as_impl = operator.root.parent / name / f"{name}_impl.py"
    found = lint_path(as_impl, text=path.read_text(), stage=5).findings
    assert [f for f in found if f.status in ("FAIL", "WARN") and f.severity in ("S0", "S1")] == []


@pytest.mark.parametrize("name", sorted(TABLE["traps"]))
def test_trap_bites_and_the_way_out_is_right(name: str, operator: OpWorkspace) -> None:
    """The bad kernel does what the table says, the good one agrees with torch."""
    row, path = TABLE["traps"][name], SNIPPETS / "traps" / f"{name}.py"
    inputs, costs = _inputs(row), bool(row.get("cost_model"))
    good = _run(path, "good_wrapper", inputs, operator, costs)
    assert good.outcome is Outcome.OK, good.detail
    assert _agrees(good, row, inputs)
    bad = _run(path, "bad_wrapper", inputs, operator, costs)
    if row["bad"] == "unwritten":
        assert bad.outcome is Outcome.OK and sum(bad.sentinel_left) > 0
    elif row["bad"] == "wrong":
        assert bad.outcome is Outcome.OK and not sum(bad.sentinel_left), bad.detail
        assert not _agrees(bad, row, inputs)
    else:
        assert str(bad.outcome) == row["bad"], bad.detail
        said = bad.detail if bad.outcome is Outcome.EXCEPTION else bad.stderr + bad.stdout + bad.detail
        assert re.search(row.get("says", ""), said), said[-2000:]


def _run(path: Path, wrapper: str, inputs: list[Any], operator: OpWorkspace, cost_model: bool = False) -> RunResult:
    backend = sim.SimBackend()
    with backend.open(path, wrapper, operator, limits=LIMITS, cost_model=cost_model) as session:
        return session.run("case", inputs)


def _inputs(row: dict[str, Any]) -> list[Any]:
    torch.manual_seed(42)
    return [_tensor(spec) if isinstance(spec, dict) else spec for spec in row["inputs"]]


def _tensor(spec: dict[str, Any]) -> Any:
    dtype = getattr(torch, spec.get("dtype", "float32"))
    if "values" in spec:
        return torch.tensor(spec["values"], dtype=dtype)
    fill = spec.get("fill", "normal")
    if fill == "tile_number":
        return (torch.arange(spec["shape"][0]) // 16).to(dtype).reshape(spec["shape"])
    wide = torch.randn(*spec["shape"]) * spec.get("scale", 1) if fill == "normal" else torch.full(spec["shape"], float(fill))
    return wide.to(dtype)


def _agrees(result: RunResult, row: dict[str, Any], inputs: list[Any]) -> bool:
    """Compare with the row's reference: exactly for whole numbers, to a few units in the last place else."""
    expected = eval(row["reference"], {"torch": torch, **dict(zip("xyz", inputs, strict=False))})  # noqa: S307  (our own table)
    leaves = expected if isinstance(expected, tuple) else (expected,)
    return len(leaves) == len(result.outputs) and all(
        ours.shape == theirs.shape
        and ours.dtype == theirs.dtype
        and torch.allclose(ours.double(), theirs.double(), rtol=4 * _step(theirs), atol=1e-5, equal_nan=True)
        for ours, theirs in zip(result.outputs, leaves, strict=True)
    )


def _step(tensor: Any) -> float:
    return float(torch.finfo(tensor.dtype).eps) if tensor.dtype.is_floating_point else 0.0
