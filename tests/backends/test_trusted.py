"""Which files are no candidate's: packages count wherever the interpreter keeps them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ASK = """import sys
from pypto_op.backends.worker import trusted
print(trusted.is_installed(sys.argv[1]), trusted.is_trusted(sys.argv[1]))
"""


@pytest.mark.parametrize(("looks_there", "answer"), [(True, "True True"), (False, "False False")])
def test_packages_of_the_account_are_installed_where_the_interpreter_looks_there(
    tmp_path: Path, looks_there: bool, answer: str
) -> None:
    """`pip install --user` puts torch and what it imports there; frames of it are not the candidate's."""
    python = [sys._base_executable, *([] if looks_there else ["-s"])]  # type: ignore[attr-defined]
    environment = {**os.environ, "PYTHONUSERBASE": str(tmp_path), "PYTHONPATH": str(REPOSITORY / "scripts")}
    where = subprocess.run([*python, "-m", "site", "--user-site"], env=environment, capture_output=True, text=True, check=False)
    file = Path(where.stdout.strip()) / "typing_extensions.py"
    done = subprocess.run([*python, "-c", ASK, str(file)], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == answer
