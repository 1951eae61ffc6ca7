"""What a run of the judge is asked to do; shared by the parts that carry it out."""

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
    """Everything that a run of the judge needs to know.

    Attributes:
        subject: what is judged.
        cases: the selected cases, in the order of the suite.
        backends: the modes that were asked for.
        available: what each of them can do here.
        policy_for: the tolerance of a case.
        natural_policy_for: the twin policy that a case must satisfy beside it, if any.
        tolerance_behind: the tolerance that a policy named in a case stands in the place of, if any.
        suite: every case of the suite, which decides who shares a process (`lanes`); None: `cases` are all.
        further: call the wrapper again on one case of each lane (`repeats`).
        nan_is_legal: SPEC.md speaks of NaN as of any other value.
        leaf_names: names of the outputs, in order, as the contract gives them.
        input_names: names of the primary inputs, in order.
        extra_seed: the second seed of every precision case.
        limits: what the candidate may use.
        jobs: how many lanes of cases run at once.
        cost_model: ask the backends for cost figures.
        error_maps: keeps where outputs are off.
        fixed_inputs: names of the primary inputs that SPEC.md declares tables.
        used_inputs: names of the primary inputs that the modules up to the boundary read; None: all of them.
        probe: compare this inspection buffer in the outputs' place.
        loaded: collects what the processes load beside the named files.
        check_inputs: raises ContractError for inputs that are not those of the contract.
        whole_ends: least and greatest value of a whole-number input of a case, by its name (`padding.Ends`).
    """

    subject: Subject
    cases: Sequence[Mapping[str, Any]]
    backends: Mapping[Mode, Backend]
    available: Mapping[Mode, Availability]
    policy_for: Callable[[Mapping[str, Any]], Policy]
    leaf_names: Sequence[str]
    input_names: Sequence[str]
    extra_seed: int
    limits: Limits = field(default_factory=Limits)
    jobs: int = 1
    cost_model: bool = False
    error_maps: ErrorMaps | None = None
    used_inputs: Sequence[str] | None = None
    probe: Probe | None = None
    loaded: Loaded = field(default_factory=Loaded)
    natural_policy_for: Callable[[Mapping[str, Any]], Policy | None] = lambda case: None
    tolerance_behind: Callable[[Mapping[str, Any]], Policy | None] = lambda case: None
    check_inputs: Callable[[Mapping[str, Any], Sequence[tuple[str, Value]]], None] = lambda case, made: None
    whole_ends: Callable[[Mapping[str, Any], str], tuple[int | None, int | None] | None] = lambda case, name: None
    fixed_inputs: Collection[str] = ()
    suite: Sequence[Mapping[str, Any]] | None = None
    further: bool = True
    nan_is_legal: bool = False


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
