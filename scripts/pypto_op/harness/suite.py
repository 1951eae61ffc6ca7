"""The cases of a first eval/adversarial_suite.json (verifier seed, B.2), from what is known before any kernel exists.

| level | what | cases |
|---|---|---|
| L1 | it runs, and the structure is right | the base shape in each dtype, the first P0 shape |
| L2 | ordinary numbers | the base shape and each P0 shape, each dtype, a second seed |
| L3 | edges | each dynamic axis at 1, T-1, T, T+1 for each tile T, kT+-1; flags; a zone whose lost column shows |
| L4 | long axes, many batches | each dynamic axis at several tiles and a rest, all of them at several |
| L5 | values that hurt | primes, the zones, cancellation in each subtraction of the golden and in its worst sum |
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from pypto_op.documents import constraints
from pypto_op.documents.default_suite import free_names
from pypto_op.documents.suite import LEAST_PER_LEVEL
from pypto_op.harness.material import FLOATS, INTEGERS, Material, Sizes, symbols_of
from pypto_op.stress.author import RELATIVE_GAP
from pypto_op.vocabulary import Level

SEEDS = (42, 7, 101, 3, 2024)
_PRIMES = (37, 53, 17, 29)
_SMALL = 19
"""Size of a dynamic axis where nothing is asked of it: no multiple of any tile, above the smallest one."""
_MOST_ELEMENTS = 1 << 18
"""Generated shapes stay below this per tensor, so that a simulator runs them in a second; P0 shapes are as they are."""
_MOST_STRESSES = 4
_MANY_TILES = 5
_SMALL_SCALAR = 1e-2
_INSTEAD_OF_SMALL = 0.5
"""Another value of a float scalar is half its default; half an eps would not show, so small ones become this."""
WORST_SUM = "*"
"""Stands for the expression of a cancellation case that is about whichever sum of the golden cancels worst."""

Case = dict[str, Any]
Knobs = Mapping[str, Any]
_NO_KNOBS: Knobs = {}

ZONES: tuple[tuple[Level, str, Knobs], ...] = (
    (Level.L3, "last_spike", {"zone": "last_spike"}),
    (Level.L3, "positions", {"zone": "positions"}),
    (Level.L3, "grid", {"zone": "grid"}),
    (Level.L5, "tiny", {"zone": "tiny"}),
    (Level.L5, "huge", {"zone": "huge", "scale": 1e4}),
    (Level.L5, "alternating", {"zone": "alternating"}),
    (Level.L5, "shift", {"zone": "shift"}),
    (Level.L5, "all_negative", {"zone": "all_negative"}),
    (Level.L5, "low", {"zone": "low"}),
)


def cases(material: Material) -> list[Case]:
    """Return the cases, two or more per level, in order of level.

    Raises:
        ContractError: a P0 shape does not determine the symbols of the interfaces, or contradicts them.
    """
    maker = _Maker(material)
    for fill in (_structure, _ordinary, _edges, _long, _hurting):
        fill(maker)
    maker.complete()
    order = [str(level) for level in Level]
    return sorted(maker.cases, key=lambda case: order.index(case["level"]))


class _Maker:
    """Collects cases; the same shape, dtype, seed and knobs only once per level."""

    def __init__(self, material: Material) -> None:
        self.material = material
        self.cases: list[Case] = []
        self.p0 = material.p0_sizes()
        self.base = _base(material, self.p0)
        self._seen: set[str] = set()
        self._turn = 0

    @property
    def ragged(self) -> Sizes:
        """The base shape with each long axis one tile and a rest, of the largest tile for which that is small."""
        return self._one_tile_and_a_rest(tuple(reversed(self.material.tiles)))

    @property
    def small_ragged(self) -> Sizes:
        """The same for the smallest tile: a search for inputs runs the golden some hundred times."""
        return self._one_tile_and_a_rest(self.material.tiles)

    def _one_tile_and_a_rest(self, tiles: tuple[int, ...]) -> Sizes:
        for tile in tiles:
            sizes = {**self.base, **{axis: tile + 3 + n for n, axis in enumerate(self.long)}}
            if self.material.legal(sizes) and self._small(sizes):
                return sizes
        return self.base

    @property
    def long(self) -> list[str]:
        """The dynamic axes that kernels tile; the others are batches or heads."""
        return [axis for axis in self.dynamic if _is_long(self.material, axis)]

    @property
    def dynamic(self) -> list[str]:
        """The dynamic axes that are symbols of the interfaces."""
        return [axis for axis in self.material.spec.dynamic_axes if axis in self.base]

    @property
    def fixed(self) -> list[str]:
        """The other axes whose divisor a constraint names: `K % 16 == 0` promises more sizes than the P0 shapes have."""
        said = self.material.spec.shape_constraints
        return [axis for axis in self.base if axis not in self.dynamic and constraints.divide(said, axis, self.base)]

    def add(
        self, level: Level, word: str, sizes: Sizes, *, dtype: str = "", seed: int = SEEDS[0], knobs: Knobs = _NO_KNOBS
    ) -> bool:
        """Add a case unless its sizes are illegal or too large, or it is there; without `dtype`, the next in turn."""
        if not self.material.legal(sizes) or (sizes not in self.p0 and not self._small(sizes)):
            return False
        dtypes = self.material.spec.supported_dtypes
        if not dtype:
            dtype = dtypes[self._turn % len(dtypes)]
            self._turn += 1
        key = repr((level, sorted(sizes.items()), dtype, seed, sorted(knobs.items(), key=lambda item: item[0])))
        if key in self._seen:
            return False
        self._seen.add(key)
        self.cases.append(self._case(level, word, sizes, dtype, seed, knobs))
        return True

    def complete(self) -> None:
        """Bring each level to two cases by further seeds: an operator of fixed shape has no other sizes."""
        for level in Level:
            for seed in SEEDS[1:]:
                if sum(case["level"] == str(level) for case in self.cases) >= LEAST_PER_LEVEL:
                    break
                self.add(level, f"seed{seed}", self.base, seed=seed)

    def _small(self, sizes: Sizes) -> bool:
        for shape in self.material.interfaces.resolve_shapes(sizes).values():
            count = 1
            for size in shape:
                count *= size
            if count > _MOST_ELEMENTS and not self._p0_is_larger(count):
                return False
        return True

    def _p0_is_larger(self, count: int) -> bool:
        """Whether even the base shape is that large: an operator with big fixed axes has no small shapes."""
        return sizes_product(self.material, self.base) * 4 >= count

    def _case(self, level: Level, word: str, sizes: Sizes, dtype: str, seed: int, knobs: Mapping[str, Any]) -> Case:
        name = f"{level}_{word}" + (f"_{dtype}" if len(self.material.spec.supported_dtypes) > 1 else "")
        taken = {case["id"] for case in self.cases}
        unique = next(n for n in free_names(name[:112]) if n not in taken)
        case: Case = {
            "id": unique,
            "level": str(level),
            "shape": dict(sizes),
            "dtype": {"default": dtype},
            "precision": level is not Level.L1,
        }
        if dtype in FLOATS:
            tolerance = self.material.spec.tolerance_for(dtype)
            if tolerance is not None:
                case["atol"], case["rtol"] = tolerance
        return {**case, "seed": seed, **knobs}


# -- the levels ---------------------------------------------------------------------------------------------------


def _structure(maker: _Maker) -> None:
    for dtype in maker.material.spec.supported_dtypes:
        maker.add(Level.L1, "runs", maker.base, dtype=dtype)
    for number, sizes in enumerate(maker.p0[:1]):
        maker.add(Level.L1, f"p0_{number}", sizes)


def _ordinary(maker: _Maker) -> None:
    for dtype in maker.material.spec.supported_dtypes:
        maker.add(Level.L2, "base", maker.base, dtype=dtype)
    for number, sizes in enumerate(maker.p0):
        for dtype in maker.material.spec.supported_dtypes:
            maker.add(Level.L2, f"p0_{number}", sizes, dtype=dtype)
    maker.add(Level.L2, "base_again", maker.base, seed=SEEDS[1])


def _edges(maker: _Maker) -> None:
    for axis in maker.dynamic:
        for word, size in _edge_sizes(maker, axis):
            maker.add(Level.L3, f"{axis}_{word}", {**maker.base, axis: size})
    for axis in maker.fixed:
        _ragged(maker, axis)
    for port in maker.material.interfaces.primary_inputs:
        if not port.shape and port.dtype == "bool":
            for value in (True, False):
                maker.add(Level.L3, f"{port.name}_{value}".lower(), maker.ragged, knobs={port.name: value})
        default = maker.material.scalars.get(port.name)
        if port.dtype in FLOATS and isinstance(default, (int, float)):
            other = default / 2 if abs(default) >= _SMALL_SCALAR else _INSTEAD_OF_SMALL
            maker.add(Level.L3, f"other_{port.name}", maker.ragged, knobs={port.name: other})
        if port.dtype in INTEGERS and isinstance(default, int) and port.name not in maker.base:
            for number in _other_integers(maker.material, port.name, default):
                maker.add(Level.L3, f"{port.name}_{number}", maker.ragged, knobs={port.name: number})
    _zones(maker, Level.L3)


def _other_integers(material: Material, name: str, default: int) -> Iterator[int]:
    """Yield other values of a whole number, the most telling first; the rehearsal keeps those that the golden minds.

    Where SPEC.md's constraints say nothing about it, its sign stays, but that a negative one may stand for "none".
    """
    said = material.spec.shape_constraints
    any_sign = default < 0 or constraints.mentioned(said, name)
    for value in dict.fromkeys((-default, 2 * default, default + 1, 1, 7, default - 1, 0)):
        legal = (any_sign or value > 0) and constraints.satisfied(said, {**material.p0_sizes()[0], name: value})
        if legal and value != default:
            yield value


def varied_integer(case: Case, scalars: Mapping[str, Any]) -> str:
    """Return the name of the whole number of which a case has another value than the default; "" where there is none."""
    names = (name for name, default in scalars.items() if type(default) is int and case.get(name, default) != default)
    return next(names, "")


def _ragged(maker: _Maker, axis: str) -> None:
    """Add one size of a fixed axis that fills no tile, of the largest tile for which there is a legal one."""
    for tile in reversed(maker.material.tiles):
        for size in range(tile + 1, 2 * tile):
            if maker.add(Level.L3, f"{axis}_ragged", {**maker.base, axis: size}):
                return


def _edge_sizes(maker: _Maker, axis: str) -> Iterator[tuple[str, int]]:
    yield "one", 1
    if axis not in maker.long:
        yield "three", 3
        return
    for tile in maker.material.tiles:
        yield from ((f"{tile}_minus_1", tile - 1), (f"{tile}", tile), (f"{tile}_plus_1", tile + 1))
    tile = maker.material.tiles[0]
    yield from ((f"two_{tile}_minus_1", 2 * tile - 1), (f"two_{tile}_plus_1", 2 * tile + 1))


def _long(maker: _Maker) -> None:
    tiles = maker.material.tiles
    for axis in maker.dynamic:
        if axis not in maker.long:
            maker.add(Level.L4, f"{axis}_many", {**maker.base, axis: 7})
            continue
        # Several of the largest tiles where that is small enough, else of the smallest.
        maker.add(Level.L4, f"{axis}_long", {**maker.base, axis: 3 * tiles[-1] + 3}) or maker.add(
            Level.L4, f"{axis}_long", {**maker.base, axis: 3 * tiles[0] + 3}
        )
        maker.add(Level.L4, f"{axis}_many_tiles", {**maker.base, axis: _MANY_TILES * tiles[-1] + 1}) or maker.add(
            Level.L4, f"{axis}_many_tiles", {**maker.base, axis: _MANY_TILES * tiles[0] + 1}
        )
    if len(maker.dynamic) > 1:
        sizes = {axis: 2 * tiles[0] + 3 if axis in maker.long else 3 for axis in maker.dynamic}
        maker.add(Level.L4, "all_axes", {**maker.base, **sizes})


def _hurting(maker: _Maker) -> None:
    primes = {axis: _PRIMES[n % len(_PRIMES)] if axis in maker.long else 5 for n, axis in enumerate(maker.dynamic)}
    for dtype in maker.material.spec.supported_dtypes:
        maker.add(Level.L5, "primes", {**maker.base, **primes}, dtype=dtype)
    _zones(maker, Level.L5)
    for zone, legal in (("one_nan", maker.material.says_nan), ("masked", maker.material.says_minus_inf)):
        for number, name in enumerate(maker.material.floating[:_MOST_STRESSES] if legal else ()):
            # The first in each dtype: what a kernel does for 16 bits only may lose a NaN there only.
            for dtype in maker.material.spec.supported_dtypes if number == 0 else ("",):
                maker.add(Level.L5, f"{zone}_{name}", maker.ragged, dtype=dtype, knobs={"zone": {name: zone}})
    _cancellation(maker)


def _zones(maker: _Maker, level: Level) -> None:
    if not maker.material.floating:
        return
    for at, word, knobs in ZONES:
        if at is level:
            maker.add(level, word, maker.ragged, knobs=knobs)


def _cancellation(maker: _Maker) -> None:
    """Add a case per subtraction of the golden and one for its worst sum; the rehearsal searches for their recipes.

    In the widest dtype: there what is lost is lost by the kernel, not by the inputs' own rounding.
    """
    material = maker.material
    dtypes = [word for word in FLOATS if word in material.spec.supported_dtypes]
    target = material.interfaces.final_outputs[0].name
    expressions = [found.expression for found in material.scan.subtractions] + [WORST_SUM]
    for number, expression in enumerate(expressions if material.floating else []):
        stress = {"target": target, "expression": expression, "relative_gap": RELATIVE_GAP, "seed": SEEDS[0]}
        maker.add(
            Level.L5,
            f"cancellation_stress_{number}",
            maker.small_ragged,
            dtype=dtypes[0] if dtypes else "",
            knobs={"cancellation_stress": stress},
        )


# -- sizes --------------------------------------------------------------------------------------------------------


def _base(material: Material, p0: list[Sizes]) -> Sizes:
    """Return the sizes that other cases start from: the smallest P0 shape, dynamic axes made small where that is legal."""
    smallest: Sizes = min(p0, key=lambda sizes: sizes_product(material, sizes))
    base = dict(smallest)
    for axis in material.spec.dynamic_axes:
        for size in (_SMALL if _is_long(material, axis) else 2, _SMALL, 16, 32, 64, 128):
            smaller = {**base, axis: size}
            if axis in base and size < base[axis] and material.legal(smaller):
                base = smaller
                break
    return base


def _is_long(material: Material, axis: str) -> bool:
    """Whether an axis is one that kernels tile: not one that only ever leads tensors of rank 3 and more (batch, heads).

    The only dynamic axis is tiled wherever it stands: something must be walked.
    """
    holding = [port for port in material.tensors if axis in symbols_of(port)]
    leads = bool(holding) and all(len(port.shape) >= 3 and port.shape[0] == axis for port in holding)
    return not leads or list(material.spec.dynamic_axes) == [axis]


def sizes_product(material: Material, sizes: Sizes) -> int:
    """Return the number of elements of the largest tensor."""
    return max((1, *map(math.prod, material.interfaces.resolve_shapes(sizes).values())))
