"""`harness new` with a few cases: for tests about what becomes of one, where trying all of them on the golden says no more."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.cases.case_maker import Case, Maker


def keep(monkeypatch: pytest.MonkeyPatch, *words: str, each: int = 2) -> None:
    """Let `harness new` take of an operator's cases the first `each` of a level, and those whose JSON holds one of `words`."""
    every = suite_cases.in_order

    def few(maker: Maker) -> list[Case]:
        seen: Counter[str] = Counter()
        kept = []
        for case in every(maker):
            seen[case["level"]] += 1
            if seen[case["level"]] <= each or any(word in json.dumps(case) for word in words):
                kept.append(case)
        for word in words:
            assert any(word in json.dumps(case) for case in kept), f"no case holds {word}: the test is about nothing"
        return kept

    monkeypatch.setattr(suite_cases, "in_order", few)
