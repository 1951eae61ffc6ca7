"""`pypto-op verify --self-test`: is the harness of an operator fit to judge, before any kernel exists?

Contract, suite, inputs and golden are exercised; faults are planted into the golden's own outputs, and each must be
seen; secrets are planted into a report, and each must be removed. No impl and no module golden is needed; where the
cumulative golden of the last phase exists, the composition is verified too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pypto_op.backends.base import Limits
from pypto_op.backends.reference import ReferenceSession
from pypto_op.documents import interfaces as interfaces_document
from pypto_op.documents import suite as suite_document
from pypto_op.errors import ContractError
from pypto_op.judge import adversarial
from pypto_op.judge.answers import redraw
from pypto_op.judge.answers.expectation import Expectation, expectation_of
from pypto_op.judge.answers.references import answered
from pypto_op.judge.cases import variety
from pypto_op.judge.cases.contract import Contract, load_contract
from pypto_op.judge.cases.inputs import DEFAULT_SEED, checks_precision, digest
from pypto_op.judge.cases.natural import MOST, NATURAL, further_seeds, natural_share, percent
from pypto_op.judge.cases.variety import Variety
from pypto_op.judge.compose import compose
from pypto_op.judge.findings.reasons import ended_with
from pypto_op.judge.findings.redaction import Redactor
from pypto_op.judge.self_test import cancellation, golden_candidate, planted_faults
from pypto_op.judge.self_test.golden_candidate import Refusal
from pypto_op.judge.self_test.known import Known
from pypto_op.proof import records
from pypto_op.proof.closure import Loaded
from pypto_op.proof.evidence import harness_hashes
from pypto_op.twins.reordering import HONEST
from pypto_op.vocabulary import ExitCode, Outcome, Status
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from pypto_op.backends.base import RunResult, Value
    from pypto_op.documents.policy import Policy


Case = Mapping[str, Any]
Check = Callable[[Known], str]


def self_test(ws: OpWorkspace, *, suite: Path | None = None, limits: Limits | None = None) -> tuple[dict[str, Any], ExitCode]:
    """Exercise everything that a verdict on this operator will rest on, but the kernel.

    Args:
        suite: another suite than its own.
        limits: of each run of the golden and of the inputs file.

    Returns:
        schema_version, op_name, status (PASS or FAIL), hashes of the files that were tested (`harness_hashes`), checks:
        [{name, status, detail}], of a FAIL also problem, file, where and remedy, which `detail` is made of, seconds; and
        the exit code: 0 or 2, since a harness that is not fit is the operator's files' fault, never a kernel's.

    Raises:
        InfraError: the reference process cannot run.
    """
    started = time.monotonic()
    rows = []
    limits = limits or Limits()
    own = suite is None and limits == Limits()
    hashes = harness_hashes(ws)
    with ReferenceSession(ws, limits=limits) as session:
        known = Known(ws, session, suite, limits)
        for name, check in CHECKS.items():
            rows.append({"name": name, **_outcome(check, known)})
        if known.contract is not None:
            known.measured.keep()
        loaded = Loaded()
        loaded.note_all(session.loaded())
    status = Status.FAIL if any(row["status"] == Status.FAIL for row in rows) else Status.PASS
    result = {
        "schema_version": 1,
        "op_name": ws.name,
        "status": str(status),
        "hashes": hashes,
        "checks": rows,
        "seconds": round(time.monotonic() - started, 3),
    }
    if own and status is Status.PASS:
        records.keep_self_test(ws, result, loaded)
    return result, ExitCode.OK if status is Status.PASS else ExitCode.CONTRACT


def _outcome(check: Check, known: Known) -> dict[str, Any]:
    try:
        return {"status": str(Status.PASS), "detail": check(known)}
    except _NotYet as later:
        return {"status": str(Status.SKIPPED), "detail": str(later)}
    except ContractError as error:
        told = {"problem": error.problem, "file": error.file, "where": error.where, "remedy": error.remedy}
        return {
            "status": str(Status.FAIL),
            "detail": error.one_line()[:600],
            **{key: None if value is None else str(value)[:600] for key, value in told.items()},
        }


class _NotYet(Exception):
    """A check whose material does not exist at this stage."""


# -- the checks, in order ------------------------------------------------------------------------------------------


def _runner(known: Known) -> str:
    if not known.ws.runner.exists() and interfaces_document.load(known.ws.interfaces).total_modules == 1:
        raise _NotYet("one module: `pypto-op verify` needs no runner file")
    adversarial.check_runner(known.ws.runner)
    return "eval/adversarial_runner.py is what pypto-op generates"


def _documents(known: Known) -> str:
    known.contract = contract = load_contract(known.ws, suite=known.suite)
    if contract.suite.total_modules != contract.total_modules:
        raise ContractError(
            f"total_modules is {contract.suite.total_modules}, the contract has {contract.total_modules}", file=known.ws.suite
        )
    from pypto_op.documents import schema

    schema.raise_first(suite_document.check_complete(contract.suite), file=known.ws.suite)
    schema.raise_first(interfaces_document.check_signature(contract.interfaces, known.ws), file=known.ws.interfaces)
    return f"{len(contract.cases)} cases, two or more per level; {contract.total_modules} module(s)"


def _inputs(known: Known) -> str:
    contract = known.sound
    seeded, looks = 0, []
    for case in contract.cases:
        made = known.made(case)
        values = [value for _, value in made]
        contract.check_inputs(case, made)
        again = [value for _, value in known.made(case)]
        if digest(values) != digest(again):
            raise ContractError("the same seed makes other inputs", file=known.ws.test_inputs, where=f"case {case['id']}")
        other = known.values(case, known.second(case, values))
        seeded += digest(values) != digest(other)
        if checks_precision(case):
            looks.append((case, Variety()))
            for trial in (values, other):
                looks[-1][1].add(contract.input_names, trial)
        known.inputs[case["id"]] = values
    if not seeded:
        raise ContractError("no case depends on its seed", file=known.ws.test_inputs, remedy="call torch.manual_seed(seed)")
    variety.check(looks, whole=True, fixed=contract.fixed_inputs, single=contract.single_valued, masks=contract.masks)
    return f"{len(contract.cases)} cases build, the same for the same seed; {seeded} of them differ with another"


def _golden(known: Known) -> str:
    contract, ws = known.sound, known.ws
    looks = []
    for case in contract.cases:
        inputs = known.inputs.get(case["id"])
        if inputs is None:
            raise ContractError("not run, since the inputs are broken")
        answer = known.golden(known.handed(inputs))
        where = f"case {case['id']}"
        if answer.outcome is not Outcome.OK:
            raise ContractError(f"it {ended_with(answer)}", file=ws.golden, where=where, remedy="mend the golden")
        if answer.mutated_inputs:
            raise ContractError("it changes its own inputs", file=ws.golden, where=where, remedy="let it copy them first")
        _returns_contract(contract, case, answer, ws)
        known.answers[case["id"]] = answer
        if checks_precision(case):
            looks.append((case, _second_look(known, case, answer)))
    variety.check(looks, whole=True, fixed=contract.fixed_inputs, single=contract.single_valued, masks=contract.masks)
    return f"{ws.golden_name()} answers all {len(contract.cases)} cases, with the outputs of the contract"


def _second_look(known: Known, case: Mapping[str, Any], answer: RunResult) -> Variety:
    """Return what the golden's answers for two seeds have in common."""
    contract = known.sound
    second = known.golden(known.handed(known.values(case, known.seconds.get(case["id"], known.fresh))))
    look, tolerance = Variety(), contract.tolerance_behind(case) or contract.policy_for(case)
    for outputs in (answer.outputs, second.outputs):
        look.add_answer(contract.leaf_names(None), outputs, tolerance)
    return look


def _returns_contract(contract: Contract, case: Mapping[str, Any], answer: RunResult, ws: OpWorkspace) -> None:
    outputs = contract.interfaces.final_outputs
    if len(answer.outputs) != len(outputs):
        raise ContractError(
            f"it returns {len(answer.outputs)} output(s), the contract names {len(outputs)}", file=ws.golden, remedy="mend one"
        )
    if wrong := contract.interfaces.misshapen(case, [output.shape for output in answer.outputs]):
        raise ContractError(wrong, file=ws.golden, where=f"case {case['id']}")


def _honest(known: Known) -> str:
    """Judge the golden in the candidate's place, under each case's real policies, on its seed and on a fresh one."""
    contract, suite, count = known.sound, known.suite or known.ws.suite, 0
    for case in contract.cases:
        if case["id"] not in known.answers:
            raise ContractError("not judged, since the golden is broken")
        if not checks_precision(case):
            continue
        expectation = expectation_of(contract, case)
        own = _refusal(known, case, expectation, None)
        where, found = (f"case {case['id']}", own) if own is not None else _fresh_refusal(known, case, expectation)
        if found is not None:
            raise ContractError(found.sentence, file=suite, where=where, remedy=found.remedy(case))
        count += 1
    return f"{count} precision cases take the golden in each of its honest orders, on two seeds"


def _fresh_refusal(known: Known, case: Case, expectation: Expectation) -> tuple[str, Refusal | None]:
    """Return where a case refuses an honest order on a fresh seed, and why; another is drawn where `verify` would (`redraw`)."""
    for seed in (known.fresh, *redraw.draws(known.fresh)):
        found = _refusal(known, case, expectation, seed)
        if found is None or expectation.policy.needs_twins:
            break
        if not redraw.cancels(known.golden, known.handed(known.values(case, seed)), expectation.policy):
            break
    return f"case {case['id']}, seed {seed}", found


def _refusal(known: Known, case: Case, expectation: Expectation, seed: int | None) -> Refusal | None:
    """Return which honest order of the golden a case refuses on a seed; None: on its own."""
    handed = known.handed(known.inputs[case["id"]] if seed is None else known.values(case, seed))
    golden, redactor = partial(known.golden, handed), Redactor(known.ws.golden, known.ws.golden)
    reference = answered(golden, expectation, golden())
    if (problem := reference.problem()) is not None:
        where = f"case {case['id']}" + (f", seed {seed}" if seed is not None else "")
        raise ContractError(problem, file=known.ws.golden, where=where, remedy="mend the golden")
    if seed is None:
        known.references[case["id"]] = reference
    if known.measured.orders(handed, expectation, HONEST) is not None:
        return None
    told = list(golden_candidate.verdicts(lambda name: golden(twin=name), reference, expectation, redactor))
    found = golden_candidate.refused(told, reference, expectation)
    if found is None and seed is None:
        known.measured.note_orders(handed, expectation, HONEST, told)
    return found


def _faults(known: Known) -> str:
    contract, suite = known.sound, known.suite or known.ws.suite
    told: set[tuple[str, int]] = set()
    redactor = Redactor(known.ws.golden, known.ws.golden)
    cases = [case for case in contract.cases if checks_precision(case)]
    for case in cases:
        reference = known.references.get(case["id"])
        if reference is None:
            raise ContractError("not planted, since the golden is broken or refused")
        expectation = expectation_of(contract, case)

        def refuses(outputs: Sequence[torch.Tensor]) -> bool:
            return golden_candidate.judged(outputs, reference, expectation, redactor).status is not Status.PASS  # noqa: B023

        far = planted_faults.far_of(reference, expectation.policies(reference.natural_share))
        planted = planted_faults.plant(reference.native.outputs, refuses, far)
        told |= planted.seen
        if planted.missed:
            words = f"the comparison does not see: {', '.join(planted.missed)}"
            raise ContractError(words, file=suite, where=f"case {case['id']}", remedy="tighten the case's tolerance")
    blind = list(_blind(known, told))
    if blind:
        remedy = "use inputs with larger outputs, or a tighter tolerance"
        raise ContractError(f"no case could tell {', '.join(blind)}", file=suite, remedy=remedy)
    return f"{len(told)} kinds of fault, planted in {len(cases)} precision cases, were all seen"


def _blind(known: Known, told: set[tuple[str, int]]) -> Iterator[str]:
    """Yield the faults that every precision case of the suite is blind to, for an output that could have them."""
    answers = [known.answers[case["id"]] for case in known.sound.cases if case.get("precision", True)]
    for i, port in enumerate(known.sound.interfaces.final_outputs):
        outputs = [answer.outputs[i] for answer in answers if answer.outputs[i].is_floating_point()]
        rows = max((output.shape[0] for output in outputs if output.dim()), default=0)
        for fault in planted_faults.NEEDED if outputs else ():
            if (fault, i) not in told and (fault != "a lost last row" or rows > 1):
                yield f"{port.name} from one that is wrong like this: {fault}"


def _natural(known: Known) -> str:
    """Never a FAIL: what is too tight for honest rounding may still be what somebody wants, and kernels can be lucky."""
    contract = known.sound
    shares, idle = {}, []
    for case in contract.cases:
        answer = known.answers.get(case["id"])
        if answer is None:
            raise ContractError("not measured, since the golden is broken")
        if checks_precision(case):
            behind = contract.tolerance_behind(case)
            policy = behind or contract.policy_for(case)
            share = _share(known, known.inputs[case["id"]], policy, answer)
            if behind is None:
                shares[case["id"]] = share
            elif share <= MOST and (most := max(share, _elsewhere(known, case, policy))) <= MOST:
                idle.append(f"{case['id']} ({percent(most)})")
    tight = [f"{case} ({percent(share)})" for case, share in shares.items() if share > 1.0]
    # Such a policy may be there for what the tolerance cannot tell, so it is not called needless.
    needless = f"; beside a named policy the tolerance holds too, of which it takes so much: {', '.join(idle)}" if idle else ""
    if not tight:
        return f"honest rounding takes at most {percent(max(shares.values(), default=0.0))} of the tolerance{needless}"
    return (
        f"warning: honest rounding exceeds the tolerance of {', '.join(tight)}, so a right kernel can fail there; give the "
        f'case "policy": "{NATURAL.id}" in the place of atol and rtol{needless}'
    )


def _share(known: Known, inputs: Sequence[Value], policy: Policy, answer: RunResult | None = None) -> float:
    handed = known.handed(inputs)
    golden = partial(known.golden, handed)
    return known.measured.share(handed, policy, lambda: natural_share(golden, answer or golden(), policy))


def _elsewhere(known: Known, case: Mapping[str, Any], policy: Policy) -> float:
    """Return the share on the further seeds that `harness new` measured the case on, so that both say the same."""
    return max(_share(known, known.values(case, seed), policy) for seed in further_seeds(int(case.get("seed", DEFAULT_SEED))))


def _cancellation(known: Known) -> str:
    return cancellation.check(known.sound, known.ws, known.session, known.inputs, known.suite or known.ws.suite)


def _sanitiser(known: Known) -> str:
    answer = next(iter(known.answers.values()), None)
    if answer is None:
        raise ContractError("not tried, since the golden is broken")
    planted = planted_faults.leaks(answer.outputs, known.ws.golden)
    if planted:
        raise ContractError(f"it lets through: {', '.join(planted)}", remedy="this is a fault of pypto-op; report it")
    return "golden values, golden source and forbidden keys are removed from reports and from what a candidate prints"


def _composition(known: Known) -> str:
    n = known.sound.total_modules
    if n == 1:
        raise _NotYet("one module: there is nothing to compose")
    if not known.ws.module_golden(n).is_file():
        raise _NotYet(f"the golden of M{n} comes with its phase; then `--compose` verifies it")
    if len(known.answers) < len(known.sound.cases):
        raise ContractError("not composed, since the golden is broken")
    result = compose(known.ws, limits=known.limits)
    if result["status"] != Status.PASS:
        raise ContractError(result["sentence"], file=known.ws.interfaces, remedy="revise the module boundaries")
    return str(result["sentence"])


CHECKS: dict[str, Check] = {
    "runner": _runner,
    "documents": _documents,
    "inputs": _inputs,
    "golden": _golden,
    "honest_orders": _honest,
    "planted_faults": _faults,
    "natural_error": _natural,
    "cancellation": _cancellation,
    "sanitiser": _sanitiser,
    "composition": _composition,
}
