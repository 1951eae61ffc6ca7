"""OL53: every operation of the golden is in the kernel."""

import re
from typing import Any

from pypto_op.vocabulary import Artifact, LintEvent, Severity
from pypto_op_lint.documents import rows_under
from pypto_op_lint.rule import Invalid, Rule, Valid

_DONE = re.compile(r"✅|✔|☑|\[x\]|\bdone\b|\byes\b|完成", re.IGNORECASE)
_OPEN = re.compile(r"❌|✗|✘|⬜|\[ \]|\b(?:todo|wip|tbd|open|missing)\b|not implemented|未实现|未完成", re.IGNORECASE)
_GATE: dict[str, Any] = {"event": LintEvent.COMPLETE_STAGE, "stage": 5}
_TABLE = """\
## Golden function inventory

| # | operation | shape change | PyPTO | Line | Status |
|---|---|---|---|---|---|
| 1 | exp | none | pypto.exp | 20 | ✅ |
| 2 | sum | [R,C]->[R,1] | pypto.sum | 21 | {} |
"""


class InventoryDone(Rule):
    """A row of the golden function inventory is not ticked.

    What it does:
        Reads the table under `Golden function inventory` in MEMORY.md: the last cell of each row must be a tick.

    Why:
        An operation that was forgotten is the commonest cause of a precision failure.

    Example:
        | 2 | sum | [R,C]->[R,1] | pypto.sum | | ❌ |

    Use instead:
        | 2 | sum | [R,C]->[R,1] | pypto.sum | 21 | ✅ |

    Known limits:
        A tick is a claim; the judge checks the numbers.
    """

    id = "OL53"
    name = "inventory-done"
    severity = Severity.S2
    artifacts = frozenset({Artifact.MEMORY})
    MESSAGE = "an operation of the golden is not implemented"
    FIX_HINT = "implement the operation and tick its row, with the line of the kernel"

    VALID = [
        Valid(_TABLE.format("✅"), artifact=Artifact.MEMORY, **_GATE),
        Valid("# memory\n", artifact=Artifact.MEMORY, **_GATE),
    ]
    INVALID = [
        Invalid(_TABLE.format("❌"), artifact=Artifact.MEMORY, **_GATE, lines=(6,)),
        Invalid(_TABLE.format(""), artifact=Artifact.MEMORY, **_GATE, lines=(6,)),
        Invalid(_TABLE.format("TODO"), artifact=Artifact.MEMORY, **_GATE, lines=(6,)),
    ]

    def check_file(self) -> None:
        """Look at the last cell of each row."""
        _, rows = rows_under(self.unit, "Golden function inventory")
        for row in rows:
            last = row.cells[-1] if row.cells else ""
            if _OPEN.search(last) or not _DONE.search(last):
                self.report(row.line, f"`{' | '.join(row.cells[:2])}` is not ticked")
