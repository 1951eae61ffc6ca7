"""What a newcomer reads on the way from a public Triton task to a verdict: file, place, and what is not shown."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.calling import command

EXAMPLES = Path(__file__).parents[2] / "examples" / "triton"
TASK = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.randn(8, 9), torch.randn(8, 9)]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of an example."""
    return Path(shutil.copytree(EXAMPLES / "reduction", tmp_path / "reduction"))


@pytest.mark.slow
def test_a_verdict_says_what_it_does_not_show_and_where_it_lies(folder: Path) -> None:
    answer = command("triton", "verify", "--op_name", "reduction", "--verify_dir", folder, "--target", "interpret")
    assert answer.code == 0, answer.stdout + answer.stderr
    lines = answer.stdout.splitlines()
    assert [line for line in lines if line.startswith("not shown: the interpreter checks the mathematics")]
    assert lines[-1] == f"result: {folder / 'verify_result.json'}" and (folder / "verify_result.json").is_file()


@pytest.mark.parametrize("word", ["report", "verify", "benchmark", "triage", "mutate"])
def test_a_command_of_the_other_path_names_the_one_that_judges_a_triton_task(folder: Path, word: str) -> None:
    answer = command(word, folder)
    assert answer.code == 2
    assert f"`pypto-op triton verify --op_name reduction --verify_dir {folder}`" in answer.stderr


def test_a_task_that_raises_is_told_with_the_users_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("7_Two_Products.py").write_text(TASK, encoding="utf-8")
    answer = command("triton", "import", "7_Two_Products.py")
    line = answer.stderr.splitlines()[-1]
    assert answer.code == 1 and line.startswith("pypto-op: 7_Two_Products.py: the task does not run")
    assert "_torch.py:7: RuntimeError: mat1 and mat2" in line and line.count("RuntimeError") == 1, line
