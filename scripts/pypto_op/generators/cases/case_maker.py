"""Collects the cases of a suite: names, tolerances, turns of dtypes. Leaves out what is illegal, too large or there already."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from pypto_op.documents import constraints, shape_expr
from pypto_op.documents.knobs import ALIKE, SCALE, ZONE
from pypto_op.documents.suite import LEAST_PER_LEVEL
from pypto_op.generators.cases import row_zeros, walks
from pypto_op.generators.operator.sources import FLOATS, Sizes, Sources
from pypto_op.vocabulary import Level

SEEDS = (42, 7, 101, 3, 2024)
MOST_ELEMENTS = 1 << 18
"""Generated shapes stay below this per tensor, so that a simulator runs them in a second; P0 shapes are as they are."""

_MOST_SEARCHED = 1 << 16

Case = dict[str, Any]
Knobs = Mapping[str, Any]
_NO_KNOBS: Knobs = {}


class Maker:
    """Collects cases; the same shape, dtype, seed and knobs only once per level.

    Attributes:
        cases: so far.
        dropped: size that was wanted -> why no legal one could stand in its place.
    """

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.cases: list[Case] = []
        self.p0 = sources.p0_sizes()
        self.base = walks.base(sources, self.p0)
        self.dropped: dict[str, str] = {}
        self._seen: set[str] = set()
        self._turn = 0

    @cached_property
    def ragged(self) -> Sizes:
        """The base shape with each long axis three tiles and a rest, for cases that are about values."""
        return walks.walked(self, most=MOST_ELEMENTS)

    @cached_property
    def small_ragged(self) -> Sizes:
        """The same with fewer elements, for inputs that are searched for."""
        return walks.walked(self, most=_MOST_SEARCHED)

    @cached_property
    def searched(self) -> Sizes:
        """The same with one tile and a rest of each long axis: a search runs the golden some hundred times.

        A golden that loops takes as long as the axis is, and says the same of each step: there the tile is the smallest.
        """
        wanted = walks.one_tile(self, smallest=self.sources.golden_loops)
        shorter = self.sources.fitted(self.small_ragged, wanted, up=True)
        sizes = [walks.product(self.sources, found) for found in (shorter, self.small_ragged)]
        return shorter if self.sources.legal(shorter) and sizes[0] < sizes[1] else self.small_ragged

    def fitted(self, wanted: Mapping[str, int], *, up: bool = False) -> Sizes:
        """Return the base shape with some axes as near to what is wanted as SPEC.md allows (`Sources.fitted`)."""
        found = self.sources.fitted(self.base, wanted, up=up)
        for axis, size in wanted.items():
            if found[axis] == self.base[axis] != size:
                self.dropped[f"{axis} = {size}"] = f"SPEC.md allows no size near it but {found[axis]}"
        return found

    def small_beside(self, axis: str, size: int, fewer: Iterable[str]) -> Sizes:
        """Return the base shape with one axis near a size, and the axes of `fewer` as small as SPEC.md allows beside it."""
        smallest = {other: 1 for other in fewer if other != axis}
        return self.sources.fitted(self.base, {**smallest, axis: size}) if smallest else self.fitted({axis: size})

    def has_met(self, wanted: Mapping[str, int]) -> bool:
        """Whether each axis has been of its wanted size in some case that compares numbers."""
        met = [case["shape"] for case in self.cases if case["precision"]]
        return all(any(shape.get(axis) == size for shape in met) for axis, size in wanted.items())

    @property
    def long(self) -> list[str]:
        """The dynamic axes that kernels tile; the others are batches or heads."""
        return self.sources.long

    @property
    def dynamic(self) -> list[str]:
        """The dynamic axes that are symbols of the interfaces."""
        return [axis for axis in self.sources.spec.dynamic_axes if axis in self.base]

    @property
    def fixed(self) -> list[str]:
        """The other axes whose divisor a constraint names: `K % 16 == 0` promises more sizes than the P0 shapes have."""
        said = self.sources.spec.shape_constraints
        return [axis for axis in self.base if axis not in self.dynamic and constraints.divide(said, axis, self.base)]

    @property
    def varied(self) -> list[str]:
        """The axes, neither dynamic nor of a named divisor, in which P0 shapes differ: a kernel may know these sizes by heart."""
        others = (axis for axis in self.base if axis not in {*self.dynamic, *self.fixed})
        return [axis for axis in others if len({shape[axis] for shape in self.p0 if axis in shape}) > 1]

    @property
    def counted(self) -> dict[str, int]:
        """Varied axes such as heads, with the largest P0 size: no constraint ends them, and they lie innermost in no tensor, so
        that nothing is aligned along them."""
        interfaces, said = self.sources.interfaces, self.sources.spec.shape_constraints
        ports = [*interfaces.primary_inputs, *(port for module in interfaces.modules for port in module.outputs)]
        innermost = {name for port in ports if port.shape for name in shape_expr.parse(port.shape[-1]).symbols}
        open_ended = (axis for axis in self.varied if not constraints.limits(said, axis, list(self.base))[1])
        return {axis: max(shape[axis] for shape in self.p0 if axis in shape) for axis in open_ended if axis not in innermost}

    @property
    def named_ends(self) -> list[tuple[str, str, int]]:
        """Least and greatest size of each axis that is not dynamic, where a constraint names them: the taps in `2 <= W <= 8`."""
        said, found = self.sources.spec.shape_constraints, []
        for axis in (axis for axis in self.base if axis not in self.dynamic):
            low, beyond = (bound.split(" + ") for bound in constraints.limits(said, axis, list(self.base)))
            for word, end, within in (("least", low, 0), ("greatest", beyond, -1)):
                if all(part.isdigit() for part in end):
                    found.append((axis, word, sum(map(int, end)) + within))
        return found

    def add(
        self,
        level: Level,
        word: str,
        sizes: Sizes,
        *,
        dtype: str = "",
        seed: int = SEEDS[0],
        knobs: Knobs = _NO_KNOBS,
        most: int = MOST_ELEMENTS,
    ) -> bool:
        """Add a case unless its sizes are illegal or too large, or it is there; without `dtype`, the next in turn."""
        if sizes not in self.p0 and not (self.sources.legal(sizes) and self.small(sizes, most)):
            return False
        dtypes = self.sources.spec.supported_dtypes
        if not dtype:
            dtype = dtypes[self._turn % len(dtypes)]
            self._turn += 1
        key = repr((level, sorted(sizes.items()), dtype, seed, sorted(knobs.items(), key=lambda item: item[0])))
        if key in self._seen:
            return False
        self._seen.add(key)
        self.cases.append(self._case(level, word, sizes, dtype, seed, knobs))
        return True

    def pass_turn(self) -> None:
        """Leave a case out whose dtype was the next one: those behind it keep theirs."""
        self._turn += 1

    def in_other_dtypes(self, case: Case) -> Iterator[Case]:
        """Yield a case of a zone in each dtype that it is not there in: what says nothing in one may say something in another."""
        own = case["dtype"]["default"]
        if ZONE not in case:
            return
        there = [self._zone_of(other) for other in self.cases]
        for dtype in self.sources.spec.supported_dtypes:
            other = {**case, "id": case["id"].replace(f"_{own}", f"_{dtype}"), "dtype": {"default": dtype}}
            if self._zone_of(other) not in there:
                yield {**other, **self._tolerance(dtype)}

    def in_place_of(self, case: Case) -> Iterator[Case]:
        """Yield the cases that may stand in the place of one that says nothing: in other dtypes, or on other shapes where a
        scalar has another value, or tensors are alike.

        A float that no case gives another value, a kernel may know by heart; of a whole number several are tried anyway.
        """
        yield from row_zeros.alone(case)
        yield from self.in_other_dtypes(case)
        yield from self._all_scaled(case)
        varied = [name for name, default in self.sources.scalars.items() if name in case and isinstance(default, float)]
        shapes = [*self.p0, self.base, self.small_ragged] if varied or ALIKE in case else []
        for number, shape in enumerate(shapes):
            with_scalars = {**shape, **{name: case[name] for name in varied}}
            if shape != case["shape"] and constraints.satisfied(self.sources.spec.shape_constraints, with_scalars):
                yield {**case, "id": f"{case['id']}_again{number}", "shape": dict(shape)}

    def _all_scaled(self, case: Case) -> Iterator[Case]:
        """Yield a case with the scale of one tensor for all that follow the case's dtype, once: one that drowns the others hides
        what becomes of them."""
        if not isinstance(scale := case.get(SCALE), Mapping) or ZONE in case:
            return
        together = {**case, SCALE: dict.fromkeys(self.sources.following, *scale.values())}
        key = repr({**together, "id": ""})
        if key not in self._seen:
            self._seen.add(key)
            yield {**together, "id": f"{case['id']}_all"}

    @staticmethod
    def _zone_of(case: Case) -> tuple[str, str]:
        return repr((case.get(ZONE), case.get(ALIKE))), case["dtype"]["default"]

    def _tolerance(self, dtype: str) -> Knobs:
        tolerance = self.sources.spec.tolerance_for(dtype) if dtype in FLOATS else None
        return {} if tolerance is None else dict(zip(("atol", "rtol"), tolerance, strict=True))

    def complete(self) -> None:
        """Bring each level to two cases by further seeds: an operator of fixed shape has no other sizes."""
        for level in Level:
            for seed in SEEDS[1:]:
                if sum(case["level"] == str(level) for case in self.cases) >= LEAST_PER_LEVEL:
                    break
                self.add(level, f"seed{seed}", self.base, seed=seed)

    def spare(self, level: Level) -> Iterator[Case]:
        """Yield further cases of a level of which too few say something, the most telling first.

        Where numbers do not stay finite over many tiles, a long axis gets fewer: one and a rest at least, since a case of
        the small base shape would only hide that nothing long is judged. Of the other levels, the base shape on other seeds.
        """
        shapes = list(walks.fewer_tiles(self)) if level is Level.L4 else []
        for shape in shapes if level is Level.L4 and self.dynamic else [self.base]:
            for seed in SEEDS:
                if self.add(level, "spare", shape, seed=seed):
                    yield self.cases[-1]

    def small(self, sizes: Sizes, most: int = MOST_ELEMENTS) -> bool:
        """Whether no tensor has too many elements for a case that takes about a second."""
        for shape in self.sources.interfaces.resolve_shapes(sizes).values():
            count = 1
            for size in shape:
                count *= size
            if count > most and not self._p0_is_larger(count):
                return False
        return True

    def _p0_is_larger(self, count: int) -> bool:
        """Whether even the base shape is that large: an operator with big fixed axes has no small shapes."""
        return walks.product(self.sources, self.base) * 4 >= count

    def _case(self, level: Level, word: str, sizes: Sizes, dtype: str, seed: int, knobs: Mapping[str, Any]) -> Case:
        name = f"{level}_{word}" + (f"_{dtype}" if len(self.sources.spec.supported_dtypes) > 1 else "")
        taken = {case["id"] for case in self.cases}
        unique = next(one for one in _free_names(name[:112]) if one not in taken)
        case: Case = {
            "id": unique,
            "level": str(level),
            "shape": dict(sizes),
            "dtype": {"default": dtype},
            "precision": level is not Level.L1,
        }
        return {**case, **self._tolerance(dtype), "seed": seed, **knobs}


def _free_names(name: str) -> Iterator[str]:
    """Yield `name`, `name_2`, `name_3`, ... for a case whose name may be taken."""
    yield name
    yield from (f"{name}_{number}" for number in itertools.count(2))
