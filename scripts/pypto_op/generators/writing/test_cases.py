"""Which cases a generated test runs: cases of the suite, as they stand there, so that their tolerance is the judge's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pypto_op.documents import p0_shapes
from pypto_op.documents.interfaces import Interfaces
from pypto_op.documents.policy import dtype_word
from pypto_op.documents.spec import Spec
from pypto_op.errors import ContractError
from pypto_op.judge.cases.contract import Contract
from pypto_op.judge.cases.inputs import checks_precision
from pypto_op.judge.stressing import KEY
from pypto_op.vocabulary import Level

Case = Mapping[str, Any]

_SMALL_SHAPES = 2
_SMALL_LEVELS = (Level.L1, Level.L2, Level.L3)
_OTHER_VALUES = 2
"""The most values of one scalar beside its default."""


def small_cases(contract: Contract, spec: Spec, scalars: Mapping[str, Any], used: Sequence[str]) -> list[Case]:
    """Return the smallest cases of levels L1 to L3: two shapes for each dtype, and each value of the scalars.

    Args:
        contract: with the suite.
        spec: SPEC.md.
        scalars: scalar input -> default.
        used: names of the primary inputs that the tested modules read.

    Raises:
        ContractError: no case of these levels gives every symbol a size.
    """
    symbols = set(contract.interfaces.symbols)
    cases = sorted((case for case in contract.cases if set(_sizes(case)) >= symbols), key=_work)
    small = [case for case in cases if case["level"] in _SMALL_LEVELS]
    if not small:
        raise ContractError("has no small case", file=contract.workspace.suite, remedy="add cases of level L1 to L3")
    chosen: list[Case] = []
    for dtype in spec.supported_dtypes:
        own = [case for case in small if _compares(case) and dtype_of(case) == dtype_word(dtype)]
        for case in own:
            if _sizes(case) not in [_sizes(other) for other in chosen if dtype_of(other) == dtype_word(dtype)]:
                chosen.append(case)
            if sum(dtype_of(other) == dtype_word(dtype) for other in chosen) == _SMALL_SHAPES:
                break
        if not own:
            chosen.append(_plain(f"small_{dtype}", small[0], _sizes(small[0]), dtype))
    return chosen + list(_other_values(contract, chosen, [case for case in cases if _compares(case)], scalars, used))


def p0_cases(contract: Contract, spec: Spec, interfaces: Interfaces) -> list[Case]:
    """Return a case for each P0 shape of SPEC.md and each dtype: the suite's, else one with SPEC.md's tolerance."""
    chosen: list[Case] = []
    for number, shape in enumerate(spec.p0_shapes):
        sizes = p0_shapes.solve(shape, interfaces, f"p0_shapes[{number}]")
        for dtype in spec.supported_dtypes:
            own = [
                case
                for case in contract.cases
                if _compares(case) and _sizes(case) == sizes and dtype_of(case) == dtype_word(dtype)
            ]
            chosen.append(own[0] if own else _plain(f"P0_{number + 1}_{dtype}", {"level": "L2"}, sizes, dtype))
    return chosen


def dtype_of(case: Case) -> str | None:
    """Return the dtype that a case is about; None where it names one for each input, or none."""
    words = case.get("dtype")
    if isinstance(words, Mapping):
        words = words.get("default")
    return None if words is None else dtype_word(str(words))


def _other_values(
    contract: Contract, chosen: Sequence[Case], cases: Sequence[Case], scalars: Mapping[str, Any], used: Sequence[str]
) -> Iterator[Case]:
    """Yield a case for each value of a scalar that no chosen case has: a flag the other way, each value of the suite."""
    for port in contract.interfaces.primary_inputs:
        if port.shape or port.name not in used:
            continue
        name, default = port.name, scalars[port.name]
        tested = [case.get(name, default) for case in chosen]
        written = [case[name] for case in cases if name in case]
        values = [False, True] if port.dtype == "bool" else [default, *dict.fromkeys(written)][: _OTHER_VALUES + 1]
        for value in values:
            if value in tested:
                continue
            fitting = (case for case in cases if case.get(name, default) == value)
            yield next(fitting, {**chosen[0], "id": f"{chosen[0]['id']}_{name}_{value}", name: value})


def _compares(case: Case) -> bool:
    """Whether a case compares numbers, on inputs that are not searched for: a recipe says nothing to a reader."""
    return checks_precision(case) and KEY not in case


def _plain(name: str, like: Case, sizes: Mapping[str, int], dtype: str) -> Case:
    return {
        "id": name,
        "level": str(like["level"]),
        "shape": dict(sizes),
        "dtype": {"default": dtype},
        "precision": True,
        "seed": 42,
    }


def _sizes(case: Case) -> dict[str, int]:
    return {symbol: size for symbol, size in case["shape"].items() if isinstance(size, int)}


def _work(case: Case) -> int:
    return math.prod(_sizes(case).values())
