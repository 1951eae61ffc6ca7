"""How clearly a case refuses faults that any wrong kernel may have; the smallest such fault counts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from pypto_op.backends.base import Value

Outputs = Sequence[torch.Tensor]
Golden = Callable[[Sequence["Value"]], "Outputs | None"]
Judged = Callable[[Outputs], float]

FACTOR = 1.05
SPARSE = 100
_MOST_PAIRS = 6


_EXCHANGED = " exchanged"
_FORGOTTEN = " read as zeros"


@dataclass(frozen=True)
class Power:
    """What became of the faults.

    Attributes:
        times: fault, in words -> how many times what is allowed it is off; 0 where it is taken for right.
    """

    times: Mapping[str, float]

    @property
    def margin(self) -> float:
        """How many times what is allowed the least refused fault is off; 0 where one is taken for right."""
        return min(self.times.values(), default=0.0)

    @property
    def blind(self) -> tuple[str, ...]:
        """The faults that the case takes for right."""
        return tuple(fault for fault, times in self.times.items() if times == 0.0)

    @property
    def symmetries(self) -> frozenset[str]:
        """The exchanges of two inputs that the case takes for right.

        Where no honest order would be told from one either, the two are alike to the golden: the length of a - b + eps.
        """
        return frozenset(fault for fault in self.blind if fault.endswith(_EXCHANGED))

    @property
    def drowned(self) -> frozenset[str]:
        """The faults of inputs that the case takes zeros for: one may drown beside another; none where all inputs do."""
        zeros = [fault.removesuffix(_FORGOTTEN) for fault in self.times if fault.endswith(_FORGOTTEN)]
        hidden = [name for name in zeros if self.times[name + _FORGOTTEN] == 0.0]
        told = (name + words for name in hidden for words, _ in _INSTEAD)
        return frozenset(fault for fault in told if self.times.get(fault) == 0.0) if len(hidden) < len(zeros) else frozenset()

    def without(self, faults: Collection[str]) -> Power:
        """Return what became of the other faults."""
        return Power({fault: times for fault, times in self.times.items() if fault not in faults})


def exchanged(one: str, two: str) -> str:
    """Return the words for the fault that two inputs are read one for the other, in the order in which the contract has them."""
    return f"{one} and {two}{_EXCHANGED}"


def power(inputs: Mapping[str, Value], native: Mapping[str, torch.Tensor], golden: Golden, judged: Judged) -> Power:
    """Plant faults and judge them.

    Args:
        inputs: of the case, by name, in order.
        native: what the golden answers, by name, in order.
        golden: runs it on other inputs; None where it fails there.
        judged: returns how many times what is allowed some outputs are off, 0 where they are taken for right.
    """
    seen: dict[str, float] = {}
    for fault, wrong in itertools.chain(_of_outputs(native), _of_inputs(inputs, list(native.values()), golden)):
        seen[fault] = judged(wrong)
    return Power(seen)


def _of_outputs(named: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, list[torch.Tensor]]]:
    native = list(named.values())
    for place, (name, output) in enumerate(named.items()):
        if output.is_floating_point() and _tells(output):
            yield f"{name} times {FACTOR}", _with(native, place, (output.double() * FACTOR).to(output.dtype))
        if output.numel() > 1 and _tells(output):
            wrong = _with_some_from_elsewhere(output)
            if not _same([wrong], [output]):
                yield f"one element in {SPARSE} of {name} taken from elsewhere", _with(native, place, wrong)


def _with_some_from_elsewhere(output: torch.Tensor) -> torch.Tensor:
    """Return an output in which one element in `SPARSE` is another one: where they begin, the fault is of middling size.

    Of few elements the first one may by chance be all but equal to the one that is taken.
    """
    flat, other = output.clone().reshape(-1), output.reshape(-1).roll(-(output.numel() // 2 + 1))
    off = (flat.double() - other.double()).abs().nan_to_num(0.0)
    worst = torch.nn.functional.pad(off, (0, -off.numel() % SPARSE)).reshape(-1, SPARSE).amax(0)[: off.numel()]
    start = int(worst.argsort(stable=True)[len(worst) // 2])
    flat[start::SPARSE] = other[start::SPARSE]
    return flat.reshape(output.shape)


def _of_inputs(inputs: Mapping[str, Value], native: Outputs, golden: Golden) -> Iterator[tuple[str, list[torch.Tensor]]]:
    names = [name for name, value in inputs.items() if isinstance(value, torch.Tensor) and value.is_floating_point()]
    changes: list[tuple[str, dict[str, torch.Tensor]]] = []
    for name in names:
        tensor = inputs[name]
        assert isinstance(tensor, torch.Tensor)
        changes += [(name + words, {name: torch.full_like(tensor, value)}) for words, value in _INSTEAD]
    for one, two in itertools.islice(itertools.combinations(names, 2), _MOST_PAIRS):
        left, right = inputs[one], inputs[two]
        assert isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor)
        if left.shape == right.shape and left.dtype == right.dtype:
            changes.append((exchanged(one, two), {one: right, two: left}))
    for fault, change in changes:
        answer = golden([change.get(name, value) for name, value in inputs.items()])
        # What the golden itself does not mind is no fault: a sum does not mind which of its terms comes first.
        if answer is not None and len(answer) == len(native) and not _same(answer, native):
            yield fault, list(answer)


_INSTEAD = ((_FORGOTTEN, 0.0), (" read as ones", 1.0))
"""What an input is read as that a kernel forgot: a bias for zeros, a weight for ones."""


def _with(native: Outputs, place: int, wrong: torch.Tensor) -> list[torch.Tensor]:
    return [*native[:place], wrong, *native[place + 1 :]]


def _tells(output: torch.Tensor) -> bool:
    """Whether an output holds a number that is neither 0 nor special."""
    return bool((torch.isfinite(output) & (output != 0)).any()) if output.numel() else False


def _same(one: Outputs, two: Outputs) -> bool:
    """Whether two answers agree to a rounding: float32 of another order is no fault either."""
    return all(
        a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a.double(), b.double(), rtol=1e-5, atol=0.0, equal_nan=True)
        for a, b in zip(one, two, strict=True)
    )
