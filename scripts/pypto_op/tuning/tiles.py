"""Tile shapes: calls of `pypto.set_vec_tile_shapes` and `pypto.set_cube_tile_shapes`, and what they could say.

Calls that say the same are one choice as long as their switch says so; apart, each function has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from pypto_op.hardware import CHIP, cube_faults, vector_faults
from pypto_op.mutation.program import Program, called
from pypto_op.tuning.choice import Choice, Kind
from pypto_op.tuning.rewriting import Edits, expression
from pypto_op.tuning.walking import own_nodes

VECTOR, CUBE = "set_vec_tile_shapes", "set_cube_tile_shapes"
KINDS = frozenset({Kind.VECTOR_TILE, Kind.CUBE_TILE, Kind.APART})
TOGETHER, APART = "together", "apart"
_LAST_AXIS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
_OTHER_AXES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_L0 = (16, 32, 64, 128, 256)
_L1 = (16, 32, 64, 128, 256, 512)
_WIDE = 32
"""Bits of the elements that a vector tile is reckoned with: kernels widen before they sum."""


@dataclass(frozen=True)
class Site:
    """One call that sets tiles."""

    cube: bool  # it is the cube unit's
    line: int  # of the file
    nodes: tuple[cst.BaseExpression, ...]  # the numbers, from left to right
    lengths: tuple[int, ...]  # how many numbers each argument holds
    texts: tuple[str, ...]  # what the numbers say
    switch: str  # key of the choice whether it goes with the others; "" where it is alone anyhow
    together: tuple[str, ...]  # keys of the choices about its numbers, shared with the calls that say the same
    alone: tuple[str, ...]  # keys of its own

    @property
    def choices(self) -> set[str]:
        """Keys of every choice that it hangs on."""
        return {self.switch, *self.together, *self.alone}

    def names(self) -> set[str]:
        """Names that stand among its numbers."""
        return {text for text in self.texts if text.isidentifier()}


def find(program: Program) -> list[Site]:
    """Return the calls of the kernel that set tiles, and whose numbers are literals or names."""
    raw: list[tuple[cst.Call, str, int, list[cst.BaseExpression], list[int]]] = []
    for function in program.functions.values():
        for inner in own_nodes(function):
            if isinstance(inner, cst.Call) and called(inner) in (VECTOR, CUBE):
                numbers, lengths = _numbers(inner)
                if numbers:
                    raw.append((inner, function.name, program.line(inner), numbers, lengths))
    texts = [tuple(program.module.code_for_node(number) for number in one[3]) for one in raw]
    functions: dict[tuple[str, tuple[str, ...]], dict[str, None]] = {}
    for (node, name, *_), said in zip(raw, texts, strict=True):
        functions.setdefault((called(node), said), {})[name] = None
    sites = []
    for (node, name, line, numbers, lengths), said in zip(raw, texts, strict=True):
        cube = called(node) == CUBE
        stem = f"{'cube' if cube else 'vector'} tile {', '.join(said)}"
        several = len(functions[called(node), said]) > 1
        own = tuple(f"{stem} of {name} [{i}]" for i in range(len(said))) if several else ()
        shared = tuple(f"{stem} [{i}]" for i in range(len(said)))
        switch = f"{stem}, functions" if several else ""
        sites.append(Site(cube, line, tuple(numbers), tuple(lengths), said, switch, shared, own))
    return sites


def _numbers(call: cst.Call) -> tuple[list[cst.BaseExpression], list[int]]:
    """Return the numbers of a call and how many each argument has; ([], []) where one is neither literal nor name."""
    numbers: list[cst.BaseExpression] = []
    lengths = []
    for argument in call.args:
        if argument.keyword is not None or argument.star:
            continue  # further options of a call, such as enable_split_k
        value = argument.value
        inner = [element.value for element in value.elements] if isinstance(value, (cst.List, cst.Tuple)) else [value]
        numbers += inner
        lengths.append(len(inner))
    fit = all(isinstance(number, (cst.Integer, cst.Name)) for number in numbers)
    return (numbers, lengths) if fit and numbers else ([], [])


def choices(sites: Sequence[Site]) -> Iterator[tuple[Choice, Callable[[Edits, str], None]]]:
    """Yield the choices of all sites, each once; their edits are made by `edit`, all numbers of a call at a time."""
    seen: set[str] = set()
    for site in sites:
        kind = Kind.CUBE_TILE if site.cube else Kind.VECTOR_TILE
        if site.switch and site.switch not in seen:
            seen.add(site.switch)
            yield Choice(site.switch, Kind.APART, site.line, (TOGETHER, APART)), _nothing
        for keys in (site.together, site.alone):
            for i, key in enumerate(keys):
                if key in seen:
                    continue
                seen.add(key)
                shared = keys is site.together
                yield (Choice(key, kind, site.line, _options(site, i), under="" if shared else site.switch, unless=""), _nothing)


def _nothing(edits: Edits, option: str) -> None:
    """`edit` writes tiles, all numbers of a call at a time."""


def _options(site: Site, i: int) -> tuple[str, ...]:
    vector = _LAST_AXIS if i == len(site.texts) - 1 else _OTHER_AXES
    sizes = (_L1 if _place(site, i) > 0 else _L0) if site.cube else vector
    return (site.texts[i], *(str(size) for size in sizes if str(size) != site.texts[i]))


def _place(site: Site, i: int) -> int:
    """Return where in its argument the i-th number stands."""
    for length in site.lengths:
        if i < length:
            return i
        i -= length
    return 0


def edit(site: Site, setting: Sequence[str], edits: Edits) -> None:
    """Add to `edits` what makes a call say `setting`."""
    for node, before, text in zip(site.nodes, site.texts, setting, strict=True):
        if text != before:
            edits.changes[node] = expression(text)


def faults(site: Site, setting: Sequence[str], values: Mapping[str, int], bits: int) -> list[str]:
    """Return what the chip does not allow of a call's setting; [] where a name has no known value.

    Args:
        setting: what it says, number by number.
        values: the module's named numbers.
        bits: of the widest element that a product may have.
    """
    numbers = [values.get(text, int(text) if text.isdigit() else 0) for text in setting]
    if not all(numbers):
        return []
    if not site.cube:
        return vector_faults(numbers, _WIDE, _WIDE)
    parts, start = [], 0
    for length in site.lengths[:3]:
        parts.append(numbers[start : start + length])
        start += length
    if len(parts) != 3:
        return []
    unaligned = [
        f"L1: {name}L1 = {part[1]} is no multiple of {name}L0 = {part[0]}"
        for name, part in zip("mkn", parts, strict=True)
        if len(part) > 1 and part[1] % part[0]
    ]
    unaligned += [f"m: {number} is no multiple of {CHIP.fractal}" for number in parts[0] if number % CHIP.fractal]
    return [*unaligned, *cube_faults(parts[0], parts[1], parts[2], bits, bits)]
