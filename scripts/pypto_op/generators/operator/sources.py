"""What the generators work from: the operator's documents, its golden's source, its tile sizes."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pypto_op.documents import axes, constraints, golden_scan, legal_sizes, p0_shapes, ranges, rows, special_values
from pypto_op.documents import interfaces as interfaces_document
from pypto_op.documents import spec as spec_document
from pypto_op.documents.axes import symbols_of
from pypto_op.documents.golden_scan import Scan
from pypto_op.documents.interfaces import Interfaces, Port
from pypto_op.documents.reading import read_text, read_yaml
from pypto_op.documents.set_apart import Apart, set_apart
from pypto_op.documents.spec import Spec
from pypto_op.documents.steps import Steps, steps_of, tiles_in
from pypto_op.errors import ContractError
from pypto_op.generators.operator import contractions, golden_axes
from pypto_op.python_text import expression, names_in
from pypto_op.workspace import OpWorkspace, typed

INTEGERS = {"int32": (0, 16), "int64": (0, 16), "int": (0, 16), "int8": (-128, 128), "uint8": (0, 256)}
"""Integer dtypes, with the least value and the first one that is too large of a tensor that nothing is said about."""

FLOATS = ("float32", "float16", "bfloat16")
CODES = ("int8", "uint8")
"""Dtypes of codes, whose values are numbers times a step."""
_DEFAULT_TILES = (16, 64)
_LARGEST_TILE = 512
_NO_STEPS = Steps({}, (), nested=False)
"""A sentence that speaks of a value, and says that no caller may give it."""

_SCALAR_OF = {"bool": False, "float32": 1.0, "float16": 1.0, "bfloat16": 1.0}

Sizes = dict[str, int]


@dataclass(frozen=True)
class Sources:
    """What is known of an operator before any kernel exists.

    Attributes:
        ws: the operator.
        spec: SPEC.md.
        interfaces: module_interfaces.yaml.
        scan: what the golden's source subtracts and reduces.
        weights: input of fixed shape -> its axis that the golden's matrix products sum over.
        tiles: tile sizes of the design's or an impl's code, smallest first, three at most; two common ones where none is named.
        scalars: default of each scalar input.
        ranges: integer tensor -> its least value and the first one that is too large, as shape expressions.
        unlimited: integer tensors of which SPEC.md's constraints name no largest value.
        says_nan: SPEC.md speaks of NaN, so that it is a legal input.
        says_minus_inf: SPEC.md speaks of -inf, and does not rule it out in the same sentence.
        steps: what DESIGN.md says of its loops.
        reduced: axes that the golden reduces over.
        apart: what the golden sets apart in integer tensors (`documents.set_apart`).
        shares: what the golden takes from 1: it may mix two values by it.
        free: scalars of which SPEC.md says that they may be any number.
    """

    ws: OpWorkspace
    spec: Spec
    interfaces: Interfaces
    scan: Scan
    weights: Mapping[str, int]
    tiles: tuple[int, ...]
    scalars: Mapping[str, Any]
    ranges: Mapping[str, tuple[str, str]]
    unlimited: tuple[str, ...]
    says_nan: bool
    says_minus_inf: bool
    steps: Steps = _NO_STEPS
    reduced: frozenset[str] = field(default_factory=frozenset)
    apart: Apart = field(default_factory=dict)
    shares: frozenset[str] = field(default_factory=frozenset)
    free: frozenset[str] = field(default_factory=frozenset)

    @cached_property
    def long(self) -> list[str]:
        """The dynamic axes that kernels tile; the others are batches or heads, or pools."""
        symbols = self.interfaces.symbols
        dynamic = [axis for axis in self.spec.dynamic_axes if axis in symbols]
        long = axes.long_axes(self.interfaces, dynamic, steps=self.steps, reduced=self.reduced, sizes=self.p0_sizes())
        return [axis for axis in long if axis not in self.pools]

    @property
    def indexed(self) -> list[str]:
        """The axes that indices point into and that kernels walk in order all the same: the classes of labels."""
        return [axis for axis in axes.pools(self.interfaces, (high for _, high in self.ranges.values())) if axis in self.long]

    @cached_property
    def pools(self) -> list[str]:
        """The dynamic axes that indices point into, of which DESIGN.md names no step."""
        found = axes.pools(self.interfaces, (high for _, high in self.ranges.values()))
        return [axis for axis in found if axis in self.spec.dynamic_axes and axis not in self.steps.of]

    @cached_property
    def golden_loops(self) -> bool:
        """Whether the golden walks an axis in Python, as over tokens."""
        return golden_scan.has_loops(self.ws.golden, self.ws.golden_name())

    @property
    def is_indexed(self) -> bool:
        """Whether whole numbers say which places of a tensor are read: their range ends at a size."""
        ends = map(expression, itertools.chain.from_iterable(self.ranges.values()))
        return not names_in(*filter(None, ends)).isdisjoint(self.interfaces.symbols)

    def is_list(self, axis: str) -> bool:
        """Whether only whole numbers have an axis (`axes.listed`), and DESIGN.md names no step of it."""
        return axis not in self.steps.of and axes.listed(self.interfaces, axis)

    def steps_along(self, axis: str) -> tuple[int, ...]:
        """Return the steps in which kernels walk an axis: the design's for it, else 1 for a list, else every known tile."""
        if self.is_list(axis):
            return (1,)
        return tuple(step for step in self.steps.of.get(axis, ()) if step > 1) or self.tiles

    @property
    def tensors(self) -> tuple[Port, ...]:
        """The primary inputs that are tensors."""
        return tuple(port for port in self.interfaces.primary_inputs if port.shape)

    @property
    def has_codes(self) -> bool:
        """Whether 8-bit codes go in or come out."""
        return any(port.dtype in CODES for port in (*self.interfaces.primary_inputs, *self.interfaces.final_outputs))

    @property
    def floating(self) -> tuple[str, ...]:
        """Names of the floating tensors among the primary inputs that have a size: not of those that are one of few numbers."""
        few = rows.of_few_numbers(self.spec.rows)
        return tuple(port.name for port in self.tensors if port.dtype in FLOATS and port.name not in few)

    @property
    def following(self) -> list[str]:
        """The tensors that take the case's dtype; a float32 one beside 16-bit ones, or that SPEC.md fixes, does not."""
        supported = self.spec.supported_dtypes
        if supported[0] not in FLOATS:
            return [port.name for port in self.tensors if port.dtype == supported[0]]
        floating = [port for port in self.tensors if port.dtype in FLOATS]
        narrow = [port.name for port in floating if port.dtype != "float32" and port.dtype in supported]
        if narrow:
            return narrow
        fixed = spec_document.fixed_dtypes(self.ws.spec) if len(supported) > 1 else {}
        wide = [port.name for port in floating if port.dtype == "float32"]
        return [name for name in wide if fixed.get(name) != "float32"] or wide

    @property
    def masks(self) -> tuple[str, ...]:
        """Names of the tensors that choose: flags, whole numbers of which SPEC.md allows two in a row, floats of two numbers."""
        free = [port.name for port in self.tensors if port.name not in self.spec.fixed_inputs]
        flags = {port.name for port in self.tensors if port.dtype == "bool"}
        others = {name for name in free if name not in self.spec.rows and (name in flags or self._is_one_of_two(name))}
        few = rows.of_few_numbers(self.spec.rows)
        return tuple(name for name in free if name in others or len(few.get(name, ())) == 2)

    @cached_property
    def alike(self) -> tuple[tuple[str, str], ...]:
        """Pairs of tensors of one shape, dtype and range, of which the first may take rows of the second."""
        kinds: dict[str, list[str]] = {}
        for port in self.tensors:
            said = self.spec.rows.get(port.name)
            free = port.name not in self.spec.fixed_inputs and port.name not in self.masks and port.name not in self.apart
            if free and (said is None or len(port.shape) > 1):  # what holds for a row holds for one that is taken whole
                ends = ranges.sized_ends(self.spec.shape_constraints, port.name, self.p0_sizes()[0])
                kept = ranges.of(self.spec.shape_constraints, port.name, self.p0_sizes()[0])
                kind = (port.shape, port.dtype, port.name in self.weights, self.ranges.get(port.name), ends, kept, said)
                kinds.setdefault(repr(kind), []).append(port.name)
        return tuple((two, one) for names in kinds.values() for one, two in itertools.combinations(names, 2))

    @cached_property
    def meeting(self) -> tuple[tuple[str, str], ...]:
        """Pairs of floating tensors of other shapes, but rows of one length, where the golden multiplies matrices: the first may
        take rows of the second, as keys that are queries."""
        if not golden_scan.multiplies_matrices(self.ws.golden, self.ws.golden_name()):
            return ()
        free = [
            port
            for port in self.tensors
            if port.name in self.floating and len(port.shape) > 1 and port.name not in (*self.spec.fixed_inputs, *self.spec.rows)
        ]
        unbounded = [port for port in free if ranges.of(self.spec.shape_constraints, port.name) == ranges.Range()]
        pairs = itertools.combinations(unbounded, 2)
        return tuple(
            (two.name, one.name)
            for one, two in pairs
            if one.shape != two.shape and one.shape[-1] == two.shape[-1] and one.dtype == two.dtype
        )

    def _is_one_of_two(self, name: str) -> bool:
        ends = [end.split(" + ") for end in self.ranges.get(name, ("0", "0"))]
        if not all(part.lstrip("-").isdigit() for end in ends for part in end):
            return False  # it ends at a size
        low, high = (sum(map(int, end)) for end in ends)
        return high - low == 2

    def p0_sizes(self) -> list[Sizes]:
        """Return symbol -> size of each P0 shape."""
        shapes = self.spec.p0_shapes
        solve, file = p0_shapes.solve, self.ws.spec
        return [solve(shape, self.interfaces, f"p0_shapes[{n}]", file) for n, shape in enumerate(shapes)]

    def fitted(self, sizes: Mapping[str, int], wanted: Mapping[str, int], *, up: bool = False) -> Sizes:
        """Return sizes with some axes as near to what is wanted as SPEC.md allows; as they were where it allows no other.

        Axes that a constraint ties to them follow; where it ties none, all others stay.

        Args:
            sizes: legal ones.
            wanted: axis -> size.
            up: rather a larger size than a smaller one.
        """
        if self.legal(whole := {**sizes, **wanted}):
            return whole
        said, ranges = self.spec.shape_constraints, self.spec.axis_ranges
        free = [*self.spec.dynamic_axes, *self._equalled, *self.tied(wanted)]
        return legal_sizes.nearest(said, ranges, sizes, wanted, self.legal, free=free, up=up) or dict(sizes)

    @cached_property
    def _equalled(self) -> list[str]:
        """The axes that constraints set equal to an expression with a dynamic one: `C == A * B`."""
        dynamic, found = set(self.spec.dynamic_axes), []
        for left, right in constraints.equalities(self.spec.shape_constraints):
            for name, other in ((left, right), (right, left)):
                if len(name) == 1 and other & dynamic:
                    found += sorted(name)
        return found

    def tied(self, axes: Collection[str]) -> set[str]:
        """Return the axes that an equality names beside one of these: the groups of `KG * 32 == K`."""
        sides = [left | right for left, right in constraints.equalities(self.spec.shape_constraints) if left and right]
        return {name for names in sides if names & set(axes) for name in names} - set(axes)

    @property
    def whole_numbers(self) -> Sizes:
        """The defaults of scalars, which constraints may name: `H % groups == 0`."""
        return {name: value for name, value in self.scalars.items() if type(value) is int}

    def legal(self, sizes: Mapping[str, int]) -> bool:
        """Whether sizes satisfy the ranges and the readable constraints of SPEC.md, and give every tensor a shape."""
        for axis, (low, high) in self.spec.axis_ranges.items():
            if axis in sizes and not low <= sizes[axis] <= high:
                return False
        if not constraints.satisfied(self.spec.shape_constraints, {**self.whole_numbers, **sizes}):
            return False
        try:
            shapes = self.interfaces.resolve_shapes(sizes).values()
        except ContractError:
            return False
        return all(size >= 1 for shape in shapes for size in shape)


def gather(ws: OpWorkspace) -> Sources:
    """Read everything.

    Raises:
        ContractError: a document or the golden is missing or malformed, or they are about different operators.
    """
    if ws.spec.is_file() and not ws.interfaces.is_file():
        raise ContractError("no such file", file=ws.interfaces, remedy=f"run `pypto-op interfaces new {typed(ws.root)}`")
    spec = spec_document.load(ws.spec)
    interfaces = interfaces_document.load(ws.interfaces).with_scalars(spec.default_params)
    rows.check_named(spec.input_ranges, spec.default_params, interfaces.primary_inputs, ws.spec)
    text = read_text(ws.spec)
    for file, name in ((ws.spec, spec.op_name), (ws.interfaces, interfaces.op)):
        if name != ws.name:
            raise ContractError(f"is about the operator {name!r}", file=file, remedy=f"write {ws.name}")
    said = {
        port.name: (port.dtype, *constraints.limits(spec.shape_constraints, port.name, interfaces.symbols))
        for port in interfaces.primary_inputs
        if port.shape and port.dtype in INTEGERS
    }
    steps = steps_of(ws.design, interfaces.symbols)
    return Sources(
        ws=ws,
        spec=spec,
        interfaces=interfaces,
        scan=golden_scan.scan(ws.golden, ws.golden_name()),
        shares=golden_scan.shares(ws.golden, ws.golden_name()),
        free=spec_document.unlimited(ws.spec),
        weights=_weights(ws, spec, interfaces),
        tiles=_tiles(ws),
        steps=steps,
        reduced=_reduced(ws, interfaces),
        scalars=scalar_defaults(ws, spec, interfaces),
        ranges={name: _range(*told) for name, told in said.items()},
        unlimited=tuple(name for name, (_, _, high) in said.items() if not high),
        says_nan=special_values.says_nan(text),
        says_minus_inf=special_values.says_minus_inf(text),
        apart=_apart(ws, interfaces),
    )


def _apart(ws: OpWorkspace, interfaces: Interfaces) -> Apart:
    whole = [port for port in interfaces.primary_inputs if port.dtype in INTEGERS]
    tensors, scalars = ([port.name for port in whole if bool(port.shape) is shaped] for shaped in (True, False))
    return set_apart(ws.golden, ws.golden_name(), tensors, scalars)


def _range(dtype: str, low: str, high: str) -> tuple[str, str]:
    return low or str(INTEGERS[dtype][0]), high or str(INTEGERS[dtype][1])


def _weights(ws: OpWorkspace, spec: Spec, interfaces: Interfaces) -> dict[str, int]:
    """Return the weights: what has a dynamic axis is an activation, of which nobody knows how it is meant to be scaled."""
    function = golden_scan.functions_of(ws.golden, ws.golden_name())[ws.golden_name()]
    tensors = {port.name: port for port in interfaces.primary_inputs if port.shape}
    axes = contractions.summed_axes(function, {name: len(port.shape) for name, port in tensors.items()})
    return {
        name: axis
        for name, axis in axes.items()
        if tensors[name].dtype in FLOATS and not symbols_of(tensors[name]) & set(spec.dynamic_axes)
    }


def _reduced(ws: OpWorkspace, interfaces: Interfaces) -> frozenset[str]:
    """Return the axes that the golden reduces an input over, where source and contract alone say so."""
    function = golden_scan.functions_of(ws.golden, ws.golden_name())[ws.golden_name()]
    shapes = {port.name: port.shape for port in interfaces.primary_inputs}
    return frozenset(
        shapes[name][place]
        for name, place in golden_axes.reduced_inputs(function)
        if name in shapes and -len(shapes[name]) <= place < len(shapes[name])
    )


def _tiles(ws: OpWorkspace) -> tuple[int, ...]:
    files = [ws.design, ws.impl, *(ws.module_impl(k) for k in ws.existing_module_phases())]
    found = {size for path in files if path.is_file() for size in tiles_in(read_text(path))}
    sizes = sorted(size for size in found if 1 < size <= _LARGEST_TILE)
    if not sizes:
        return _DEFAULT_TILES
    # Three are enough: the smallest cuts the most, the largest is the one that inputs rarely fill.
    return tuple(dict.fromkeys((sizes[0], sizes[len(sizes) // 2], sizes[-1])))


def scalar_defaults(ws: OpWorkspace, spec: Spec, interfaces: Interfaces) -> dict[str, Any]:
    """Return the default of each scalar input: SPEC.md's, the contract's, else one that does nothing.

    A float's default is a float here, also where it is written `1`: from its type all others know what the scalar is.
    """
    written = {item["name"]: item.get("default") for item in read_yaml(ws.interfaces)["primary_inputs"]}
    scalars: dict[str, Any] = {}
    for port in interfaces.primary_inputs:
        if port.shape:
            continue
        named = spec.default_params.get(port.name, written.get(port.name))
        default = _SCALAR_OF.get(port.dtype, 1) if named is None else named
        scalars[port.name] = float(default) if port.dtype in FLOATS and type(default) is int else default
    return scalars
