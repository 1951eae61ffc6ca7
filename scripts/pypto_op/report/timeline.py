"""What happened to an operator, in order: the events that the report's timeline shows."""

from __future__ import annotations

from dataclasses import dataclass

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
