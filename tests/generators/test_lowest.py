"""Rows far from zero: a running maximum that begins at -1e9 or -1e30 was never wrong, because no row lay below that."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from tests.calling import command
from tests.generators import few_cases
from tests.generators.test_draws import made, placed, tensor
from tests.judge.judging import verify

from pypto_op.generators.cases import suite as suite_cases
from pypto_op.generators.operator.sources import gather
from pypto_op.workspace import OpWorkspace

OPS = Path(__file__).resolve().parents[2] / "examples" / "ops"
SOFTMAX = "import torch\n\n\ndef op_golden(x):\n    return torch.softmax(x, dim=-1)\n"
NORM = """import torch


def op_golden(x):
    y = x * ({squared}).mean(-1, keepdim=True).abs().add(1e-6).rsqrt()
    return x * 1.0, y / y.abs().amax(-1, keepdim=True).clamp(min=1e-10)
"""
PRODUCTS = "import torch\n\n\ndef op_golden(q, k):\n    return torch.softmax(torch.matmul(q, k.transpose(-1, -2)), dim=-1)\n"


MINIMUM = "def op_golden(x):\n    return x - x.amin(-1, keepdim=True)\n"
ONLINE = """import torch


def op_golden(x):
    wide = torch.promote_types(x.dtype, torch.float32)
    most = x.to(wide).amax(-1, keepdim=True).clamp(min=torch.finfo(wide).min)
    return torch.exp(x.to(wide) - most)
"""
DOUBLE = "def op_golden(x):\n    return x * 2.0\n"
SOFTMIN = "import torch\n\n\ndef op_golden(x):\n    cost = x.float()\n    return torch.softmax((1.0 - cost) / 2.0, dim=-1)\n"


def suite_of(op: str, folder: Path, only: str, turned: str = "") -> OpWorkspace:
    """Copy an example with its kernel, and make its suite of the cases with a word in their id. The golden negates `turned`."""
    root = folder / "custom" / op
    for name in ("SPEC.md", "DESIGN.md", f"{op}_golden.py", f"{op}_impl.py", "eval/module_interfaces.yaml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(OPS / op / name, root / name)
    golden = root / f"{op}_golden.py"
    if turned:
        golden.write_text(golden.read_text().replace(turned, f"-{turned}"))
    assert command("harness", "new", "--no-rehearsal", root).code == 0
    ws = OpWorkspace.at(root)
    document = json.loads(ws.suite.read_text())
    chosen = [case for case in document["cases"] if only in case["id"]]
    assert chosen and {case["level"] for case in chosen} == {"L5"}
    ws.suite.write_text(json.dumps({**document, "cases": [document["cases"][0], *chosen], "raises": []}))
    return ws


def accepted(ws: OpWorkspace, text: str) -> bool:
    """Whether the chosen cases take a kernel. A first case of L1 makes them a part of the suite: no drawn shape decides."""
    ws.impl.write_text(text)
    status = verify(ws.root, "--levels", "L5").report["status"]
    assert status in ("PARTIAL", "FAIL"), status
    return status == "PARTIAL"


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.parametrize(("op", "starts"), [("softmax", (-1e9, -1e30)), ("flash_attention_fwd", (-1e9,))])
def test_a_maximum_that_begins_too_high_is_refused(op: str, starts: tuple[float, ...], tmp_path: Path) -> None:
    ws = suite_of(op, tmp_path, "lowest")
    right = ws.impl.read_text()
    for start in ("-3.4028234663852886e38", *map(str, starts)):
        text = right.replace("LOWEST = -3.4028234663852886e38", f"LOWEST = {start}")
        assert accepted(ws, text) is (text == right), start


@pytest.mark.sim
@pytest.mark.slow
def test_a_maximum_of_what_is_taken_away_is_tried_below_its_beginning(tmp_path: Path) -> None:
    """A softmax of costs: each row that lay far below zero lay far above it for the maximum."""
    ws = suite_of("softmax", tmp_path, "highest", turned="x.to(wide)")
    right = ws.impl.read_text()
    for start in ("-3.4028234663852886e38", "-1e9", "-1e30"):
        text = right.replace("LOWEST = -3.4028234663852886e38", f"LOWEST = {start}")
        wide = "x_tile if dtype == pypto.DT_FP32 else pypto.cast(x_tile, pypto.DT_FP32)"
        assert wide in text
        text = text.replace(wide, f"({wide}) * -1.0")
        assert accepted(ws, text) is (start == "-3.4028234663852886e38"), start


def test_only_what_may_lie_so_low_and_is_compared_gets_such_rows(tmp_path: Path) -> None:
    """A finite range holds no such row; an operator without a maximum has nothing to show on it."""
    bounded = {"input_ranges": {"x": "[-100, 100]"}}
    above = {"input_ranges": {"x": "[0, inf)"}}
    rows = [(SOFTMAX, {}, {"lowest"}), (SOFTMAX, bounded, set()), (DOUBLE, {}, set()), (MINIMUM, {}, {"highest"})]
    rows += [(SOFTMIN, {}, {"lowest", "highest"}), (SOFTMIN, above, {"highest"}), (SOFTMAX, above, set())]
    rows += [(ONLINE, {}, {"lowest"})]
    for number, (golden, said, found) in enumerate(rows):
        ws = placed(tmp_path / str(number), [tensor("x")], **said)
        ws.golden.write_text(golden)
        cases = [case for case in suite_cases.cases(gather(ws)) if "lowest" in case["id"] or "highest" in case["id"]]
        assert {case["id"].split("_")[1] for case in cases} == found and len(cases) == len(found), (golden, said)
        for case in cases:
            x = made(ws, **{key: value for key, value in case.items() if key.startswith("draw_")})["x"]
            beyond = -x if "lowest" in case["id"] else x
            assert bool(x.isfinite().all()) and float(beyond.min()) > 1e31


@pytest.mark.slow
@pytest.mark.parametrize("squared", ["x * x", "x.square()", "x * x.abs() * x.sign()", "torch.stack([x, x]).prod(0)"])
def test_no_such_rows_where_the_golden_itself_overflows(squared: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row's norm is infinite there, so the golden answers zeros: as no rounding would, a right quantisation was refused."""
    few_cases.keep(monkeypatch, "lowest")
    ws = placed(tmp_path, [tensor("x")])
    ws.golden.write_text(NORM.format(squared=squared))
    contract = yaml.safe_load(ws.interfaces.read_text())
    for outputs in (contract["modules"][0]["outputs"], contract["final_outputs"]):
        outputs.append(copy.deepcopy(outputs[0]) | {"name": "normalised"})
    ws.interfaces.write_text(yaml.safe_dump(contract))
    assert "lowest_x" in str([case["id"] for case in suite_cases.cases(gather(ws))])
    done = command("harness", "new", ws.root)
    assert done.code == 0, done.stderr
    left_out = next(line for line in (done.stdout + done.stderr).splitlines() if "L5_lowest_x" in line)
    assert "left out" in left_out and "no digit of the golden is right" in left_out, left_out
    assert "lowest" not in str(
        [case["id"] for case in json.loads((ws.root / "eval/adversarial_suite.json").read_text())["cases"]]
    )


def test_products_lie_low_and_none_is_as_good_as_another(tmp_path: Path) -> None:
    """A softmax of such scores chooses one: where two are equal but for rounding, right kernels choose differently."""
    ws = placed(tmp_path, [tensor("q"), tensor("k")])
    ws.golden.write_text(PRODUCTS)
    [case] = [case for case in suite_cases.cases(gather(ws)) if "lowest" in case["id"]]
    for dtype in ("float32", "float16", "bfloat16"):
        knobs = {key: value for key, value in case.items() if key.startswith("draw_")}
        drawn = made(ws, dtype={"default": dtype}, **knobs)
        q, k = drawn["q"].double(), drawn["k"].double()
        scores = (q @ k.T) * q.shape[-1] ** -0.5
        assert bool(drawn["q"].isfinite().all()) and bool(drawn["k"].isfinite().all())
        assert float(scores.max()) < -1e9
        best = torch.topk(scores, 2, dim=-1).values
        assert float(((best[:, 0] - best[:, 1]) / best[:, 0].abs()).min()) > 2.0**-12
