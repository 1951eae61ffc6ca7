"""Which cases a kernel is timed on, and which few tell a wrong candidate early."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pypto_op.documents import p0_shapes
from pypto_op.documents import spec as spec_document
from pypto_op.errors import ContractError
from pypto_op.judge.cases.contract import Contract
from pypto_op.judge.cases.inputs import checks_precision
from pypto_op.judge.cases.variety import NO_KNOB
from pypto_op.perf.measuring import label_of

Case = Mapping[str, Any]
_FEW = 6
_SEED = 20_260_131


def p0_cases(contract: Contract, *, every_dtype: bool = False) -> list[dict[str, Any]]:
    """Return a case for each P0 shape of SPEC.md, the largest first.

    Args:
        every_dtype: one for each dtype of the suite; else each shape in the dtype that the suite has it in, or in the
            suite's first.

    Raises:
        ContractError: SPEC.md names no P0 shape, or no ordinary case of the suite compares numbers.
    """
    spec = spec_document.load(contract.workspace.spec)
    plain = _plain(contract)
    if not plain or not spec.p0_shapes:
        raise ContractError(
            "names no P0 shape that could be timed" if plain else "no ordinary case of the suite compares numbers",
            file=contract.workspace.spec,
            remedy="name p0_shapes, which is what the operator is tuned for",
        )
    made = []
    for number, shape in enumerate(spec.p0_shapes):
        sizes = p0_shapes.solve(shape, contract.interfaces, f"p0_shapes[{number}]")
        own = [case for case in plain if dict(case.get("shape") or {}) == sizes]
        kinds = {repr(case.get("dtype")): case for case in reversed([*own, *plain])}
        chosen = list(kinds.values()) if every_dtype else [(own or plain)[0]]
        made += [_made(case, sizes, number) for case in chosen]
    return sorted({case["id"]: case for case in made}.values(), key=lambda case: -elements(contract, case))


def other_cases(contract: Contract) -> list[dict[str, Any]]:
    """Return the ordinary cases of L2 and L4 whose shape is no P0 shape, one for each shape and dtype."""
    known = [case["shape"] for case in p0_cases(contract)]
    plain = [case for case in _plain(contract) if str(case.get("level")) in ("L2", "L4") and dict(case["shape"]) not in known]
    return [dict(case) for case in {label_of(case): case for case in reversed(plain)}.values()][::-1]


def elements(contract: Contract, case: Case) -> int:
    """Return the elements of all inputs and outputs of a case."""
    shapes = contract.interfaces.resolve_shapes(dict(case["shape"]))
    return sum(math.prod(shape) for shape in shapes.values())


def few_cases(contract: Contract) -> list[dict[str, Any]]:
    """Return a few cases that differ much: small, of each level and dtype, ragged before even."""
    chosen: list[Case] = []
    seen: set[tuple[str, str]] = set()
    precise = [case for case in contract.cases if checks_precision(case)]
    for case in sorted(precise, key=lambda case: elements(contract, case)):
        mark = (str(case.get("level")), repr(case.get("dtype")))
        if mark not in seen:
            seen.add(mark)
            chosen.append(case)
    largest = max(precise, key=lambda case: elements(contract, case), default=None)
    ordered = sorted(chosen, key=lambda case: (str(case.get("level")) not in ("L3", "L4"), elements(contract, case)))
    picked = ordered[: _FEW - 1] + ([largest] if largest is not None and largest not in ordered[: _FEW - 1] else [])
    return [dict(case) for case in picked]


def _plain(contract: Contract) -> Sequence[Case]:
    """Return the precision cases of the suite that choose no odd values, of level L2 and L4 first."""
    scalars = {port.name for port in contract.interfaces.primary_inputs if not port.shape}
    precise = [case for case in contract.cases if checks_precision(case) and case.get("shape")]
    plain = [case for case in precise if set(case) <= NO_KNOB | scalars] or precise
    return sorted(plain, key=lambda case: str(case.get("level")) not in ("L2", "L4"))


def _made(template: Case, sizes: Mapping[str, int], number: int) -> dict[str, Any]:
    dtype = template.get("dtype", "")
    word = dtype.get("default", "") if isinstance(dtype, Mapping) else str(dtype)
    case = {key: value for key, value in template.items() if key not in ("purpose", "note", "description", "power", "twin")}
    return case | {"id": f"P0_{number}_{word}".rstrip("_"), "shape": dict(sizes), "seed": _SEED}
