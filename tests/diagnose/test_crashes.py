"""pypto's own crashes and errors while it records a kernel: what the judge's process leaves names the kernel's line."""

from __future__ import annotations

import pytest
from tests.diagnose.conftest import RunExample

from pypto_op.diagnose import knowledge
from pypto_op.diagnose.kernel_text import KernelText, read_kernel
from pypto_op.diagnose.log_text import parse_log
from pypto_op.diagnose.search import asked_rules, diagnose
from pypto_op.workspace import OpWorkspace

pytestmark = pytest.mark.sim


def said_of(name: str, operator: OpWorkspace, run_example: RunExample) -> tuple[str, KernelText]:
    example = knowledge.entry(name).example
    assert example
    _, said = run_example(example, example.mistake)
    return said, read_kernel(operator.impl, asked_rules())


@pytest.mark.parametrize(
    ("name", "words", "function"),
    [
        ("state-write-consumes", "pypto.assemble(tile - ", "npu8tile_fwk3Sub"),
        ("reduction-without-tile", "pypto.sum(tile", "npu8tile_fwk3Sum"),
    ],
)
def test_a_segmentation_fault_names_line_and_function(
    name: str, words: str, function: str, operator: OpWorkspace, run_example: RunExample
) -> None:
    said, kernel = said_of(name, operator, run_example)
    log = parse_log(said)
    assert words in kernel.line(log.frame[1]), said
    assert function in said, "the C++ frames"
    hit = diagnose(log, kernel).hits[0]
    assert (hit.entry.id, hit.line) == (name, log.frame[1])


@pytest.mark.parametrize(("name", "words"), [("no-vector-tile", "pypto.exp(x)"), ("tile-from-dynamic", "set_vec_tile_shapes")])
def test_the_statement_that_failed_first_is_told(name: str, words: str, operator: OpWorkspace, run_example: RunExample) -> None:
    """pypto blames line 1 when its passes fail over the torso that an error left."""
    said, kernel = said_of(name, operator, run_example)
    assert "stopped at " in said
    assert words in kernel.line(parse_log(said).line), said


def test_without_the_runs_files_the_verdicts_own_line_is_named_not_the_callers() -> None:
    said = (
        "sim: the candidate's process was killed by a signal: rmsnorm_impl.py:62: killed by SIGSEGV (segmentation fault)\n"
        'Fatal Python error\n  File "/op/rmsnorm_impl.py", line 94 in kernel\n'
    )
    assert parse_log(said).raised == ("rmsnorm_impl.py", 62)
