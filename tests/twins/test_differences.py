"""A divergence as the difference of two sums is as honest as the sum of differences, and makes nothing else natural."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from tests.twins.judging import Judge, judge_of

from pypto_op.twins import differences
from pypto_op.twins.reordering import TWINS, Reordered
from pypto_op.vocabulary import Status

GOLDEN = """
import torch


def divergence_golden(student, teacher):
    log_q, log_p = torch.log_softmax(student, -1), torch.log_softmax(teacher, -1)
    return (torch.exp(log_p) * (log_p - log_q)).sum(-1)


def torch_divergence_golden(student, teacher):
    log_q, p = torch.log_softmax(student, -1), torch.softmax(teacher, -1)
    return torch.nn.functional.kl_div(log_q, p, reduction="none").sum(-1)


def spread_golden(student, teacher):
    away = student - student.mean(-1, keepdim=True)
    return (away * away).mean(-1)


def preference_golden(a, b, c, d):
    return torch.sigmoid(0.1 * ((a - b) - (c - d)))
"""


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[Judge]:
    with judge_of(tmp_path, GOLDEN, "divergence_golden") as judged:
        yield judged


def near(seed: int = 5, rows: int = 64, words: int = 512) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the scores of a student and of a teacher who nearly agree, far from 0."""
    generator = torch.Generator().manual_seed(seed)
    student, teacher = 100.0 + 0.1 * torch.randn(2, rows, words, generator=generator)
    return student, teacher


def parts(student: torch.Tensor, teacher: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    log_q, log_p = torch.log_softmax(student, -1), torch.log_softmax(teacher, -1)
    return torch.exp(log_p), log_p, log_q


def two_sums(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    p, log_p, log_q = parts(student, teacher)
    return (p * log_p).sum(-1) - (p * log_q).sum(-1)


@pytest.mark.parametrize("function", ["divergence_golden", "torch_divergence_golden"])
@pytest.mark.parametrize("seed", [33, 38])
def test_two_sums_are_as_right_as_one(judge: Judge, function: str, seed: int) -> None:
    values = near(seed, rows=9, words=64)
    assert judge(two_sums(*values), *values, function=function) is Status.PASS


@pytest.mark.parametrize("seed", [7, 28, 40])
def test_four_large_numbers_may_be_taken_off_one_another_in_any_order(seed: int, judge: Judge) -> None:
    """A right kernel that compared the models first was refused in every tenth verdict: two elements of 771 were small."""
    a, b, c, d = 1e4 * torch.randn(4, 771, generator=torch.Generator().manual_seed(seed))
    for margin in ((a - c) - (b - d), (a + d) - (b + c)):
        assert judge(torch.sigmoid(0.1 * margin), a, b, c, d, function="preference_golden") is Status.PASS
    narrow = [value.bfloat16().float() for value in (a - b, c - d)]
    assert judge(torch.sigmoid(0.1 * (narrow[0] - narrow[1])), a, b, c, d, function="preference_golden") is Status.FAIL


WRONG = {
    "a logarithm in 16 bits": lambda p, log_p, log_q: (p * log_p).sum(-1) - (p * log_q.bfloat16().float()).sum(-1),
    "the shares in 16 bits": lambda p, log_p, log_q: (p.half().float() * log_p).sum(-1) - (p * log_q).sum(-1),
    "one of 512 words left out": lambda p, log_p, log_q: (p * (log_p - log_q))[:, :-1].sum(-1),
    "the sums in 16 bits": lambda p, log_p, log_q: ((p * log_p).sum(-1).half() - (p * log_q).sum(-1).half()).float(),
    "nothing": lambda p, log_p, log_q: torch.zeros(len(p)),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_stays_wrong(judge: Judge, name: str) -> None:
    values = near()
    assert judge(WRONG[name](*parts(*values)), *values) is Status.FAIL


def test_a_variance_of_one_pass_is_no_rounding(judge: Judge) -> None:
    """Its mean is no element of the row: what is lost where values are far from 0 is the formula's fault."""
    student, teacher = near()
    far = student + 1000.0
    one_pass = (far * far).mean(-1) - far.mean(-1).square()
    assert judge((far - far.mean(-1, keepdim=True)).square().mean(-1), far, teacher, function="spread_golden") is Status.PASS
    assert judge(one_pass, far, teacher, function="spread_golden") is Status.FAIL


def written_into(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    other = b.clone()
    away = a - other
    other += 1.0
    return away.sum(-1)


OTHERS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "a mean taken off": lambda a, b: (a - a.mean(-1, keepdim=True)).sum(-1),
    "a mean spread over the row": lambda a, b: (a - a.mean(-1, keepdim=True).expand_as(a)).sum(-1),
    "a square": lambda a, b: ((a - b) * (a - b)).sum(-1),
    "a number": lambda a, b: (a - 3.0).sum(-1),
    "float64": lambda a, b: (a.double() - b.double()).sum(-1),
    "16 bits": lambda a, b: (a.bfloat16() - b.bfloat16()).sum(-1),
    "written into": written_into,
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_sums_stay_what_they_are(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = near()
    with Reordered("reversed"):
        found = OTHERS[name](*values)
    monkeypatch.setattr(differences, "apart", lambda terms, fold: None)
    with Reordered("reversed"):
        plain = OTHERS[name](*values)
    assert found.dtype is plain.dtype
    assert torch.equal(found, plain)


def test_two_orders_take_the_sums_apart() -> None:
    student, teacher = near()
    p, log_p, log_q = parts(student, teacher)
    truth = (p.double() * (log_p.double() - log_q.double())).sum(-1)
    off = {}
    for name in TWINS:
        with Reordered(name):
            off[name] = float(((p * (log_p - log_q)).sum(-1) - truth).abs().max())
    assert min(off["reversed"], off["pairwise"]) > 10 * max(off["golden"], off["tiled"], off["sequential"]), off
