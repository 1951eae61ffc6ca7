"""Shapes that no file names: a verdict on a whole suite adds one case per dynamic axis, in which that axis is larger.

A kernel that stops after 33 tiles, or holds a table of the suite's shapes, passes every case that is written down. So each
verdict draws sizes with its fresh seed; the same seed draws the same sizes. They exceed what the kernel itself may bound
(`bounds`), as far as a simulator can. One case more has other sizes of the axes that are fixed per build, where the suite varies
them; a wrapper may raise there, but not be wrong. The golden is judged first: where it does not answer there, or honest orders
of it part, the case is left out and told; where the tolerance is too tight for honest rounding at that size, what is natural
decides in its place (`Expectation.either`).
"""

from __future__ import annotations

import ast
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pypto_op.documents import axes, constraints, golden_scan, legal_sizes
from pypto_op.documents import spec as spec_document
from pypto_op.documents.knobs import ALIKE, DRAWN, LAGGING, LEANING, OFFSET, RANGE, SCALE, ZONE
from pypto_op.documents.reading import read_text
from pypto_op.documents.rows import Rows
from pypto_op.documents.spec import Spec
from pypto_op.documents.steps import Steps, steps_of
from pypto_op.errors import ContractError
from pypto_op.judge.cases.bounds import bounds_in
from pypto_op.judge.cases.contract import Contract
from pypto_op.judge.cases.inputs import BESIDE, FRESH, checks_precision
from pypto_op.judge.cases.natural import NATURAL
from pypto_op.judge.cases.variety import NO_KNOB
from pypto_op.vocabulary import Level

MOST_ELEMENTS = 1 << 22
"""Elements that the largest tensor of such a case may have: 16 MiB in float32, a second in a simulator."""

_STEP = 64
"""Of an axis of which DESIGN.md says nothing."""

_UNIT = 16
"""Rows and columns that the cube unit multiplies at once: a size that is a multiple of it may be treated in another way."""

_TILES = (130, 66, 34, 18, 10, 0)
"""Tiles that the drawn size exceeds, the first that memory allows: bounds of 32, 64, 100 and 128 tiles come from tests."""

_MANY_TILES, _MOST_WALKED = 34, 1 << 19
"""Beyond so many tiles the largest tensor may have so many elements: a simulator keeps each tile, 130 of them for 4 s."""

_COUNTS = (64, 32, 16)
"""The same of batches, segments, entries of a list: a kernel may have room for so many, and a simulator walks each on its own."""

_MORE_COUNTS, _MOST_ROWS, _MOST_VECTOR_TILES, _MOST_TILES = (1024, 512, 256), 2200, 560, 300
"""Larger bounds of the same, as far as a kernel walks no more steps in all: of a row, where no axis is tiled; of a tile without a
matrix product; of a tile. A simulator takes two seconds for as many."""

_MOST_LOOPED = 1100
"""Steps beyond a bound that the kernel names, where the golden may go step by step: 4 ms for each, and again for each twin."""

_MOST_COUNTED = 1 << 19
"""Elements that the largest tensor may have beside so many batches; beside a few more than the suite has, `MOST_ELEMENTS`."""

MOST_SQUARED = 1 << 23
"""Square of the drawn size where loops over one length are nested: the golden of an attention holds that many scores."""

_SPAN = 6
_MORE_BATCHES = 8

_MOST_FIXED = 1 << 16
"""Elements that the largest tensor may have where sizes of the build are drawn; or as many as the suite's largest has."""

_TRIES = 12
"""So often such sizes are drawn; those stand in which most axes have a size that the suite does not have."""


@dataclass(frozen=True)
class Drawn:
    """What was drawn."""

    # one per dynamic axis at most, and one of the axes that are fixed per build; `inputs.FRESH` marks them
    cases: list[dict[str, Any]]
    left_out: dict[str, str]  # id -> why there is no case for an axis
    of_the_build: str = ""  # id of the case with other sizes of the axes that are fixed per build; "" where there is none


def draw(contract: Contract, seed: int, kernel: Path | None = None) -> Drawn:
    """Draw one larger shape per dynamic axis, and one with other sizes of the axes that are fixed per build.

    Args:
        seed: of the verdict; it makes the sizes and the inputs.
        kernel: the file that is judged, whose own bounds are exceeded.

    Raises:
        ContractError: SPEC.md cannot be read.
    """
    spec = spec_document.load(contract.workspace.spec)
    drawer = _Drawer(contract, spec, seed, kernel)
    drawn = Drawn([], {})
    for axis in spec.dynamic_axes:
        if axis not in contract.interfaces.symbols:
            continue
        case = drawer.case(axis)
        if isinstance(case, str):
            drawn.left_out[f"{DRAWN}{axis}"] = case
        else:
            drawn.cases.append(case if drawn.cases else {**case, **drawer.whole_numbers(case)})
    other = drawer.of_the_build()
    return drawn if other is None else replace(drawn, cases=[*drawn.cases, other], of_the_build=other["id"])


def drawn(case_id: str, contract: Contract, seed: int, kernel: Path | None = None) -> tuple[Drawn, dict[str, Any]]:
    """Return what a seed draws for a kernel, and the one case of it that an id names.

    Raises:
        ContractError: the operator has no such axis, or nothing can be drawn for it, with the reason.
    """
    found = draw(contract, seed, kernel)
    for case in found.cases:
        if case["id"] == case_id:
            return found, case
    reason = found.left_out.get(case_id)
    ids = ", ".join([*(case["id"] for case in found.cases), *found.left_out])
    raise ContractError(
        f"nothing can be drawn for {case_id}: {reason}" if reason else f"no dynamic axis has the case {case_id!r}",
        file=contract.workspace.spec,
        remedy=f"a verdict draws {ids}" if ids else "name a case of the suite",
    )


def smaller(case: Mapping[str, Any], contract: Contract, seed: int) -> dict[str, Any] | None:
    """Return a drawn case with its axis nearer to the suite's largest size; None where it lies next to that already.

    The simulator keeps every tile of a run, so a right kernel may need more memory there than the machine has.

    Args:
        case: one of `draw`.
    """
    return _Drawer(contract, spec_document.load(contract.workspace.spec), seed).nearer(case)


class _Drawer:
    def __init__(self, contract: Contract, spec: Spec, seed: int, kernel: Path | None = None) -> None:
        self._contract, self._spec, self._seed = contract, spec, seed
        self._bounds = () if kernel is None else _bounds(kernel)
        self._random = random.Random(seed)  # noqa: S311  (no secret: the seed is told)
        self._turn: int | None = None
        self._steps: Steps = steps_of(contract.workspace.design, contract.interfaces.symbols)
        self._dynamic = [axis for axis in spec.dynamic_axes if axis in contract.interfaces.symbols]
        self._shapes = [shape for case in contract.cases if (shape := _sizes(case, contract.interfaces.symbols)) is not None]
        fixed = [axis for axis in contract.interfaces.symbols if axis not in self._dynamic]
        self._fixed = [axis for axis in fixed if len({shape[axis] for shape in self._shapes}) > 1]
        self._long = axes.long_axes(contract.interfaces, self._dynamic, steps=self._steps, sizes=self._shapes)

    def case(self, axis: str) -> dict[str, Any] | str:
        """Return the case of an axis, or why there is none."""
        template = self._template()
        if template is None:
            return "no ordinary case of the suite compares numbers"
        largest = max(shape[axis] for shape in self._shapes)
        base = _sizes(template, self._contract.interfaces.symbols)
        assert base is not None  # `_template` takes no other
        for least, span, most in self._spans(axis, largest, base):
            wanted = least + self._random.randrange(span)
            sizes = self._fitted(base, axis, wanted)
            if sizes is not None and sizes[axis] > largest and self._elements(sizes) <= most:
                return self._made(template, axis, sizes)
        return f"SPEC.md and memory allow no size of {axis} above {largest}, which the suite has"

    def of_the_build(self) -> dict[str, Any] | None:
        """Return a case with sizes that the suite does not have of the axes that are fixed per build; None where there are none.

        Drawn are sizes from the suite's smallest to twice its largest, each octave as likely.
        """
        template = self._template()
        base = None if template is None else _sizes(template, self._contract.interfaces.symbols)
        if not self._fixed or template is None or base is None:
            return None
        known = {axis: {shape[axis] for shape in self._shapes} for axis in self._fixed}
        most = max(_MOST_FIXED, *map(self._elements, self._shapes))
        said, ranges = self._spec.shape_constraints, self._spec.axis_ranges
        ends = {axis: (min(sizes), 2 * max(sizes)) for axis, sizes in known.items()}
        best, unknown = base, 0
        for _ in range(_TRIES):
            wanted = {axis: round(low * (high / low) ** self._random.random()) for axis, (low, high) in ends.items()}
            sizes = legal_sizes.nearest(said, ranges, base, wanted, self._is_legal, free=self._fixed) or base
            new = sum(sizes[axis] not in known[axis] for axis in known) if self._elements(sizes) <= most else 0
            best, unknown = (sizes, new) if new > unknown else (best, unknown)
        return self._made(template, "_".join(self._fixed), best) if unknown else None

    def whole_numbers(self, case: Mapping[str, Any]) -> dict[str, int]:
        """Return a value for each scalar that the suite varies and of which SPEC.md gives both ends, each decade as likely.

        A kernel may know the suite's windows or counts of steps by heart, as it may know its shapes. An end may name another of
        these numbers: that has what was drawn for it, or its default.
        """
        said, drawn = self._spec.shape_constraints, random.Random(self._seed)  # noqa: S311  (as above)
        defaults = {name: value for name, value in self._contract.interfaces.scalars.items() if type(value) is int}
        values: dict[str, int] = {}
        for name in (port.name for port in self._contract.interfaces.primary_inputs if not port.shape):
            varied = any(type(other.get(name)) is int for other in self._contract.cases)
            known = {**defaults, **case["shape"], **values}
            least, greatest = constraints.whole_ends(said, name, known) or (None, None)
            if not varied or name in case["shape"] or least is None or greatest is None or not 0 <= least < greatest:
                continue
            value = min(greatest, least - 1 + round((greatest - least + 2) ** drawn.random()))
            if constraints.satisfied(said, {**known, name: value}):
                values[name] = value
        return values

    def nearer(self, case: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return `case` at a quarter of its distance from the suite's largest size; None where there is none."""
        axis = str(case["id"]).removeprefix(DRAWN)
        if axis not in self._dynamic:
            return None
        largest, size = max(shape[axis] for shape in self._shapes), int(case["shape"][axis])
        sizes = self._fitted(dict(case["shape"]), axis, largest + max(1, (size - largest) // 4))
        return {**case, "shape": sizes} if sizes is not None and largest < sizes[axis] < size else None

    def _template(self) -> Mapping[str, Any] | None:
        """Return an ordinary case of the next dtype in the smallest sizes of any."""
        interfaces = self._contract.interfaces
        precise = [case for case in self._contract.cases if checks_precision(case) and _sizes(case, interfaces.symbols)]
        scalars = {port.name for port in interfaces.primary_inputs if not port.shape}
        plain = [case for case in precise if set(case) <= NO_KNOB | scalars] or [case for case in precise if not _ODD & set(case)]
        if not plain:
            return None
        kinds = sorted({_kind(case) for case in plain})
        if self._turn is None:
            self._turn = self._random.randrange(len(kinds))
        kind = kinds[self._turn % len(kinds)]  # a kernel that fails on long axes in one dtype alone has less room to hide
        self._turn += 1
        own = [case for case in plain if _kind(case) == kind]
        template = self._smallest(own)
        # The sizes of another dtype's case may be smaller, which leaves memory for more tiles.
        alike = [case for case in plain if all(case.get(name) == template.get(name) for name in scalars)]
        return {**template, "shape": self._smallest(alike)["shape"]}

    def _smallest(self, cases: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return the case with the fewest elements, not one with a dynamic axis of 1 if there is another."""
        wide = [case for case in cases if all(case["shape"][axis] > 1 for axis in self._dynamic)] or cases
        return min(wide, key=lambda case: self._elements(case["shape"]))

    def _spans(self, axis: str, largest: int, base: Mapping[str, int]) -> list[tuple[int, int, int]]:
        """Return least size, number of sizes to draw from, and elements that a tensor may have, the most telling first."""
        few = [(largest + 1, span, self._room(MOST_ELEMENTS)) for span in (_MORE_BATCHES, 1)]
        step = max(self._steps.of.get(axis, (1 if axes.listed(self._contract.interfaces, axis) else _STEP,)))
        if axis not in self._long or step == 1:
            several = [count for count in (*self._more_counts(axis, base), *_COUNTS) if count > largest]
            spans = [(count + 1, _MORE_BATCHES, self._room(_MOST_COUNTED)) for count in several]
            return [*self._beyond_bounds(axis, 1, base, spans), *few]
        squared = self._is_squared(axis)
        many = not squared and axis in self._steps.of and not self._golden_loops  # a step that nobody named may be several
        counts = [count for count in _TILES if count <= _MANY_TILES or many]
        counts = [count for count in counts if not squared or (count + 1) ** 2 * step**2 <= MOST_SQUARED]
        span = 1 if squared else _SPAN
        most = {count: self._room(MOST_ELEMENTS) if count <= _MANY_TILES else _MOST_WALKED for count in counts}
        spans = [(max(largest, count * step) + 1, span * step, most[count]) for count in counts]
        return [*self._beyond_bounds(axis, step, base, spans), few[-1]]

    def _beyond_bounds(
        self, axis: str, step: int, base: Mapping[str, int], usual: list[tuple[int, int, int]]
    ) -> list[tuple[int, int, int]]:
        """Return the usual spans and those beyond what the kernel may bound, in elements or in tiles, the largest size first."""
        alone = {other: size for other, size in base.items() if axis not in self._long or other in self._long}
        most = self._most_steps() * step // self._steps_beside(axis, alone)
        squared = self._is_squared(axis)
        most = min(most, math.isqrt(MOST_SQUARED) if squared else most, _MOST_LOOPED if self._golden_loops else most)
        bounds = {*self._bounds, *(bound * step for bound in self._bounds if bound != step)}
        beyond = [(bound + 1, _MORE_BATCHES, self._room(MOST_ELEMENTS)) for bound in bounds if bound + _MORE_BATCHES <= most]
        return sorted([*usual, *beyond], reverse=True) if beyond else usual

    def _more_counts(self, axis: str, base: Mapping[str, int]) -> list[int]:
        """Return the larger counts of an axis that is walked one by one: how many steps beside it a kernel takes says which."""
        if axis in self._long or self._steps.nested:
            return []
        beside, most = self._steps_beside(axis, base), self._most_steps()
        return [count for count in _MORE_COUNTS if (count + _MORE_BATCHES) * beside <= most]

    def _steps_beside(self, axis: str, base: Mapping[str, int]) -> int:
        """Return how many steps a kernel takes for each of an axis."""
        others = {other: size for other, size in base.items() if other in {*self._dynamic, *self._steps.of} - {axis}}
        steps = {other: max(self._steps.of.get(other, (_STEP if other in self._long else 1,))) for other in others}
        return math.prod(-(-size // steps[other]) for other, size in others.items())

    def _most_steps(self) -> int:
        """Return how many steps a simulator walks in some seconds."""
        return _MOST_ROWS if not self._long else _MOST_TILES if self._multiplies else _MOST_VECTOR_TILES

    @cached_property
    def _multiplies(self) -> bool:
        """Whether a tile may cost a matrix product."""
        return self._golden_may(golden_scan.multiplies_matrices)

    @cached_property
    def _golden_loops(self) -> bool:
        """Whether the golden may go step by step, which takes half a minute for 8,000 tokens, and again for each twin."""
        return self._golden_may(golden_scan.has_loops)

    def _golden_may(self, does: Callable[[Path, str], bool]) -> bool:
        try:
            return does(self._contract.workspace.golden, self._contract.workspace.golden_name())
        except ContractError:  # the verdict says what is wrong with it
            return True

    def _is_squared(self, axis: str) -> bool:
        """Whether the work grows with the square: loops are nested, or some tensor has an axis twice, as scores have."""
        if self._steps.nested:
            return True
        ports = [*self._contract.interfaces.primary_inputs, *(p for m in self._contract.interfaces.modules for p in m.outputs)]
        return any(list(port.shape).count(axis) > 1 for port in ports)

    def _fitted(self, base: dict[str, int], axis: str, wanted: int) -> dict[str, int] | None:
        """Return legal sizes with an axis at what is wanted or a little above; None where SPEC.md allows none."""
        low, high = self._spec.axis_ranges.get(axis, (1, wanted))
        said, ranges = self._spec.shape_constraints, self._spec.axis_ranges
        free = [other for other in self._contract.interfaces.symbols if other in self._dynamic]
        size = min(max(wanted, low), high)
        # Many tiles in few batches: a drawn case costs a second or two.
        single = {other: 1 for other in self._dynamic if other not in self._long and axis in self._long}
        wanted_beside = {**single, **self._named_once(axis, size, base)}
        return legal_sizes.nearest(said, ranges, base, {axis: size, **wanted_beside}, self._is_legal, free=free, up=True)

    def _named_once(self, axis: str, size: int, base: Mapping[str, int]) -> dict[str, int]:
        """Return the axes that whole numbers along `axis` name, none twice, as long as it: else the last names nothing."""
        once = [port for port in self._contract.interfaces.primary_inputs if self._spec.rows.get(port.name, Rows()).distinct]
        names = {port.name for port in once if list(port.shape)[-1:] == [axis]}
        ends = [end for op, end in constraints.about(self._spec.shape_constraints, names) if isinstance(op, (ast.Lt, ast.LtE))]
        named = {end.id for end in ends if isinstance(end, ast.Name)} & set(self._dynamic) - {axis}
        return {other: max(size, base[other]) for other in named}

    def _is_legal(self, sizes: Mapping[str, int]) -> bool:
        within = all(low <= sizes[axis] <= high for axis, (low, high) in self._spec.axis_ranges.items() if axis in sizes)
        if not within or not constraints.satisfied(self._spec.shape_constraints, {**self._contract.interfaces.scalars, **sizes}):
            return False
        try:
            shapes = self._contract.interfaces.resolve_shapes(sizes).values()
        except ContractError:
            return False
        return all(size >= 1 for shape in shapes for size in shape)

    def _elements(self, sizes: Mapping[str, int]) -> int:
        return max(map(math.prod, self._contract.interfaces.resolve_shapes(sizes).values()), default=1)

    def _room(self, most: int) -> int:
        """Return the elements that a tensor may have: `most`, or twice those of the suite's largest."""
        return max(most, 2 * max(map(self._elements, self._shapes)))

    def _made(self, template: Mapping[str, Any], axis: str, sizes: dict[str, int]) -> dict[str, Any]:
        case = {key: value for key, value in template.items() if key not in _NOT_TAKEN}
        case |= {"id": f"{DRAWN}{axis}", "level": str(Level.L4), "shape": sizes, "seed": self._seed}
        case |= {FRESH: dict(template), BESIDE: self._beside(template, axis)}
        if not case.get("policy") and not self._contract.policy_given and not self._contract.policy.needs_twins:
            case["policy"] = NATURAL.id
        return case

    def _beside(self, template: Mapping[str, Any], axis: str) -> list[dict[str, int]]:
        """Return the template's sizes with others of the suite along an axis: the least, the least whole tiles, a broken tile.

        A wrapper that looks at a size before the launch does so to treat a single tile, or whole tiles, in another way.
        """
        if axis not in self._dynamic:
            return []
        base = {symbol: int(template["shape"][symbol]) for symbol in self._contract.interfaces.symbols}
        known = sorted({shape[axis] for shape in self._shapes})
        wanted = known[:1]
        for step in (*self._steps.of.get(axis, (_STEP,)), _UNIT):
            for whole in (True, False):
                wanted += [size for size in known if (size % step == 0) is whole][:1]
        found = [sizes for size in dict.fromkeys(wanted) if (sizes := self._fitted(base, axis, size)) is not None]
        return [sizes for sizes in found if sizes[axis] != base[axis]]


_ODD = frozenset({ZONE, SCALE, OFFSET, RANGE, ALIKE, LEANING, LAGGING, "cancellation_stress", "weight"})
"""Knobs of values that an ordinary case does not have."""

_NOT_TAKEN = frozenset({"purpose", "note", "description", "power", "twin"})


def _bounds(kernel: Path) -> tuple[int, ...]:
    """Return the numbers by which a kernel may bound sizes; none of a file that cannot be read, of which the verdict speaks."""
    try:
        return bounds_in(read_text(kernel))
    except (ContractError, OSError):
        return ()


def _sizes(case: Mapping[str, Any], symbols: Sequence[str]) -> dict[str, int] | None:
    """Return the sizes of a case by symbol, None where it lacks one."""
    shape = case.get("shape") or {}
    return {s: shape[s] for s in symbols} if all(isinstance(shape.get(s), int) for s in symbols) else None


def _kind(case: Mapping[str, Any]) -> str:
    return repr((case.get("dtype"), case.get("dtype_mode")))
