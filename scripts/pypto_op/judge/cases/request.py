"""What a caller of `verify_operator` wants judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pypto_op.backends.base import Limits
from pypto_op.errors import ContractError
from pypto_op.modes import WORDS
from pypto_op.pool.pool import Pool
from pypto_op.vocabulary import Mode


@dataclass(frozen=True)
class Request:
    """What a caller wants judged."""

    modes: Sequence[Mode] = tuple(Mode)  # where to run; none short-circuits another
    impl: Path | str | None = None  # the file to judge, when it is not the operator's own
    up_to_module: int | str | None = None  # the cumulative phase k, judged against its own golden only
    # levels, case: only these levels of the suite ("L1", ...), or only this case; where that part passes, it is PARTIAL
    levels: Sequence[str] | None = None
    case: str | None = None
    policy: str | Mapping[str, Any] | None = None  # a tolerance policy in the place of SPEC.md's and the suite's
    jobs: int | None = 1  # how many lanes of cases (`lanes`) run at once; None: what cores and memory allow
    limits: Limits = field(default_factory=Limits)  # what the candidate may use
    # the second seed of precision cases; None: a fresh one, so no kernel can be fitted to it. One that is named, and passes, is
    # PARTIAL.
    seed: int | None = None
    report: Path | None = None  # where the report goes; default: eval/evaluation_report.json
    error_maps: bool = False  # keep where each output is off, under `_debug/error_maps/`
    suite: Path | None = None  # another suite than the operator's own; what it says is no evidence for a gate
    inspect: str | None = None  # compare this inspection probe in the outputs' place; likewise no evidence
    only: Mapping[str, Any] | None = None  # a case in the place of the suite's; nothing is reported of it
    pool: Pool | None = None  # where cases are judged; default: on this machine

    def __post_init__(self) -> None:
        """Refuse a request that would judge nothing."""
        if not self.modes:
            raise ContractError("no mode was asked for", remedy=f"use --modes {WORDS}")

    @property
    def is_part(self) -> bool:
        """Whether a part of the operator, or another file, is judged: its report is no word on the whole kernel."""
        return (
            any((self.levels, self.case, self.suite, self.policy, self.inspect, self.impl, self.up_to_module))
            or self.seed is not None
        )
