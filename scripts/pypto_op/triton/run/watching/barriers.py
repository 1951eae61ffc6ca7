"""Sees, in the interpreter, lanes of one program that hand values to each other through memory without waiting.

A block's lanes belong to many threads. One that loads what another one stored before may come too early, unless something in
between lets the threads wait: `tl.debug_barrier`, an atomic, or what they do together (a product, a reduction, a scan).
The same lane of a block of the same shape belongs to the same thread, so it may read back what it stored. A lane that stores over
what another lane of a block of the same shape loads may come too early in the same way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

_WAITS = ("create_barrier", "create_atomic_rmw", "create_atomic_cas", "create_dot", "create_dot_scaled")
_MOST = 256
"""So many stores are looked back at."""


class LaneRaceError(RuntimeError):
    """What a kernel computes depends on the order of the lanes of one program."""


@dataclass(frozen=True)
class _Stored:
    addresses: Any  # sorted; of the lanes that changed something
    lanes: Any
    shape: tuple[int, ...]


@dataclass(frozen=True)
class _Loaded:
    pointers: Any
    mask: Any

    @functools.cached_property
    def ends(self) -> tuple[int, int]:
        """The first and last address, of lanes that are off, too."""
        return int(self.pointers.data.min()), int(self.pointers.data.max())

    @functools.cached_property
    def lanes(self) -> Any:
        """The numbers of the lanes that are on."""
        return _lanes(self.pointers, self.mask)


class Barriers:
    """Stands before the interpreter's loads and stores."""

    def __init__(self) -> None:
        self.found = ""  # which lanes do what to which memory, in words; "" for nothing
        self._kernel = ""
        self._names: Mapping[tuple[int, int], str] = {}
        self._watches = False
        self._program: Any = None
        self._stores: list[_Stored] = []
        self._loads: list[_Loaded] = []
        self._plain_load: Callable[..., Any] = _not_installed

    def install(self, builder: Any, plain_load: Callable[..., Any]) -> None:
        """Wrap the functions of the interpreter's builder, and what lets lanes wait for each other.

        Args:
            plain_load: its load that nobody watches.
        """
        from triton.runtime.interpreter import ReduceScanOpInterface

        self._plain_load = plain_load
        builder.create_masked_load = self._around_load(builder.create_masked_load)
        builder.create_masked_store = self._around_store(builder.create_masked_store)
        for owner, name in (*((builder, name) for name in _WAITS), (ReduceScanOpInterface, "apply")):
            if hasattr(owner, name):
                setattr(owner, name, self._waiting(getattr(owner, name)))

    def begin(self, kernel: str, storages: Mapping[tuple[int, int], str]) -> None:
        """Watch the coming launch, which is given these storages."""
        self._kernel, self._names, self._watches, self.found = kernel, storages, True, ""
        self._program, self._stores, self._loads = None, [], []

    def end(self) -> None:
        """Look at nothing any more."""
        self._watches, self._stores, self._loads = False, [], []

    def _asked(self, builder: Any) -> bool:
        if self._watches and self._program != builder.grid_idx:
            self._program, self._stores, self._loads = builder.grid_idx, [], []
        return self._watches

    def _waiting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def waiting(*args: Any, **kwargs: Any) -> Any:
            self._stores, self._loads = [], []
            return original(*args, **kwargs)

        return waiting

    def _around_store(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def store(builder: Any, pointers: Any, value: Any, mask: Any, *args: Any, **further: Any) -> Any:
            if self._asked(builder):
                before = self._plain_load(builder, pointers, mask, None, None, None, False).data
                now = np.broadcast_to(value.data, before.shape).astype(before.dtype, copy=False)
                lanes = _lanes(pointers, mask, (now != before) & ((now == now) | (before == before)))
                self._keep(pointers.data, lanes)
                self._check_loads(pointers.data, lanes)
            return original(builder, pointers, value, mask, *args, **further)

        return store

    def _keep(self, addresses: Any, lanes: Any) -> None:
        if lanes.size:
            found = addresses.reshape(-1)[lanes]
            order = np.argsort(found, kind="stable")
            self._stores = [*self._stores[1 - _MOST :], _Stored(found[order], lanes[order], addresses.shape)]

    def _around_load(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def load(builder: Any, pointers: Any, mask: Any, other: Any, *args: Any, **further: Any) -> Any:
            if self._asked(builder):
                lanes = _lanes(pointers, mask) if self._stores else None
                if lanes is not None and lanes.size:
                    self._check(pointers.data.reshape(-1)[lanes], lanes, pointers.data.shape)
                if pointers.data.size > 1:
                    self._loads = [*self._loads[1 - _MOST :], _Loaded(pointers, mask)]
            return original(builder, pointers, mask, other, *args, **further)

        return load

    def _check(self, addresses: Any, lanes: Any, shape: tuple[int, ...]) -> None:
        low, high = int(addresses.min()), int(addresses.max())
        for stored in reversed(self._stores):
            if int(stored.addresses[0]) > high or int(stored.addresses[-1]) < low:
                continue
            at = np.minimum(np.searchsorted(stored.addresses, addresses), stored.addresses.size - 1)
            met = stored.addresses[at] == addresses
            alone = int(np.prod(stored.shape)) == 1 == int(np.prod(shape))
            wrong = met & (stored.lanes[at] != lanes) if stored.shape == shape else met
            if not alone and wrong.any():
                self._raise("reads an element of {} that another lane of the same program stored", int(addresses[wrong][0]))
            if met.all():  # what lies there is this store's
                return

    def _check_loads(self, addresses: Any, lanes: Any) -> None:
        """Refuse a store over what another lane loads; blocks of one shape alone lie in the threads in the same way."""
        if not lanes.size or addresses.size == 1:
            return
        found = addresses.reshape(-1)[lanes]
        low, high = int(found.min()), int(found.max())
        for loaded in self._loads:
            if loaded.pointers.data.shape != addresses.shape or loaded.ends[0] > high or loaded.ends[1] < low:
                continue
            theirs = loaded.pointers.data.reshape(-1)[loaded.lanes]
            order = np.argsort(found, kind="stable")
            at = order[np.minimum(np.searchsorted(found, theirs, sorter=order), found.size - 1)]
            wrong = (found[at] == theirs) & (lanes[at] != loaded.lanes)
            if wrong.any():
                self._raise("stores over an element of {} that another lane of the same program loaded", int(theirs[wrong][0]))

    def _raise(self, does: str, address: int) -> None:
        name = next((name for (start, end), name in self._names.items() if start <= address < end), "memory")
        self.found = (
            f"a lane of {self._kernel} {does.format(repr(name))} before; on a "
            "device they run side by side, and nothing in between lets them wait (tl.debug_barrier)"
        )
        raise LaneRaceError(self.found)


def _lanes(pointers: Any, mask: Any, also: Any = True) -> Any:
    """Return the numbers of the lanes that are on."""
    on = np.broadcast_to(also if mask is None else np.asarray(mask.data, bool) & also, pointers.data.shape)
    return np.flatnonzero(on)


def _not_installed(*_: Any) -> Any:
    raise RuntimeError("the interpreter's functions are not wrapped")
