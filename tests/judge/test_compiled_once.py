"""What a device compiles once and keeps: a kernel whose program depends on more than pypto looks at is refused.

A simulator builds every launch anew, so the numbers of these kernels are right there; a device keeps those of the first call.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pypto_op.workspace import OpWorkspace

from .judging import CASES, place, verify
from .test_between_calls import edit, with_scalar

pytestmark = [pytest.mark.sim, pytest.mark.slow, pytest.mark.usefixtures("numeric")]

BODY, FIRST = "        count = x.shape[0]\n", "    total = torch.empty("
OPTIONS = 'run_mode": pypto.RunMode.NPU}'
CALL = "_build(DTYPES[x.dtype], x.shape[1])(x, y, total, diff)"


def sized(workspace: Path, count: str, told: str = "", before: str = "", **changes: str) -> OpWorkspace:
    """sum_diff, whose kernel takes the number of rows by another way than from the size of x.

    Args:
        workspace: where it is made.
        count: in the kernel, the number of rows.
        told: in the wrapper, before the launch.
        before: at the file's head.
        changes: "call", "build": of the kernel's call and of its builder.
    """
    ws = place("sum_diff", workspace, cases=CASES)
    edit(ws.impl, BODY, f"        count = {count}\n")
    edit(ws.impl, FIRST, f"{told}{FIRST}", last=False)
    edit(ws.impl, "ROWS = 16\n", f"ROWS = 16\n{before}")
    edit(ws.impl, CALL, changes.get("call", CALL))
    edit(ws.impl, "_build(dtype, width)", changes.get("build", "_build(dtype, width)"))
    edit(ws.impl, OPTIONS, changes.get("options", OPTIONS))
    return ws


def says_so(ws: OpWorkspace) -> str:
    failure = verify(ws.root).report["first_failure"]
    assert failure is not None and failure["reason"] == "stale_program", failure
    assert failure["failure_category"] == "structural"
    return str(failure["summary"])


def test_the_rows_of_a_call_in_a_global(clean_workspace: Path) -> None:
    """The suite's two sizes are built with one and with two steps; the larger size is drawn for the verdict."""
    said = says_so(sized(clean_workspace, "COUNT[0]", "    COUNT[0] = x.shape[0]\n", "COUNT = [0]\n"))
    assert "sum_diff_kernel is built with 2 for [21, 32]" in said and "with 1 for [16, 32]" in said
    assert "a device compiles it once for both and keeps the first" in said


def test_the_rows_of_a_call_in_an_object_that_the_kernel_captures(clean_workspace: Path) -> None:
    """pypto knows a captured object by its text, which for this one is the same whatever it holds."""
    says_so(
        sized(
            clean_workspace,
            "size.rows",
            "    SIZE.rows = x.shape[0]\n",
            "\n\nclass Size:\n    rows = 0\n\n\nSIZE = Size()\n",
            build="_build(dtype, width, size=SIZE)",
        )
    )


def test_a_case_of_one_size_is_enough(clean_workspace: Path) -> None:
    """No two cases of the suite share a program; the drawn size is called beside the case that it was made from."""
    ws = sized(clean_workspace, "COUNT[0]", "    COUNT[0] = x.shape[0]\n", "COUNT = [0]\n")
    ws.suite.write_text(ws.suite.read_text().replace('"N": 21, "D": 32', '"N": 21, "D": 64'))
    report = verify(ws.root).report
    found = {check["id"]: check["status"] for check in report["checks"]}
    assert found == {"tile": "PASS", "ragged": "PASS", "fresh_N": "FAIL", "fresh_D": "PASS"}
    assert report["first_failure"]["reason"] == "stale_program"


@pytest.mark.parametrize(
    ("flag", "other", "count"),
    [
        ("x.shape[0] < 10", 3, "3 if FLAG[0] else x.shape[0]"),
        ("x.shape[0] % ROWS == 0", 32, "x.shape[0] // ROWS * ROWS if FLAG[0] else x.shape[0]"),
    ],
)
def test_a_size_that_only_a_flag_tells(clean_workspace: Path, flag: str, other: int, count: str) -> None:
    """A path of its own for one tile, or for whole tiles; no case of the suite shares its program with one of the other path.

    The wrapper is called with other sizes of the suite beside the drawn one.
    """
    ws = sized(clean_workspace, count, f"    FLAG[0] = {flag}\n", "FLAG = [False]\n")
    suite = json.loads(ws.suite.read_text())
    suite["cases"] = [suite["cases"][1], {**suite["cases"][0], "shape": {"N": other, "D": 256}}]
    ws.suite.write_text(json.dumps(suite))
    says_so(ws)


def test_a_scalar_in_a_global(clean_workspace: Path) -> None:
    """No case varies k; the judge does."""
    ws = with_scalar(
        clean_workspace,
        "float32",
        0.5,
        CASES[:1],
        builds="_build(DTYPES[x.dtype], x.shape[1], 0)",
        first="    K[0] = float(k)\n",
        also="\n\nK = [0.0]\n",
    )
    edit(ws.impl, "x_tile * float(k)", "x_tile * K[0]")
    assert "sum_diff_kernel is built with " in says_so(ws)


def test_what_a_body_tells_the_wrapper(clean_workspace: Path) -> None:
    """The second launch gets what the first one's body noted; on a device a body runs once, so that is the first k."""
    ws = with_scalar(
        clean_workspace,
        "float32",
        0.5,
        CASES[:1],
        builds="_build(DTYPES[x.dtype], x.shape[1], NOTED[-1])",
        first="    K[0] = float(k)\n    first = torch.empty_like(x), torch.empty_like(x)\n"
        "    _build(DTYPES[x.dtype], x.shape[1], 0.0)(x, y, *first)\n",
        also="\n\nK = [0.0]\nNOTED = [0.0]\n",
    )
    edit(ws.impl, BODY, f"{BODY}        NOTED.append(K[0])\n")
    assert "launch 2 depends on Python in a kernel's body" in says_so(ws)


GLOBAL = {"count": "COUNT[0]", "told": "    COUNT[0] = x.shape[0]\n", "before": "COUNT = [0]\n"}
HONEST = {
    "captured": {"count": "rows", "call": CALL.replace("1])(", "1], x.shape[0])("), "build": "_build(dtype, width, rows)"},
    "compiled for each launch": {**GLOBAL, "options": f"{OPTIONS}, use_cache=False"},
    "not used": {**GLOBAL, "count": "x.shape[0]"},
}


@pytest.mark.parametrize("way", HONEST)
def test_what_a_device_compiles_anew_is_accepted(way: str, clean_workspace: Path) -> None:
    report = verify(sized(clean_workspace, **HONEST[way]).root).report
    assert report["status"] == "PASS", report["first_failure"]


def test_a_number_that_is_an_argument_of_the_kernel_is_accepted(clean_workspace: Path) -> None:
    ws = sized(clean_workspace, "rows", call=CALL.replace("diff)", "diff, x.shape[0])"))
    last = "diff: pypto.Tensor([pypto.DYNAMIC, width], dtype),\n"
    edit(ws.impl, last, f"{last}        rows=0,\n")
    report = verify(ws.root).report
    assert report["status"] == "PASS", report["first_failure"]
