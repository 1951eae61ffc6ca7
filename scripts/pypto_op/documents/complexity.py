"""How complex a golden is, and into how many modules the operator is cut (DESIGN.md sections 0.1 to 0.3).

One complexity unit is a FlashAttention forward: about 30 lines, two matmuls and a cross-tile reduce, one group of
loop-carried state. With L = lines / 30, S = state groups and O = (matmuls + reduces) / 3 the total is the largest.
Below 1.3 it is one module; above, the total rounded half up, but no more than one module per 12 lines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.documents import spec
from pypto_op.documents.golden import Signals, read_signals
from pypto_op.errors import ContractError
from pypto_op.vocabulary import DTYPE_ALIASES, Decomposition

LINES_PER_UNIT = 30
HEAVY_OPS_PER_UNIT = 3
SINGLE_BELOW = 1.3
LEAST_LINES_PER_MODULE = 12
MAX_MODULES = 32

_CUBE_BASELINE = [128, 128]
_VECTOR_TILE = 64
"""Four live tensors of such tiles fit the unified buffer in every dtype."""
_BYTES = {"float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int8": 1, "uint8": 1}


@dataclass(frozen=True)
class DesignParams:
    """What follows from the signals."""

    signals: Signals  # what was counted in the golden
    # lines_share, state_share, ops_share: L, S and O
    lines_share: float
    state_share: float
    ops_share: float
    total_complexity: float  # the largest of the three
    module_count: int  # N
    tile_baseline: dict[str, Any]  # first tile shapes; see `tile_baseline`

    @property
    def decomposition(self) -> Decomposition:
        """`single` for one module, else `staged`."""
        return Decomposition.SINGLE if self.module_count == 1 else Decomposition.STAGED

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON data, with the seeds' word for the path (L0, L1) beside ours."""
        return {
            "signals": self.signals.as_dict(),
            "L": round(self.lines_share, 4),
            "S": round(self.state_share, 4),
            "O": round(self.ops_share, 4),
            "total_complexity": round(self.total_complexity, 4),
            "module_count": self.module_count,
            "decomposition": self.decomposition.value,
            "decomposition_level": "L0" if self.module_count == 1 else "L1",
            "complexity_units_per_module": round(self.total_complexity / self.module_count, 4),
            "tile_baseline": self.tile_baseline,
        }


def analyse(
    golden: Path | str, *, state_groups: int | None = None, cross_tile_reduces: int | None = None, dtype: str = "float32"
) -> DesignParams:
    """Count the signals in a golden and decide.

    Args:
        golden: `<op>_golden.py`; a SPEC.md beside it says which dtypes tensors are stored in.
        state_groups, cross_tile_reduces: what a person counted, instead of what the analysis finds.
        dtype: of the vector work, for the tile baseline.

    Raises:
        ContractError: the file cannot be read or parsed, or holds no golden function.
    """
    signals = read_signals(golden).replaced(state_groups=state_groups, cross_tile_reduces=cross_tile_reduces)
    try:
        stored = spec.load(Path(golden).with_name("SPEC.md")).supported_dtypes
    except ContractError:  # not written yet, or not fit: `pypto-op check` tells that
        stored = ()
    return decide(signals, dtype=dtype, stored=stored)


def decide(signals: Signals, *, dtype: str = "float32", stored: Sequence[str] = ()) -> DesignParams:
    """Return what follows from the signals; see the module's text for the formula."""
    lines = signals.effective_lines / LINES_PER_UNIT
    state = float(signals.state_groups)
    ops = (signals.matmuls + signals.cross_tile_reduces) / HEAVY_OPS_PER_UNIT
    total = max(lines, state, ops)
    cap = max(1, math.ceil(signals.effective_lines / LEAST_LINES_PER_MODULE))
    # Half up: Python's round() would send 2.5 to 2.
    count = 1 if total < SINGLE_BELOW else max(1, min(math.floor(total + 0.5), cap, MAX_MODULES))
    return DesignParams(signals, lines, state, ops, total, count, tile_baseline(signals, dtype, stored))


def tile_baseline(signals: Signals, dtype: str, stored: Sequence[str] = ()) -> dict[str, Any]:
    """Return the tiles to begin with.

    Keys: `cube` three times [128, 128] or None without matmuls; `vector` [64, 64]; `tail_alignment` in elements (32 bytes) of
    `tail_dtype`, the narrowest of `dtype` and those that tensors are `stored` in.

    Raises:
        ContractError: unknown dtype.
    """
    word = DTYPE_ALIASES.get(dtype, dtype)
    if word not in _BYTES:
        raise ContractError(f"{dtype[:40]!r} is no dtype for tiles", remedy=f"use {', '.join(_BYTES)}")
    size = _BYTES[word]
    narrowest = min([word, *(DTYPE_ALIASES.get(name, name) for name in stored)], key=lambda name: _BYTES.get(name, size))
    live = 4 if signals.cross_tile_reduces else 3
    return {
        "cube": [list(_CUBE_BASELINE) for _ in range(3)] if signals.matmuls else None,
        "vector": [_VECTOR_TILE, _VECTOR_TILE],
        "tail_alignment": 32 // _BYTES.get(narrowest, size),
        "tail_dtype": narrowest,
        "live_tensors": live,
        "bytes_used": _VECTOR_TILE**2 * size * live,
        "dtype": word,
    }
