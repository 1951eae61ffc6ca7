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
    """One entry of the timeline."""

    at: float  # seconds since the first event
    seconds: float  # how long it took
    actor: str  # the agent, or the tool, that did it
    kind: Kind
    title: str  # one sentence
    detail: str = ""  # what the actor was told, several lines; may be empty
