"""No value of inputs or golden, and no line of the golden, gets into what a verdict shows of a candidate."""

from __future__ import annotations

import json

import pytest

from pypto_op.judge.reporting import report as reports
from pypto_op.workspace import OpWorkspace

from .judging import add_to_wrapper, verify

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]

CANARY = 31415.926
"""Planted in the inputs; the golden's outputs then hold 3 times it and 0."""
WORDS = "GOLDEN_CANARY_RECIPE"

LEAKS = {
    "prints its inputs": "print(x); print(x.tolist()); print(repr(x[0])); print(float(x[0, 0]))",
    "prints to stderr": "import sys; print(x.numpy(), [round(v, 3) for v in x[0].tolist()], file=sys.stderr)",
    "raises with a tensor": "raise ValueError(x)",
    "raises with a number": "raise ValueError(f'first element {float(x[0, 0]):.3f}')",
    "asserts with a list": "assert False, x[:2].tolist()",
    "prints what it computed": "print(total, diff); total += 1",
    "prints one value per line": "print(*x[0].tolist(), sep='\\n')",
    "prints, then crashes": "print(x.tolist(), flush=True); os.abort()",
}


@pytest.mark.parametrize("how", sorted(LEAKS))
def test_no_canary_passes_the_barrier(operator: OpWorkspace, how: str) -> None:
    inputs = operator.test_inputs
    source = inputs.read_text()
    inputs.write_text(
        source.replace('return {"x": x, "y": y}', f'x[:] = {CANARY}\n    y[:] = {CANARY}\n    return {{"x": x, "y": y}}')
    )
    assert str(CANARY) in inputs.read_text()
    operator.golden.write_text(
        f'NOTE = "{WORDS}"\n\n\ndef sum_diff_golden(x, y):\n    recipe = "{WORDS}"\n    return 2.0 * x + y + 0.125, x - y + 0.5\n'
    )
    add_to_wrapper(operator, LEAKS[how])
    answer = verify(operator.root)
    assert answer.report["status"] in ("FAIL", "ERROR")
    everything = answer.stdout + answer.stderr
    for canary in ("31415.9", "94247.", "94248", WORDS):
        assert canary not in everything, how
    assert answer.report["stdout"] or answer.report["first_failure"]["reason"] == "exception", "the words get through, cleaned"


@pytest.mark.parametrize("gap", [" ", "   ", "\t"])
def test_the_goldens_own_lines_do_not_pass(operator: OpWorkspace, gap: str) -> None:
    """A candidate that has got hold of the golden prints a line of it."""
    line = "return 2.0 * x + y, x - y"
    assert line in operator.golden.read_text()
    operator.golden.write_text(operator.golden.read_text().replace(line, f"{line}  # the recipe"))
    words = [*line.split(), "#", "the", "recipe"]
    add_to_wrapper(operator, f"line = {gap!r}.join({words}); print(line, flush=True); raise RuntimeError(line)")
    answer = verify(operator.root)
    assert answer.report["first_failure"]["reason"] == "exception"
    assert f"the{gap}recipe" not in answer.report["stdout"] + answer.report["first_failure"]["summary"]
    assert "golden source removed" in answer.report["stdout"]


def test_only_what_the_schema_names_is_written() -> None:
    body = reports.skeleton(None, "op", "op_impl.py", "op_wrapper")
    body["golden_values"] = [1.0]
    body["modes"] = {"sim": {"numeric": True, "caveats": [], "reason": "", "inputs": [3.25]}}
    clean = json.dumps(reports.sanitize(body))
    assert "golden_values" not in clean and "3.25" not in clean
