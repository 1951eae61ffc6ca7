"""The requests as data: twenty, well-formed, and each hidden golden agrees with an independent formula."""

from __future__ import annotations

import types
from collections import Counter
from typing import Any

import pytest
import torch

from pypto_op.evals import hidden, requests
from pypto_op.evals.requests import CANARY, Request

ALL = requests.load()
WITH_CASES = [request for request in ALL if "cases" in request.data]
INDEPENDENT_TOLERANCE = 1e-9


def module(text: str) -> dict[str, Any]:
    """Run a golden or the draws, on the CPU."""
    made = types.ModuleType("made")
    exec(compile(text.replace('torch.device(f"npu:', 'torch.device(f"cpu:'), "made", "exec"), made.__dict__)  # noqa: S102
    return vars(made)


def drawn(request: Request, case: dict[str, Any]) -> list[Any]:
    return list(module(hidden.inputs_text(request))["make_inputs"]({**case, "seed": 42}).values())


def leaves(result: Any) -> list[torch.Tensor]:
    return list(result) if isinstance(result, tuple) else [result]


def test_twenty_requests_over_five_families_ten_of_them_hard() -> None:
    families = Counter(request.data["family"] for request in ALL)
    assert len(ALL) == 20 and len(families) == 5 and min(families.values()) >= 3, families
    assert sum(request.data["hard"] for request in ALL) >= 10
    assert {request.data["outcome"] for request in ALL} == {"kernel", "stop", "either"}
    assert len({request.op for request in ALL}) == 20


@pytest.mark.parametrize("request_", WITH_CASES, ids=lambda request: request.id)
def test_a_golden_on_its_smallest_case(request_: Request) -> None:
    assert request_.golden.read_text().startswith(f'"""{CANARY}'), "a leak could not be seen"
    case = request_.data["cases"][0]
    golden = module(request_.golden.read_text())
    inputs = drawn(request_, case)
    outputs = leaves(golden[f"{request_.op}_golden"](*inputs))
    assert len(outputs) == len(request_.data["outputs"])
    for output, said in zip(outputs, request_.data["outputs"], strict=True):
        assert output.dtype == getattr(torch, case["dtype"] if said["dtype"] == "case" else said["dtype"])


@pytest.mark.parametrize("request_", WITH_CASES, ids=lambda request: request.id)
def test_a_golden_agrees_with_another_formula(request_: Request) -> None:
    case = min(request_.data["cases"][1:], key=lambda case: sum(case["shape"].values()))
    golden = module(request_.golden.read_text())
    inputs = [one.double() if isinstance(one, torch.Tensor) and one.is_floating_point() else one for one in drawn(request_, case)]
    ours, theirs = (leaves(golden[name](*inputs)) for name in (f"{request_.op}_golden", "independent"))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.double(), other.double(), rtol=INDEPENDENT_TOLERANCE, atol=INDEPENDENT_TOLERANCE)


@pytest.mark.parametrize("request_", WITH_CASES, ids=lambda request: request.id)
def test_the_judge_can_read_what_is_made_of_a_request(request_: Request) -> None:
    from pypto_op.judge.contract import load_contract
    from pypto_op.workspace import OpWorkspace

    with hidden.made(request_) as root:
        assert load_contract(OpWorkspace.at(root))
    assert not root.exists(), "a hidden golden lies about"


def test_the_other_reading_of_an_ambiguous_request() -> None:
    request = next(one for one in ALL if "readings" in one.data)
    inputs = torch.tensor([[3.0, 1.0, 3.0]])
    found = [
        int(module(hidden.golden_text(request, reading))[f"{request.op}_golden"](inputs)) for reading in request.data["readings"]
    ]
    assert found == [0, 2]


def test_an_unknown_request_is_refused() -> None:
    from tests.calling import command

    done = command("eval", "--requests", "nonsense")
    assert done.code == 2 and "there is no request 'nonsense'" in done.stderr and "rmsnorm" in done.stderr
    assert command("eval", "--arm", "bare", "--runner", "replay").code == 2
    assert command("eval", "--runner", "replay", "--requests", "swiglu").code == 2
