"""Finds where a formula ends that is right for the task's own range alone, and makes inputs from beyond it.

Stirling's series for the logarithm of gamma is right far from zero, the middle part of an inverse of erf away from its ends, a
product of all others by a quotient where none is zero, a maximum from -10,000 where no sum of products is so small, and a sum
of exponentials by the maximum of one block where no other block lies far from it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import torch

from pypto_op.triton.run.inputs.edges import is_ordered
from pypto_op.triton.run.inputs.packing import memory_of

NEAR, ENDS, FACTOR, DEEP = "near to zero", "beside its ends", "factor of zero", "beyond all hiding"
STEEP = "steep rows"
"""Of a softmax: a row whose later half lies below the first by more than exp() can bear, and one where it lies above."""
PEAKS = "peaks at both ends"
"""Of it too: a row whose first element alone lies so far above the others, and one whose last does, whatever a block is."""
NEARLY = "nearly zero"
"""Of what is made for such numbers: `log(1 - exp(-x))` is infinite there, and `log(-expm1(-x))` is not."""
SIDES = (NEAR, ENDS, FACTOR, DEEP, STEEP, PEAKS, NEARLY)
STEPS = (128.0, 2048.0)
"""So far below the rest half of each row lies then: the second where a temperature divides."""
DEPTH = 2.0**17
"""Farther from zero than the numbers of some thousands behind which kernels hide what is no element."""
OF_INPUTS, OF_WEIGHTS = 2.0**10, 2.0**20
"""How far inputs reach of whose products, with each other or with weights, all lie beyond that."""
_GAMMAS = frozenset(("lgamma", "digamma", "polygamma"))
_INVERSES = frozenset(("erfinv", "special_ndtri"))
_PRODUCTS = frozenset(("prod", "cumprod"))
_POWER = "pow"
_PRECISE = frozenset(("expm1", "log1p"))
_SUMS_OF_EXPONENTIALS = frozenset(("_softmax", "_log_softmax", "logsumexp"))
_STEEP = 89.0
"""exp() of that is infinite in float32."""
NAMES = _GAMMAS | _INVERSES | _PRODUCTS | _PRECISE | {_POWER}
_NEAR, _END, _NEARLY = 0.5, 2.0**-8, 2.0**-20
_POWERS, _ENDS, _EACH = 5, 12, 3
"""So many powers of two stand in turn, before zero and before an end; every third element is beside an end."""


def idle(name: str, args: Any, given: torch.Tensor) -> dict[str, bool]:
    """Return by side of an operator of `NAMES` whether a call never came to it; `given`: its first tensor."""
    if not given.is_floating_point():
        return {}
    if name in _PRECISE:
        return {NEARLY: not bool(((given != 0) & (given.abs() < _NEARLY)).any())}
    if name in _GAMMAS:
        return {NEAR: not bool(((given > 0) & (given < _NEAR)).any())}
    if name in _INVERSES:
        end = 1 - given.abs() if name == "erfinv" else torch.minimum(given, 1 - given)
        return {ENDS: not bool((end < _END).any())}
    if name == _POWER and all(isinstance(one, torch.Tensor) for one in args[:2]):
        return {FACTOR: not bool(((args[0] == 0) & (args[1] == 0)).any())}  # it is one, and exp(0 * log(0)) is no number
    if name in _SUMS_OF_EXPONENTIALS:
        return {side: not met for side, met in _of_sums(given, args[1]).items()}
    return {FACTOR: not bool((given == 0).any())} if name in _PRODUCTS else {}


def _of_sums(given: torch.Tensor, axes: int | list[int]) -> dict[str, bool]:
    """Return by side whether the rows of a sum of exponentials come there, each way of two where there are several rows.

    A step counts beyond what exp() can bear; rows with one element have no step.
    """
    axis = axes if isinstance(axes, int) else axes[-1] if axes else -1
    if not given.dim() or given.shape[axis] < 2:
        return {}
    size = given.shape[axis]
    half, few = (size + 1) // 2, given.numel() == size

    def part(begin: int, length: int) -> torch.Tensor:
        return given.narrow(axis, begin, length).amax(axis)

    def both(falls: float, rises: float) -> bool:
        return max(falls, rises) > _STEEP and (few or min(falls, rises) > _STEEP)

    former, later = part(0, half), part(half, size - half)
    falls, rises = _most(former, later), _most(later, former)
    alone = both(_most(part(0, 1), part(1, size - 1)), _most(part(size - 1, 1), part(0, size - 1)))
    return {STEEP: falls > _STEEP and (few or rises > _STEEP), PEAKS: alone}


def _most(one: torch.Tensor, other: torch.Tensor) -> float:
    """Return by how much elements are greater than others at most, where both are finite."""
    step = (one - other)[one.isfinite() & other.isfinite()]
    return float(step.max()) if step.numel() else 0.0


def are_deep(best: torch.Tensor, *, greatest: bool) -> bool:
    """Whether some row's greatest element is below all numbers that hide others, or its least one above them."""
    return bool((best.isfinite() & (best < -DEPTH if greatest else best > DEPTH)).any())


def steepen(step: float, copy: torch.Tensor, tensor: torch.Tensor) -> None:
    """Let one half of each row, along any axis, lie so far below the other: now the first half, now the later one; zeros stay."""
    if is_ordered(tensor) or memory_of(copy).numel() != copy.numel():
        return
    sunk = torch.zeros((), dtype=torch.bool, device=copy.device)
    for axis, size in enumerate(copy.shape):
        sunk = sunk ^ (_places(copy, axis) >= (size + 1) // 2)
    copy.copy_(torch.where(sunk & (copy != 0), copy - step, copy))


def peak(step: float, axis: int, copy: torch.Tensor, tensor: torch.Tensor) -> None:
    """Let all but the first element of a row, and in every other row all but the last, lie so far below; zeros stay."""
    if is_ordered(tensor) or memory_of(copy).numel() != copy.numel() or copy.dim() < -axis:
        return
    places = [_places(copy, at) for at in range(copy.dim())]
    along = places.pop(axis)
    high = sum(places) % 2 * (copy.shape[axis] - 1)
    copy.copy_(torch.where((along != high) & (copy != 0), copy - step, copy))


def _places(tensor: torch.Tensor, axis: int) -> torch.Tensor:
    """Return the places along an axis, shaped so that they stand beside every element."""
    places = torch.arange(tensor.shape[axis], device=tensor.device)
    return places.reshape([-1 if at == axis else 1 for at in range(tensor.dim())])


def ways(idle: Collection[str]) -> Iterator[tuple[str, Callable[[torch.Tensor, torch.Tensor], None]]]:
    """Yield what changes an input for sides that are idle, and what that is called; zeros are written elsewhere (`smaller`)."""
    for side, write in ((NEAR, _nearer), (ENDS, _to_ends)):
        if any(f"({side})" in name for name in idle):
            yield side, write


def _nearer(copy: torch.Tensor, tensor: torch.Tensor) -> None:
    """Let every other element of what is above zero be small, far from the roots beside which rounding is magnified."""
    if not is_ordered(tensor) and bool((tensor > 0).all()):
        memory = memory_of(copy)
        places = torch.arange(1, len(memory), 2, device=memory.device)
        part = (1 + memory[places] / memory.max()) / 2
        memory[places] = part * 2.0 ** -(2 + places // 2 % _POWERS).to(memory)


def _to_ends(copy: torch.Tensor, tensor: torch.Tensor) -> None:
    """Let some elements of a tensor within an interval of one be nearly an end of it."""
    if is_ordered(tensor) or float(tensor.abs().max()) >= 1:
        return
    memory = memory_of(copy)
    places = torch.arange(0, len(memory), _EACH, device=memory.device)
    turns = places // _EACH
    least = 4 * torch.finfo(tensor.dtype).eps
    rest = (2.0 ** -(8 + turns // 2 % _ENDS).to(torch.float32)).clamp_min(least)
    low = rest - 1 if bool((tensor < 0).any()) else rest
    memory[places] = torch.where(turns % 2 == 0, 1 - rest, low).to(memory.dtype)
