"""Guards that no golden has: a kernel that holds a divisor to 1e-6 is right until rows are smaller than that."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from tests.generators.test_forgotten_branches import refusing
from tests.generators.test_suite import operator
from tests.generators.test_zeros import with_scalar

from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.cases import values
from pypto_op.generators.evaluation import inputs_text
from pypto_op.generators.operator.sources import gather
from pypto_op.generators.rehearsing.power import power
from pypto_op.generators.rehearsing.rehearsal import Offers, rehearse
from pypto_op.workspace import OpWorkspace

CLIPPED = "torch.where(long > {bound}, {bound} / {length}, torch.ones_like(long)).expand(y.shape) + 0.0 * x"
BOUND = "(0.01 * x.square().sum(-1, keepdim=True).sqrt().clamp(min=eps))"
GOLDEN = """import torch


def op_golden(x, y, flag, eps):
    long = y.square().sum(-1, keepdim=True).sqrt()
    return {result}
"""


@pytest.mark.parametrize(
    ("length", "wrong"),
    [("long.clamp(min=1e-6)", True), ("(long + 1e-6)", True), ("torch.sqrt(long * long)", False), ("long", False)],
)
def test_a_guard_of_1e_6_in_a_divisor_is_refused_beside_an_eps_that_leaves_it_none(
    tmp_path: Path, length: str, wrong: bool
) -> None:
    """It passed in a clipping of gradients: no row was shorter than 1e-6 where its bound was smaller still."""
    golden = GOLDEN.format(result=CLIPPED.format(bound=BOUND, length="long"))
    ws = with_scalar(tmp_path, "eps", golden, 1e-3, shape_constraints=["0 < eps <= 1"], supported_dtypes=["float32"])
    sources = gather(ws)
    maker = suite_cases.filled(sources)
    ws.test_inputs.write_text(inputs_text(sources))
    across = [case for case in maker.cases if case["id"].startswith("L3_eps_across")]
    tell = Offers(telling=partial(values.telling, maker))
    cases = rehearse(ws, across, sources.spec.policy(), scalars=sources.scalars, offers=tell).cases

    def kernel(x: torch.Tensor, y: torch.Tensor, flag: bool, eps: float) -> torch.Tensor:
        known: dict[str, Any] = {"torch": torch, "x": x, "y": y, "eps": eps, "long": y.square().sum(-1, keepdim=True).sqrt()}
        return torch.as_tensor(eval(CLIPPED.format(bound=BOUND, length=length), known))  # noqa: S307

    assert bool(refusing(ws, cases, kernel)) is wrong, [case["id"] for case in cases]


@pytest.mark.parametrize(("size", "spread", "seen"), [(3, 1.0, True), (40, 1.0, True), (250, 1.0, True), (40, 1e-7, False)])
def test_an_element_taken_from_elsewhere_is_none_that_is_by_chance_alike(size: int, spread: float, seen: bool) -> None:
    """Of 40 factors of rows the first was all but that of row 21, so their case was held to be blind."""
    out = 1.0 + spread * torch.rand(size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    out[::100] = out.roll(-(size // 2 + 1))[::100] * (1.0 + 2e-5)
    found = power({}, {"out": out}, lambda inputs: None, lambda wrong: float((wrong[0] - out).abs().max() > 1e-3))
    assert found.times.get("one element in 100 of out taken from elsewhere", 0.0) == float(seen)


@pytest.mark.parametrize(("result", "natural"), [("0.1 * (x - y) + 0.5 * x.flip(-1)", False), ("0.1 * (x - y)", True)])
def test_a_case_in_which_one_input_is_nearly_another_keeps_its_tolerance(tmp_path: Path, result: str, natural: bool) -> None:
    """A preference loss that subtracts both answers of a model first was refused: inputs that are alike had to be told apart.

    Where nothing but their difference is left, the tolerance takes whatever for right, and natural errors decide as before.
    """
    sources = operator(tmp_path, golden=f"def op_golden(x, y, flag):\n    return {result}\n", supported_dtypes=["float32"])
    sources.ws.test_inputs.write_text(inputs_text(sources))
    stressed = [case for case in suite_cases.filled(sources).cases if "cancellation_stress_0" in case["id"]]
    [case] = rehearse(sources.ws, stressed, sources.spec.policy()).cases
    assert any(step["pattern"] == "follow" for step in case["cancellation_stress"]["recipe"])
    assert ("policy" in case) is natural

    def kernel(x: torch.Tensor, y: torch.Tensor, flag: bool) -> torch.Tensor:
        return (0.1 * x + 0.5 * x.flip(-1)) - 0.1 * y

    def wrong(x: torch.Tensor, y: torch.Tensor, flag: bool) -> torch.Tensor:
        return (0.1 * x + 0.5 * y.flip(0)) - 0.1 * y

    assert natural or (refusing(sources.ws, [case], kernel), refusing(sources.ws, [case], wrong)) == ([], [case["id"]])


FACTORED = "import torch\n\n\ndef op_golden(x, y, flag, kept):\n    return {result}\n"
SCALED = "x / torch.sqrt(0.99 * kept + 0.01 * (x * x).mean(-1) + {eps})[..., None] + y"


@pytest.mark.parametrize(
    ("result", "eps", "refused"),
    [(SCALED, "0.0", True), (SCALED, "1e-30", False), ("x / kept[..., None] + y + {eps}", "1e-30", False)],
)
def test_what_is_kept_of_a_row_of_zeros_is_0_too(tmp_path: Path, result: str, eps: str, refused: bool) -> None:
    """An update without the 1e-30 below its root passed: beside a row of zeros what is kept of it was none. A divisor stays."""
    operator(tmp_path, supported_dtypes=["float32"], golden=FACTORED.format(result=result.format(eps="1e-30")))
    ws = OpWorkspace.at(tmp_path / "custom" / "op")
    data = yaml.safe_load(ws.interfaces.read_text())
    data["primary_inputs"].append({"name": "kept", "shape": ["B", "S"], "dtype": "float32"})
    ws.interfaces.write_text(yaml.safe_dump(data))
    front = "shape_constraints: []\ninput_ranges: {kept: '[0, inf)'}\n"
    ws.spec.write_text(ws.spec.read_text().replace("schema_version:", f"{front}schema_version:", 1))
    sources = gather(ws)
    maker = suite_cases.filled(sources)
    ws.test_inputs.write_text(inputs_text(sources))
    zeros = [case for case in maker.cases if case["id"].startswith("L3_zero_row_x")]
    [case] = rehearse(ws, zeros, sources.spec.policy(), offers=Offers(instead=maker.in_place_of)).cases
    assert ("kept" in case["draw_zone"]) is (result == SCALED)

    def kernel(x: torch.Tensor, y: torch.Tensor, flag: bool, kept: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(eval(result.format(eps=eps), {"torch": torch, "x": x, "y": y, "kept": kept}))  # noqa: S307

    assert bool(refusing(ws, [case], kernel)) is refused
