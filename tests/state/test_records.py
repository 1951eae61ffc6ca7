"""What was found out about exactly these bytes is not found out twice; what somebody typed is nothing."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from tests.calling import command

from pypto_op.proof import records
from pypto_op.proof.closure import Loaded
from pypto_op.vocabulary import Loader
from pypto_op.workspace import OpWorkspace

ABOUT = {"golden": "a" * 64, "torch": "2.0"}


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpWorkspace:
    monkeypatch.setenv("PYPTO_OP_KEY_FILE", str(tmp_path / "keys" / "seal.key"))
    root = tmp_path / "custom" / "demo"
    root.mkdir(parents=True)
    return OpWorkspace.at(root)


def test_it_counts_for_what_it_names(ws: OpWorkspace) -> None:
    records.keep(ws, "kind", ABOUT, {"answer": 1})
    assert records.found(ws, "kind", ABOUT) == {"answer": 1}
    assert records.found(ws, "kind", {**ABOUT, "torch": "2.1"}) is None
    assert records.found(ws, "other", ABOUT) is None


def test_a_full_disk_leaves_nothing_behind(ws: OpWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, _text: str, **_words: str) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    records.keep(ws, "kind", ABOUT, {"answer": 1})
    assert not list((ws.debug_dir / records.FOLDER).iterdir())


@pytest.mark.parametrize("field", ["result", "about", "op_name", "tool", "closure", "seal"])
def test_what_somebody_typed_is_none(ws: OpWorkspace, field: str) -> None:
    records.keep(ws, "kind", ABOUT, {"answer": 1})
    (path,) = (ws.debug_dir / records.FOLDER).iterdir()
    record = json.loads(path.read_text())
    record[field] = {"answer": 2} if isinstance(record[field], dict) else "x"
    path.write_text(json.dumps(record))
    assert records.found(ws, "kind", ABOUT) is None
    path.write_text("{")
    assert records.found(ws, "kind", ABOUT) is None


def test_a_record_of_another_kind_is_none(ws: OpWorkspace) -> None:
    records.keep(ws, "kind", ABOUT, {"answer": 1})
    (path,) = (ws.debug_dir / records.FOLDER).iterdir()
    text = path.read_text().replace('"kind": "kind"', '"kind": "other"')
    path.with_name(path.name.replace("kind", "other")).write_text(text)
    assert records.found(ws, "other", ABOUT) is None


def test_what_was_loaded_counts_too(ws: OpWorkspace) -> None:
    helper = ws.root / "helper.py"
    helper.write_text("x = 1\n")
    loaded = Loaded()
    loaded.note(Loader.GOLDEN, {str(helper): __import__("hashlib").sha256(helper.read_bytes()).hexdigest()})
    records.keep(ws, "kind", ABOUT, 1, closure=loaded.closure(ws, []))
    assert records.found(ws, "kind", ABOUT) == 1
    helper.write_text("x = 2\n")
    assert records.found(ws, "kind", ABOUT) is None


GOLDEN = "import torch\n\n\ndef demo_golden(x):\n    return x\n\n\ndef _validate():\n    assert demo_golden(1) == {}\n"


def said_of_golden(ws: OpWorkspace) -> list[str]:
    done = command("lint", "--op-dir", str(ws.root), "--event", "complete-stage", "--stage", "2", "--format", "json")
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return [finding["message"] for finding in found if finding["rule_id"] == "OL11"]


@pytest.mark.slow
def test_a_golden_is_validated_once(ws: OpWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it were run again, it would meet another torch."""
    pytest.importorskip("torch")
    ws.golden.write_text(GOLDEN.format(1))
    assert said_of_golden(ws) == []
    (tmp_path / "torch.py").write_text("raise RuntimeError('run again')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert said_of_golden(ws) == []
    ws.golden.write_text(GOLDEN.format(1) + "# changed\n")
    assert "run again" in said_of_golden(ws)[0]


def test_a_golden_that_fails_is_tried_each_time(ws: OpWorkspace) -> None:
    pytest.importorskip("torch")
    ws.golden.write_text(GOLDEN.format(2).replace("import torch\n", ""))
    assert "_validate() fails" in said_of_golden(ws)[0]
    assert "_validate() fails" in said_of_golden(ws)[0]


def test_a_golden_that_reads_other_files_is_run_each_time(ws: OpWorkspace) -> None:
    """Nobody can say which bytes it rests on."""
    ws.golden.write_text("from pathlib import Path\n\n\ndef demo_golden(x):\n    return x\n\n\nassert Path('there').exists()\n")
    (ws.root / "there").write_text("")
    assert said_of_golden(ws) == []
    (ws.root / "there").unlink()
    assert "cannot be imported" in said_of_golden(ws)[0]
