"""Composition (verifier seed, composition mode): do the modules, put together, still compute the operator?

The cumulative golden of M_1..M_N is compared with the operator's own golden, on every seed and shape that
module_interfaces.yaml names under `composition_verification`. Both are plain torch; no kernel runs.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pypto_op.backends.base import RunResult
from pypto_op.backends.reference import ReferenceSession
from pypto_op.compare import compare_leaves
from pypto_op.documents import interfaces as interfaces_document
from pypto_op.documents import spec as spec_document
from pypto_op.documents.interfaces import Composition, Interfaces
from pypto_op.errors import ContractError, PyptoOpError
from pypto_op.policy import Policy, get_policy
from pypto_op.state.deliverables import composition_hashes
from pypto_op.vocabulary import Outcome, Status
from pypto_op.workspace import OpWorkspace


def compare_goldens(ws: OpWorkspace) -> dict[str, Any]:
    """Compare the golden of M_1..M_N with the operator's golden.

    Returns:
        status (PASS or FAIL), pairs (how many seeds and shapes were compared), summary (the first that failed, in
        one sentence without values), hashes (`state.deliverables.composition_hashes`).

    Raises:
        ContractError: a document or a golden is missing or broken, or there is nothing to compare on.
        InfraError: the reference process cannot run.
    """
    wiring = interfaces_document.load(ws.interfaces)
    if wiring.composition is None or not wiring.composition.seeds or not wiring.composition.shapes:
        raise ContractError(
            "names no seed and shape to compose on",
            file=ws.interfaces,
            where="composition_verification",
            remedy="add seeds and shapes",
        )
    n = len(wiring.modules)
    hashes = composition_hashes(ws, n)
    composition = wiring.composition
    policy = _policy(ws, composition)
    summary, pairs = "", 0
    with ReferenceSession(ws) as session:
        for case in _cases(wiring, composition):
            summary = summary or _mismatch(session, ws, wiring, case, policy)
            pairs += 1
    return {"status": str(Status.FAIL if summary else Status.PASS), "pairs": pairs, "summary": summary, "hashes": hashes}


def _policy(ws: OpWorkspace, composition: Composition) -> Policy:
    """Return the contract's tolerance; it may not allow what SPEC.md allows for no dtype."""
    spec = spec_document.load(ws.spec).policy()
    if spec.name == "allclose":
        rows = spec.as_dict()["per_dtype"].values()
        for bound in ("atol", "rtol"):
            if getattr(composition, bound) > max(row[bound] for row in rows):
                raise ContractError(
                    f"{bound} allows more than SPEC.md does for any dtype",
                    file=ws.interfaces,
                    where=f"composition_verification.{bound}",
                    remedy="tighten it",
                )
    return get_policy({"name": "allclose", "atol": composition.atol, "rtol": composition.rtol})


def _cases(wiring: Interfaces, composition: Composition) -> list[dict[str, Any]]:
    dtype = next((port.dtype for port in wiring.primary_inputs if "float" in port.dtype), "float32")
    return [
        {
            "id": f"composition_seed{seed}_shape{number}",
            "level": "L2",
            "shape": dict(shape),
            "dtype": {"default": dtype},
            "precision": True,
            "seed": seed,
        }
        for seed in composition.seeds
        for number, shape in enumerate(composition.shapes)
    ]


def _mismatch(session: ReferenceSession, ws: OpWorkspace, wiring: Interfaces, case: dict[str, Any], policy: Policy) -> str:
    """Return why the two goldens differ on a case, or "" when they agree."""
    n = len(wiring.modules)
    inputs = [value for _, value in session.make_inputs(case)]
    truth = _run(session.golden(inputs, function=ws.golden_name(), file=ws.golden), ws, None)
    composed = _run(session.golden(inputs, function=ws.golden_name(n), file=ws.module_golden(n)), ws, n)
    names = [port.name for port in wiring.final_outputs]
    if len(truth.outputs) != len(names):
        names = [f"out{index}" for index in range(len(truth.outputs))]
    comparison = compare_leaves(composed.outputs, truth.outputs, names=names, policy=policy)
    if comparison.all_close:
        return ""
    return " ".join(f"seed {case['seed']}, shape {case['shape']}: {comparison.message}".split())[:600]


def _run(result: RunResult, ws: OpWorkspace, k: int | None) -> RunResult:
    if result.outcome is not Outcome.OK:
        file = ws.golden if k is None else ws.module_golden(k)
        raise ContractError(result.detail or str(result.outcome), file=file, remedy="mend the golden, then compose again")
    return result


def main(argv: list[str]) -> int:
    """Print the comparison for the operator's directory `argv[0]` as JSON, or one line why there is none."""
    try:
        print(json.dumps(compare_goldens(OpWorkspace.at(argv[0]))))
    except PyptoOpError as error:
        print(error.one_line(), file=sys.stderr)
        return int(error.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
