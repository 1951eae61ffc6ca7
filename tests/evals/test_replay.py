"""A whole evaluation without a key: the transcript of rmsnorm is played, and graded against the hidden golden."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.calling import command

from pypto_op.proof.key import KEY_ENV


def evaluate(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, KEY_ENV: str(folder / "keys" / "seal.key"), "XDG_CACHE_HOME": str(folder / "cache")}
    line = [sys.executable, "-m", "pypto_op.cli", "eval", *map(str, words)]
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.sim
@pytest.mark.slow
def test_the_rmsnorm_transcript_is_solved(tmp_path: Path) -> None:
    pytest.importorskip("anthropic")
    done = evaluate(tmp_path, "--runner", "replay", "--mutants", "0", "--out", "out")
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads((tmp_path / "out" / "result.json").read_text())
    (row,) = found["trials"]
    assert row["request"] == "rmsnorm" and row["solved"] and row["verdict"]["status"] == "PASS" and row["finished"], row
    assert row["breaches"]["leaks"] == row["breaches"]["reached"] == 0 and row["requests"] > 5
    assert found["totals"]["solved"]["hits"] == 1 and "1 / 1" in (tmp_path / "out" / "index.html").read_text()
    again = command("eval", "--runner", "replay", "--out", tmp_path / "out")
    assert again.code == 2 and "not empty" in again.stderr


def test_without_a_key_nothing_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("anthropic")
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    done = evaluate(tmp_path, "--requests", "swiglu", "--out", "out", "--arm", "bare")
    assert done.returncode == 3 and "void" in done.stdout and "ANTHROPIC_API_KEY" in done.stdout, done.stdout + done.stderr
    assert json.loads((tmp_path / "out" / "result.json").read_text())["totals"]["void"] == 1
