"""A path that pypto cannot work in is the machine's fault, never the kernel's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pypto_op.bundle_files import bundle_root
from pypto_op.judge.cases.request import Request
from pypto_op.judge.verify import verify_operator
from pypto_op.vocabulary import Mode
from pypto_op.workspace import OpWorkspace


def test_white_space_in_the_path_blocks_and_does_not_fail_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPTO_OP_KEY_FILE", str(tmp_path / "seal.key"))
    op = tmp_path / "a b" / "custom" / "rmsnorm"
    shutil.copytree(bundle_root() / "examples" / "ops" / "rmsnorm", op)
    report = verify_operator(OpWorkspace.at(op), Request(modes=(Mode.SIM,)))
    assert report["status"] == "ERROR"
    assert report["error"]["kind"] == "infra"
    assert "white space" in report["error"]["message"]
