"""The linter against the labelled corpus: no miss, no false alarm, the right line, one test a folder."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from labelled_corpus import folders, judge, snippets


@pytest.mark.parametrize("folder", [pytest.param(f, id=f.name) for f in folders()])
def test_labels_are_met(folder: Path, tmp_path: Path) -> None:
    problems = []
    for number, snippet in enumerate(snippets(folder)):
        verdict = judge(snippet, tmp_path / str(number))
        if snippet.known_limit and not verdict.problem:
            warnings.warn(f"{snippet.shown} is right now: remove its known_limit", stacklevel=1)
        elif verdict.problem and not snippet.known_limit:
            problems.append(verdict.problem)
    assert not problems, f"{len(problems)} of {len(snippets(folder))} labels are not met:\n" + "\n".join(problems)
