"""A path that pypto cannot work in is the machine's fault, never the kernel's; one report has one writer at a time."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pypto_op.bundle_files import bundle_root
from pypto_op.judge import verify as judge
from pypto_op.judge.cases.request import Request
from pypto_op.judge.reporting import report as reports
from pypto_op.judge.verify import verify_operator
from pypto_op.locks import Lock
from pypto_op.vocabulary import Mode
from pypto_op.workspace import OpWorkspace

from .judging import CASES, Answer, place, verify


def test_white_space_in_the_path_blocks_and_does_not_fail_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPTO_OP_KEY_FILE", str(tmp_path / "seal.key"))
    op = tmp_path / "a b" / "custom" / "rmsnorm"
    shutil.copytree(bundle_root() / "examples" / "ops" / "rmsnorm", op)
    report = verify_operator(OpWorkspace.at(op), Request(modes=(Mode.SIM,)))
    assert report["status"] == "ERROR"
    assert report["error"]["kind"] == "infra"
    assert "white space" in report["error"]["message"]


@pytest.mark.sim
@pytest.mark.usefixtures("numeric", "private_key")
def test_two_verdicts_at_once_do_not_replace_one_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = place("sum_diff", tmp_path, cases=CASES[:1])
    monkeypatch.setattr(judge, "Lock", partial(Lock, seconds=0))
    meanwhile: list[Answer] = []

    def ask(*_told: Any) -> None:
        if not meanwhile:
            meanwhile.extend(verify(operator.root, *words) for words in ((), ("--report", str(tmp_path / "other.json"))))

    report = verify_operator(operator, Request(modes=(Mode.SIM,), jobs=1), progress=ask)

    refused, elsewhere = meanwhile
    assert refused.code == 3 and "another verification of this operator is running; wait for it, or " in refused.stderr
    assert elsewhere.code == 0, "a report of its own is nobody else's"
    assert report["status"] == "PASS" and operator.report.read_text() == reports.serialise(report)
    assert verify(operator.root).code == 0
