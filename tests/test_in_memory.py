"""Rooms that judge get a folder in memory where there is enough of it; it goes with its test."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import in_memory

HERE = Path(__file__).parent


def test_rooms_exist_and_others_stay_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [room for room in in_memory.ROOMS if not (HERE / room).is_dir()] == []
    monkeypatch.setattr(in_memory, "_roomy", lambda: True)
    assert in_memory.has_one(HERE / "judge" / "test_report.py")
    assert not in_memory.has_one(HERE / "state" / "test_durability.py")
    monkeypatch.setattr(in_memory, "_roomy", lambda: False)
    assert not in_memory.has_one(HERE / "judge" / "test_report.py"), "little memory: on the disk"


def test_a_folder_goes_with_what_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_memory, "_MEMORY", tmp_path)
    with in_memory.folder() as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "file").write_text("x")
        assert folder.parent == tmp_path
    assert list(tmp_path.iterdir()) == []
