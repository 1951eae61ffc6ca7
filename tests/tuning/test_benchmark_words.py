"""The benchmarks of the tuner, called with words that they do not know, end in a line and write no figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import tune, tune_spaces
from click.testing import CliRunner

RESULTS = Path(tune.__file__).parent / "results"


@pytest.mark.parametrize("name", ["tune", "tune_spaces"])
@pytest.mark.parametrize("words", [[], ["--halp"], ["nosuch"], ["30", "nosuch"], ["0", "rmsnorm"], ["nan"]])
def test_words_that_it_does_not_know(name: str, words: list[str]) -> None:
    before = (RESULTS / f"{name}.json").read_bytes()
    ended = CliRunner().invoke({"tune": tune, "tune_spaces": tune_spaces}[name].main, words)
    assert ended.exit_code == 2 and "Error: " in ended.output and "Traceback" not in ended.output
    assert (RESULTS / f"{name}.json").read_bytes() == before


@pytest.mark.parametrize("module", [tune, tune_spaces])
def test_help_names_the_file_that_is_written(module: object) -> None:
    ended = CliRunner().invoke(module.main, ["--help"])  # type: ignore[attr-defined]
    assert ended.exit_code == 0 and "benchmarks/results/" in ended.output
