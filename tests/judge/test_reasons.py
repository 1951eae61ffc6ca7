"""Which failure category a run's last words lead to."""

from __future__ import annotations

import pytest

from pypto_op.backends.base import RunResult
from pypto_op.judge.findings.reasons import Reason, category_of
from pypto_op.vocabulary import FailureCategory, Outcome

LAST = "impl.py:40: RenderedParserError: Errcode: F21004! op [REGISTER_COPY]tile shape not set"


@pytest.mark.parametrize(
    ("first", "category"),
    [
        ("ERROR:root:Record function k failed: TypeError: Sub(): incompatible function arguments.", FailureCategory.RUNTIME),
        ("ERROR:root:Record function k failed: ValueError: Not concrete value", FailureCategory.RUNTIME),
        ("ERROR:root:Record function k failed: RuntimeError: Errcode: F21004!", FailureCategory.TILE_SHAPE),
        ("", FailureCategory.TILE_SHAPE),
    ],
)
def test_the_first_error_decides_not_its_echo(first: str, category: FailureCategory) -> None:
    """After a broken recording pypto complains of missing tiles; the debugger must not be sent to tile shapes."""
    run = RunResult(outcome=Outcome.EXCEPTION, detail=LAST, stderr=f"{first}\n{LAST}\n")
    assert category_of(Reason.EXCEPTION, run) is category


def test_other_words_count_still() -> None:
    run = RunResult(outcome=Outcome.EXCEPTION, detail="RuntimeError: not all tensors are contiguous")
    assert category_of(Reason.EXCEPTION, run) is FailureCategory.LAYOUT
