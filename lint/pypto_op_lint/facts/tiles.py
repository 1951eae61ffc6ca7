"""Where the graph sets tiles, and what each value may be."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import libcst as cst

from pypto_op_lint.facts.dtypes import declared_dtypes, dtypes_of, named_dtypes
from pypto_op_lint.facts.values import Const, Seq, Table, Value
from pypto_op_lint.tree import Function, Parameter, Site

if TYPE_CHECKING:
    from pypto_op_lint.facts import Facts

VECTOR, CUBE = "pypto.set_vec_tile_shapes", "pypto.set_cube_tile_shapes"
CONVOLUTION = "pypto.set_conv_tile_shapes"
OPTIONS = frozenset({"pypto.set_options", "pypto.options"})
OPTION_WORDS = {"vec_tile_shapes": VECTOR, "cube_tile_shapes": CUBE, "conv_tile_shapes": CONVOLUTION}
AXES = ("m", "k", "n")
_DTYPE_PLACE = {"cast": 1, "full": 2, "tensor": 1, "matmul": 2, "scaled_mm": 2, "zeros": None, "ones": None, "view": None}
"""Operations that say the dtype of what they make, and its place by position; None: by keyword only."""
_PRODUCTS = frozenset({"pypto.matmul", "pypto.scaled_mm"})
_OPERAND_WORDS = ("input", "mat2", "mat_a", "mat_b")
_MOST_COMBINATIONS = 64

Values = tuple[Value, ...]
Entry = tuple[cst.CSTNode, Values]


@dataclass(eq=False)
class TileSetting:
    """One call that sets tiles."""

    site: Site  # the call
    vector: list[Entry] | None = None  # the entries of a vector tile, one an axis; None when it sets none
    cube: dict[str, Entry] | None = None  # by "m", "k", "n", what each is given; None when it sets none
    # arguments that should hold a tile and are no list that can be read
    unread: list[tuple[cst.CSTNode, Value]] = field(default_factory=list)


def tile_settings(facts: Facts) -> list[TileSetting]:
    """Return every setting of vector or cube tiles in the graph's code, in source order."""
    graph = {id(site) for site in facts.graph_sites(cst.Call)}
    found = []
    for site, node, names in facts.foreign_calls:
        if id(site) not in graph:
            continue
        if VECTOR in names:
            found.append(TileSetting(site, vector=[entry for arg in node.args for entry in _spread(facts, arg)]))
        elif CUBE in names:
            found.append(TileSetting(site, cube=_cube(facts, node)))
        elif names & OPTIONS:
            found.append(_options(facts, site, node))
    return found


def _spread(facts: Facts, arg: cst.Arg) -> Iterator[Entry]:
    values = facts.ev.values(arg.value)
    if arg.star == "*" and len(values) == 1 and isinstance(values[0], Seq):
        for item in values[0].items:
            yield arg.value, item
    else:
        yield arg.value, values


def _cube(facts: Facts, call: cst.Call) -> dict[str, Entry]:
    given: dict[str, Entry] = {}
    place = 0
    for arg in call.args:
        if arg.star == "**":
            tables = [v for v in facts.ev.values(arg.value) if isinstance(v, Table)]
            given |= {str(name): (arg.value, values) for table in tables for name, values in table.entries.items()}
        elif arg.keyword is not None:
            given[arg.keyword.value] = (arg.value, facts.ev.values(arg.value))
        else:
            for entry in _spread(facts, arg):
                given[(*AXES, "enable_split_k", "")[min(place, 4)]] = entry
                place += 1
    return {name: given[name] for name in AXES if name in given}


def _options(facts: Facts, site: Site, call: cst.Call) -> TileSetting:
    """`pypto.set_options(vec_tile_shapes=[...], cube_tile_shapes=[m, k, n])`."""
    setting = TileSetting(site)
    for arg in call.args:
        kind = OPTION_WORDS.get(arg.keyword.value if arg.keyword is not None else "")
        for value in facts.ev.values(arg.value) if kind in (VECTOR, CUBE) else ():
            if not isinstance(value, Seq):
                setting.unread.append((arg.value, value))
            elif kind == VECTOR:
                setting.vector = [*(setting.vector or ()), *((arg.value, item) for item in value.items)]
            else:
                pairs = zip(AXES, value.items, strict=False)
                setting.cube = {name: (arg.value, item) for name, item in pairs}
    return setting


# -- numbers ------------------------------------------------------------------------------------------------


def combinations(facts: Facts, function: Function | None, entries: Sequence[Entry | None]) -> list[list[list[int]]]:
    """Return what the entries may be together: for each way, one list of numbers an entry, empty where it is not known.

    Entries that differ from caller to caller are taken caller by caller. Where it cannot be told which values go together,
    each is taken at its least.
    """
    read = [_numbers(entry[1] if entry is not None else ()) for entry in entries]
    several = [i for i, ways in enumerate(read) if len(ways) > 1]
    if len(several) < 2:
        return [list(way) for way in itertools.product(*read)][:_MOST_COMBINATIONS]
    parameters = {i: _parameter(function, entries[i]) for i in several}
    if function is not None and all(parameters.values()):
        found = []
        for call in facts.calls.calls_of(function):
            way = [ways[0] for ways in read]
            for i, parameter in parameters.items():
                given = _numbers(facts.ev.values(call.argument(parameter))) if parameter is not None else []
                way[i] = given[0] if len(given) == 1 else []
            found.append(way)
        return found
    return [[min(ways) for ways in read]]


def _numbers(values: Values) -> list[list[int]]:
    """One list of numbers for each value; one empty list where any of them is not known."""
    found: list[list[int]] = []
    for value in values:
        items = value.items if isinstance(value, Seq) else ((value,),)
        numbers = [i[0].value for i in items if len(i) == 1 and isinstance(i[0], Const) and i[0].kind == "int" and i[0].value > 0]
        if len(numbers) != len(items):
            return [[]]
        found.append(numbers)
    return found or [[]]


def _parameter(function: Function | None, entry: Entry | None) -> Parameter | None:
    """The parameter of `function` that an entry is, as it stands."""
    if function is None or entry is None or not isinstance(entry[0], cst.Name):
        return None
    return function.parameter(entry[0].value)


# -- element types ------------------------------------------------------------------------------------------


def graph_dtypes(facts: Facts) -> set[str] | None:
    """Return the dtypes of the kernel's tensors and of what the graph makes; None when one is not known."""
    found: set[str] = set()
    for kernel in facts.kernels:
        for parameter in kernel.parameters:
            if facts.tensors.is_tensor_parameter(parameter):
                declared = declared_dtypes(facts, parameter)
                if not declared:
                    return None
                found |= declared
    for site in facts.graph_sites(cst.Call):
        node: cst.Call = site.node  # type: ignore[assignment]
        made = _made_dtype(facts, node)
        if made is not None:
            named = named_dtypes(facts, made)
            if not named:
                return None
            found |= named
    return found or None


def _made_dtype(facts: Facts, node: cst.Call) -> cst.BaseExpression | None:
    """The expression that says which dtype a call makes."""
    words = {name.removeprefix("pypto.") for name in facts.callee_names(node)} & set(_DTYPE_PLACE)
    shift = 0
    if not words and isinstance(node.func, cst.Attribute) and facts.tensors.in_graph(node.func.value):
        words, shift = {node.func.attr.value} & {"matmul"}, 1
    for word in words:
        for arg in node.args:
            if arg.keyword is not None and arg.keyword.value in ("dtype", "out_dtype"):
                return arg.value
        place = _DTYPE_PLACE[word]
        plain = [arg.value for arg in node.args if arg.keyword is None and not arg.star]
        if place is not None and 0 <= place - shift < len(plain):
            return plain[place - shift]
    return None


def multiplied_dtypes(facts: Facts) -> set[str] | None:
    """Return the dtypes of the operands of the graph's matrix products; None when one is not known."""
    found: set[str] = set()
    for operands in _operands(facts):
        for operand in operands:
            known = dtypes_of(facts, operand)
            if not known:
                return None
            found |= known
    return found or None


def _operands(facts: Facts) -> Iterator[list[cst.BaseExpression]]:
    """Both sides of every product: `pypto.matmul(a, b)`, `a.matmul(b)`, `a @ b`."""
    for site in facts.graph_sites(cst.Call):
        node: cst.Call = site.node  # type: ignore[assignment]
        plain = [arg.value for arg in node.args if arg.keyword is None or arg.keyword.value in _OPERAND_WORDS]
        names = facts.callee_names(node)
        if names & _PRODUCTS:
            yield plain[:2]
        elif not names and isinstance(node.func, cst.Attribute) and node.func.attr.value == "matmul":
            yield [node.func.value, *plain[:1]]
    for site in facts.graph_sites(cst.BinaryOperation):
        product: cst.BinaryOperation = site.node  # type: ignore[assignment]
        if isinstance(product.operator, cst.MatrixMultiply):
            yield [product.left, product.right]
