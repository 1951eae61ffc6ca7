"""Where precision-compare puts its dumps: in memory where there is room, and nothing stays there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pypto_op.debug import running
from pypto_op.workspace import OpWorkspace


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(running, "_ROOM", 1)
    (tmp_path / "memory").mkdir()
    return tmp_path / "memory"


@pytest.fixture
def ws(tmp_path: Path) -> OpWorkspace:
    (tmp_path / "custom" / "op").mkdir(parents=True)
    return OpWorkspace.at(tmp_path / "custom" / "op")


def test_a_folder_in_memory_goes_with_its_user(ws: OpWorkspace, memory: Path) -> None:
    with pytest.raises(RuntimeError, match="stop"), running.scratch_in_memory(ws, "compare", memory) as folder:
        (folder / "dump").write_text("x")
        assert folder.parent == memory
        assert folder.stat().st_mode & 0o077 == 0
        raise RuntimeError("stop")
    assert list(memory.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_uses_is_not(ws: OpWorkspace, memory: Path) -> None:
    program = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom pypto_op.debug import running\n"
        "from pypto_op.workspace import OpWorkspace\nrunning._ROOM = 1\n"
        "with running.scratch_in_memory(OpWorkspace.at(Path(sys.argv[1])), 'killed', Path(sys.argv[2])) as folder:\n"
        "    (folder / 'dump').write_text('x')\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(ws.root), str(memory)], check=False)
    (left,) = memory.iterdir()
    with running.scratch_in_memory(ws, "one", memory) as one, running.scratch_in_memory(ws, "two", memory) as two:
        assert not left.exists()
        assert {*memory.iterdir()} == {one, two}


def test_a_link_in_the_place_of_such_a_folder_is_left_alone(ws: OpWorkspace, memory: Path, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "file").write_text("x")
    (memory / f"{running._NAME}-link").symlink_to(tmp_path / "own")
    with running.scratch_in_memory(ws, "one", memory):
        assert (tmp_path / "own" / "file").exists()


def test_without_room_the_folder_lies_beside_the_operator(
    ws: OpWorkspace, memory: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(running, "_ROOM", 1 << 60)
    for place in (memory, tmp_path / "missing"):
        with running.scratch_in_memory(ws, "one", place) as folder:
            assert folder.parent == ws.debug_dir
    assert list(ws.debug_dir.iterdir()) == []
