"""The plan of a verdict: which cases, modes, seeds and limits. Every part of the judge that runs something reads it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pypto_op.backends.base import Availability, Backend, Limits
from pypto_op.judge.cases.inspection import Probe
from pypto_op.judge.cases.subject import Subject
from pypto_op.judge.findings.error_maps import ErrorMaps
from pypto_op.proof.closure import Loaded
from pypto_op.vocabulary import Mode

if TYPE_CHECKING:
    from pypto_op.backends.base import Value
    from pypto_op.documents.policy import Policy
    from pypto_op.judge.cases.contract import Contract


@dataclass(frozen=True)
class Plan:
    """Everything that a run of the judge needs to know."""

    subject: Subject  # what is judged
    cases: Sequence[Mapping[str, Any]]  # the selected cases, in the order of the suite
    backends: Mapping[Mode, Backend]  # the modes that were asked for
    available: Mapping[Mode, Availability]  # what each of them can do here
    policy_for: Callable[[Mapping[str, Any]], Policy]  # the tolerance of a case
    leaf_names: Sequence[str]  # names of the outputs, in order, as the contract gives them
    input_names: Sequence[str]  # names of the primary inputs, in order
    extra_seed: int  # the second seed of every precision case
    limits: Limits = field(default_factory=Limits)  # what the candidate may use
    jobs: int = 1  # how many lanes of cases run at once
    cost_model: bool = False  # ask the backends for cost figures
    error_maps: ErrorMaps | None = None  # keeps where outputs are off
    # names of the primary inputs that the modules up to the boundary read; None: all of them
    used_inputs: Sequence[str] | None = None
    probe: Probe | None = None  # compare this inspection buffer in the outputs' place
    loaded: Loaded = field(default_factory=Loaded)  # collects what the processes load beside the named files
    # the twin policy that a case must satisfy beside it, if any
    natural_policy_for: Callable[[Mapping[str, Any]], Policy | None] = lambda case: None
    # the tolerance that a policy named in a case stands in the place of, if any
    tolerance_behind: Callable[[Mapping[str, Any]], Policy | None] = lambda case: None
    # raises ContractError for inputs that are not those of the contract
    check_inputs: Callable[[Mapping[str, Any], Sequence[tuple[str, Value]]], None] = lambda case, made: None
    # least and greatest value of a whole-number input of a case, by its name (`padding.Ends`)
    whole_ends: Callable[[Mapping[str, Any], str], tuple[int | None, int | None] | None] = lambda case, name: None
    fixed_inputs: Collection[str] = ()  # names of the primary inputs that SPEC.md declares tables
    # every case of the suite, which decides who shares a process (`lanes`); None: `cases` are all
    suite: Sequence[Mapping[str, Any]] | None = None
    further: bool = True  # call the wrapper again on one case of each lane (`repeats`)
    nan_is_legal: bool = False  # SPEC.md speaks of NaN as of any other value


def plan_without_backends(contract: Contract, subject: Subject, cases: Sequence[Mapping[str, Any]], seed: int) -> Plan:
    """Return what a contract says of cases: enough to make inputs, ask the golden and judge a kernel."""
    return Plan(
        subject=subject,
        cases=cases,
        backends={},
        available={},
        policy_for=contract.policy_for,
        natural_policy_for=contract.natural_policy_for,
        tolerance_behind=contract.tolerance_behind,
        check_inputs=contract.check_inputs,
        whole_ends=contract.whole_ends,
        leaf_names=contract.leaf_names(subject.phase),
        input_names=contract.input_names,
        extra_seed=seed,
    )
