"""Does a mutant that no trial killed differ from the kernel at all? Answered by running both, bit by bit.

The inputs are many and unkind: every case of the suite with a seed that the suite does not have, other shapes, other
scalars, and special values (NaN, Inf, zeros of both signs, denormals, huge numbers, constants) where the suite may
have none. A mutant that gives the same bits on all of them is called equivalent, with their number; that is evidence,
not proof. One that differs is judged against the golden on the same input, which tells a hole of the suite (the kernel
passes there and the mutant does not) from another rounding.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pypto_op.backends.reference import ReferenceSession
from pypto_op.errors import ContractError
from pypto_op.judge.barrier import Barrier
from pypto_op.judge.contract import Contract
from pypto_op.judge.inputs import digest, with_seed
from pypto_op.judge.subject import Subject
from pypto_op.judge.verdict import Expectation
from pypto_op.mutation.trials import Trial, answer
from pypto_op.vocabulary import Outcome, Status

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import RunResult, Session, Value

MOST_ELEMENTS = 2**18
"""Cases with larger inputs are left out: they cost time and differ from smaller ones in size only."""


@dataclass
class Probe:
    """One input on which mutant and kernel are compared.

    Attributes:
        name: what it is, in words.
        inputs: what the wrapper is called with.
        outputs: what the unchanged kernel returns.
        expectation: how a result would be judged.
        trial: the golden's answer; made when the first mutant differs here.
        legal: the unchanged kernel passes here; None: not known yet.
    """

    name: str
    inputs: Sequence[Value]
    outputs: list[torch.Tensor]
    expectation: Expectation
    trial: Trial | None = None
    legal: bool | None = None


@dataclass(frozen=True)
class Likeness:
    """How a mutant differs from the kernel.

    Attributes:
        probes: inputs that both ran on.
        differing: how many gave other bits.
        wrong_on: name of an input where the kernel passes and the mutant does not; None if there is none.
        detail: the judge's words on that.
        worst: the largest error of the mutant there, in times of what is allowed, where nothing was wrong.
    """

    probes: int
    differing: int = 0
    wrong_on: str | None = None
    detail: str = ""
    worst: float = 0.0

    def sentence(self) -> str:
        """Say it in one line."""
        if self.wrong_on is not None:
            return f"the suite misses it: {self.wrong_on}: {self.detail}"
        if not self.differing:
            return f"same bits as the kernel on all {self.probes} inputs"
        return (
            f"other bits on {self.differing} of {self.probes} inputs, never beyond the tolerance "
            f"(largest error {self.worst:.3g} times what is allowed)"
        )


class Prober:
    """Compares mutants with the kernel; the kernel's own answers are made once.

    Args:
        contract: the operator's documents.
        subject: the unchanged kernel.
        reference: runs golden and input maker; used under `lock`.
        lock: held while `reference` is used.
        barrier: for the judge.
        seed: makes the inputs.
    """

    def __init__(
        self, contract: Contract, subject: Subject, reference: ReferenceSession, lock: threading.Lock, barrier: Barrier, seed: int
    ) -> None:
        self._contract, self._subject, self._reference = contract, subject, reference
        self._lock, self._barrier, self._seed = lock, barrier, seed
        self._probes: list[Probe] | None = None

    def compare(self, mutant: Session, open_kernel: Callable[[], Session]) -> Likeness:
        """Run a mutant on every probe, until it is shown to be wrong somewhere."""
        with self._lock:
            if self._probes is None:
                with open_kernel() as kernel:
                    self._probes = list(self._made(kernel))
        differing, worst = 0, 0.0
        for probe in self._probes:
            run = mutant.run("likeness", probe.inputs)
            if _same(run, probe.outputs):
                continue
            differing += 1
            wrong, detail, error = self._judged(probe, run)
            if wrong:
                return Likeness(len(self._probes), differing, probe.name, detail)
            worst = max(worst, error)
        return Likeness(len(self._probes), differing, worst=worst)

    def _made(self, kernel: Session) -> Iterator[Probe]:
        seen: set[str] = set()
        for name, case, change in _recipes(self._contract.cases, self._seed):
            try:
                inputs = change([value for _, value in self._reference.make_inputs(case)])
            except (ContractError, ValueError):
                continue  # no such input: the shape, or the value, is not one that the operator knows
            key = digest(inputs)
            if key in seen or _size(inputs) > MOST_ELEMENTS:
                continue
            seen.add(key)
            run = kernel.run("likeness", inputs)
            if run.outcome is Outcome.OK and run.numeric:
                yield Probe(name, inputs, run.outputs, self._expectation(case))

    def _expectation(self, case: Mapping[str, Any]) -> Expectation:
        contract = self._contract
        names = contract.leaf_names(self._subject.phase)
        return Expectation(names, contract.input_names, contract.policy_for(case), precision=True)

    def _judged(self, probe: Probe, run: RunResult) -> tuple[bool, str, float]:
        """Return whether the mutant is wrong where the kernel is right, the judge's words, and its largest error."""
        with self._lock:
            if probe.trial is None:
                exact = probe.expectation.policy.needs_twins
                found = answer(self._reference, self._subject, probe.inputs, exact=exact)
                probe.trial = Trial("likeness", 0, probe.inputs, found, probe.expectation)
                probe.legal = found.problem() is None and self._passes(probe)
        if not probe.legal:
            return False, "", 0.0
        verdict = probe.trial.judge(run, self._barrier)
        errors = [leaf["max_violation"] or 0.0 for leaf in verdict.per_tensor]
        return verdict.status is not Status.PASS, verdict.summary, max(errors, default=0.0)

    def _passes(self, probe: Probe) -> bool:
        from pypto_op.backends.base import RunResult

        assert probe.trial is not None
        run = RunResult(Outcome.OK, outputs=probe.outputs, launches=1, outputs_from_kernel=True, numeric=True)
        return probe.trial.judge(run, self._barrier).status is Status.PASS


def _recipes(cases: Sequence[Mapping[str, Any]], seed: int) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Yield (name, case, change of its inputs): fresh seeds, other shapes, other scalars, special values."""
    order = random.Random(seed)
    for case in cases:
        yield f"case {case['id']} with seed {seed + 101}", with_seed(case, seed + 101), _unchanged
    small = sorted(cases, key=lambda c: _volume(c["shape"]))
    chosen = _one_per_kind(small)
    for case in chosen:
        for symbol, size in case["shape"].items():
            for other in sorted({size + 1, size - 1, size + 16, 2 * size + 1, 3 * size + 16, order.randrange(1, 3 * size + 2)}):
                if other > 0 and other != size:
                    changed = {**case, "shape": {**case["shape"], symbol: other}}
                    yield f"case {case['id']} with {symbol}={other}", with_seed(changed, seed + 102), _unchanged
    for case in chosen:
        for name in SPECIAL:
            yield f"case {case['id']} with {name}", with_seed(case, seed + 103), _special(name, seed)


def _unchanged(inputs: list[Value]) -> list[Value]:
    return inputs


def _one_per_kind(cases: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return, per dtype, cases of middle size: small enough to be quick, large enough for two tiles."""
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for case in cases:
        if not case.get("zone"):
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


def _same(run: RunResult, outputs: Sequence[torch.Tensor]) -> bool:
    """Whether a run gave exactly these bits, in these shapes and dtypes."""
    if run.outcome is not Outcome.OK or len(run.outputs) != len(outputs):
        return False
    return all(_equal(mine, other) for mine, other in zip(run.outputs, outputs, strict=True))


def _equal(one: torch.Tensor, two: torch.Tensor) -> bool:
    import torch

    if one.dtype != two.dtype or one.shape != two.shape:
        return False
    bits = (tensor.contiguous().reshape(-1).view(torch.uint8) for tensor in (one, two))
    return torch.equal(*bits)
