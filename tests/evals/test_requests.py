"""The requests as data: twenty, well-formed, and each hidden golden agrees with an independent formula."""

from __future__ import annotations

import json
import types
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.calling import command
from tests.telling import told_lines

from pypto_op.bundle_files import bundle_root
from pypto_op.evals import checking, hidden, requests
from pypto_op.evals.requests import Request

ALL = requests.load()


def module(text: str) -> dict[str, Any]:
    made = types.ModuleType("made")
    exec(compile(text, "made", "exec"), made.__dict__)  # noqa: S102
    return vars(made)


def test_twenty_requests_over_five_families_ten_of_them_hard() -> None:
    families = Counter(request.data["family"] for request in ALL)
    assert len(ALL) == 20 and len(families) == 5 and min(families.values()) >= 3, families
    assert sum(request.data["hard"] for request in ALL) >= 10
    assert {request.data["outcome"] for request in ALL} == {"kernel", "stop", "either"}
    assert len({request.op for request in ALL}) == 20


@pytest.mark.parametrize("request_", ALL, ids=lambda request: request.id)
def test_every_request_fits_its_golden(request_: Request) -> None:
    """What `--check` tries: outputs and contract on the cases, and another formula in float64."""
    assert checking.check(request_)


def test_nothing_of_a_hidden_golden_lies_about() -> None:
    with hidden.made(ALL[0]) as root:
        assert root.exists()
    assert not root.exists()


def test_the_other_reading_of_an_ambiguous_request() -> None:
    request = next(one for one in ALL if "readings" in one.data)
    inputs = torch.tensor([[3.0, 1.0, 3.0]])
    found = [
        int(module(hidden.golden_text(request, reading))[f"{request.op}_golden"](inputs)) for reading in request.data["readings"]
    ]
    assert found == [0, 2]


def test_an_unknown_request_is_refused() -> None:
    done = command("eval", "--requests", "nonsense")
    assert done.code == 2 and "there is no request 'nonsense'" in done.stderr and "rmsnorm" in done.stderr
    assert command("eval", "--arm", "bare", "--runner", "replay").code == 2
    assert command("eval", "--runner", "replay", "--requests", "swiglu").code == 2


# -- the page's own example, and what `--check` refuses --------------------------------------------------------------


def example(folder: Path, *changes: tuple[str, str, str]) -> Path:
    """Write the worked example of docs/evals.md into a folder, with changes (file, old, new)."""
    page = (bundle_root() / "docs" / "evals.md").read_text(encoding="utf-8").partition("## Write a request")[2]
    texts = {
        "request.yaml": page.partition("```yaml\n")[2].partition("```")[0],
        "golden.py": page.partition("```python\n")[2].partition("```")[0],
    }
    made = folder / "hard_gate"
    made.mkdir()
    for name, old, new in changes:
        assert texts[name].count(old) >= 1, old
        texts[name] = texts[name].replace(old, new)
    for name, text in texts.items():
        (made / name).write_text(text, encoding="utf-8")
    return made


def test_the_worked_example_of_the_page_fits(tmp_path: Path) -> None:
    done = command("eval", "--check", example(tmp_path))
    page = (bundle_root() / "docs" / "evals.md").read_text(encoding="utf-8")
    assert done.code == 0 and f"\n{done.stdout.strip()}\n" in page, done
    assert json.loads(command("eval", "--json", "--check", tmp_path / "hard_gate").stdout)["checked"]


YAML, GOLDEN = "request.yaml", "golden.py"
FAULTS = {
    "another name": ((GOLDEN, "def hard_gate_golden", "def gate_golden"), "no function hard_gate_golden"),
    "no second formula": ((GOLDEN, "def independent", "def another"), "no function independent"),
    "no canary": ((GOLDEN, "Hidden golden", "A golden"), "does not begin with"),
    "other arguments": ((GOLDEN, "hard_gate_golden(x, slope)", "hard_gate_golden(slope, x)"), "other arguments"),
    "a wrong golden": ((GOLDEN, "+ 0.5, 0.0", "+ 0.5001, 0.0"), "differ in out"),
    "a wrong second formula": ((GOLDEN, "gate >= 1, x,", "gate >= 1.5, x,"), "differ in out"),
    "float32 inside": ((GOLDEN, "torch.promote_types(x.dtype, torch.float32)", "torch.float32"), "differ in out"),
    "always float32": ((GOLDEN, ".to(x.dtype)\n", "\n"), "out is torch.float32"),
    "something below": ((GOLDEN, "x * gate))\n", "x * gate))\n\n\ndef helper():\n    return 1\n"), "let it be last"),
    "no Python": ((GOLDEN, "import torch\n", "import torch as\n"), "SyntaxError"),
    "a raising golden": ((GOLDEN, "torch.clamp(", "torch.clmp("), "case one_row: AttributeError"),
    "another shape": ((YAML, "{name: out, shape: [T, H]", "{name: out, shape: [H, T]"), "out is torch.float32 [1, 16]"),
    "two outputs": ((YAML, "outputs: [", "outputs: [{name: more, shape: [T], dtype: case}, "), "returns 1 tensors"),
    "an unknown scalar": ((YAML, "scalars: {slope:", "scalars: {slop:"), "names 'slop'"),
    "an unknown draw": ((YAML, "draws: {x:", "draws: {y:"), "names 'y'"),
    "a scalar without a value": ((YAML, ", value: 0.2", ""), "a scalar has shape [] and a value"),
    "a case without a size": ((YAML, "shape: {T: 19, H: 64}", "shape: {T: 19}"), "gives H no size"),
    "no tolerance": ((YAML, "  float16: {atol: 1.0e-4, rtol: 2.0e-3}\n", ""), "no tolerance for float16"),
    "integers without an end": ((YAML, "dtype: case}\n  - {name: slope", "dtype: int32}\n  - {name: slope"), "`high`"),
    "a key that nobody knows": ((YAML, "hard: false", "hard: false\nhrd: true"), "'hrd'"),
    "a key twice": ((YAML, "hard: false", "hard: false\nhard: true"), "line 6"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_request_that_would_grade_wrongly_is_refused(tmp_path: Path, fault: str) -> None:
    change, said = FAULTS[fault]
    done = command("eval", "--check", example(tmp_path, change))
    assert done.code == 2 and said in done.stderr and "/hard_gate/" in done.stderr, done
    assert len(told_lines(done.stderr)) == 1 and not done.stdout


def test_a_folder_without_a_request(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        done = command("eval", "--check", place)
        assert done.code == 2 and "request.yaml: no such file; write it, or name a request's folder" in done.stderr
