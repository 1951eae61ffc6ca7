"""A wrong path or request ends before torch is imported and before anything is started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

OPERATOR = str(Path(__file__).parents[2] / "examples" / "ops" / "rmsnorm")
PROBE = """
import os, sys
from pypto_op import cli
try:
    cli.main(sys.argv[1:])
except SystemExit as end:
    used = os.times()
    loaded = [name for name in ("torch", "pypto") if name in sys.modules]
    print("@", end.code, ",".join(loaded), sum(used[:4]))
"""
NOWHERE = "no/such/folder"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["verify", NOWHERE], "no such operator directory"),
        (["verify", OPERATOR, "--case", "nosuch"], "no case matches"),
        (["verify", OPERATOR, "--levels", "L9"], "L9"),
        (["verify", OPERATOR, "--modes", "gpu"], "gpu"),
        (["verify", OPERATOR, "--policy", "nosuch"], "there is no policy"),
        (["verify", OPERATOR, "--suite", "no.json"], "no such suite"),
        (["verify", OPERATOR, "--impl", "no.py"], "no such file"),
        (["verify", OPERATOR, "--up-to-module", "7"], "there is no M7"),
        (["verify", OPERATOR, "--self-test", "--case", "x"], "takes no --case"),
        (["verify", OPERATOR, "--compose", "--suite", "x.json"], "takes no --suite"),
        (["mutate", NOWHERE], "no such operator directory"),
        (["mutate", OPERATOR, "--operators", "nosuch"], "no mutation operator"),
        (["mutate", OPERATOR, "--case", "nosuch"], "no case matches"),
        (["reproduce", NOWHERE, "--case", "x"], "no such operator directory"),
        (["reproduce", OPERATOR, "--case", "nosuch"], "no case matches"),
        (["benchmark", NOWHERE], "no such operator directory"),
        (["report", NOWHERE], "no such operator directory"),
        (["harness", "new", NOWHERE], "no such operator directory"),
        (["tests", "new", NOWHERE], "no such operator directory"),
        (["cleanup", NOWHERE], "no such operator directory"),
        (["check", NOWHERE], "no such operator directory"),
        (["interfaces", "check", NOWHERE], "no such operator directory"),
        (["interfaces", "new", NOWHERE], "no such operator directory"),
        (["memory", "check", NOWHERE], "no such operator directory"),
        (["script", "no.py"], "no.py"),
        (["state", "nosuch", "--op-dir", NOWHERE], "nosuch"),
        (["verify", __file__], "is no folder"),
    ],
    ids=lambda value: " ".join(Path(word).name for word in value) if isinstance(value, list) else "",
)
def test_it_costs_nothing(words: list[str], told: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *words], capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False
    )
    code, loaded, _ = done.stdout.splitlines()[-1].removeprefix("@ ").split(" ")
    assert (code, loaded) == ("2", ""), done.stdout + done.stderr
    assert told in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir()), "nothing was written"
