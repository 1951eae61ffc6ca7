"""Faults planted into whole kernels: every fault must be seen in every kernel.

`test_corpus.py` shows that no rule blocks these kernels without one.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from labelled_corpus import Snippet, lay_out_text, snippets
from planted_faults import FAULTS, Source
from tests.quickly import share

from pypto_op.vocabulary import Severity
from pypto_op_lint import registry
from pypto_op_lint.api import lint_path

KERNELS = share(snippets("whole"), 5)


def _informs(rule: str) -> bool:
    return registry.all_rules()[rule].severity not in (Severity.S0, Severity.S1)


def _said(kernel: Snippet, text: str, scratch: Path, rule: str) -> list[str]:
    target = lay_out_text(kernel, text, scratch)
    found = lint_path(target, stage=kernel.stage, phase=kernel.phase, rules=[rule]).findings
    return [f.message for f in found if f.blocks or _informs(rule)]


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault_is_seen_in_every_kernel(name: str, tmp_path: Path) -> None:
    rule, plant = FAULTS[name]
    unseen = []
    for number, kernel in enumerate(KERNELS):
        text = kernel.source.decode("utf-8")
        if _informs(rule):
            assert _said(kernel, text, tmp_path / f"{number}-honest", rule) == [], kernel.name
        planted = plant(Source(text, kernel.op))
        assert planted != text, f"{name} changes nothing in {kernel.name}"
        if not _said(kernel, planted, tmp_path / f"{number}-planted", rule):
            unseen.append(kernel.name)
    assert not unseen, f"{rule} does not see {name} in {', '.join(unseen)}"
