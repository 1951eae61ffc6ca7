"""Does a mutant that no trial killed differ from the kernel at all? Answered by running both, bit by bit.

The inputs are many and unkind: each case of the suite, other shapes, other scalars, and special values (NaN, Inf,
zeros of both signs, denormals, huge numbers, constants) where the suite may have none. A mutant that gives the same
bits on all of them is called equivalent, with their number; that is evidence, not proof. One that differs is judged
against the golden on the same input, which tells a hole of the suite (the kernel passes there and the mutant does not)
from another rounding.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pypto_op.documents.knobs import ZONE
from pypto_op.errors import ContractError
from pypto_op.judge.answers.expectation import Expectation
from pypto_op.judge.answers.plan import Plan
from pypto_op.judge.answers.references import References
from pypto_op.judge.cases.inputs import digest, with_seed
from pypto_op.judge.findings.redaction import Redactor
from pypto_op.mutation.bits import same
from pypto_op.mutation.trials import Trial, expectation_of, run_once
from pypto_op.vocabulary import Outcome, Status

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import RunResult, Session, Value

MOST_ELEMENTS = 2**18
"""Cases with larger inputs are left out: they cost time and differ from smaller ones in size only."""

MOST_PROBES = 32
"""Inputs beside the suite: each special value, the longest axes, other shapes. A number, and no time: what becomes of a
mutant may not depend on how busy the machine is."""


@dataclass
class Probe:
    """One input on which mutant and kernel are compared."""

    name: str  # what it is, in words
    inputs: Sequence[Value]  # what the wrapper is called with
    outputs: list[torch.Tensor]  # what the unchanged kernel returns
    expectation: Expectation  # how a result would be judged
    trial: Trial | None = None  # the golden's answer; made when the first mutant differs here
    legal: bool | None = None  # the unchanged kernel passes here; None: not known yet


@dataclass(frozen=True)
class Likeness:
    """How a mutant differs from the kernel."""

    probes: int  # inputs that both ran on
    differing: int = 0  # how many gave other bits
    wrong_on: str | None = None  # name of an input where the kernel passes and the mutant does not; None if there is none
    detail: str = ""  # the judge's words on that
    worst: float = 0.0  # the largest error of the mutant on the differing probes, in times of what is allowed
    # further inputs that gave other bits, on which the unchanged kernel is wrong: NaN in one tensor where another belongs to it,
    # say. SPEC.md does not cover them, or the kernel has a fault; they say nothing of the mutant.
    outside: int = 0

    def sentence(self) -> str:
        """Say it in one line."""
        if self.wrong_on is not None:
            return f"the suite misses it: {self.wrong_on}: {self.detail}"
        if not self.differing:
            rest = f"; {self.outside} more, on which the kernel itself is wrong, gave others" if self.outside else ""
            return f"same bits as the kernel on all {self.probes} inputs{rest}"
        return (
            f"other bits on {self.differing} of {self.probes} inputs, never beyond the tolerance "
            f"(largest error on inputs beside the suite {self.worst:.3g} times what is allowed)"
        )


class Prober:
    """Compares mutants with the kernel; the kernel's own answers are made once.

    Args:
        plan: what is judged; its `extra_seed` makes the inputs.
        cases: of the whole suite.
    """

    def __init__(self, plan: Plan, cases: Sequence[Mapping[str, Any]], references: References, redactor: Redactor) -> None:
        self._plan, self._cases, self._references, self._redactor = plan, cases, references, redactor
        self._lock = threading.Lock()
        self._probes: list[Probe] | None = None

    def compare(self, mutant: Session, open_kernel: Callable[[], Session], trials: int, differing: int) -> Likeness:
        """Run a mutant on every probe, until it is shown to be wrong somewhere.

        Args:
            open_kernel: opens the unchanged kernel.
            trials: how many trials of the suite both ran on.
            differing: in how many of them the mutant gave other bits.
        """
        with self._lock:
            if self._probes is None:
                with open_kernel() as kernel:
                    # The smallest first: a mutant that differs is shown to on the cheapest input.
                    self._probes = sorted(self._made(kernel), key=lambda probe: _size(probe.inputs))
        worst, probes, outside = 0.0, trials + len(self._probes), 0
        for probe in self._probes:
            run = run_once(mutant, "likeness", probe.inputs)
            if same(run, probe.outputs):
                continue
            if not self._is_legal(probe):
                outside += 1
                continue
            differing += 1
            wrong, detail, error = self._judged(probe, run)
            if wrong:
                return Likeness(probes - outside, differing, probe.name, detail, outside=outside)
            worst = max(worst, error)
        return Likeness(probes - outside, differing, worst=worst, outside=outside)

    def _made(self, kernel: Session) -> Iterator[Probe]:
        seen: set[str] = set()
        made = 0
        for name, case, change in _recipes(self._cases, self._plan.extra_seed):
            if made == MOST_PROBES:
                return
            try:
                inputs = change(self._references.inputs(case))
            except (ContractError, ValueError):
                continue  # no such input: the shape, or the value, is not one that the operator knows
            key = digest(inputs)
            if key in seen or _size(inputs) > MOST_ELEMENTS:
                continue
            seen.add(key)
            run = run_once(kernel, "likeness", inputs)
            if run.outcome is Outcome.OK and run.numeric:
                made += 1
                yield Probe(name, inputs, run.outputs, replace(expectation_of(self._plan, case), precision=True))

    def _is_legal(self, probe: Probe) -> bool:
        """Whether the unchanged kernel is right on an input; the golden is asked once."""
        with self._lock:
            if probe.trial is None:
                found = self._references.answer(probe.inputs, probe.expectation)
                probe.trial = Trial("likeness", 0, probe.inputs, found, probe.expectation)
                probe.legal = found.problem() is None and self._passes(probe)
        return bool(probe.legal)

    def _judged(self, probe: Probe, run: RunResult) -> tuple[bool, str, float]:
        """Return whether the mutant is wrong where the kernel is right, the judge's words, and its largest error."""
        assert probe.trial is not None
        verdict = probe.trial.judge(run, self._redactor)
        errors = [leaf["max_violation"] or 0.0 for leaf in verdict.per_tensor]
        return verdict.status is not Status.PASS, verdict.summary, max(errors, default=0.0)

    def _passes(self, probe: Probe) -> bool:
        from pypto_op.backends.base import RunResult

        assert probe.trial is not None
        run = RunResult(Outcome.OK, outputs=probe.outputs, launches=1, outputs_from_kernel=True, numeric=True)
        return probe.trial.judge(run, self._redactor).status is Status.PASS


Recipe = tuple[str, dict[str, Any], Callable[[list["Value"]], list["Value"]]]
"""What an input is, in words; its case; the change of that case's inputs."""


def _recipes(cases: Sequence[Mapping[str, Any]], seed: int) -> Iterator[Recipe]:
    """Yield inputs, the most telling first: each special value, axes longer than the suite's, other shapes, then each special
    value in the other dtypes. A slow kernel meets the first ones only."""
    small = sorted(cases, key=lambda c: _volume(c["shape"]))
    chosen = _one_per_kind(small)
    shapes = list(_other_shapes(chosen, seed))
    random.Random(seed).shuffle(shapes)
    turns = len(chosen)
    yield from (_with_special(chosen[n % turns], name, seed) for n, name in enumerate(SPECIAL))
    for symbol, size in small[0]["shape"].items():  # a fault may begin behind the longest axis of the suite
        most = max([size, *(case["shape"].get(symbol, 0) for case in cases)])
        changed = {**small[0], "shape": {**small[0]["shape"], symbol: most + most // 4 + 3}}
        yield f"case {small[0]['id']} with {symbol}={most + most // 4 + 3}", with_seed(changed, seed + 104), _unchanged
    yield from shapes
    yield from (
        _with_special(chosen[(n + turn) % turns], name, seed) for turn in range(1, turns) for n, name in enumerate(SPECIAL)
    )


def _with_special(case: Mapping[str, Any], name: str, seed: int) -> Recipe:
    return f"case {case['id']} with {name}", with_seed(case, seed + 103), _special(name, seed)


def _other_shapes(chosen: Sequence[Mapping[str, Any]], seed: int) -> Iterator[Recipe]:
    order = random.Random(seed)
    for case in chosen:
        for symbol, size in case["shape"].items():
            for other in sorted({size + 1, size - 1, size + 16, 2 * size + 1, order.randrange(1, 2 * size + 2)}):
                if other > 0 and other != size:
                    changed = {**case, "shape": {**case["shape"], symbol: other}}
                    yield f"case {case['id']} with {symbol}={other}", with_seed(changed, seed + 102), _unchanged


def _unchanged(inputs: list[Value]) -> list[Value]:
    return inputs


def _one_per_kind(cases: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return, per dtype, cases of middle size: small enough to be quick, large enough for two tiles."""
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for case in cases:
        if not case.get(ZONE):
            kinds.setdefault(str(case["dtype"]), []).append(case)
    return [group[len(group) // 2] for group in kinds.values()] or list(cases[:1])


def _volume(shape: Mapping[str, int]) -> int:
    volume = 1
    for size in shape.values():
        volume *= size
    return volume


def _size(inputs: Sequence[Value]) -> int:
    import torch

    return sum(value.numel() for value in inputs if isinstance(value, torch.Tensor))


SPECIAL = (
    "a NaN",
    "a +Inf",
    "a -Inf",
    "zeros",
    "negative zeros",
    "denormals",
    "huge values",
    "a constant",
    "signs flipped",
    "mostly zeros",
    "scalars halved",
    "scalars tripled",
    "flags flipped",
)
"""Changes of a case's inputs."""


def _special(name: str, seed: int) -> Callable[[list[Value]], list[Value]]:
    def change(inputs: list[Value]) -> list[Value]:
        return [_changed(value, name, seed + i) for i, value in enumerate(inputs)]

    return change


def _changed(value: Value, name: str, seed: int) -> Value:
    import torch

    if isinstance(value, bool):
        return not value if name == "flags flipped" else value
    if isinstance(value, float):
        return value * {"scalars halved": 0.5, "scalars tripled": 3.0}.get(name, 1.0)
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or not value.numel():
        return value
    made = value.clone()
    generator = torch.Generator().manual_seed(seed)
    place = int(torch.randint(made.numel(), (1,), generator=generator))
    one = {"a NaN": float("nan"), "a +Inf": float("inf"), "a -Inf": float("-inf")}
    if name in one:
        made.view(-1)[place] = one[name]
        return made
    whole: dict[str, Callable[[], torch.Tensor]] = {
        "zeros": lambda: made * 0.0,
        "negative zeros": lambda: torch.full_like(made, -0.0),
        "denormals": lambda: made * torch.finfo(made.dtype).smallest_normal / 8,
        "huge values": lambda: made.sign() * (torch.finfo(made.dtype).max / 4),
        "a constant": lambda: torch.full_like(made, float(made.view(-1)[place])),
        "signs flipped": lambda: -made,
        "mostly zeros": lambda: made * (torch.rand(made.shape, generator=generator) < 0.1).to(made.dtype),
    }
    return whole[name]().to(value.dtype) if name in whole else made
