"""Collects the cases of a suite: names, tolerances and turns of dtypes; what is illegal, too large or there already stays out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pypto_op.documents import constraints
from pypto_op.documents.default_suite import free_names
from pypto_op.documents.suite import LEAST_PER_LEVEL
from pypto_op.harness import sizes as walked
from pypto_op.harness.material import FLOATS, Material, Sizes
from pypto_op.vocabulary import Level

SEEDS = (42, 7, 101, 3, 2024)
_MOST_ELEMENTS = 1 << 18
"""Generated shapes stay below this per tensor, so that a simulator runs them in a second; P0 shapes are as they are."""

Case = dict[str, Any]
Knobs = Mapping[str, Any]
_NO_KNOBS: Knobs = {}


class Maker:
    """Collects cases; the same shape, dtype, seed and knobs only once per level."""

    def __init__(self, material: Material) -> None:
        self.material = material
        self.cases: list[Case] = []
        self.p0 = material.p0_sizes()
        self.base = walked.base(material, self.p0)
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
        return [axis for axis in self.dynamic if walked.is_long(self.material, axis)]

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
        return walked.product(self.material, self.base) * 4 >= count

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
