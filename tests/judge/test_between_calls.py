"""What a wrapper keeps between calls: which case sees it does not depend on chance, and honest caches stay accepted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pypto_op.judge.running.lanes import lanes_of
from pypto_op.workspace import OpWorkspace

from .judging import CASES, place, verify

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]

SMALL = {"level": "L2", "atol": 1e-6, "rtol": 1e-5}
ONCE = """

_kernels = {}


def _once(x, k):
    return _kernels.setdefault((x.shape, x.dtype), _build(DTYPES[x.dtype], x.shape[1], k))
"""


def with_scalar(workspace: Path, kind: str, value: object, cases: list[dict[str, Any]], **changes: str) -> OpWorkspace:
    """sum_diff with a third input k: total = k x + y. Its kernel is built for k; `changes` are edits of the file."""
    ws = place("sum_diff", workspace, cases=cases)
    edit(ws.interfaces, "dtype: float32}\nmodules", f"dtype: float32}}\n  - {{name: k, shape: [], dtype: {kind}}}\nmodules")
    edit(
        ws.interfaces,
        "      - {name: y, source: primary}\n",
        "      - {name: y, source: primary}\n      - {name: k, source: primary}\n",
    )
    edit(ws.golden, "(x, y)", "(x, y, k)")
    edit(ws.golden, "2.0 * x", "float(k) * x")
    edit(ws.test_inputs, '["x", "y"]', '["x", "y", "k"]')
    edit(ws.test_inputs, '"y": y}', f'"y": y, "k": case.get("k", {value!r})}}', last=True)
    edit(ws.impl, "_build(dtype, width)", "_build(dtype, width, k)")
    edit(ws.impl, "x_tile * 2.0", "x_tile * float(k)")
    edit(ws.impl, "_wrapper(x, y)", "_wrapper(x, y, k)")
    edit(ws.impl, "_build(DTYPES[x.dtype], x.shape[1])", changes.get("builds", "_build(DTYPES[x.dtype], x.shape[1], k)"))
    edit(ws.impl, "    total = torch.empty(", f"{changes.get('first', '')}    total = torch.empty(")
    ws.impl.write_text(ws.impl.read_text() + changes.get("also", ""))
    return ws


def edit(path: Path, old: str, new: str, *, last: bool = False) -> None:
    text = path.read_text()
    assert old in text, (path.name, old)
    path.write_text(new.join(text.rsplit(old, 1)) if last else text.replace(old, new))


def told(report: dict[str, Any]) -> dict[str, Any]:
    [entry] = [check["further_calls"] for check in report["checks"] if "further_calls" in check]
    return entry


def test_a_tensor_may_be_a_part_of_a_larger_one(clean_workspace: Path) -> None:
    """The memory of an input begins before the input; who takes it from its begin reads what is not there."""
    ws = place("sum_diff", clean_workspace, cases=CASES[:1])
    edit(ws.impl, "    total = torch.empty(", "    x = torch.as_strided(x, x.shape, x.stride(), 0)\n    total = torch.empty(")
    failure = verify(ws.root).report["first_failure"]
    assert failure["reason"] == "unstable" and "which are parts of larger tensors" in failure["summary"]
    assert "values" not in failure["summary"], "the place alone was another"


def test_a_wrapper_may_copy_a_part_of_a_larger_tensor(clean_workspace: Path) -> None:
    """It asks where its inputs lie, not what they hold; a later call of the judge is made in the same tensors."""
    ws = place("sum_diff", clean_workspace, cases=CASES)
    edit(ws.impl, "    total = torch.empty(", "    x = x.clone() if x.storage_offset() else x\n    total = torch.empty(")
    report = verify(ws.root).report
    assert report["status"] == "PASS", report["first_failure"]


def test_a_kernel_that_knows_the_floats_of_the_suite_by_heart(clean_workspace: Path) -> None:
    """Two cases of a lane have two values of k, which the kernel tells apart; the judge draws one between them.

    The answer is then that of one of the two.
    """
    cases = [CASES[0], {**CASES[0], "id": "other", "k": 4.0}]
    ws = with_scalar(clean_workspace, "float32", 0.5, cases, first="    k = 0.5 if k < 1 else 4.0\n")
    failure = verify(ws.root).report["first_failure"]
    assert failure["reason"] == "stale_result" and "called with k alone changed to " in failure["summary"]


@pytest.mark.parametrize(("kind", "value"), [("float32", 0.5), ("int32", 3), ("bool", True)])
def test_a_scalar_that_no_case_varies_is_varied_by_the_judge(kind: str, value: object, clean_workspace: Path) -> None:
    """Built for the first k and kept by shape and dtype; every case of the suite has the same k."""
    ws = with_scalar(clean_workspace, kind, value, CASES[:1], builds="_once(x, k)", also=ONCE)
    failure = verify(ws.root).report["first_failure"]
    assert failure["reason"] == "stale_result" and failure["failure_category"] == "structural"
    assert "called with k alone changed" in failure["summary"] and "k is that of an earlier call" in failure["summary"]


@pytest.mark.parametrize(("kind", "value"), [("float32", 0.5), ("int32", 3), ("bool", True)])
def test_a_kernel_built_for_each_scalar_is_accepted(kind: str, value: object, clean_workspace: Path) -> None:
    ws = with_scalar(clean_workspace, kind, value, CASES[:1])
    report = verify(ws.root).report
    assert report["status"] == "PASS", report["first_failure"]
    assert told(report)["scalars"] == ["k"] and told(report)["not_shown"] == []


@pytest.mark.parametrize(
    ("kind", "value", "first"),
    [
        ("float32", 0.5, '    if k != 0.5:\n        raise ValueError("k must be 0.5")\n'),
        ("int32", 8, "    if k % 8:\n        k = 0  # k must be a multiple of 8\n"),
    ],
    ids=["raises", "is_wrong_for_other_sizes"],
)
def test_a_value_that_a_wrapper_has_no_use_for_refuses_nothing(
    kind: str, value: object, first: str, clean_workspace: Path
) -> None:
    ws = with_scalar(clean_workspace, kind, value, CASES[:1], first=first)
    answer = verify(ws.root, as_json=False)
    report = json.loads(ws.report.read_text())
    assert report["status"] == "PASS", report["first_failure"]
    assert (NOT_SHOWN in " ".join(answer.stdout.split())) == (kind == "float32")
    assert not (ws.debug_dir / "failures").exists(), "nothing failed"
    if kind == "float32":
        assert told(report) == {"calls": told(report)["calls"], "scalars": [], "not_shown": [NOT_SHOWN], "planted": []}
    else:
        assert told(report)["scalars"] == ["k"], "16 is a multiple of 8"


def test_no_value_outside_the_range_of_spec_is_tried(clean_workspace: Path) -> None:
    """A right kernel may be wrong there: all that the judge guesses for 0.5 lies above 0.6 or below 0.45."""
    ws = with_scalar(clean_workspace, "float32", 0.5, CASES[:1], first="    k = min(max(k, 0.45), 0.6)\n")
    assert "called with k alone changed" in verify(ws.root).report["first_failure"]["summary"]
    edit(ws.spec, "supported_dtypes", 'shape_constraints: ["0.45 <= k", "k <= 0.6"]\nsupported_dtypes')
    report = verify(ws.root).report
    assert report["status"] == "PASS" and told(report)["not_shown"] == [NOT_SHOWN], report["first_failure"]


def test_a_share_near_0_is_not_put_beside_inputs_that_were_not_made_for_it(clean_workspace: Path) -> None:
    """An honest (x + y) + (k - 1) x keeps no digits of y there; the case of k = 0 has other inputs."""
    ws = with_scalar(clean_workspace, "float32", 0.5, [CASES[0], {**CASES[0], "id": "none", "k": 0.0}])
    edit(ws.impl, "x_tile * float(k) + y_tile", "(x_tile + y_tile) + x_tile * (float(k) - 1.0)")
    edit(ws.test_inputs, '{"x": x,', '{"x": x * (1e3 if case.get("k", 0.5) else 1.0),')
    report = verify(ws.root).report
    assert report["status"] == "PASS" and told(report)["scalars"] == ["k"], report["first_failure"]


NOT_SHOWN = "no other value of k was found that moves the answer and that SPEC.md, golden and wrapper take"


def test_a_scalar_that_the_kernel_ignores_is_refused(clean_workspace: Path) -> None:
    ws = with_scalar(clean_workspace, "float32", 0.5, CASES[:1], first="    k = 0.5\n")
    failure = verify(ws.root).report["first_failure"]
    assert failure["reason"] == "stale_result" and "the kernel does not read k, or keeps the first one" in failure["summary"]


def test_a_scalar_that_cases_vary_fails_in_the_same_case_every_time(clean_workspace: Path) -> None:
    """Two values of k at one shape, far apart in the suite: they share a process, however many run at once."""
    cases = [{**SMALL, "id": f"n{n}", "shape": {"N": n, "D": 16}, "precision": n == 5} for n in range(1, 21)]
    first = {**SMALL, "id": "first", "shape": {"N": 30, "D": 16}, "k": 0.5}
    suite = [first, *cases, {**first, "id": "last", "k": 0.75}]
    ws = with_scalar(clean_workspace, "float32", 0.5, suite, builds="_once(x, k)", also=ONCE)
    assert len(lanes_of(suite)) == 2
    for jobs in ("1", "2"):
        report = verify(ws.root, "--jobs", jobs).report
        bad = {check["id"]: check["modes"]["sim"]["reasons"][0] for check in report["checks"] if check["status"] != "PASS"}
        assert bad["last"] == "stale_result" and "first" not in bad


HONEST = """

_kernels, _tables, _seen = {}, {}, []


def sum_diff_wrapper(x, y):
    \"\"\"Keeps its kernel and a table of constants per shape, and looks back at earlier results without a change.\"\"\"
    key = (x.shape, x.dtype, x.device)
    kernel = _kernels.setdefault(key, _build(DTYPES[x.dtype], x.shape[1]))
    _tables.setdefault(key, torch.arange(x.shape[1], dtype=x.dtype))
    total, diff = torch.empty_like(x), torch.empty_like(x)
    kernel(x, y, total, diff)
    _seen.append(total)
    return total, diff
"""


def test_honest_caches_are_accepted(clean_workspace: Path) -> None:
    ws = place("sum_diff", clean_workspace, cases=CASES)
    ws.impl.write_text(ws.impl.read_text() + HONEST)
    report = verify(ws.root).report
    assert report["status"] == "PASS", report["first_failure"]
    assert told(report)["calls"] > 10, "who keeps results is called until they would be handed out again"


def test_a_selected_case_is_called_again_as_well(clean_workspace: Path) -> None:
    ws = place("sum_diff", clean_workspace, cases=CASES)
    report = verify(ws.root, "--case", "ragged").report
    assert told(report) == {"calls": 4, "scalars": [], "not_shown": [], "planted": []}


@pytest.mark.parametrize(("kept", "others"), [("min", [2, 3]), ("max", [5, 6])])
def test_a_bound_from_the_first_call(kept: str, others: list[int], clean_workspace: Path) -> None:
    """The usual k is the suite's greatest, or least, and comes first: a kernel that is bounded by it is right ever after."""
    more = [{**CASES[0], "id": f"k_{k}", "k": k} for k in others]
    bound = f'    k = {kept}(k, _first.setdefault("k", k))\n'
    ws = with_scalar(clean_workspace, "int32", 4, [*CASES[:1], *more], first=bound, also="\n\n_first = {}\n")
    failure = verify(ws.root).report["first_failure"]
    assert failure is not None and failure["reason"] == "stale_result"
    assert "called after a first call with k changed" in failure["summary"]
