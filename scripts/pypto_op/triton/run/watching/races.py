"""Sees programs of one launch that depend on each other's order, in the interpreter, which runs one program after another.

A device runs them side by side. So one program may use an element that another one of the same launch changes only where
something puts the two in order: atomics on one address, by the first program after its use and by the second before its own.
A store that leaves an element as it is changes nothing: many programs may store the same row's sum.

A program that looks at a flag must wait for it. So the first time that it looks, it sees what was there before any other program
changed it, as it may on a device: one that looks again waits, and one that goes on has put nothing in order.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_LOAD, _STORE, _ATOMIC = "reads", "writes", "changes by an atomic"
_KEEP, _POLL = "writes what it was", "polls"
"""A store that changes nothing, and a volatile load of one element, which waits for an atomic."""
_CLASHES = {_LOAD: (_STORE, _ATOMIC), _STORE: (_LOAD, _STORE, _ATOMIC), _ATOMIC: (_LOAD, _STORE), _POLL: (_STORE,)}
"""What another program may not have done to an element that a program does this to."""
_LOOKS = ("ADD", "FADD", "OR", "XOR")
"""Atomics that change nothing where their operand is 0: they look."""
_MOST = 2**31 - 1
"""So many accesses of one launch are told apart."""


class RaceError(RuntimeError):
    """What a kernel computes depends on the order of the programs of its launch."""


@dataclass
class _Region:
    """A storage, and for each element when a program before the present one last did something to it."""

    name: str
    start: int
    end: int
    unit: int = 0
    when: dict[str, Any] = field(default_factory=dict)

    def places(self, addresses: Any, size: int) -> Any:
        """Return the numbers of elements; the first access says how large one is, a smaller one splits them."""
        if size != self.unit:
            if self.unit and self.unit % size == 0:
                self.when = {kind: np.repeat(held, self.unit // size) for kind, held in self.when.items()}
            self.unit = size if not self.unit or self.unit % size == 0 else self.unit
        places = ((addresses - np.uint64(self.start)) // np.uint64(self.unit)).astype(np.int64)
        return _split(places, size // self.unit, first=True)

    def note(self, kind: str, places: Any, stamp: int) -> None:
        """Keep that a program which has ended did that."""
        if kind not in self.when:
            self.when[kind] = np.zeros((self.end - self.start) // self.unit + 1, np.int32)
        self.when[kind][places] = stamp


class Races:
    """Stands before the interpreter's loads, stores and atomics, behind `Bounds`."""

    def __init__(self) -> None:
        self.found = ""  # which programs do what to which memory, in words; "" for nothing
        self.met = False  # programs of a launch shared memory by atomics
        self.backward = False  # programs of the coming launches run from the last to the first
        self._kernel = ""
        self._watches = False
        self._plain_load: Callable[..., Any] = _not_installed
        self._regions: list[_Region] = []
        self._stamp = 0
        self._programs: list[Any] = []  # places in the grid, in the order in which they ran
        self._starts: list[int] = []  # the stamps at which they began
        self._pending: list[tuple[_Region, str, Any, int, int]] = []  # of the present program
        self._met: dict[int, list[tuple[int, int]]] = {}  # address of a single atomic: programs and stamps
        self._joins: list[list[tuple[int, int]]] = []  # per program: addresses and stamps of its single atomics
        self._known: tuple[int, dict[int, int]] = (-1, {})
        self._firsts: dict[int, tuple[int, Any]] = {}  # address: which program changed it by an atomic first, and what was there
        self._looked: set[tuple[int, int]] = set()  # programs and addresses

    def install(self, builder: Any, plain_load: Callable[..., Any]) -> None:
        """Wrap the functions of the interpreter's builder.

        Args:
            plain_load: its load that nobody watches.
        """
        self._plain_load = plain_load
        builder.set_grid_idx = self._around_place(builder.set_grid_idx)
        builder.create_masked_load = self._around_load(builder.create_masked_load)
        builder.create_masked_store = self._around_store(builder.create_masked_store)
        builder.create_atomic_rmw = self._around_atomic(builder.create_atomic_rmw, 1, 3)
        builder.create_atomic_cas = self._around_atomic(builder.create_atomic_cas, 0, None)

    def begin(self, kernel: str, storages: Mapping[tuple[int, int], str]) -> None:
        """Watch the coming launch, which is given these storages."""
        self._kernel, self._watches, self.found = kernel, True, ""
        self._regions = [_Region(name, start, end) for (start, end), name in storages.items()]
        self._stamp, self._programs, self._starts, self._joins = 0, [], [], []
        self._pending, self._met, self._known = [], {}, (-1, {})
        self._firsts, self._looked = {}, set()

    def add(self, start: int, end: int) -> None:
        """Watch a storage that the launch was not given, and uses."""
        if all((region.start, region.end) != (start, end) for region in self._regions):
            self._regions.append(_Region("", start, end))

    def end(self) -> None:
        """Look at nothing any more."""
        self._watches, self._regions, self._pending = False, [], []

    def _asked(self, builder: Any) -> bool:
        """Whether a launch with several programs is watched; begins the next program where another one asks."""
        grid = builder.grid_dim
        if not self._watches or grid[0] * grid[1] * grid[2] < 2 or self._stamp >= _MOST:
            return False
        if not self._programs or self._programs[-1] != builder.grid_idx:
            for region, kind, places, unit, stamp in self._pending:
                if kind != _KEEP:
                    region.note(kind, _split(places, unit // region.unit), stamp)
            self._pending = []
            self._programs.append(builder.grid_idx)
            self._starts.append(self._stamp + 1)
            self._joins.append([])
        self._stamp += 1
        return True

    def _around_place(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def placed(builder: Any, *place: int) -> Any:
            mirrored = (size - 1 - at for size, at in zip(builder.grid_dim, place, strict=True))
            return original(builder, *(mirrored if self.backward else place))

        return placed

    def _around_load(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def load(builder: Any, pointers: Any, mask: Any, other: Any, *args: Any, **further: Any) -> Any:
            if self._asked(builder):
                addresses = _active(pointers, mask)
                polls = addresses.size == 1 and bool(further.get("is_volatile", args[2] if len(args) > 2 else False))
                stale = self._stale(addresses) if polls else None
                if stale is not None:
                    return _instead(original(builder, pointers, mask, other, *args, **further), stale)
                self._use(_POLL if polls else _LOAD, addresses, _size(pointers))
            return original(builder, pointers, mask, other, *args, **further)

        return load

    def _around_store(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def store(builder: Any, pointers: Any, value: Any, mask: Any, *args: Any, **further: Any) -> Any:
            if self._asked(builder):
                before = self._plain_load(builder, pointers, mask, None, None, None, False)
                changes = _differs(before.data, value.data)
                self._use(_STORE, _active(pointers, mask, changes), _size(pointers))
                self._use(_KEEP, _active(pointers, mask, ~changes), _size(pointers))
            return original(builder, pointers, value, mask, *args, **further)

        return store

    def _around_atomic(self, original: Callable[..., Any], pointer: int, mask: int | None) -> Callable[..., Any]:
        @functools.wraps(original)
        def atomic(builder: Any, *args: Any, **further: Any) -> Any:
            if self._asked(builder):
                self.met = True
                addresses = _active(args[pointer], None if mask is None else args[mask])
                looks = addresses.size == 1 and (
                    _only_looks(*args[:3]) if pointer else bool((args[1].data == args[2].data).all())
                )
                stale = self._stale(addresses) if looks else None
                if stale is not None:
                    return _instead(original(builder, *args, **further), stale)
                if addresses.size == 1 and not looks and int(addresses[0]) not in self._firsts:
                    on = _Plain(np.ones_like(args[pointer].data, dtype=bool) if mask is None else args[mask].data)
                    before = self._plain_load(builder, args[pointer], on, None, None, None, False).data
                    self._firsts[int(addresses[0])] = len(self._programs) - 1, before
                self._use(_ATOMIC, addresses, _size(args[pointer]))
            return original(builder, *args, **further)

        return atomic

    def _stale(self, addresses: Any) -> Any:
        """Return what the present program sees that looks at an address for the first time; None for what lies there."""
        here, address = len(self._programs) - 1, int(addresses[0])
        first = self._firsts.get(address)
        if first is None or first[0] == here or (here, address) in self._looked:
            return None
        self._looked.add((here, address))
        return first[1]

    def _use(self, kind: str, addresses: Any, size: int) -> None:
        """Note what the present program does to elements; raise where that depends on another program's turn."""
        for region, places in self._placed(addresses, size):
            for other in _CLASHES.get(kind, ()):
                if other not in region.when:
                    continue
                stamps = region.when[other][places]
                if stamps.any() and (kind != _LOAD or not self._own(region, places[stamps > 0])):
                    self._check(kind, region, other, stamps)
            self._pending.append((region, kind, places, region.unit, self._stamp))
        if kind in (_ATOMIC, _POLL) and addresses.size == 1:
            self._met.setdefault(int(addresses[0]), []).append((len(self._programs) - 1, self._stamp))
            self._joins[-1].append((int(addresses[0]), self._stamp))

    def _placed(self, addresses: Any, size: int) -> Iterator[tuple[_Region, Any]]:
        if not addresses.size:
            return
        low, high = int(addresses.min()), int(addresses.max())
        for region in self._regions:
            if region.start <= low and high < region.end:
                yield region, region.places(addresses, size)
                return
        for region in self._regions:
            inside = addresses[(addresses >= region.start) & (addresses < region.end)]
            if inside.size:
                yield region, region.places(inside, size)

    def _own(self, region: _Region, places: Any) -> bool:
        """Whether the present program itself stored all these elements before: it reads back what it stored."""
        mine = [
            _split(held, unit // region.unit)
            for at, kind, held, unit, _ in self._pending
            if at is region and kind in (_STORE, _KEEP)
        ]
        return bool(mine) and bool(np.isin(places, np.concatenate(mine)).all())

    def _check(self, kind: str, region: _Region, other: str, stamps: Any) -> None:
        known = self._before()
        for stamp in np.unique(stamps[stamps > 0]).tolist():
            program = bisect_right(self._starts, stamp) - 1
            if known.get(program, 0) < stamp:
                here, there = self._programs[-1], self._programs[program]
                self.found = (
                    f"program {_spelled(here)} of {self._kernel} {kind} an element of {region.name or 'memory'!r} that program "
                    f"{_spelled(there)} {other}; on a device they run side by side, and no atomic puts them in order"
                )
                raise RaceError(self.found)

    def _before(self) -> dict[int, int]:
        """Return programs, and up to which stamp what they did comes before the present access on a device too."""
        here = len(self._programs) - 1
        if self._known[0] != self._stamp:
            known: dict[int, int] = {}
            waiting = list(self._joins[here])
            while waiting:
                address, until = waiting.pop()
                for program, stamp in self._met[address]:
                    if stamp < until and program != here and known.get(program, 0) < stamp:
                        known[program] = stamp
                        waiting += [join for join in self._joins[program] if join[1] <= stamp]
            self._known = self._stamp, known
        return self._known[1]


@dataclass(frozen=True)
class _Plain:
    """A mask of which a load asks nothing but its data."""

    data: Any


def _only_looks(operation: Any, _pointers: Any, operand: Any) -> bool:
    return str(operation).rpartition(".")[2].upper() in _LOOKS and not bool(np.asarray(operand.data).any())


def _instead(found: Any, data: Any) -> Any:
    """Let what was found hold other data."""
    found.data = np.broadcast_to(data.reshape(-1)[:1].astype(found.data.dtype), found.data.shape).copy()
    return found


def _active(pointers: Any, mask: Any, also: Any = None) -> Any:
    """Return the addresses of the lanes that are on."""
    on = None if mask is None else np.broadcast_to(mask.data, pointers.data.shape).astype(bool, copy=False)
    if also is not None:
        on = also if on is None else on & also
    return pointers.data.reshape(-1) if on is None or on.all() else pointers.data[on]


def _size(pointers: Any) -> int:
    return max(1, int(pointers.get_element_ty().primitive_bitwidth) // 8)


def _differs(before: Any, value: Any) -> Any:
    """Return where a store changes what lies there."""
    value = np.broadcast_to(value, before.shape).astype(before.dtype, copy=False)
    return (value != before) & ((value == value) | (before == before))


def _split(places: Any, parts: int, *, first: bool = False) -> Any:
    """Return the numbers of the parts of elements; `first`: the numbers are those of each element's first part already."""
    if parts <= 1:
        return places
    return ((places if first else places * parts)[:, None] + np.arange(parts)).reshape(-1)


def _spelled(place: Any) -> str:
    return f"({', '.join(map(str, place))})"


def _not_installed(*_: Any) -> Any:
    raise RuntimeError("the interpreter's functions are not wrapped")
