"""What one check of the self-test found out about an operator and later checks need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pypto_op.backends.answers import Answers
from pypto_op.backends.base import Limits
from pypto_op.errors import ContractError
from pypto_op.judge.answers import redraw
from pypto_op.judge.answers.measured import Measured
from pypto_op.judge.cases.calling import positions, used_inputs
from pypto_op.judge.cases.inputs import fresh_seed

if TYPE_CHECKING:
    from pathlib import Path

    from pypto_op.backends.base import RunResult, Value
    from pypto_op.backends.reference import ReferenceSession
    from pypto_op.judge.answers.expectation import Reference
    from pypto_op.judge.cases.contract import Contract
    from pypto_op.workspace import OpWorkspace


@dataclass
class Known:
    """What earlier checks found out."""

    # ws, suite, limits: what the self-test was asked about
    ws: OpWorkspace
    session: ReferenceSession  # runs golden and inputs
    suite: Path | None
    limits: Limits
    contract: Contract | None = None  # None until the documents are read
    # inputs, answers, references: by case
    inputs: dict[str, list[Value]] = field(default_factory=dict)
    answers: dict[str, RunResult] = field(default_factory=dict)
    references: dict[str, Reference] = field(default_factory=dict)
    fresh: int = field(default_factory=fresh_seed)
    """A second seed that nobody can have written inputs for."""
    seconds: dict[str, int] = field(default_factory=dict)
    """Case -> what stands in the place of `fresh`, since the case draws a small input alike with both its seeds."""

    def __post_init__(self) -> None:
        self._answers = Answers(self.session, function=self.ws.golden_name(), file=self.ws.golden)

    @cached_property
    def measured(self) -> Measured:
        """What honest orders of the golden were measured to do; the golden must be there."""
        return Measured(self.ws, [self.session])

    def handed(self, inputs: Sequence[Value]) -> list[Value]:
        """Return the inputs that the golden takes, in its order."""
        contract, ws = self.sound, self.ws
        used = used_inputs(contract.interfaces, None)
        return [inputs[i] for i in positions(ws.golden, ws.golden_name(), contract.input_names, used)]

    def golden(self, inputs: Sequence[Value], **how: Any) -> RunResult:
        """Return one answer of the golden on inputs that `handed` gave; see `ReferenceSession.golden`. Run once."""
        return self._answers.ask(inputs, **how)

    def second(self, case: Mapping[str, Any], first: Sequence[Value]) -> int:
        """Return the second seed of a case."""
        contract = self.sound
        fixed = {place for place, name in enumerate(contract.input_names) if name in contract.fixed_inputs}
        seed = redraw.apart(first, self.fresh, lambda seed: self.values(case, seed), fixed)[-1]
        self.seconds[case["id"]] = seed
        return seed

    @property
    def sound(self) -> Contract:
        """The contract.

        Raises:
            ContractError: it could not be read, as its own check has told.
        """
        if self.contract is None:
            raise ContractError("not checked, since the documents are broken")
        return self.contract

    def made(self, case: Mapping[str, Any]) -> list[tuple[str, Value]]:
        """Return the inputs of a case, by name."""
        return self.session.make_inputs(dict(case))

    def values(self, case: Mapping[str, Any], seed: int) -> list[Value]:
        """Return the inputs of a case with another seed."""
        return [value for _, value in self.made({**case, "seed": seed})]
