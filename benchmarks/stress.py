"""What stress cases and twins cost: golden runs and seconds of a search, and what the twin policy adds to a trial."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.table import Row, Table

_SEARCHES = (
    ("softmax", {"R": 18, "C": 190}, "x_wide - row_max"),
    ("rmsnorm", {"T": 18, "H": 192}, "(x_wide * x_wide).mean(dim=-1, keepdim=True)"),
    ("flash_attention_fwd", {"BH": 1, "S": 139, "D": 32}, "scores - row_max"),
    ("flash_attention_fwd", {"BH": 1, "S": 139, "D": 32}, "torch.matmul(weights, v.to(wide))"),
)


def run(quick: bool) -> list[Table]:
    """Measure searches on the examples, and goldens with and without their twins."""
    from pypto_op.backends.reference import ReferenceSession
    from pypto_op.bundle_files import bundle_root
    from pypto_op.twins.reordering import GOLDEN, TWINS
    from pypto_op.workspace import OpWorkspace

    searches, costs = [], []
    for op, shape, expression in _SEARCHES[:2] if quick else _SEARCHES:
        ws = OpWorkspace.at(bundle_root() / "examples" / "ops" / op)
        case: dict[str, Any] = {"id": "bench", "level": "L5", "shape": shape, "dtype": {"default": "float32"}, "seed": 42}
        reference = {"function": ws.golden_name(), "file": ws.golden}
        goal = {"expression": expression, "quantile": 0.5, "condition": 1e5, "seed": 42, "runs": 400}
        with ReferenceSession(ws) as session:
            inputs = [value for _, value in session.make_inputs(case)]
            session.golden(inputs, **reference)
            begun = time.perf_counter()
            told = session.stress(case, **reference, **goal)
            seconds = time.perf_counter() - begun
            figures = {"seconds": seconds, "golden runs": told["runs"], "plain": told["plain"], "reached": told["reached"]}
            searches.append(Row(f"{op}: {expression}", figures))
            plain = _median(lambda s=session, i=inputs, r=reference: s.golden(i, **r), quick)
            twins = sum(
                _median(lambda t=t, s=session, i=inputs, r=reference: s.golden(i, twin=t, **r), quick)
                for t in TWINS
                if t != GOLDEN
            )
            costs.append(Row(f"{op} {shape}", {"golden": plain * 1e3, "other twins": twins * 1e3, "ratio": twins / plain}))
    notes = ["float32, aim: condition 1e5 at the median cell; plain and reached are condition numbers, least of three seeds"]
    return [Table("search for cancellation", "s", searches, notes), Table("the golden and its five other twins", "ms", costs)]


def _median(call: Callable[[], Any], quick: bool) -> float:
    times = []
    for _ in range(3 if quick else 7):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)
