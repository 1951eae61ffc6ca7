"""What a caller of `verify_operator` wants judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.backends.base import Limits
from pypto_op.pool.pool import Pool
from pypto_op.vocabulary import Mode


@dataclass(frozen=True)
class Request:
    """What a caller wants judged; the fields are the arguments of `verify_operator`."""

    modes: Sequence[Mode]
    impl: Path | str | None
    up_to_module: int | str | None
    levels: Sequence[str] | None
    case: str | None
    policy: str | Mapping[str, Any] | None
    jobs: int | None
    limits: Limits
    seed: int | None
    report: Path | None
    error_maps: bool
    suite: Path | None = None
    inspect: str | None = None
    only: Mapping[str, Any] | None = None
    pool: Pool | None = None
