"""The P0 shapes of SPEC.md: which sizes each gives, and which no case of a suite has."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pypto_op.documents import shape_expr
from pypto_op.documents.interfaces import Interfaces
from pypto_op.documents.spec import P0Shape, Spec
from pypto_op.documents.suite import Suite, untried_dtypes
from pypto_op.errors import ContractError

Sizes = dict[str, int]


def untried(suite: Suite, spec: Spec, interfaces: Interfaces) -> list[str]:
    """Return what SPEC.md supports and no case of a suite has: dtypes, and P0 shapes on which no case compares numbers.

    An older suite beside a newer SPEC.md says nothing of them.

    Args:
        interfaces: the contract, with the defaults of its scalars.
    """
    dtypes = untried_dtypes(suite, spec.supported_dtypes, (port.dtype for port in interfaces.primary_inputs))
    tried = [interfaces.sizes_of(case) for case in suite.cases if case["precision"]]
    return dtypes + [f"the P0 shape {shape}" for shape in spec.p0_shapes if not _is_met(shape, interfaces, tried)]


def _is_met(shape: P0Shape, interfaces: Interfaces, tried: Iterable[Sizes]) -> bool:
    """Whether the sizes of some case are those of a P0 shape; one that does not fit the contract is met by none."""
    try:
        sizes = solve(shape, interfaces, "p0_shapes")
    except ContractError:
        return False
    return any(sizes.items() <= met.items() for met in tried)


def solve(shape: P0Shape, interfaces: Interfaces, place: str, file: Path | None = None) -> Sizes:
    """Return symbol -> size for a P0 shape in any of its three forms; of a scalar in shapes where the P0 shape names it.

    Args:
        shape: of SPEC.md.
        interfaces: the contract, with the defaults of its scalars.
        place: of the shape in its file, for messages.

    Raises:
        ContractError: a symbol stays unknown, or the shape contradicts the interfaces.
    """
    if isinstance(shape, list):
        tensors = [port for port in interfaces.primary_inputs if port.shape]
        if not tensors:
            raise ContractError("no primary input has dimensions", where=place)
        shape = {tensors[0].name: shape}
    sizes: Sizes = {key: value for key, value in shape.items() if isinstance(value, int)}
    ports = {port.name: port for port in interfaces.primary_inputs}
    for name, dimensions in shape.items():
        if isinstance(dimensions, int):
            continue
        if name not in ports or len(ports[name].shape) != len(dimensions):
            raise ContractError(
                f"{name} with {len(dimensions)} dimension(s) is no primary input",
                where=place,
                remedy="use the names and ranks of module_interfaces.yaml, or give sizes by symbol",
            )
        for expression, size in zip(ports[name].shape, dimensions, strict=True):
            _unify(expression, size, sizes, place)
    sizes = {**interfaces.scalars, **sizes}
    unknown = [name for name in interfaces.scalars_in_shapes if name not in sizes]
    if unknown:
        raise ContractError(
            f"gives no value for {', '.join(unknown)}, a scalar that the contract's shapes are made of",
            file=file,
            where=place,
            remedy=f"write default_params: {{{unknown[0]}: ...}} into SPEC.md's front matter",
        )
    missing = [symbol for symbol in interfaces.symbols if symbol not in sizes]
    if missing:
        raise ContractError(f"gives no size for {', '.join(missing)}", where=place, remedy="add the symbol")
    interfaces.resolve_shapes(sizes)
    said = [name for name in interfaces.scalars_in_shapes if name in shape]
    return {symbol: sizes[symbol] for symbol in dict.fromkeys([*interfaces.symbols, *said])}


def _unify(expression: str, size: int, sizes: Sizes, place: str) -> None:
    parsed = shape_expr.parse(expression)
    if parsed.text in parsed.symbols:
        known = sizes.setdefault(parsed.text, size)
        if known != size:
            raise ContractError(f"{parsed.text} is {known} and {size}", where=place)
    elif parsed.symbols <= set(sizes) and parsed.value(sizes) != size:
        raise ContractError(f"{expression} is {parsed.value(sizes)}, not {size}", where=place)
