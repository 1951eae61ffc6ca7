"""Operators of a reference that change nothing for the task's inputs are found, reached, or told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from pypto_op.triton.run.inputs import domains, idle, narrow, sides, signed
from pypto_op.triton.run.inputs.packing import tensors_of
from pypto_op.triton.run.processes import golden
from pypto_op.triton.run.processes import model as models

DRAWS = torch.Generator().manual_seed(0)
EVEN = torch.rand(9, 20, generator=DRAWS)
NORMAL = torch.randn(9, 20, generator=DRAWS)
WHOLE = torch.randint(0, 9, (9, 20), generator=DRAWS)
BINS = torch.linspace(-1, 1, 5)
BYTES = torch.arange(-60, 60, dtype=torch.int8)


def _shallow(watch: idle.Idle) -> list[str]:
    """Return what was idle but for sides that few numbers never come to (`test_domains`, `test_narrow`)."""
    return [key for key in watch.found if not any(f"({side})" in key for side in (domains.DEEP, *narrow.SIDES))]


BESIDE = "add (beside a small number), add (guard of zero)"


@pytest.mark.parametrize(
    ("forward", "found"),
    [(lambda: F.relu6(EVEN), "hardtanh (lower), hardtanh (upper)"), (lambda: EVEN.clone().relu_(), "relu (lower)"),
     (lambda: F.leaky_relu(EVEN), "leaky_relu (lower)"), (lambda: torch.clamp(WHOLE, max=100), "clamp (upper)"),
     (lambda: torch.clamp(NORMAL, -9, 1), "clamp (lower)"), (lambda: torch.clamp(NORMAL, min=NORMAL - 1), "clamp (lower)"),
     (lambda: torch.nan_to_num(NORMAL), "nan_to_num"), (lambda: F.hardswish(EVEN), "hardswish (lower), hardswish (upper)"),
     (lambda: F.huber_loss(EVEN, EVEN.flip(0)), "huber_loss"), (lambda: torch.relu(EVEN - 2), "relu (upper)"),
     (lambda: torch.where(NORMAL > 50, EVEN, NORMAL), "gt, where"), (lambda: (WHOLE != -1).long(), "ne (without -1)"),
     (lambda: EVEN < 9, "lt"), (lambda: NORMAL.isnan(), "isnan"), (lambda: EVEN.floor(), "floor (lower)"),
     (lambda: torch.remainder(EVEN, 0.5), "remainder (lower)"), (lambda: F.softshrink(EVEN), "softshrink (lower)"),
     (lambda: torch.histc(EVEN, 4, 0.0, 1.0), "histc (lower), histc (upper)"),
     (lambda: NORMAL.softmax(1), "softmax (far below), softmax (far), softmax (peaks at both ends), softmax (steep rows)"),
     (lambda: F.softplus(NORMAL, beta=2.0), "softplus (far)"), (lambda: NORMAL.argmax(1), "argmax (one sign), argmax (ties)"),
     (lambda: NORMAL.min(0)[0], "min (one sign), min (ties)"), (lambda: (NORMAL * 1000).tanh(), ""),
     (lambda: torch.where(NORMAL > EVEN, NORMAL, EVEN), "gt (equal)"), (lambda: NORMAL.exp() > EVEN, "gt (zero against zero)"),
     (lambda: torch.bucketize(NORMAL, BINS), "bucketize (equal)"), (lambda: torch.cdist(NORMAL, EVEN), "cdist (equal)"),
     (lambda: torch.xlogy(EVEN, EVEN), "xlogy (zero)"),
     (lambda: F.binary_cross_entropy(EVEN, EVEN), "binary_cross_entropy (zero)"),
     (lambda: torch.atan2(EVEN, EVEN), "atan2 (lower)"), (lambda: EVEN**3, "pow (lower)"), (lambda: EVEN**2, ""),
     (lambda: torch.copysign(NORMAL, EVEN), "copysign (lower)"),
     (lambda: torch.copysign(EVEN, -1.0), ""), (lambda: torch.logit(EVEN), ""),
     (lambda: torch.logit(EVEN, 1e-6), "logit (lower), logit (upper)"), (lambda: torch.logaddexp(EVEN, EVEN), "logaddexp (far)"),
     (lambda: F.max_pool1d(NORMAL, 2, return_indices=True)[1], "max_pool2d_with_indices (ties)"),
     (lambda: torch.sort(NORMAL, stable=True, dim=1)[1], "sort (equal elements), sort (ties)"),
     (lambda: NORMAL.sort(1).indices, "sort (equal elements)"),
     (lambda: NORMAL.topk(3).values, "topk (equal elements), topk (one sign)"),
     (lambda: NORMAL.median(1).values, "median (equal elements)"), (lambda: NORMAL.median(), "median (equal elements)"),
     (lambda: WHOLE.float().repeat(1, 2).sort(1).values, "sort (one sign)"),
     (lambda: WHOLE.float().repeat(1, 2).kthvalue(3, 1).values, ""),
     (lambda: F.nll_loss(NORMAL, WHOLE[:, 0], ignore_index=10, reduction="sum").long(), "nll_loss (without 10)"),
     (lambda: F.embedding_bag(WHOLE + 1, EVEN.T, padding_idx=0, mode="sum"), "embedding_bag (without 0)"),
     (lambda: EVEN + 1 + 1e-8, BESIDE), (lambda: EVEN.sum(1).add_(1e-6), BESIDE), (lambda: NORMAL.exp() < 1.0, ""),
     (lambda: NORMAL.cumsum(1) < 1.0, "lt (at the number)"), (lambda: NORMAL.cumsum(1) < 0.9, ""),
     (lambda: EVEN + 1 + 1e-12, "add (guard of zero)"),
     (lambda: (NORMAL * EVEN) >= 0.5, "ge (at the number)"), (lambda: (NORMAL * 0.3) >= 0.5, ""), (lambda: NORMAL < 1.0, ""),
     (lambda: EVEN + 1e-3, "add (guard of zero)"), (lambda: EVEN + 1 + 0.5, ""), (lambda: WHOLE + 1e-6, ""),
     (lambda: EVEN.sqrt(), "sqrt (root of zero)"), (lambda: NORMAL.norm(dim=1), "linalg_vector_norm (root of zero)"),
     (lambda: F.embedding_bag(WHOLE, EVEN.T, mode="sum"), ""), (lambda: WHOLE.sqrt(), ""),
     (lambda: NORMAL.round(), "round (halfway)"), (lambda: ((NORMAL * 8 - 0.5) / 2).round(), "round (halfway)"),
     (lambda: (NORMAL * 0.3).round(), "round (halfway by a scale)"),
     (lambda: (NORMAL / NORMAL.amax()).round(), "amax (one sign), round (halfway by a scale)"),
     (lambda: NORMAL.round(decimals=1), "round (halfway)"),
     (lambda: torch.nan_to_num(NORMAL.masked_fill(NORMAL > 1, torch.nan)), "nan_to_num"),
     (lambda: EVEN.norm(1), "linalg_vector_norm (lower), linalg_vector_norm (root of zero)"),
     (lambda: EVEN.prod(1), "prod (factor of zero), prod (lower)"),
     (lambda: torch.div(EVEN, 0.5, rounding_mode="floor"), "div (lower)"), (lambda: EVEN.erf(), "erf (lower)"),
     (lambda: EVEN / 0.5, ""), (lambda: torch.fmax(EVEN, NORMAL), "fmax (nan)"), (lambda: NORMAL.nansum(), "nansum (nan)"),
     (lambda: BYTES + BYTES, "add (wraps)"), (lambda: BYTES * BYTES, ""), (lambda: BYTES // 9 * BYTES, ""),
     (lambda: WHOLE.mul(9).to(torch.int8), "to_copy (wraps)"), (lambda: WHOLE.mul(99).to(torch.int8), ""),
     (lambda: EVEN.scatter_reduce(0, WHOLE, EVEN, "amax"), "scatter_reduce (one sign), scatter_reduce (unnamed place)"),
     (lambda: EVEN.scatter_reduce(0, WHOLE // 2, EVEN, "amax"), "scatter_reduce (one sign)"),
     (lambda: (NORMAL / 4).round(decimals=1), "round (halfway)"), (lambda: (NORMAL / 3).round(decimals=2), ""),
     (lambda: NORMAL.cummax(1), "cummax (ties)"), (lambda: WHOLE.cummin(0), ""),
     (lambda: NORMAL.amax(1, keepdim=True) == NORMAL, "amax (one sign), eq (twice in a row)"),
     (lambda: NORMAL.max() != NORMAL, "max (one sign), ne (twice in a row)"),
     (lambda: WHOLE.amax(1, keepdim=True) == WHOLE, ""), (lambda: NORMAL == EVEN, "eq"),
     (lambda: EVEN.sub(EVEN) >= EVEN.mul(0), "ge, ge (at the number), ge (close)"),
     (lambda: NORMAL.cumsum(1) <= EVEN.sum(1, keepdim=True), "le, le (at the number), le (zero against zero)"),
     (lambda: (NORMAL.exp().cumsum(1) * 0) <= EVEN, "le, le (zero against zero)"),
     (lambda: NORMAL[:, None] == NORMAL[:, :, None], "eq (twice in a row)"), (lambda: WHOLE[:, None] == WHOLE[:, :, None], ""),
     (lambda: torch.bincount(torch.arange(9) // 3) > 1, "gt (a small count), gt (without 1)"),
     (lambda: torch.bincount(torch.tensor([0, 1, 1])) > 1, ""), (lambda: WHOLE[:, :3] > 3, ""),
     (lambda: torch.isclose(EVEN, NORMAL), "add (guard of zero), eq, le, le (close), le (zero against zero), ne"),
     (lambda: (NORMAL @ EVEN.T) > 0, "gt (zero against zero)"), (lambda: (NORMAL * 0) > 0, "gt"),
     (lambda: F.max_pool1d(EVEN.gt(0.5) * 0.5, 2), "max_pool2d_with_indices (one sign)"),
     (lambda: F.max_pool1d(EVEN * EVEN.gt(0.4), 2), "max_pool2d_with_indices (one sign), max_pool2d_with_indices (ties)"),
     (lambda: (NORMAL[:, :, None] - NORMAL[:, None]).sign(), "sign (twice in a row)"),
     (lambda: (NORMAL[:, :, None] - NORMAL[:, None]) * (EVEN[:, :, None] - EVEN[:, None]) > 0, "gt (twice in a row)"),
     (lambda: (EVEN - NORMAL).abs() > 0.1, ""), (lambda: (EVEN - NORMAL).abs() < 1e-6, "lt, lt (close)"),
     (lambda: EVEN.asin(), "asin (lower)"), (lambda: torch.linalg.det(NORMAL[:8, :8]), "linalg_det (zero)"),
     (lambda: (EVEN + 1).cummax(1), "cummax (one sign), cummax (ties)"),
     (lambda: (EVEN + 1).sort(1), "sort (equal elements), sort (one sign)"),
     (lambda: F.embedding_bag(WHOLE, EVEN.T + 1, mode="max"), "embedding_bag (one sign)"),
     (lambda: F.max_pool1d(EVEN + 1, 2), "max_pool2d_with_indices (one sign), max_pool2d_with_indices (ties)"),
     (lambda: (NORMAL * EVEN.gt(0.5)) >= EVEN.gt(0.5) * NORMAL.abs(), ""),
     (lambda: (WHOLE - 1).amax(1), "amax (one sign)"), (lambda: (WHOLE - 1).argmax(1), "argmax (one sign)"),
     (lambda: (WHOLE - 7).min(0).values, "min (one sign)"), (lambda: (WHOLE - 1).amin(), "amin (one sign)"),
     (lambda: WHOLE.amax(1), ""), (lambda: (NORMAL - 9).amax(1), ""),
     (lambda: NORMAL.sub(99).logsumexp(1), "logsumexp (far), logsumexp (peaks at both ends), logsumexp (steep rows)"),
     (lambda: (EVEN + 1).amax(1), "amax (one sign)"),
     (lambda: (WHOLE[:1] - 8).amax(0), ""), (lambda: WHOLE >> 1, "rshift (lower)"),
     (lambda: torch.complex(EVEN, NORMAL).angle(), "angle (lower)"), (lambda: torch.complex(NORMAL, EVEN).angle(), ""),
     (lambda: torch.complex(EVEN, NORMAL).sgn(), "sgn (zero)"), (lambda: WHOLE % 9, "remainder (turn of 9)"),
     (lambda: WHOLE % 8, ""), (lambda: WHOLE % WHOLE.add(1), "")],
)  # fmt: skip
def test_what_changes_nothing_is_found(forward: Callable[[], torch.Tensor], found: str) -> None:
    with idle.Idle(Path(__file__)) as watch:
        forward()
    assert ", ".join(sorted(key.rpartition(" in ")[0] for key in _shallow(watch))) == found
    assert all(key.endswith(f"in line {forward.__code__.co_firstlineno}") for key in watch.found)


@pytest.mark.parametrize(("said", "asked"), [("", False), (", ignore_index=-100", True), (", ignore_index=7", True)])
def test_a_kernel_need_not_know_the_usual_label_to_ignore(tmp_path: Path, said: str, asked: bool) -> None:
    """With smoothed labels the loss compares with it, too; a right kernel was refused."""
    task = tmp_path / "task.py"
    task.write_text(
        f"import torch.nn.functional as F\n\ndef forward(x, t):\n    return F.cross_entropy(x, t, label_smoothing=0.1{said})\n"
    )
    space: dict[str, Any] = {}
    exec(compile(task.read_text(), task, "exec"), space)
    with idle.Idle(task) as watch:
        space["forward"](NORMAL, WHOLE[:, 0] % 7)
    assert any(f"({sides.WITHOUT} " in key for key in watch.found) is asked


@pytest.mark.parametrize(
    "forward",
    [lambda: F.relu(NORMAL), lambda: NORMAL.clone().clamp_(max=1), lambda: F.huber_loss(EVEN, EVEN.flip(0), delta=0.1),
     lambda: torch.exp(EVEN), lambda: [F.relu(one) for one in (EVEN, NORMAL)], lambda: WHOLE > 3, lambda: NORMAL < 0,
     lambda: WHOLE // 2,
     lambda: torch.histc(NORMAL, 4), lambda: EVEN[0, 0] < 9, lambda: (NORMAL - 9).max(), lambda: WHOLE.argmax(),
     lambda: F.nll_loss(NORMAL, WHOLE[:, 0], ignore_index=int(WHOLE[0, 0]))],
    ids=["relu", "in_place", "huber", "no_bound", "one_of_two_calls", "both_answers", "floats", "places", "its_own_range", "one",
         "of_all", "tied", "met"],
)  # fmt: skip
def test_what_changes_something_is_not(forward: Callable[[], object]) -> None:
    with idle.Idle(Path(__file__)) as watch:
        forward()
    assert not _shallow(watch)


@pytest.mark.parametrize(("task", "found"), [("F.cross_entropy(x, t)", 0), ("F.cross_entropy(x, t, ignore_index=-100)", 1)])
def test_a_number_that_is_always_left_out_counts_where_the_task_says_it(task: str, found: int, tmp_path: Path) -> None:
    (tmp_path / "op_torch.py").write_text(task, encoding="utf-8")
    with idle.Idle(tmp_path / "op_torch.py") as watch:
        F.nll_loss(NORMAL, WHOLE[:, 0])
    assert len(watch.found) == found


def test_each_of_two_operators_in_a_line_is_known() -> None:
    with idle.Idle(Path(__file__)) as watch:
        _ = (EVEN.mul(0) + 1e-6) / (EVEN.add(1) + 1e-6)
    (idles,) = {name for name in watch.found if sides.GUARD in name}
    (busy,) = {name for name in watch.busy if sides.GUARD in name}
    assert idles == f"{busy}, place 2"


def test_whole_numbers_alone_are_known() -> None:
    with idle.Idle(Path(__file__)) as watch:
        _ = torch.clamp(WHOLE, max=100), WHOLE != -1, torch.relu(EVEN), NORMAL >= 8
    assert [*watch.found.values()] == [True, True, False, False]


def test_ties_count_only_where_whole_numbers_are_returned_that_are_said_to_be_the_first() -> None:
    with idle.Idle(Path(__file__)) as watch:
        found = NORMAL.mul(2.0**18).sub(2.0**21).max(1)
    assert watch.idle(found[0]) == {}
    assert [*watch.idle(list(found))] == [*watch.found] != []
    with watch:
        NORMAL.sort(1)
    assert watch.idle(list(found)) == {}


def test_torch_does_not_load_its_compiler_for_it() -> None:
    lines = [
        "import sys, torch",
        "from pathlib import Path",
        "from pypto_op.triton.run.inputs.idle import Idle",
        "with Idle(Path('x')):",
        "    torch.ones(2).relu()",
        "sys.exit('torch._dynamo.eval_frame' in sys.modules)",
    ]
    folder = Path(idle.__file__).parents[4]
    assert subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=folder, check=False).returncode == 0


def test_an_operator_that_picks_elements_is_known() -> None:
    for forward, picks in ((lambda: NORMAL.amax(1), True), (lambda: NORMAL.topk(3), True), (lambda: NORMAL.sum(1), False)):
        with idle.Idle(Path(__file__)) as watch:
            forward()
        assert watch.picks is picks


@pytest.mark.parametrize("sign", [1, -1])
def test_half_of_the_whole_numbers_of_both_signs_have_one(sign: int) -> None:
    (found, floats) = signed.of_sign([WHOLE - 3, NORMAL], sign)
    assert bool((found[:4] * sign > 0).all()) and torch.equal(found[5:], WHOLE[5:] - 3) and torch.equal(floats, NORMAL)
    assert found.min() >= -3 and found.max() <= 5
    assert signed.of_sign([WHOLE, NORMAL], sign) is None


def test_whole_numbers_of_a_wide_range_become_alike() -> None:
    wide = torch.randint(-500, 70000, (9, 20), generator=DRAWS)
    (found, floats) = signed.alike([wide, NORMAL])
    assert 2 <= found.unique().numel() <= 6 and found.min() == wide.min() and bool((found <= wide).all())
    assert torch.equal(floats, NORMAL) and signed.alike([torch.arange(50), WHOLE % 3]) is None


def test_gross_passes_leave_idle_what_is_no_overflow() -> None:
    with idle.Idle(Path(__file__)) as watch:
        watch.found = {}
    before = {"eq in line 3": False, "softmax (far) in line 4": False, "softmax (far below) in line 4": False}
    assert watch.still_idle(before, NORMAL, gross=True, exact=False) == {"eq in line 3": False}
    assert watch.still_idle(before, NORMAL, gross=False, exact=False) == {}


def test_a_product_that_happens_to_be_the_number_settles_nothing_where_rounding_may_part_them() -> None:
    """`>` in the place of `>=` passed once in a hundred runs: an exact half came by chance, and either side was right there."""
    halves, ones = torch.tensor([0.5, 0.25]), torch.ones(2)
    with idle.Idle(Path(__file__)) as watch:
        _ = halves * ones >= 0.5
    (at,) = watch.still_idle(None, NORMAL, gross=False, exact=False)
    assert f"({sides.AT})" in at
    assert [*watch.still_idle({at: False}, NORMAL, gross=False, exact=False)] == [at]
    assert watch.still_idle({at: False}, NORMAL, gross=False, exact=True) == {}


def test_what_stays_idle_is_said() -> None:
    assert idle.told([]) == idle.told(["softmax (far) in line 4"]) == []
    assert idle.told(["relu in line 3"])[0].startswith("of the reference relu in line 3 changed nothing in any pass")


@pytest.mark.parametrize(
    ("forward", "found"),
    [(lambda x: x.sort(1).values, True), (lambda x: x >= x.kthvalue(3, 1, keepdim=True).values, True),
     (lambda x: x.gather(1, x.topk(2, 1).indices), False), (lambda x: x.topk(2, 1), True),
     (lambda x: x.topk(2, 1).indices.int(), True), (lambda x: x.topk(2, 1).indices.float(), False)],
)  # fmt: skip
def test_equal_elements_count_where_nobody_looks_at_their_places(forward: Callable[[torch.Tensor], Any], found: bool) -> None:
    with idle.Idle(Path(__file__)) as watch:
        outputs = forward(NORMAL)
    assert any(f"({sides.ALIKE})" in key for key in watch.still_idle(None, outputs, gross=False, exact=False)) is found


def test_places_are_an_order_s_where_it_may_name_any_of_equal_elements() -> None:
    for stable, count in ((False, 1), (True, 0)):
        with idle.Idle(Path(__file__)) as watch:
            outputs = NORMAL.sort(stable=stable, dim=1)
        assert len(watch.orders([*outputs])) == count


def test_what_the_judge_computes_to_find_changed_inputs_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU the last bytes of an odd number of them go to the host for it, and the watch compared tensors of two devices."""
    monkeypatch.setattr(models, "marks", lambda value: [str(BYTES.maximum(BYTES.abs()).sum()) for _ in tensors_of(value)])
    watch = idle.Idle(Path("task.py"))
    model = torch.nn.Module()
    golden.of(model, lambda _, inputs: inputs[0].relu(), [EVEN.clone()], torch.device("cpu"), Path("task.py"), [watch])
    assert {key.partition(" ")[0] for key in (*watch.busy, *watch.found)} == {"relu"}
