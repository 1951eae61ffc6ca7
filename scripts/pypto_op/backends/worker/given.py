"""Finds arguments of kernels that the host computed from the inputs' values."""

from __future__ import annotations

import functools
import itertools
import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import torch

from pypto_op.backends.worker.told import Token
from pypto_op.tensor_bytes import bytes_in

LAUNCHES = "launches"
"""The key of the number of launches."""
MEMORY = "memory"
"""Behind a launch's number: in which memory its tensors lie, and where there."""
RETURNED = "returned"
"""Behind a launch's number: which parts of which kernel's memory the wrapper returned after it."""
_ROUNDED = 1 / 128
"""So far apart may two roundings of a copy be, to 16 bits."""
_LONGEST_CYCLE = 1 << 16
_LARGEST_RANGE = 1 << 31


def _drawn_factors() -> tuple[float, float]:
    return 0.28 + 0.17 * secrets.randbelow(1000) / 1000, 0.6 + 0.3 * secrets.randbelow(1000) / 1000


def _drawn_key() -> int:
    return secrets.randbits(62) | 1


@dataclass(frozen=True)
class Change:
    """What is done to the inputs, element by element, so that copies show themselves.

    A float is multiplied by one of two factors, so that neither sums, nor maxima, nor any order of the elements (by value or
    by magnitude) go along. Both are negative; where `mixed`, some elements keep their sign, since products of two signs would
    stay as they are. An 8-bit float, which a product would round, gets another magnitude, and an integer another integer: the
    next in a drawn cycle. Factors, cycle, and which float gets which factor are drawn: where the candidate knew them, it could
    compute from what the change leaves as it is.
    """

    sign: int = -1  # of the factors
    mixed: bool = False  # some floats keep their sign
    small: tuple[torch.dtype, ...] = ()  # dtypes of the 8-bit floats
    # smallest and largest integer of each dtype that changes, each of which has a cycle of its own; empty: integers stay,
    # otherwise floats do
    between: Mapping[torch.dtype, tuple[int, int]] = field(default_factory=dict)
    # integers are reflected in the middle of all, which leaves them ordered, for a wrapper that refuses others
    reflects: bool = False
    factors: tuple[float, float] = field(default_factory=_drawn_factors)  # for floats
    key: int = field(default_factory=_drawn_key)  # decides which float gets which factor, and the cycle

    def apply(self, value: Any) -> Any:
        """Return an input as the changed run gets it: tensors, also nested ones; everything else stays."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, (list, tuple)):
            return type(value)(self.apply(item) for item in value)
        return value

    def follows(self, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
        """Return which elements changed as an element of an input with the value `before` does."""
        if before.is_floating_point():
            wide = before.double()
            if self.between:
                whole = wide.round()
                wanted = [self._integers(whole.long(), ends).double() + wide - whole for ends in self.between.values()]
                return _any(torch.isclose(after.double(), want, rtol=1e-2) for want in wanted)
            tiny = torch.finfo(before.dtype).tiny
            wanted = [wide * factor for factor in self._factors()] + [self._small(wide, dtype) for dtype in self.small]
            return _any(torch.isclose(after.double(), want, rtol=_ROUNDED, atol=tiny) for want in wanted)
        if not self.between or before.dtype is torch.bool:
            return torch.zeros(before.shape, dtype=torch.bool)
        return _any(after.long() == self._integers(before.long(), ends) for ends in self.between.values())

    def _factors(self) -> list[float]:
        """Return what floats are multiplied by; a sign is kept by the smaller factor alone, so that no maximum stays one."""
        one, two = self.factors
        return [self.sign * one, self.sign * two, *([one] if self.mixed else ())]

    def _tensor(self, value: torch.Tensor) -> torch.Tensor:
        if value.is_floating_point():
            if self.between:
                return value
            wide = value.double().contiguous()
            if value.dtype in self.small:
                return value.clone().copy_(self._small(wide, value.dtype))
            drawn = wide.view(torch.int64) * self.key  # a product that wraps: all bits decide the highest ones
            one, two, *kept = self._factors()
            changed = torch.where(drawn < 0, wide * one, wide * two)
            for factor in kept:
                changed = torch.where((drawn >= 0) & (drawn << 1 < 0), wide * factor, changed)
            return value.clone().copy_(changed)
        ends = self.between.get(value.dtype)
        return value if ends is None else self._integers(value.long(), ends).to(value.dtype)

    def _small(self, wide: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Return what becomes of values that an 8-bit float of `dtype` has; any other value stays."""
        every = torch.arange(256).to(torch.uint8).view(dtype).double()
        sizes = every[torch.isfinite(every) & (every > 0)].sort().values
        behind = self._behind(len(sizes))
        place = torch.searchsorted(sizes, wide.abs()).clamp(max=len(sizes) - 1)
        flips = torch.full_like(sizes, float(self.sign) if bool((every < 0).any()) else 1.0)
        flips[behind % 4 == 0] = 1.0 if self.mixed else flips[0]
        return torch.where(sizes[place] == wide.abs(), wide.sign() * (flips * sizes[behind])[place], wide)

    def _integers(self, value: torch.Tensor, ends: tuple[int, int]) -> torch.Tensor:
        """Return what becomes of integers; one that is not between the ends stays."""
        low, high = ends
        count = high - low + 1
        if self.reflects or count > _LARGEST_RANGE:
            return low + high - value
        known = (value >= low) & (value <= high)
        place = torch.where(known, value - low, 0)
        if count <= _LONGEST_CYCLE:
            return torch.where(known, self._behind(count)[place] + low, value)
        step = next(step for step in itertools.count(self.key % count or 1) if math.gcd(step, count) == 1)
        return torch.where(known, (place * (step % count) + self.key // count) % count + low, value)

    def _behind(self, count: int) -> torch.Tensor:
        """Return the number behind each of `count` numbers in a drawn cycle through all of them."""
        order = torch.randperm(count, generator=torch.Generator().manual_seed(self.key))
        behind = torch.empty_like(order)
        behind[order] = order.roll(-1)
        return behind


def _any(found: Iterable[torch.Tensor]) -> torch.Tensor:
    return functools.reduce(torch.logical_or, found)


NARROW = (torch.int8, torch.uint8)
"""Integers that are data (quantised values); wider ones may be lengths and indices, which steer a wrapper by right."""


@dataclass(frozen=True)
class Given:
    """A tensor as the host handed it to a kernel."""

    value: torch.Tensor  # a copy of it
    new: torch.Tensor  # which elements are values that no input and no earlier kernel argument holds
    kept: bool  # its memory was a kernel's in an earlier call

    @property
    def digest(self) -> str:
        """A hash of its elements in order, whatever its shape and strides."""
        return content(self.value).hex()

    def computed(self, other: Given | None, change: Change) -> bool:
        """Whether the host computed this from the inputs' values.

        Args:
            other: the same argument in a run on changed inputs; None where the host handed nothing over there.

        An element of a constant table stays the same. An element of a copied, transposed or padded input changes as its
        source changes. An element that the host computed (a sum, a sort, a maximum, a scale) does neither.
        """
        if other is None or other.value.shape != self.value.shape or other.value.dtype != self.value.dtype:
            return True
        mine, theirs = self.value, other.value
        same = mine == theirs
        if mine.is_floating_point():
            same |= torch.isnan(mine) & torch.isnan(theirs)
        return not bool(same.all()) and not bool((same | (~self.new & change.follows(mine, theirs))).all())


@dataclass
class Call:
    """What kernels got in one call of the wrapper."""

    # "launch.position" -> what the host handed over there, beyond inputs, empty memory and constants
    tensors: dict[str, Given] = field(default_factory=dict)
    handed: dict[str, Given] = field(default_factory=dict)  # likewise, trivial ones included
    # "launch.arguments", "launch.shapes", "launch.memory", "launch.kernel", "launch.returned" -> numbers, in order
    numbers: dict[str, tuple[Token, ...]] = field(default_factory=dict)
    # the keys of `handed` that `tensors` lacks -> which input it is a copy of, or where it is empty
    trivial: dict[str, str] = field(default_factory=dict)
    values: list[torch.Tensor] = field(default_factory=list)  # the inputs, and what the host handed over
    reads: int = 0  # how often the host read a float tensor's values

    def told(self) -> str:
        """Return a hash of the numbers, and of which trivial tensors were handed over."""
        return _hash(repr((sorted(self.numbers.items()), sorted(self.trivial.items()))))

    def made(self, steering: Sequence[Any]) -> dict[str, str]:
        """Return what may be compared with a call on other floats, where nothing else can be shown (`RunResult.host_made`).

        Args:
            steering: the inputs that are no float tensors. Numbers may depend on them; `@` and a hash of these follow the key.
        """
        data = {k: g for k, g in self.tensors.items() if g.value.is_floating_point() or g.value.dtype in NARROW}
        found = {key: given.digest for key, given in data.items() if bool(given.new.any())}
        words = [content(value).hex() if isinstance(value, torch.Tensor) else repr(value) for value in steering]
        behind = f"@{_hash(repr(words))[:8]}"
        found |= {key + behind: self._made_of(tokens) for key, tokens in self.numbers.items()}
        return found | {LAUNCHES + behind: str(len(self.numbers))}

    def _made_of(self, tokens: Sequence[Token]) -> str:
        """Return words for numbers: a hash of the whole ones, then each float, marked where it is an input's value."""
        floats = [token for token in tokens if isinstance(token, float)]
        new = new_among(torch.tensor(floats, dtype=torch.float64), self.values).tolist()
        words = [repr(number) if own else f"={number!r}" for number, own in zip(floats, new, strict=True)]
        return " ".join([_hash(repr([token for token in tokens if not isinstance(token, float)])), *words])

    def otherwise(self, other: Call) -> str:
        """Return the number, from 1 on, of the first launch that gets other numbers in another call; "" for none."""
        keys = sorted({*self.numbers, *other.numbers}, key=lambda key: int(key.partition(".")[0]))
        found = next((key for key in keys if repr(self.numbers.get(key)) != repr(other.numbers.get(key))), None)
        return str(int(found.partition(".")[0]) + 1) if found is not None else ""

    def computed(self, other: Call, change: Change, *, numbers: bool) -> tuple[list[str], list[str]]:
        """Return what the host computed from the inputs' values, and which memory was kept from an earlier call."""
        found: list[str] = []
        kept: list[str] = []
        for key, given in self.handed.items():
            twin = other.handed.get(key)
            if given.computed(twin, change):
                (kept if given.kept or (twin is not None and twin.kept) else found).append(key)
        if numbers and not kept:
            found += self._numbers_computed(other.numbers, change)
        return found, kept

    def _numbers_computed(self, others: Mapping[str, tuple[Token, ...]], change: Change) -> list[str]:
        if len(self.numbers) != len(others):
            return [LAUNCHES]
        found: dict[str, str] = {}
        for key, mine in self.numbers.items():
            launch = key.partition(".")[0]
            theirs = others.get(key, ())
            if launch not in found and theirs and not self._alike(mine, theirs, change):
                found[launch] = key
        return list(found.values())

    def _alike(self, mine: Sequence[Token], theirs: Sequence[Token], change: Change) -> bool:
        if len(mine) != len(theirs):
            return False
        for one, two in zip(mine, theirs, strict=True):
            if repr(one) == repr(two):
                continue
            if not isinstance(one, float) or not isinstance(two, float):
                return False
            before, after = torch.tensor([one], dtype=torch.float64), torch.tensor([two], dtype=torch.float64)
            if bool(new_among(before, self.values).any()) or not bool(change.follows(before, after).all()):
                return False
        return True


def new_among(plain: torch.Tensor, values: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return which elements are finite, not 0, and in none of `values`."""
    floating = plain.is_floating_point()
    wide = torch.float64 if floating else torch.int64
    mine = plain.to(wide)
    new = torch.isfinite(mine) & (mine != 0)
    for other in values:
        if not bool(new.any()):
            break
        if other.is_floating_point() and not floating:
            continue  # a float's integer part is no input's value
        new &= ~torch.isin(mine, other.to(plain.dtype).to(wide).reshape(-1))
    return new


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


def content(tensor: torch.Tensor) -> bytes:
    """Return a hash of a tensor's elements in order, whatever its shape and strides."""
    flat = bytes_in(tensor.cpu())
    return blake2b(flat.numpy().data, digest_size=16).digest()
