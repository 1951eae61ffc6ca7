"""What SPEC.md says the wrapper refuses: by ValueError, of itself, before it begins a launch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .judging import CASES, place, verify
from .test_between_calls import edit

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]

REFUSALS = [
    {"id": "raises_D_24", "fault": "size", "shape": {"N": 16, "D": 24}, "dtype": {"default": "float32"}},
    {"id": "raises_dtype", "fault": "dtype", "shape": {"N": 16, "D": 32}, "dtype": {"default": "float32"}, "input": "x"},
]
CHECK = """    if x.shape[1] != 32 or x.dtype not in DTYPES:
        raise ValueError("x is not made for this kernel")
"""
ALLOCATES = "    total = torch.empty("
WRAPPERS = {
    "refuses": (CHECK, ""),
    "returns": ("    if x.shape[1] != 32 or x.dtype not in DTYPES:\n        return x.clone(), y.clone()\n", "it returned"),
    "raises something else": (CHECK.replace("ValueError", "KeyError"), "it raised KeyError"),
    "launches first": (
        "    if x.shape[1] != 32 or x.dtype not in DTYPES:\n"
        "        sum_diff_wrapper(torch.ones(16, 32), torch.ones(16, 32))\n" + CHECK,
        "after it had launched",
    ),
    "leaves it to the launch": (
        "    if x.shape[1] != 32 or x.dtype not in DTYPES:\n"
        "        small = torch.empty(16, 32)\n"
        "        try:\n            _build(DTYPES[torch.float32], 32)(small, small.to(torch.int32), small, small)\n"
        "        except Exception as error:\n            raise ValueError('the launch failed') from error\n"
        "        raise ValueError('it did not')\n",
        "after it had launched",
    ),
}


def judged(workspace: Path, first: str) -> tuple[dict[str, Any], list[str]]:
    """Return the report, and the cases that a debugger finds under `_debug/failures`."""
    ws = place("sum_diff", workspace, cases=CASES[:1])
    suite = json.loads(ws.suite.read_text())
    ws.suite.write_text(json.dumps({**suite, "raises": REFUSALS}))
    edit(ws.impl, ALLOCATES, first + ALLOCATES)
    report = verify(ws.root).report
    return report, sorted(path.name for path in ws.failures_dir.glob("*"))


@pytest.mark.parametrize("how", WRAPPERS)
def test_a_wrapper_refuses_before_it_launches(clean_workspace: Path, how: str) -> None:
    first, words = WRAPPERS[how]
    report, left = judged(clean_workspace, first)
    found = {check["id"]: check["modes"]["sim"] for check in report["checks"] if check["id"].startswith("raises_")}
    assert set(found) == {"raises_D_24", "raises_dtype"}
    if not words:
        assert report["status"] == "PASS", report["first_failure"]
        assert left == [], "raising was right, so there is no failure to read"
        return
    assert report["status"] == "FAIL" and report["first_failure"]["case_id"] == "raises_D_24"
    for cell in found.values():
        assert cell["reasons"] == ["not_refused"] and words in cell["reason"]
