"""A default suite for an operator that has none yet, from SPEC.md and module_interfaces.yaml.

Tail bugs hide at tile sizes and their multiples, so each dynamic axis gets 1, T-1, T, T+1, k*T +- 1 and a
prime.
Axes that SPEC.md does not call dynamic keep the sizes of a P0 shape: nothing promises that others work.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pypto_op.documents import shape_expr
from pypto_op.documents.interfaces import Interfaces
from pypto_op.documents.spec import P0Shape, Spec
from pypto_op.documents.suite import LEAST_PER_LEVEL, Case, Suite, untried_dtypes
from pypto_op.errors import ContractError
from pypto_op.vocabulary import Level

TILES = (16, 64)
"""Row tiles that kernels use most; the edges of both are tested."""

SEEDS = (42, 7, 101, 3)
_PRIME = 97
_MOST_ELEMENTS = 1 << 22
"""Generated shapes stay below this per tensor; P0 shapes are taken as they are."""

Sizes = dict[str, int]


def derive(spec: Spec, interfaces: Interfaces) -> Suite:
    """Return a complete suite: two cases or more per level, every dtype, every P0 shape.

    Levels: L1 structure; L2 the P0 shapes; L3 tile edges; L4 long axes; L5 primes and k*T +- 1.

    Raises:
        ContractError: a P0 shape does not determine the symbols of the interfaces, or contradicts them.
    """
    if spec.op_name != interfaces.op:
        raise ContractError(
            f"SPEC.md is about {spec.op_name}, module_interfaces.yaml about {interfaces.op}",
            remedy="name one operator in both",
        )
    shapes = [solve(shape, interfaces, f"p0_shapes[{n}]") for n, shape in enumerate(spec.p0_shapes)]
    maker = _Maker(spec, interfaces)
    small = min(shapes, key=lambda sizes: math.prod(sizes.values()))
    for shape in (small, *shapes[:1]):
        maker.add(Level.L1, "runs", shape, precision=False, all_dtypes=True)
    for number, shape in enumerate(shapes):
        maker.add(Level.L2, f"p0_{number}", shape, all_dtypes=True)
    for word, size in _edges(TILES[0]):
        maker.add(Level.L3, word, _vary(spec, small, size))
    for word, size in _edges(TILES[1]):
        maker.add(Level.L3, word, _vary(spec, small, size))
    for factor in (3, 5):
        maker.add(Level.L4, f"long_{factor}", _vary(spec, small, factor * TILES[1] + 3))
    for word, size in (("prime", _PRIME), *_between(TILES[1])):
        maker.add(Level.L5, word, _vary(spec, small, size), all_dtypes=True)
    maker.fill()
    return Suite(spec.op_name, interfaces.total_modules, tuple(maker.cases), "derived")


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


class _Maker:
    """Collects cases, each shape and dtype once per level."""

    def __init__(self, spec: Spec, interfaces: Interfaces) -> None:
        self.spec, self.interfaces = spec, interfaces
        self.cases: list[Case] = []
        self._seen: set[tuple[Any, ...]] = set()
        self._turn = 0

    def add(
        self, level: Level, word: str, sizes: Sizes, *, precision: bool = True, all_dtypes: bool = False, seed: int = SEEDS[0]
    ) -> None:
        """Add a case per dtype, or one with the next dtype in turn."""
        dtypes = self.spec.supported_dtypes
        chosen: Iterable[str] = dtypes if all_dtypes else (dtypes[self._turn % len(dtypes)],)
        self._turn += not all_dtypes
        for dtype in chosen:
            key = (level, tuple(sizes.items()), dtype, seed)
            if key in self._seen or not self._fits(sizes):
                continue
            self._seen.add(key)
            self.cases.append(self._case(level, word, sizes, dtype, precision, seed))

    def fill(self) -> None:
        """Bring each level to two cases by further seeds of P0: an operator of fixed shape has no others."""
        for level in Level:
            own = [case for case in self.cases if case["level"] == level.value]
            base = own or [case for case in self.cases if case["level"] == Level.L2.value]
            for seed in SEEDS[1:]:
                if len([case for case in self.cases if case["level"] == level.value]) >= LEAST_PER_LEVEL:
                    break
                case = base[0]
                key = (level, tuple(case["shape"].items()), case["dtype"]["default"], seed)
                if key not in self._seen:
                    self._seen.add(key)
                    dtype, precision = case["dtype"]["default"], level is not Level.L1
                    self.cases.append(self._case(level, "seed", case["shape"], dtype, precision, seed))

    def _fits(self, sizes: Sizes) -> bool:
        try:
            shapes = self.interfaces.resolve_shapes(sizes).values()
        except ContractError:
            return False
        return all(math.prod(shape) <= _MOST_ELEMENTS for shape in shapes) or self._is_p0(sizes)

    def _is_p0(self, sizes: Sizes) -> bool:
        return any(solve(shape, self.interfaces, "p0_shapes") == sizes for shape in self.spec.p0_shapes)

    def _case(self, level: Level, word: str, sizes: Sizes, dtype: str, precision: bool, seed: int) -> Case:
        name = f"{level}_{word}_{dtype}" + (f"_seed{seed}" if seed != SEEDS[0] else "")
        taken = {case["id"] for case in self.cases}
        unique = next(n for n in free_names(name) if n not in taken)
        case: Case = {
            "id": unique,
            "level": level.value,
            "shape": dict(sizes),
            "dtype": {"default": dtype},
            "precision": precision,
            "seed": seed,
        }
        if dtype in ("float32", "float16", "bfloat16"):
            tolerance = self.spec.tolerance_for(dtype)
            if tolerance is not None:
                case["atol"], case["rtol"] = tolerance
        return case


def free_names(name: str) -> Iterator[str]:
    """Yield `name`, `name_2`, `name_3`, ... for a case whose name may be taken."""
    yield name
    number = 2
    while True:
        yield f"{name}_{number}"
        number += 1


def _vary(spec: Spec, base: Sizes, size: int) -> Sizes:
    """Return `base` with the first dynamic axis at `size`, and further ones near it, inside their ranges."""
    varied = dict(base)
    for number, axis in enumerate(a for a in spec.dynamic_axes if a in base):
        low, high = spec.axis_ranges.get(axis, (1, 1 << 20))
        varied[axis] = min(max(size + number, low), high)
    return varied


def _edges(tile: int) -> list[tuple[str, int]]:
    return [("one", 1), (f"tile{tile}_minus_1", tile - 1), (f"tile{tile}", tile), (f"tile{tile}_plus_1", tile + 1)]


def _between(tile: int) -> list[tuple[str, int]]:
    return [(f"two_tile{tile}_minus_1", 2 * tile - 1), (f"two_tile{tile}_plus_1", 2 * tile + 1)]
