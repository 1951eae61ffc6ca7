"""Indices into an axis that kernels walk, and the number that is set apart among them: -1 for none, and the last index."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from benchmarks import fresh
from tests.calling import command
from tests.generators import few_cases

from pypto_op.backends.reference import ReferenceSession
from pypto_op.documents import spec as spec_document
from pypto_op.generators.rehearsing.first_candidate import Draw, FirstCandidate
from pypto_op.workspace import OpWorkspace


def summed(grad: torch.Tensor, ids: torch.Tensor, table: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """Return the sum of the gradients of each row of a table."""
    wide = grad.to(torch.float32) * kept.unsqueeze(-1)
    return torch.zeros(table.shape).index_add(0, ids.to(torch.int64), wide).to(grad.dtype)


WRONG: dict[str, Callable[..., torch.Tensor]] = {
    "padding_from_the_end": lambda grad, ids, table, padding: summed(grad, ids, table, ids != padding % table.shape[0]),
    "padding_in_three_bits": lambda grad, ids, table, padding: summed(grad, ids, table, ids != min(padding, 7)),
    "ids_by_way_of_float16": lambda grad, ids, table, padding: summed(
        grad, ids.to(torch.float16).to(torch.int64).clamp(max=table.shape[0] - 1), table, ids != padding
    ),
}
RIGHT: dict[str, Callable[..., torch.Tensor]] = {
    "plain": lambda grad, ids, table, padding: summed(grad, ids, table, ids != padding),
    "last_token_first": lambda grad, ids, table, padding: summed(grad.flip(0), ids.flip(0), table, ids.flip(0) != padding),
    "one_hot": lambda grad, ids, table, padding: torch.matmul(
        ((ids == torch.arange(table.shape[0]).unsqueeze(1)) & (ids != padding)).to(torch.float32), grad.to(torch.float32)
    ).to(grad.dtype),
}


SHOWN_BY = {
    "padding_from_the_end": "L3_padding_none",
    "padding_in_three_bits": "L3_padding_last",
    "ids_by_way_of_float16": "L4_V_large",
}


@pytest.mark.slow
def test_each_wrong_sum_is_refused_by_the_case_that_is_there_for_it_and_no_right_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_cases.keep(monkeypatch, *SHOWN_BY.values(), "draw_set", "L4")
    root = fresh.workspace("embedding_grad", tmp_path)
    assert command("harness", "new", root).code == 0
    ws = OpWorkspace.at(root)
    refused: dict[str, list[str]] = {name: [] for name in (*WRONG, *RIGHT)}
    with ReferenceSession(ws) as session:
        first = FirstCandidate(session, ws, spec_document.load(ws.spec).policy())
        for case in json.loads(ws.suite.read_text())["cases"]:
            inputs = dict(session.make_inputs(case))
            draw = Draw(first, case, inputs, first.golden(list(inputs.values())))
            for name, function in {**WRONG, **RIGHT}.items() if case["precision"] else ():
                if not draw.takes([function(*inputs.values())]):
                    refused[name].append(case["id"].rsplit("_", 1)[0])
    assert all(case in refused[name] for name, case in SHOWN_BY.items()) and not any(refused[name] for name in RIGHT), refused
