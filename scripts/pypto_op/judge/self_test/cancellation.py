"""Does a suite make every subtraction of the golden cancel (verifier seed, B.6)? It is measured on the inputs.

A subtraction is covered by a case of level L5 that has `cancellation_stress` and compares numbers, when on its inputs the
operands of that subtraction agree as closely as the case says, or nearly so. `x_never_cancels` of the suite names those for
which a search found no such inputs; there, and where a case reaches next to nothing, a short search is repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto_op.documents import golden_scan
from pypto_op.documents.reading import read_json
from pypto_op.errors import ContractError
from pypto_op.judge.cases.calling import positions, used_inputs
from pypto_op.judge.cases.inputs import checks_precision, stress_of
from pypto_op.judge.stressing import KEY, stress_case
from pypto_op.stress.sites import normalised
from pypto_op.vocabulary import Level
from pypto_op.workspace import to_run

if TYPE_CHECKING:
    from pypto_op.backends.base import Value
    from pypto_op.backends.reference import ReferenceSession
    from pypto_op.judge.cases.contract import Contract
    from pypto_op.workspace import OpWorkspace

_STILL = 0.1
"""The least share of the condition number that a case promises; seeds alone change it by less than half."""

_CANCELS = 100.0
"""A condition number that costs two digits: what reaches it in a short search is no subtraction that never cancels."""

_RUNS = 60
_OR = "or add L5_cancellation_stress_* cases with precision true"

Case = Mapping[str, Any]


@dataclass(frozen=True)
class Stressed:
    """What the inputs of one case were measured to do."""

    case: str  # its id
    named: str  # the expression that it is about
    wanted: float  # the condition number that its relative gap asks for
    promised: float  # the one that its recipe recorded, else what is wanted
    reached: float  # that of the expression, or of whichever is worst where the golden has no such expression
    sites: Mapping[str, float]  # condition number of every sum and difference of the golden

    def covers(self, expression: str) -> bool:
        """Whether the case makes this subtraction cancel: the named one as it promises, another as it wants for that one."""
        return self.named == expression or self.sites.get(expression, 0.0) >= _STILL * self.wanted


def check(contract: Contract, ws: OpWorkspace, session: ReferenceSession, inputs: Mapping[str, list[Value]], suite: Path) -> str:
    """Hold the cancellation cases of a suite to what the golden subtracts.

    Returns:
        What was found, in one sentence.

    Raises:
        ContractError: a subtraction has no case, a case's inputs do not cancel, or a waiver is not true.
    """
    found = [normalised(s.expression) for s in golden_scan.scan(ws.golden, ws.golden_name()).subtractions]
    cases = [case for case in contract.cases if case["level"] == Level.L5 and KEY in case and checks_precision(case)]
    if not found and not cases:
        return "the golden subtracts nothing"
    told = [_measured(contract, ws, session, inputs, case) for case in cases]
    for stressed in told:
        if stressed.reached < _STILL * stressed.promised:
            raise ContractError(
                f"its sums cancel {stressed.reached:.3g} times, not {stressed.promised:.3g} times as it says",
                file=suite,
                where=f"case {stressed.case}",
                remedy="give it inputs that cancel, or a recipe by `pypto-op harness new` in a copy",
            )
    waived = {normalised(str(text)) for text in read_json(suite).get("x_never_cancels", [])} if suite.is_file() else set()
    for expression in found:
        if expression not in waived and not any(stressed.covers(expression) for stressed in told):
            words = f"the golden subtracts ({expression}) and no L5 case has {KEY} for it"
            raise ContractError(words, file=suite, remedy=f"{to_run('harness new', ws.root)}, {_OR}")
        seen = [stressed.sites[expression] for stressed in told if expression in stressed.sites]
        if seen and max(seen) < _CANCELS or expression in waived:
            _hold_to_search(contract, ws, session, expression, suite)
    least = min((stressed.reached / stressed.promised for stressed in told), default=None)
    kept = "" if least is None else f"; their inputs reach at least {least:.2g} of the condition number that is asked for"
    return f"{len(cases)} case(s) for {len(found)} subtraction(s){kept}"


def _measured(
    contract: Contract, ws: OpWorkspace, session: ReferenceSession, inputs: Mapping[str, list[Value]], case: Case
) -> Stressed:
    stress = stress_of(case)
    if stress is None or case["id"] not in inputs:
        raise ContractError("not measured, since the inputs are broken")
    taken = positions(ws.golden, ws.golden_name(), contract.input_names, used_inputs(contract.interfaces, None))
    told = session.conditions(
        [inputs[case["id"]][i] for i in taken],
        function=ws.golden_name(),
        file=ws.golden,
        expression=stress.expression,
        quantile=stress.quantile,
    )
    recorded = case[KEY].get("reached")
    sites: dict[str, float] = {}
    for site in told["sites"]:
        sites[site["expression"]] = max(site["condition"], sites.get(site["expression"], 0.0))
    promised = stress.condition if recorded is None else float(recorded)
    return Stressed(case["id"], stress.expression, stress.condition, promised, float(told["reached"]), sites)


def _hold_to_search(contract: Contract, ws: OpWorkspace, session: ReferenceSession, expression: str, suite: Path) -> None:
    """Search, briefly, for inputs that make a subtraction cancel of which the suite says that it never does, or hardly."""
    small = min(contract.cases, key=lambda case: _elements(case))
    case = {key: small[key] for key in ("id", "level", "shape", "dtype", "dtype_mode") if key in small}
    try:
        found = stress_case(ws, session, case, expression=expression, runs=_RUNS)
    except ContractError:
        return  # the golden does not run on what the search tries
    if found is not None and found.reached >= _CANCELS:
        words = f"no case makes ({expression}) cancel, and inputs were found on which it does, {found.reached:.3g} times"
        raise ContractError(words, file=suite, remedy=f"{to_run('harness new', ws.root)}, {_OR}")


def _elements(case: Case) -> int:
    total = 1
    for size in case["shape"].values():
        total *= size if isinstance(size, int) else 1 << 20
    return total if total > 1 else 1 << 20
