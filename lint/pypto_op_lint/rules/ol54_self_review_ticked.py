"""OL54: the coder has reviewed the phase."""

import re
from typing import Any

from pypto_op.documents.markdown import ChecklistItem
from pypto_op.vocabulary import Artifact, LintEvent, Severity
from pypto_op_lint.rule import Invalid, Rule, Valid

_ITEMS = (
    ("the wrapper's signature", re.compile(r"signature|签名", re.I)),
    ("every output written", re.compile(r"output|输出", re.I)),
    ("view ranks", re.compile(r"\bview", re.I)),
    ("the golden function inventory", re.compile(r"inventory|清单", re.I)),
    ("no host loop (for ... in range)", re.compile(r"for\b.*\bin\s+`?range", re.I)),
    ("the kernel called exactly once", re.compile(r"exactly\s+once|恰好一次|只.{0,4}一次", re.I)),
)
_GATE: dict[str, Any] = {"event": LintEvent.SUBMIT_FOR_VERIFY, "stage": 5, "phase": 1}
_REVIEW = """\
## Phase M1 self-review

- [x] wrapper signature matches primary_inputs (demo_impl.py:30)
- [x] all output tensors written (demo_impl.py:22)
- [x] `pypto.view` ranks consistent (demo_impl.py:20)
- [x] Golden function inventory rows ticked
- [x] no `for ... in range(...)` in the wrapper
- [x] the wrapper calls the kernel exactly once
"""


class SelfReviewTicked(Rule):
    """MEMORY.md has no complete self-review of the phase that is handed over.

    What it does:
        Looks for `## Phase M_k self-review` and for six ticked items, each its own: signature, outputs, view ranks,
        inventory, no `for ... in range` in the wrapper, kernel called exactly once. An open box among them is reported.

    Why:
        Reading one's own file against six questions finds slips that cost a round of verification.

    Example:
        - [x] signature, output, view, inventory, for ... in range, exactly once

    Use instead:
        - [x] wrapper signature matches primary_inputs (softmax_impl.py:88)
        - [x] ...

    Known limits:
        A ticked box is a claim: OL50, OL51, OL52, OL45 and the judge check the same things in the code.
    """

    id = "OL54"
    name = "self-review-ticked"
    severity = Severity.S1
    artifacts = frozenset({Artifact.MEMORY})
    stages = frozenset({5})
    missing_is_fault = True
    MESSAGE = "the self-review of the phase is missing"
    FIX_HINT = "run `pypto-op fill-memory OP_DIR`, staged with `--up-to-module k`; answer by hand what it leaves open"

    VALID = [
        Valid(_REVIEW, artifact=Artifact.MEMORY, **_GATE),
        Valid(
            _REVIEW.replace("- [x] all", "2. [X] all").replace("...", "…").replace("M1", "M_1"), artifact=Artifact.MEMORY, **_GATE
        ),
    ]
    INVALID = [
        Invalid("# memory\n", artifact=Artifact.MEMORY, **_GATE),
        Invalid(_REVIEW.replace("- [x] all", "- [ ] all"), artifact=Artifact.MEMORY, **_GATE),
        Invalid(
            "## Phase M1 self-review\n\n- [x] signature output view inventory for i in range exactly once\n",
            artifact=Artifact.MEMORY,
            **_GATE,
        ),
        Invalid(_REVIEW + "- [ ] wrapper signature again\n", artifact=Artifact.MEMORY, **_GATE),
        Invalid("```\n" + _REVIEW + "```\n", artifact=Artifact.MEMORY, **_GATE),
        Invalid(_REVIEW.replace("M1", "M2"), artifact=Artifact.MEMORY, **_GATE),
    ]

    def check_file(self) -> None:
        """Check the section of the phase that is handed over."""
        k = self.context.phase
        if k is None:
            return
        title = re.compile(rf"phase\s+m_?{k}\b.*self-?\s?review|m_?{k}\b.*自查", re.I)
        section = next((s for s in self.unit.markdown.sections if title.search(s.title)), None)
        if section is None:
            self.report(None, f"MEMORY.md has no section `## Phase M{k} self-review`")
            return
        items = section.checklist
        for item in items:
            if not item.ticked:
                self.report(item.line, f"an item of the self-review is open: {item.text[:60]}")
        missing = _unanswered([item for item in items if item.ticked])
        if missing:
            self.report(section.line, f"the self-review of M{k} has no ticked item of its own on: {'; '.join(missing)}")


def _unanswered(items: list[ChecklistItem]) -> list[str]:
    """Return the questions that are left when each item answers one (augmenting paths: a maximum matching)."""
    fits = [[i for i, item in enumerate(items) if pattern.search(item.text)] for _, pattern in _ITEMS]
    taken: dict[int, int] = {}

    def assign(question: int, tried: set[int]) -> bool:
        for item in fits[question]:
            if item not in tried:
                tried.add(item)
                if item not in taken or assign(taken[item], tried):
                    taken[item] = question
                    return True
        return False

    return [name for question, (name, _) in enumerate(_ITEMS) if not assign(question, set())]
