"""What physics allows: the least time that a device needs to move an operator's data and to do its arithmetic.

A kernel may come near to it and cannot pass it: a figure below it is a fault of the clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pypto_op.hardware import MACHINE, WIDE_PRODUCTS

_ASSUMED = f"products of 32-bit elements are assumed to run at {WIDE_PRODUCTS:g} of the 16-bit rate; no source states it"


@dataclass(frozen=True)
class Work:
    """What an operator has to do for one shape, however its kernel is written."""

    bytes: int  # of all inputs, read once, and all outputs, written once
    product_flop: int = 0  # of its matrix products, two for each multiplication and addition
    vector_flop: int = 0  # of all else, one for each element that an operation of the golden makes
    bits: int = 32  # of the elements that its products take
    counted: bool = False  # the arithmetic is known; without it both counts are 0 and the bound is that of memory alone


@dataclass(frozen=True)
class Bound:
    """The least times of one shape, in microseconds."""

    memory_us: float  # to move the bytes between the device's memory and its cores
    cached_us: float  # the same, where all of it lies in the cache; the whole memory's where it does not fit
    cube_us: float  # for the products
    vector_us: float  # for the rest of the arithmetic
    device: str  # the stated device
    fast_cube_us: float = 0.0  # for the products at the rate that is stated, that of 16-bit elements
    assumed: str = ""  # what of it no source states, in words; "" for nothing

    @property
    def us(self) -> float:
        """The bound: the longest of the three, from a cold cache."""
        return max(self.memory_us, self.cube_us, self.vector_us)

    @property
    def least_us(self) -> float:
        """What nothing can pass: the same with every byte in the cache, and with products at the stated rate of 16 bits; vector
        work is left out, since it can be written with fewer operations than the golden has."""
        return max(self.cached_us, self.fast_cube_us)

    @property
    def by(self) -> str:
        """What bounds it."""
        names: Mapping[str, float] = {
            "memory": self.memory_us, "cube arithmetic": self.cube_us, "vector arithmetic": self.vector_us
        }  # fmt: skip
        return max(names, key=lambda name: names[name])


def bound_of(work: Work) -> Bound:
    """Return the bound of some work on a device."""
    machine = MACHINE
    memory = work.bytes / machine.memory_bytes_per_us
    cached = work.bytes / machine.cache_bytes_per_us if work.bytes <= machine.cache_bytes else memory
    return Bound(
        memory_us=memory,
        cached_us=cached,
        cube_us=work.product_flop / machine.cube_flop_per_us(work.bits),
        vector_us=work.vector_flop / machine.vector_flop_per_us,
        device=machine.name,
        fast_cube_us=work.product_flop / machine.cube_flop_per_us(min(work.bits, 16)),
        assumed=_ASSUMED if work.product_flop and work.bits > 16 else "",
    )
