"""The linter against the labelled corpus: no miss, no false alarm, the right line, one test a page."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from labelled_corpus import SLOW_RULES, judge, page_names, snippets
from tests.quickly import share

PAGES = [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW_RULES else []) for name in page_names()]


@pytest.mark.parametrize("page", PAGES)
def test_labels_are_met(page: str, tmp_path: Path) -> None:
    problems = []
    for number, snippet in enumerate(share(snippets(page))):
        verdict = judge(snippet, tmp_path / str(number))
        if snippet.known_limit and not verdict.problem:
            warnings.warn(f"{snippet.shown} is right now: remove its known_limit", stacklevel=1)
        elif verdict.problem and not snippet.known_limit:
            problems.append(verdict.problem)
    assert not problems, f"{len(problems)} of {len(snippets(page))} labels are not met:\n" + "\n".join(problems)
