"""A folder that was moved, copied or renamed after its run is still read: its artefacts are those that lie in it now."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.judge.judging import command, place, verify

from pypto_op.workspace import OpWorkspace

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("private_key", "numeric")]

CASES = [{"id": "tile", "level": "L2", "shape": {"N": 40, "D": 64}}]
TILE = "            pypto.set_vec_tile_shapes(16, 32)\n"


@pytest.fixture
def failed(tmp_path: Path) -> OpWorkspace:
    """An operator whose verdict failed, since a line of its kernel is missing."""
    operator = place("sum_diff", tmp_path / "before", cases=CASES)
    source = operator.impl.read_text()
    assert TILE in source
    operator.impl.write_text(source.replace(TILE, ""))
    assert verify(operator.root, "--case", "tile").code == 1
    return operator


def _moved(root: Path) -> Path:
    target = root.parents[2] / "after" / "custom" / root.name
    target.parent.mkdir(parents=True)
    return Path(shutil.move(root, target))


def _copied(root: Path) -> Path:
    return Path(shutil.copytree(root, root.parents[2] / "after" / "custom" / root.name))


def _renamed(root: Path) -> Path:
    return root.rename(root.with_name("of_yesterday"))


def _sent(root: Path) -> Path:
    return Path(shutil.copytree(root, root.parents[2] / "sent by mail"))


@pytest.mark.parametrize("moving", [_moved, *(pytest.param(one, marks=pytest.mark.slow) for one in (_copied, _renamed, _sent))])
def test_kernel_and_line_are_those_of_the_folder_that_is_given(moving: Callable[[Path], Path], failed: OpWorkspace) -> None:
    line = command("diagnose", str(failed.root), "--json").report["hits"][0]["kernel_line"]
    root = moving(failed.root)
    impl = str(root / failed.impl.name)
    for given in (root, root / "_debug" / "failures" / "tile"):
        answer = command("diagnose", str(given), "--json").report
        hit = answer["hits"][0]
        assert (hit["kernel_file"], hit["kernel_line"], hit["id"]) == (impl, line, "no-vector-tile")
        assert hit["code"] and not any("gone" in note for note in answer["notes"])
    found = command("triage", str(root), "--json").report
    assert found["op_name"] == failed.name and found["hits"][0]["kernel_line"] == line
    assert not any("other bytes" in note for note in found["notes"])
    assert any("rename it" in note for note in found["notes"]) == (root.name != failed.name)


def test_a_failure_folder_alone_says_which_file_it_lacks(failed: OpWorkspace, tmp_path: Path) -> None:
    folder = shutil.copytree(failed.failure_dir("tile"), tmp_path / "tile")
    failed.root.rename(tmp_path / "elsewhere")
    assert f"{failed.impl}, which ran, is gone: name it by --kernel" in command("diagnose", str(folder)).stderr


def test_a_command_that_runs_a_kernel_says_how_the_folder_was_called(failed: OpWorkspace) -> None:
    root = _renamed(failed.root)
    answer = command("debug", "precision-compare", str(root))
    assert answer.code == 2 and f"rename the folder to {failed.name}" in answer.stderr
