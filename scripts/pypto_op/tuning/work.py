"""What an operator has to do for one shape: bytes from the tensors, arithmetic counted in a trace of the golden."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pypto_op.debug.running import Desk
from pypto_op.judge.cases.contract import Contract
from pypto_op.judge.cases.subject import Subject
from pypto_op.perf.bound import Work

_PRODUCTS = frozenset({"mm", "bmm", "addmm", "baddbmm", "matmul", "mv", "dot", "addmv"})
_MOVES = """view _unsafe_view reshape transpose t permute expand slice select squeeze unsqueeze detach clone _to_copy copy_ copy
as_strided alias empty empty_like zeros zeros_like ones ones_like full full_like new_empty new_zeros arange cat stack split
unbind narrow lift_fresh constant_pad_nd fill_ zero_ contiguous input output"""
_NO_WORK = frozenset(_MOVES.split())


def counted(contract: Contract, subject: Subject, case: Mapping[str, Any], work: Work) -> Work:
    """Return `work` with the arithmetic of a case.

    Args:
        case: of the suite, or a P0 shape's.
        work: its bytes.

    Returns:
        the same with `product_flop` and `vector_flop`; as it was where the golden cannot be traced.
    """
    with tempfile.TemporaryDirectory(prefix="pypto-op-work-") as folder, Desk(contract, subject, Path(folder)) as desk:
        desk.make_inputs(case)
        run = desk.golden("trace")
        if not run.ok:
            return work
        told = desk.trusted("compare", file=subject.golden, what="shapes")["found"]
        product, vector = flop(told["rows"], told["shapes"])
    word = str((case.get("dtype") or {}).get("default", "")) if isinstance(case.get("dtype"), Mapping) else str(case.get("dtype"))
    return replace(work, product_flop=product, vector_flop=vector, bits=16 if "16" in word else 32, counted=True)


def flop(rows: Sequence[Mapping[str, Any]], shapes: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Return (operations in products, operations elsewhere) of a golden's trace.

    Args:
        rows: operator, number of its result, numbers of its inputs (`debug.golden_trace`).
        shapes: of the tensors, by number.
    """
    product = vector = 0
    for row in rows:
        name = str(row["op"]).rstrip("_") if row["op"] not in _NO_WORK else ""
        made = shapes[row["tensor"]]
        if name in _PRODUCTS and len(row["inputs"]) >= 2:
            inner = shapes[row["inputs"][-2]][-1]
            product += 2 * inner * math.prod(made)
        elif name and name not in _NO_WORK:
            vector += max([math.prod(made), *(math.prod(shapes[i]) for i in row["inputs"])])
    return product, vector
