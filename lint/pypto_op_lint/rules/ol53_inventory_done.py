"""OL53: every operation of the golden is in the kernel."""

import re
from collections.abc import Iterator
from typing import Any

from pypto_op.vocabulary import Artifact, LintEvent, Severity
from pypto_op_lint.markdown import Markdown, Row, tables
from pypto_op_lint.rule import Invalid, Rule, Valid

_DONE = re.compile(r"✅|✔|☑|✓|√|\[x\]|\b(?:done|yes|ok|implemented)\b|完成|已实现|^是$", re.IGNORECASE)
_OPEN = re.compile(r"❌|✗|✘|⬜|\[ \]|\b(?:todo|wip|tbd|open|missing)\b|not implemented|未实现|未完成", re.IGNORECASE)
_TITLES = ("Golden function inventory", "Golden 函数清单", "函数清单")
_STATUS = re.compile(r"status|状态", re.IGNORECASE)
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
        Reads the table under `Golden function inventory` (`Golden 函数清单`) in MEMORY.md: the cell of each row under
        `Status` (`状态`), or the last one where no column has that name, must be a tick.

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
        Valid(_TABLE.format("✅").replace("|\n", "| note |\n"), artifact=Artifact.MEMORY, **_GATE),
    ]
    INVALID = [
        Invalid(_TABLE.format("❌"), artifact=Artifact.MEMORY, **_GATE, lines=(6,)),
        Invalid(_TABLE.format(""), artifact=Artifact.MEMORY, **_GATE, lines=(6,)),
        Invalid(_TABLE.format("TODO"), artifact=Artifact.MEMORY, **_GATE, lines=(6,)),
    ]

    def check_file(self) -> None:
        """Look at the last cell of each row."""
        for row, status in _rows(self.unit.markdown):
            if _OPEN.search(status) or not _DONE.search(status):
                self.report(row.line, f"`{' | '.join(row.cells[:2])}` is not ticked")


def _rows(document: Markdown) -> Iterator[tuple[Row, str]]:
    """Yield the rows of the inventory, each with the cell that says how far it is."""
    section = document.section(*_TITLES)
    for header, *rows in tables(section) if section is not None else ():
        named = (place for place, cell in enumerate(header.cells) if _STATUS.search(cell))
        place = next(named, len(header.cells) - 1)
        for row in rows:
            yield row, row.cells[place] if place < len(row.cells) else ""
