"""The static check runs beside the implementation: it delays nothing, and counts only for the arguments that the run shows."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests import program
from tests.triton import lab

from pypto_op.errors import ContractError
from pypto_op.triton.run.reading import Beside

TEXT = f"""{lab.HEAD}
class ModelNew(nn.Module):
    def forward(self, x, other):
        return run(copy_kernel, x * other)
"""


def test_the_file_is_read_again_where_the_run_shows_other_arguments(place: Path) -> None:
    beside = Beside(lab.folder(place, lab.EXPO, TEXT).impl, None)
    beside.begin([False, False])
    beside.begin([False, True])  # it has begun
    tensors = beside.reading([False, False])
    assert beside.reading([False, False]) is tensors
    assert not tensors.result["valid"]
    assert "x * other" in str(tensors.result["checks"])
    assert "x * other" not in str(beside.reading([True, True]).result["checks"])  # a product of two numbers


def test_an_error_of_the_check_comes_where_its_result_is_asked_for(place: Path) -> None:
    beside = Beside(lab.folder(place, lab.EXPO, TEXT).impl, place / "no_policy.yaml")
    beside.begin([False, False])
    with pytest.raises(ContractError, match="no_policy"):
        beside.reading([False, False])


def test_a_process_ends_behind_a_check_that_nobody_asked_for(place: Path) -> None:
    """It ran on where a case failed at once; on a busy machine every third such verdict ended with SIGABRT in place of 1."""
    code = (
        "import atexit, sys, threading; from pathlib import Path;"
        "atexit.register(lambda: print([thread.name for thread in threading.enumerate()]));"
        "from pypto_op.triton.run.reading import Beside; Beside(Path(sys.argv[1]), None).begin([False, False])"
    )
    ended = program.with_commands("-c", code, lab.folder(place, lab.EXPO, TEXT).impl)
    assert (ended.returncode, ended.stdout) == (0, "['MainThread']\n"), ended


def test_threads_have_the_stack_that_they_had(place: Path) -> None:
    before = threading.stack_size()
    Beside(lab.folder(place, lab.EXPO, TEXT).impl, None).reading([False, False])
    assert threading.stack_size() == before


@pytest.mark.slow
def test_the_judge_loads_no_parser_before_its_first_question() -> None:
    code = "import sys, pypto_op.triton.run.passes; sys.exit(any(name.startswith('libcst') for name in sys.modules))"
    assert program.python("-c", code).returncode == 0
