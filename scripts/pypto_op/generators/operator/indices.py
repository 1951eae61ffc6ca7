"""Which whole-number inputs are indices or lengths, by trial on the golden.

An index: it takes every value below a size and refuses that size. A length: up to a size each value counts, none beyond.
Without it a label, a page or a length would be below 16, and a kernel that never looks behind its first tile right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pypto_op.backends.base import Limits
from pypto_op.backends.reference import ReferenceSession
from pypto_op.documents.interfaces import Port
from pypto_op.generators.operator.sources import FLOATS, Sizes, Sources
from pypto_op.vocabulary import Outcome

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import Value

_SECONDS = 60.0


def index_limits(sources: Sources, names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return, of each of these inputs that is an index or a length, the least value and the first one that is too large.

    Args:
        sources: of the operator; its P0 shapes tell sizes apart.
        names: integer tensors.

    Raises:
        InfraError: the reference process cannot run.
    """
    apart: dict[str, Sizes] = {}
    for sizes in sources.p0_sizes():
        for symbol, size in sizes.items():
            if list(sizes.values()).count(size) == 1:
                apart.setdefault(symbol, sizes)
    found: dict[str, tuple[str, str]] = {}
    with ReferenceSession(sources.ws, limits=Limits(case_seconds=_SECONDS)) as session:

        def answer(name: str, sizes: Sizes, value: int) -> list[torch.Tensor] | None:
            inputs = [_value(sources, port, sizes, {name: value}) for port in sources.interfaces.primary_inputs]
            result = session.golden(inputs, function=sources.ws.golden_name(), file=sources.ws.golden)
            return result.outputs if result.outcome is Outcome.OK else None

        for name in names:
            for symbol, sizes in apart.items():
                take = partial(answer, name, sizes)
                plus = _first_beyond(take, sizes[symbol])
                if plus is not None:
                    low = sources.ranges[name][0]
                    found[name] = ("1" if low == "0" and not _finite(take(0)) else low, symbol + plus)
    return found


def _first_beyond(answer: Callable[[int], list[torch.Tensor] | None], size: int) -> str | None:
    """Return what to add to a size for the first value that is too large: "" for an index, " + 1" for a length, else None."""
    last, at = answer(size - 1), answer(size)
    if last is None or at is None:
        return None if last is None else ""
    behind = answer(size + 1)
    return " + 1" if behind is not None and same(at, behind) and not same(last, at) else None


def same(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    """Whether two answers of a golden are the same numbers; NaN is NaN."""
    return all(a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all()) for a, b in zip(one, other, strict=True))


def _finite(outputs: Sequence[torch.Tensor] | None) -> bool:
    return outputs is not None and all(bool(output.isfinite().all()) for output in outputs)


def _value(sources: Sources, port: Port, sizes: Sizes, values: Mapping[str, int]) -> Value:
    import torch

    if not port.shape:
        value: Value = sources.scalars[port.name]
        return value
    shape, dtype = port.sizes(sizes), getattr(torch, "int64" if port.dtype == "int" else port.dtype)
    if port.dtype in FLOATS:
        return torch.rand(shape, generator=torch.Generator().manual_seed(0)).to(dtype)  # the same for every trial
    return torch.full(shape, values.get(port.name, 0), dtype=dtype)
