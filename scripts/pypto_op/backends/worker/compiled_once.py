"""Finds kernels that a device would compile for one call and use again, wrongly, for another; the simulator builds each anew.

A simulator builds the program of a kernel anew at each launch. A device compiles it once, and launches it again while pypto
finds it by its key: source, captured variables and the values of arguments that are no tensors; then dtype, rank and sizes of
the tensors, but not along axes that the kernel declares as dynamic (`JitCallableWrapper` and `KernelModule`, pypto 0.2.0).
So a number that comes in by another way, as a global or an attribute does, is on a device that of the first call for good.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

import torch

from pypto_op.backends.worker import pypto_hooks
from pypto_op.backends.worker.told import Token, Told

_NOTHING = "nothing"


class Place(NamedTuple):
    """What pypto finds the program of a launch by."""

    module: Any  # pypto's holder of compiled programs; held, so that no other gets its identity
    kinds: tuple[Any, ...]  # of the tensors
    sizes: str  # of all their axes, for a message; a device looks at those that the kernel does not declare as dynamic


@dataclass(frozen=True)
class _Program:
    """What a device would keep."""

    place: Place  # of the launch that it was built for
    told: tuple[Token, ...]  # what pypto was told while it was built


class Programs:
    """The programs that a device would have compiled for the launches of this process."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], _Program] = {}

    def place(self, kernel: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Place:
        """Return what pypto finds the program of a launch by that is to come."""
        tensors, values, declared = kernel._parse_call_args(tuple(args), dict(kwargs))
        kernel._get_or_create_kmodule(values)
        return Place(kernel.kmodule, _kinds(tensors, declared), " ".join(str(list(tensor.shape)) for tensor in tensors))

    def known(self, place: Place) -> tuple[Token, ...]:
        """Return what the program was built from that a device has there; () for none. It does not run the kernel's body."""
        kept = self._kept.get((id(place.module), place.kinds))
        return kept.told if kept is not None else ()

    def other(self, place: Place, told: tuple[Token, ...], name: str) -> str:
        """Return how the program of a launch differs from the one that a device would launch in its place; "" if it does not.

        Args:
            place: of the launch, as it was before it.
            told: what pypto was told while it was built; nothing where it was not built again, as on a device.
            name: of the kernel.
        """
        if not told:
            return ""
        kept = self._kept.setdefault((id(place.module), place.kinds), _Program(place, told))
        if repr(kept.told) == repr(told):  # NaN is like itself
            return ""
        pairs = zip_longest(kept.told, told, fillvalue=_NOTHING)
        before, after = next((one, two) for one, two in pairs if repr(one) != repr(two))
        sizes, others = place.sizes, kept.place.sizes
        return (
            f"{name} is built with {_short(after)} for {sizes}, and with {_short(before)} for {others}; a device compiles it "
            f"once for both and keeps the first. Let it capture the number, take it as an argument, or compute it from a size"
        )


def tell() -> None:
    """Say on standard error where a launch of this process differs from the one of a device, once for each kernel's name."""
    told, programs, said = Told(), Programs(), set()
    told.install()

    def around(call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def watched(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            place = programs.place(kernel, args, kwargs)
            told.begin()
            try:
                return call(kernel, *args, **kwargs)
            finally:
                words, name = told.end(), getattr(kernel, "__name__", "the kernel")
                other = programs.other(place, words, name) if sys.exc_info()[0] is None else ""
                if other and other.split()[0] not in said:
                    said.add(other.split()[0])
                    print(f"pypto-op: {other}", file=sys.stderr)

        return watched

    pypto_hooks.record_launches(around)


def _kinds(tensors: Sequence[torch.Tensor], declared: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(_kind(tensor, definition) for tensor, definition in zip(tensors, declared, strict=True))


def _kind(tensor: torch.Tensor, definition: Any) -> tuple[Any, ...]:
    """Return what a device distinguishes a tensor by; None stands for a size that it does not look at."""
    import pypto

    dynamic = (pypto.StatusType.DYN, pypto.StatusType.DYNAMIC)
    free = {axis for axis, size in enumerate(definition.shape) if isinstance(size, pypto.SymbolicScalar) or size in dynamic}
    lengths = tuple(None if axis in free else length for axis, length in enumerate(tensor.shape))
    return tensor.dtype, str(getattr(definition, "format", "")), lengths


def _short(token: Token) -> str:
    text = str(token).removeprefix("scalar ")
    return text if len(text) <= 60 else f"{text[:57]}..."
