"""Rows of two tensors that are multiplied and are the same: a kernel without a maximum was right on rows drawn one by one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks import fresh, fresh_kernels
from tests.calling import command
from tests.generators.test_draws import made, placed, tensor
from tests.judge.judging import verify

from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.operator.sources import gather

OP = "info_nce"
PRODUCTS = "import torch\n\n\ndef op_golden(q, k):\n    return torch.matmul(q, k.transpose(-1, -2))[:, :1] + q\n"
SUM = "import torch\n\n\ndef op_golden(q, k):\n    return q + k.sum()\n"


def test_rows_meet_where_a_golden_multiplies_tensors_of_other_shapes(tmp_path: Path) -> None:
    """Tensors of one shape are alike anyway; bounds of one are not those of the other."""
    bounded = {"input_ranges": {"k": "[0, 1]"}}
    for number, (golden, said, found) in enumerate([(PRODUCTS, {}, 1), (SUM, {}, 0), (PRODUCTS, bounded, 0)]):
        ws = placed(
            tmp_path / str(number), [tensor("q"), tensor("k", shape=("R", "D"))], p0_shapes=[{"S": 40, "D": 32, "R": 7}], **said
        )
        ws.golden.write_text(golden)
        cases = [case for case in suite_cases.cases(gather(ws)) if "meeting" in case["id"]]
        assert len(cases) == found, (golden, said)
        for case in cases:
            drawn = made(ws, shape=case["shape"], draw_alike=case["draw_alike"])
            q, k = drawn["q"], drawn["k"]
            assert bool((k[::2] == q.repeat(len(k), 1)[: len(k)][::2]).all()) and not bool((k[1::2] == q[1 : len(k) : 2]).all())


@pytest.mark.sim
@pytest.mark.slow
def test_scores_without_a_maximum_are_refused(tmp_path: Path) -> None:
    root = fresh.workspace(OP, tmp_path)
    assert command("harness", "new", "--no-rehearsal", root).code == 0
    suite = root / "eval" / "adversarial_suite.json"
    document = json.loads(suite.read_text(encoding="utf-8"))
    # What no policy of rounding is about: without rehearsal the least temperature has the tolerance of SPEC.md.
    chosen = [{**case, "atol": 1e-2, "rtol": 1e-3} for case in document["cases"] if "meeting" in case["id"]]
    # A first case of L1 makes them a part of the suite: no drawn shape decides.
    suite.write_text(json.dumps({**document, "cases": [document["cases"][0], *chosen], "raises": []}), encoding="utf-8")
    by_id = {kernel.id: kernel for kernel in fresh_kernels.kernels(OP)}
    assert [case["level"] for case in chosen] == ["L5"] * 3
    for name, status in ((OP, "PARTIAL"), ("scaled_queries", "PARTIAL"), ("no_max", "FAIL")):
        (root / f"{OP}_impl.py").write_text(by_id[name].text, encoding="utf-8")
        report = verify(root, "--levels", "L5").report
        assert report["status"] == status, report["first_failure"]
