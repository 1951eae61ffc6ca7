"""The demo's planted faults and its folder; the demo as a whole runs from the wheel in tests/packaging/test_wheel.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from pypto_op.bundle_files import bundle_root
from pypto_op.demo import planted
from pypto_op.demo.story import open_scratch
from pypto_op.demo.tools import Tools
from pypto_op.errors import ContractError, InfraError

RMSNORM = bundle_root() / "examples" / "ops" / "rmsnorm"


@pytest.mark.parametrize("fault", [planted.TILE_FROM_ARGUMENT, planted.DROPPED_TAIL], ids=lambda f: f.what[:20])
def test_planted_faults_still_fit_the_example(fault: planted.Fault) -> None:
    source = (RMSNORM / "rmsnorm_impl.py").read_text(encoding="utf-8")
    assert fault.plant(source) != source


def test_a_fault_that_no_longer_fits_is_told() -> None:
    with pytest.raises(ContractError, match="no longer fits the example"):
        planted.DROPPED_TAIL.plant("another kernel")


def test_a_step_that_is_refused_is_told_with_its_reason(tmp_path: Path) -> None:
    tools = Tools(tmp_path, tmp_path / "custom" / "rmsnorm")
    with pytest.raises(InfraError, match=r"`pypto-op state start_phase` ended with exit code \d: .*custom/rmsnorm"):
        tools.state("start_phase", phase=1)


def test_demo_does_not_remove_a_folder_that_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(ContractError, match="no earlier demo's"):
        open_scratch(tmp_path, RMSNORM)
    assert (tmp_path / "mine.txt").exists()
