"""Looks for smaller sizes of a task that still run: the largest number is halved, and again, until the task is small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pypto_op.triton.intake.constants import Site

_MOST_TRIES = 600


@dataclass(frozen=True)
class Size:
    """How large a task is."""

    elements: int  # of its largest tensor: input, weight or output
    flops: int  # operations of products and convolutions in forward
    known: bool = True  # forward ran, so `flops` and outputs are counted
    data: int = 0  # elements of the largest input or output; 0: not known

    def below(self, other: Size) -> bool:
        """Whether this one is smaller."""
        return (self.elements, self.flops) < (other.elements, other.flops) or self.flops < other.flops


@dataclass(frozen=True)
class Budget:
    """What counts as small."""

    elements: int
    flops: int

    def holds(self, size: Size) -> bool:
        """Whether a task is small enough."""
        return size.known and size.elements <= self.elements and size.flops <= self.flops

    def prefers(self, found: Size, size: Size) -> bool:
        """Whether a size is nearer to this budget than another; where a weight stays the largest, inputs become small."""
        return found.below(size) or (not size.below(found) and size.data > self.elements and found.data < size.data)


def smaller(
    sites: Sequence[Site],
    fixed: Mapping[Site, int],
    start: Size,
    budget: Budget,
    tried: Callable[[dict[Site, int]], Size | None],
    *,
    together: bool = False,
) -> dict[Site, int]:
    """Return numbers by place, the fixed ones included; where none are small enough, the smallest that were found.

    Args:
        sites: the numbers of the text.
        fixed: numbers that are set and stay.
        start: the size with the fixed ones.
        budget: when to stop.
        tried: returns the size with other numbers, None where the task does not run with them.
        together: halve numbers that are written alike together first, not each alone; then an index stays within its rows, where
            nothing but a run with values tells that it left them.
    """
    now, size, left = dict(fixed), start, _MOST_TRIES
    while not budget.holds(size) and left > 0:
        for move in _moves(sites, now, fixed, together=together):
            left -= 1
            trial = {**now, **{site: _half(now.get(site, site.value)) for site in move}}
            found = tried(trial)
            if found is not None and budget.prefers(found, size):
                now, size = trial, found
                break
        else:
            break
    return {site: value for site, value in now.items() if value != site.value}


def _moves(
    sites: Sequence[Site], now: Mapping[Site, int], fixed: Mapping[Site, int], *, together: bool
) -> Iterator[tuple[Site, ...]]:
    """Yield what may be halved together, the largest first: one number, or all that are written alike."""
    free = [site for site in sites if site not in fixed]
    values = {site: now.get(site, site.value) for site in free}
    alike = Counter(values.values())
    for value in sorted(alike, reverse=True):
        if value < 4:
            return
        same = tuple(site for site in free if values[site] == value)
        alone = [(site,) for site in same]
        whole = [same] if len(same) > 1 else []
        yield from [*whole, *alone] if together else [*alone, *whole]


def _half(value: int) -> int:
    return value // 2 if value % 2 == 0 else (value + 1) // 2
