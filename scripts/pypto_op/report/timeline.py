"""What happened to an operator, in order: the events that the report's timeline shows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pypto_op.errors import ContractError
from pypto_op.vocabulary import Word


class Kind(Word):
    """What kind of event it is; the report picks its mark and colour by this."""

    WRITE = "write"
    REFUSAL = "refusal"
    TRANSITION = "transition"
    VERDICT_PASS = "verdict_pass"
    VERDICT_FAIL = "verdict_fail"
    BENCHMARK = "benchmark"
    NOTE = "note"


@dataclass(frozen=True)
class Event:
    """One entry of the timeline.

    Attributes:
        at: seconds since the first event.
        seconds: how long it took.
        actor: the agent, or the tool, that did it.
        title: one sentence.
        detail: what the actor was told, several lines; may be empty.
    """

    at: float
    seconds: float
    actor: str
    kind: Kind
    title: str
    detail: str = ""


def append(path: Path, event: Event) -> None:
    """Add `event` to the JSON Lines file `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(event), ensure_ascii=False) + "\n")


def load(path: Path) -> list[Event]:
    """Read the events of `path`, oldest first; an absent file has none.

    Raises:
        ContractError: a line is not an event.
    """
    if not path.is_file():
        return []
    events = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            fields = json.loads(line)
            events.append(Event(**{**fields, "kind": Kind(fields["kind"])}))
        except (ValueError, TypeError, KeyError) as error:
            raise ContractError(
                "not an event of the timeline", file=path, where=f"line {number}", remedy="delete the file"
            ) from error
    return events
