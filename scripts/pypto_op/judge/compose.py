"""Composition (verifier seed, composition mode): do the modules, put together, still compute the operator?

The cumulative golden of M_1..M_N is compared with the operator's own golden, on every seed and shape that
module_interfaces.yaml names under `composition_verification`. Both are plain torch; no kernel runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pypto_op.backends.base import DEFAULT_LIMITS, Limits, RunResult
from pypto_op.backends.reference import ReferenceSession
from pypto_op.compare import Comparison, TensorComparison, compare_leaves
from pypto_op.documents import interfaces as interfaces_document
from pypto_op.documents import spec as spec_document
from pypto_op.documents.interfaces import Composition, Interfaces
from pypto_op.errors import ContractError, PyptoOpError
from pypto_op.judge.calling import positions, used_inputs
from pypto_op.policy import Policy, get_policy
from pypto_op.state.deliverables import composition_hashes
from pypto_op.vocabulary import Outcome, Status
from pypto_op.workspace import OpWorkspace, phase_suffix


def compare_goldens(ws: OpWorkspace) -> dict[str, Any]:
    """Compare the golden of M_1..M_N with the operator's golden: what a gate keeps of `compose`.

    Returns:
        status (PASS or FAIL), pairs (how many seeds and shapes were compared), summary (the first that failed, in
        one sentence without values), hashes (`state.deliverables.composition_hashes`).

    Raises:
        ContractError: a document or a golden is missing or broken, or there is nothing to compare on.
        InfraError: the reference process cannot run.
    """
    result = compose(ws)
    return {key: result[key] for key in ("status", "pairs", "summary", "hashes")}


def compose(ws: OpWorkspace, *, limits: Limits = DEFAULT_LIMITS) -> dict[str, Any]:
    """Compare the golden of M_1..M_N with the operator's golden on every (seed, shape, output).

    Args:
        ws: the operator.
        limits: of each run of a golden.

    Returns:
        schema_version, op_name, status, pairs, summary, sentence (the verifier's words), hashes, and triples: one
        {seed, shape, tensor, all_close, max_abs_diff, max_rel_diff} per seed, shape and output.

    Raises:
        ContractError, InfraError: as `compare_goldens`.
    """
    wiring = interfaces_document.load(ws.interfaces)
    if wiring.composition is None or not wiring.composition.seeds or not wiring.composition.shapes:
        raise ContractError(
            "names no seed and shape to compose on",
            file=ws.interfaces,
            where="composition_verification",
            remedy="add seeds and shapes",
        )
    hashes = composition_hashes(ws, len(wiring.modules))
    policy = _policy(ws, wiring.composition)
    cases = _cases(wiring, wiring.composition)
    triples: list[dict[str, Any]] = []
    summary = ""
    with ReferenceSession(ws, limits=limits) as session:
        for case in cases:
            comparison = _compared(session, ws, wiring, case, policy)
            place = {"seed": case["seed"], "shape": case["shape"]}
            triples += [{**place, **_row(leaf)} for leaf in comparison.per_tensor] or [{**place, **_NOTHING}]
            if not comparison.all_close:
                summary = summary or " ".join(f"seed {case['seed']}, shape {case['shape']}: {comparison.message}".split())[:600]
    status = Status.FAIL if summary else Status.PASS
    return {
        "schema_version": 1,
        "op_name": ws.name,
        "status": str(status),
        "pairs": len(cases),
        "summary": summary,
        "sentence": _sentence(ws, len(wiring.modules), len(cases), triples),
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


def _compared(session: ReferenceSession, ws: OpWorkspace, wiring: Interfaces, case: dict[str, Any], policy: Policy) -> Comparison:
    n = len(wiring.modules)
    inputs = [value for _, value in session.make_inputs(case)]
    names, used = [port.name for port in wiring.primary_inputs], used_inputs(wiring, None)
    outputs = []
    for file, function, k in ((ws.golden, ws.golden_name(), None), (ws.module_golden(n), ws.golden_name(n), n)):
        handed = inputs
        if len(inputs) == len(names):
            handed = [inputs[i] for i in positions(file, function, names, used)]
        outputs.append(_run(session.golden(handed, function=function, file=file), ws, k).outputs)
    truth, composed = outputs
    leaves = [port.name for port in wiring.final_outputs]
    if len(truth) != len(leaves):
        raise ContractError(
            f"returns {len(truth)} output(s), the contract has {len(leaves)}", file=ws.golden, remedy="mend one of them"
        )
    return compare_leaves(composed, truth, names=leaves, policy=policy)


_OWN_WORDS = (Outcome.MISSING_FILE, Outcome.MISSING_WRAPPER, Outcome.BAD_OUTPUT, Outcome.TIMED_OUT, Outcome.SYNTAX_ERROR)
"""Outcomes whose detail is ours; what a golden raises may hold its values."""


def _run(result: RunResult, ws: OpWorkspace, k: int | None) -> RunResult:
    if result.outcome is not Outcome.OK:
        file = ws.golden if k is None else ws.module_golden(k)
        words = result.detail if result.outcome in _OWN_WORDS else f"it ended with: {result.outcome}"
        raise ContractError(words, file=file, remedy="mend the golden, then compose again")
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
