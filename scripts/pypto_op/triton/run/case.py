"""What a verification knows about one case of a task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pypto_op.triton.run.inputs import constructor, suits, whole
from pypto_op.triton.run.judging import agreement
from pypto_op.triton.run.judging.judgement import Judgement
from pypto_op.triton.run.judging.provenance import Provenance

_IN_PAIRS = "tl.reduce by {}: lanes meet in pairs, i with i + n / 2, as on a device; one that minds their order is wrong there"


@dataclass
class Case:
    """What is known about one case after some passes."""

    index: int
    input_desc: list[dict[str, Any]] = field(default_factory=list)
    scalars: list[bool | str | None] = field(default_factory=list)  # `arguments.plain_ones`
    judgement: Judgement = field(default_factory=Judgement)
    weights: str = "none"
    kernels: list[str] = field(default_factory=list)
    ran: agreement.Ran = field(default_factory=agreement.Ran)  # in any pass
    launches: int = 0
    made: Provenance = field(default_factory=Provenance)
    seconds: float = 0.0
    alone: float = 0.0  # seconds of processor time that the implementation's process took in the first pass
    outputs: list[Any] = field(default_factory=list)  # samples of the first pass's golden
    doubt: Judgement | None = None  # what the host computed, as it seems
    right: Judgement | None = None  # of the numbers alone, where they are right
    caveats: list[str] = field(default_factory=list)  # trivial answers that this case cannot refuse
    unseen: list[str] = field(default_factory=list)  # what the outputs show too little of
    said: list[str] = field(default_factory=list)  # what else was not tested
    filled: list[str] = field(default_factory=list)  # weights of the reference that hold one value, or the same for every seed
    whole: list[whole.Number] = field(default_factory=list)  # numbers among the arguments (`whole`)
    given: list[constructor.Number] = field(default_factory=list)  # numbers among those of the constructor
    buffers: list[str] = field(default_factory=list)  # buffers of the reference that do
    constants: list[str] = field(default_factory=list)  # constants that hold several values, the same for every seed
    untaken: list[str] = field(default_factory=list)  # weights of the reference that the implementation does not have
    lanes: bool = False  # loads leave lanes undefined (`lanes`)
    marked: bool = False  # and a call was judged in which they held something
    one_value: bool = False  # some input holds one value throughout (`one_value`)
    masks: bool = False  # some input is a mask (`masks`)
    redrawn: bool = False  # some input holds whole numbers, or is a mask (`neighbours`)
    keeps: bool = False  # the reference keeps something from call to call (`before.SEVERAL`)
    idle: list[str] = field(default_factory=list)  # operators of the reference that changed nothing so far (`idle`)
    bounded: bool = False  # there were such on the task's own inputs
    reached: bool = False  # no inputs come to what is left of them (`reaching`)
    lost: set[str] = field(default_factory=set)  # moves on whose inputs the reference failed
    met: bool = False  # a call was judged whose whole numbers meet those of the files (`reaching.MEET`)
    unread: dict[str, list[int]] = field(default_factory=dict)  # parts of inputs that the first pass did not read (`unread`)
    uncompiled: str = ""  # what Triton's compiler says of a kernel that it refuses (`compiling`)
    products: bool = False  # products of float32 that a device may round (`products`)
    atomics: bool = False  # programs of a launch share memory by atomics (`races`)
    reduced: list[str] = field(default_factory=list)  # functions by which `tl.reduce` reduced (`reductions`)
    configurations: dict[str, list[int]] = field(default_factory=dict)  # by kernel (`Configurations.facts`)
    derived: int = 0  # float tensors that the implementation holds beside its weights

    @property
    def few(self) -> bool:
        """Whether the outputs are so few numbers that wrong ones may come within the tolerance by chance."""
        return sum(int(tensor.numel()) for tensor in self.outputs) <= suits.FEW

    @property
    def reloads(self) -> bool:
        """Whether both models have the same parameters, so that a call before the judged one may be made with others."""
        return self.weights == "by name" and not self.untaken

    def took(self, facts: dict[str, Any]) -> None:
        """Note what a run of it, in any pass, says of the implementation."""
        self.ran.add(facts)
        self.uncompiled = self.uncompiled or str(facts.get("uncompiled", ""))
        self.lanes = self.lanes or bool(facts.get("lanes"))
        self.products = self.products or bool(facts.get("products"))
        self.atomics = self.atomics or bool(facts.get("atomics"))
        self.reduced = list(map(str, facts.get("reduced", ())))
        self.configurations = facts.get("configurations") or self.configurations

    def begins(self, reference: dict[str, Any], facts: dict[str, Any]) -> None:
        """Note what the reference and the implementation say of themselves in the first pass."""
        self.filled, self.buffers = list(reference.get("filled", ())), list(reference.get("buffers", ()))
        self.bounded, self.keeps = bool(reference.get("idle")), bool(reference.get("keeps"))
        self.masks, self.redrawn = bool(reference.get("masks")), bool(reference.get("redrawn"))
        self.whole = [(at, value, name, may) for at, value, name, may in reference.get("whole", ())]
        self.given = [(place, value, name) for place, value, name in reference.get("given", ())]
        self.untaken = list(map(str, facts.get("untaken", ())))
        self.derived, self.unread = int(facts.get("derived", 0)), facts.get("unread", {})

    def more_filled(self, reference: dict[str, Any]) -> list[str]:
        """Take and return the weights that a later pass shows to be the same for every seed; take the constants, too."""
        self.constants = list(reference.get("constants", ()))
        more = [name for name in reference.get("filled", ()) if name not in self.filled]
        self.filled += more
        return more

    def unjudged(self) -> list[str]:
        """Return what to say of configurations of autotuned kernels that no judged call took."""
        return [
            f"{name}: {judged} of {offered} configurations were judged, and a device may choose another"
            for name, (judged, offered, _) in self.configurations.items()
            if judged < offered
        ]

    def unjudged_far(self) -> list[str]:
        """Return the autotuned kernels some of whose configurations no call took on inputs far beyond the task's own."""
        return [name for name, (_, offered, far) in self.configurations.items() if far < offered]

    def as_dict(self) -> dict[str, Any]:
        """Return the entry of `cases`."""
        entry: dict[str, Any] = {
            "case_idx": self.index + 1,
            "status": "pass" if self.judgement.ok else "fail",
            "input_desc": self.input_desc,
            "launches": self.launches,
            "kernels": self.kernels,
            "weights": self.weights,
            "seconds": round(self.seconds, 4),
        }
        if self.made.copies:
            entry["copies"] = dict(self.made.copies)
        if self.judgement.metrics:
            entry["metrics"] = self.judgement.metrics
        return entry

    def failure(self) -> dict[str, Any]:
        """Return the entry of `failures`."""
        message = self.judgement.message
        if self.reduced and self.judgement.error_type == "PrecisionError":
            message += f"\n{_IN_PAIRS.format(', '.join(self.reduced))}"
        if len(message) > 4000:
            message = f"{message[:2000]}\n... {len(message) - 4000} characters left out ...\n{message[-2000:]}"
        return {
            "case_idx": self.index + 1,
            "input_desc": self.input_desc,
            "error_type": self.judgement.error_type,
            "error_msg": message,
        }
