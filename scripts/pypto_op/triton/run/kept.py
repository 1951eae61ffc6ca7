"""What the task's process keeps of a case from pass to pass: what later passes may move, and what they showed."""

from __future__ import annotations

from dataclasses import dataclass, field

from pypto_op.triton.run import masks


@dataclass
class Kept:
    """Of one case.

    Attributes:
        index: of the case.
        movable: which tensors may hold other values of their range; None before the first pass (`skewed`).
        marks: of the first pass's inputs; None before that.
        same: which tensors are the same for every seed; None before the second pass (`fixed`).
        habits: what the rows of a mask have in common; None before the first pass (`masks`).
        suits: move -> whether such values suit the reference.
        overflowed: the reference is infinite far away.
        idle: what changed nothing in any pass; None before one watched (`idle`).
        picks: the reference picks elements, as the same watch sees.
        comes: which of what is idle other inputs come to (`reaching`).
    """

    index: int
    movable: list[bool] | None = None
    marks: list[str] | None = None
    same: list[bool] | None = None
    habits: list[masks.Habit | None] | None = None
    suits: dict[str, bool] = field(default_factory=dict)
    overflowed: bool = False
    idle: dict[str, bool] | None = None
    picks: bool = False
    comes: dict[str, set[str]] = field(default_factory=dict)
