"""Which rule runs at which event, and what a finding does there: a table, read from `data/events.json`."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.errors import ContractError
from pypto_op.vocabulary import LintEvent

EVENTS_FILE = Path(__file__).with_name("data") / "events.json"
BLOCK, REPORT = "block", "report"


@dataclass(frozen=True)
class Row:
    """When one rule runs."""

    effect: str  # "block" when its FAIL refuses the write or transition, "report" when it only informs
    on_write: bool  # it runs when one of its files was written
    submit_design: bool  # it runs before the design is handed over
    submit_for_verify: bool  # it runs before a phase is handed over, and before it is completed
    complete_stage: frozenset[int]  # the stages at whose completion it runs

    def runs_at(self, event: LintEvent, stage: int | None) -> bool:
        """Whether the rule runs at `event`; without a stage, completing any stage counts."""
        if event is LintEvent.COMPLETE_STAGE:
            return bool(self.complete_stage) if stage is None else stage in self.complete_stage
        return {
            LintEvent.ON_WRITE: self.on_write,
            LintEvent.SUBMIT_DESIGN: self.submit_design,
            LintEvent.SUBMIT_FOR_VERIFY: self.submit_for_verify,
        }[event]


@functools.cache
def table() -> dict[str, Row]:
    """Return the table by rule id; raise ContractError when the file is damaged."""
    try:
        data: dict[str, Any] = json.loads(EVENTS_FILE.read_text(encoding="utf-8"))
        return {rule_id: _row(row) for rule_id, row in data["rules"].items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ContractError(f"the event table cannot be read ({error})", file=EVENTS_FILE, remedy="reinstall pypto-op") from error


def row(rule_id: str) -> Row:
    """Return when the rule `rule_id` runs; raise ContractError where the table does not say, for it would run nowhere."""
    if rule_id not in table():
        raise ContractError(
            f"the event table has no row of {rule_id}, so the rule would never run",
            file=EVENTS_FILE,
            remedy="copy the row of a rule on the same file, as docs/adding-a-rule.md says",
        )
    return table()[rule_id]


def _row(row: dict[str, Any]) -> Row:
    return Row(
        effect=row["effect"],
        on_write=row["on-write"],
        submit_design=row["submit-design"],
        submit_for_verify=row["submit-for-verify"],
        complete_stage=frozenset(row["complete-stage"]),
    )
