"""Composition (verifier seed, composition mode): do the modules, put together, still compute the operator?

The cumulative golden of M_1..M_N is compared with the operator's own golden, on every seed and shape that
module_interfaces.yaml names under `composition_verification`, and in every floating dtype of SPEC.md, each with its own
tolerance. Both are plain torch, each in a process of its own; no kernel runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pypto_op.backends.base import DEFAULT_LIMITS, Limits, RunResult
from pypto_op.backends.reference import ReferenceSession
from pypto_op.compare import Comparison, TensorComparison, compare_leaves
from pypto_op.documents import interfaces as interfaces_document
from pypto_op.documents import spec as spec_document
from pypto_op.documents.interfaces import Composition, Interfaces
from pypto_op.documents.policy import Policy, get_policy
from pypto_op.errors import ContractError
from pypto_op.judge.cases.calling import positions, used_inputs
from pypto_op.proof.evidence import composition_hashes
from pypto_op.vocabulary import Outcome, Status
from pypto_op.workspace import OpWorkspace, phase_suffix


def compose(ws: OpWorkspace, *, limits: Limits = DEFAULT_LIMITS) -> dict[str, Any]:
    """Compare the golden of M_1..M_N with the operator's golden on every (seed, shape, output).

    Returns:
        schema_version, op_name, status, pairs, summary, sentence (the verifier's words), hashes, and triples: one
        {seed, shape, dtype, tensor, all_close, max_abs_diff, max_rel_diff} per seed, shape, dtype and output.

    Raises:
        ContractError: a document or a golden is missing or broken, or there is nothing to compare on.
        InfraError: the reference process cannot run.
    """
    wiring = interfaces_document.load(ws.interfaces)
    asked, n = _asked(ws, wiring), len(wiring.modules)
    hashes = composition_hashes(ws, n)
    policies = tolerances(ws, wiring)
    cases = [case for dtype in policies for case in _cases(asked, dtype)]
    triples: list[dict[str, Any]] = []
    summary = ""
    with (
        ReferenceSession(ws, limits=limits) as session,
        ReferenceSession(ws, limits=limits, alone=ws.module_golden(n)) as composed,
    ):
        for case in cases:
            dtype = case["dtype"]["default"]
            comparison = _compared(session, composed, ws, wiring, case, policies[dtype])
            place = {"seed": case["seed"], "shape": case["shape"], "dtype": dtype}
            triples += [{**place, **_row(leaf)} for leaf in comparison.per_tensor] or [{**place, **_NOTHING}]
            if not comparison.all_close:
                where = f"seed {case['seed']}, shape {case['shape']}, {dtype}"
                summary = summary or " ".join(f"{where}: {comparison.message}".split())[:600]
    status = Status.FAIL if summary else Status.PASS
    return {
        "schema_version": 1,
        "op_name": ws.name,
        "status": str(status),
        "pairs": len(cases) // len(policies),
        "summary": summary,
        "sentence": _sentence(ws, n, len(cases) // len(policies), triples),
        "hashes": hashes,
        "triples": triples,
    }


_NOTHING = {"tensor": "(number of outputs)", "all_close": False, "max_abs_diff": None, "max_rel_diff": None}


def _row(leaf: TensorComparison) -> dict[str, Any]:
    data = leaf.as_dict()
    return {"tensor": leaf.name, **{key: data[key] for key in ("all_close", "max_abs_diff", "max_rel_diff")}}


def _sentence(ws: OpWorkspace, n: int, pairs: int, triples: Sequence[Mapping[str, Any]]) -> str:
    """Return the verifier's words (seed, composition mode)."""
    bad = next((row for row in triples if not row["all_close"]), None)
    if bad is None:
        suffix = phase_suffix(n)
        return (
            f"Composition verification PASSED. Cumulative module{suffix} golden matches {ws.golden_name()} "
            f"on all {pairs} (seed, shape) pairs."
        )
    return f"Composition verification FAILED. Failing pair: seed={bad['seed']} shape={bad['shape']} tensor={bad['tensor']}."


def tolerances(ws: OpWorkspace, wiring: Interfaces) -> dict[str, Policy]:
    """Return dtype -> tolerance for each floating dtype that SPEC.md supports: that dtype's own, never a looser one's.

    The contract's pair is about its own dtype (that of its first floating input, as far as SPEC.md supports it), and may be
    tighter than SPEC.md there. A SPEC.md whose policy knows no atol and rtol is held to `allclose@1`.

    Raises:
        ContractError: SPEC.md is broken, or the contract's pair allows more than SPEC.md does for its dtype.
    """
    composition = _asked(ws, wiring)
    spec = spec_document.load(ws.spec)
    policy = spec.policy() if spec.policy().name == "allclose" else get_policy("allclose@1")
    supported = [dtype for dtype in spec.supported_dtypes if "float" in dtype] or ["float32"]
    inputs = [port.dtype for port in wiring.primary_inputs if port.dtype in supported]
    own = inputs[0] if inputs else supported[0]
    pairs = {dtype: policy.for_dtype(dtype) for dtype in supported}
    for bound in ("atol", "rtol"):
        allowed, given = pairs[own][bound], getattr(composition, bound)
        if given > allowed * (1 + 1e-9):
            raise ContractError(
                f"{bound} is {given:g}; SPEC.md allows {allowed:g} for {own}, in which the goldens are compared",
                file=ws.interfaces,
                where=f"composition_verification.{bound}",
                remedy=f"write {allowed:g} or less",
            )
    pairs[own] = {"atol": composition.atol, "rtol": composition.rtol}
    return {dtype: get_policy({"name": "allclose", "atol": pair["atol"], "rtol": pair["rtol"]}) for dtype, pair in pairs.items()}


def _asked(ws: OpWorkspace, wiring: Interfaces) -> Composition:
    if wiring.composition is None:
        where, remedy = "composition_verification", "add seeds and shapes"
        raise ContractError("names no seed and shape to compose on", file=ws.interfaces, where=where, remedy=remedy)
    return wiring.composition


def _cases(composition: Composition, dtype: str) -> list[dict[str, Any]]:
    return [
        {
            "id": f"composition_seed{seed}_shape{number}_{dtype}",
            "level": "L2",
            "shape": dict(shape),
            "dtype": {"default": dtype},
            "precision": True,
            "seed": seed,
        }
        for seed in composition.seeds
        for number, shape in enumerate(composition.shapes)
    ]


def _compared(
    session: ReferenceSession,
    composed_alone: ReferenceSession,
    ws: OpWorkspace,
    wiring: Interfaces,
    case: dict[str, Any],
    policy: Policy,
) -> Comparison:
    n = len(wiring.modules)
    inputs = [value for _, value in session.make_inputs(case)]
    names, used = [port.name for port in wiring.primary_inputs], used_inputs(wiring, None)
    outputs = []
    of_modules = (composed_alone, ws.module_golden(n), ws.golden_name(n), n)
    for process, file, function, k in ((session, ws.golden, ws.golden_name(), None), of_modules):
        handed = inputs
        if len(inputs) == len(names):
            handed = [inputs[i] for i in positions(file, function, names, used)]
        outputs.append(_run(process.golden(handed, function=function, file=file), ws, k).outputs)
    truth, composed = outputs
    leaves = [port.name for port in wiring.final_outputs]
    if len(truth) != len(leaves):
        raise ContractError(
            f"returns {len(truth)} output(s), the contract has {len(leaves)}", file=ws.golden, remedy="mend one of them"
        )
    return compare_leaves(composed, truth, names=leaves, policy=policy)


_OWN_WORDS = (
    Outcome.MISSING_FILE,
    Outcome.MISSING_WRAPPER,
    Outcome.BAD_OUTPUT,
    Outcome.TIMED_OUT,
    Outcome.SYNTAX_ERROR,
    Outcome.FORBIDDEN,
)
"""Outcomes whose detail is ours; what a golden raises may hold its values."""


def _run(result: RunResult, ws: OpWorkspace, k: int | None) -> RunResult:
    if result.outcome is not Outcome.OK:
        file = ws.golden if k is None else ws.module_golden(k)
        words = result.detail if result.outcome in _OWN_WORDS else f"it ended with: {result.outcome}"
        raise ContractError(words, file=file, remedy="mend the golden, then compose again")
    return result
