"""The templates of the skills are one small operator, `op`: it lints, runs, is judged and compared as an agent's would."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests import program, quickly
from tests.calling import command

quickly.skip_without("torch")
quickly.skip_without("pypto")

from pypto_op_lint.api import lint_path  # noqa: E402

SKILLS = Path(__file__).parents[2] / "skills"
HERE = Path(__file__).parent / "template_operator"


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """custom/op/ made of the templates, with the harness and the test that the commands write."""
    root = tmp_path_factory.mktemp("templates") / "custom" / "op"
    (root / "eval").mkdir(parents=True)
    (root / "_debug").mkdir()
    shutil.copy(SKILLS / "pypto-op-develop/templates/impl_template.py", root / "op_impl.py")
    shutil.copy(SKILLS / "pypto-op-develop/templates/try_impl.py", root / "_debug/try_impl.py")
    shutil.copy(SKILLS / "pypto-golden-generate/templates/golden_template.py", root / "op_golden.py")
    shutil.copy(HERE / "SPEC.md", root / "SPEC.md")
    shutil.copy(HERE / "module_interfaces.yaml", root / "eval/module_interfaces.yaml")
    for words in (["harness", "new", str(root), "--no-rehearsal"], ["tests", "new", str(root), "--e2e"]):
        done = command(*words)
        assert done.code == 0, done.stderr
    return root


@pytest.mark.slow
def test_the_linter_has_nothing_to_say(operator: Path) -> None:
    for name in ("op_impl.py", "op_golden.py", "test_op.py"):
        found = lint_path(operator / name, stage=5).findings
        assert [f for f in found if f.status in ("FAIL", "WARN")] == [], name


@pytest.mark.slow
def test_the_shown_test_finds_the_comparison_as_generated_ones_do(operator: Path) -> None:
    """The page shows the preamble that `pypto-op tests new` writes today, word for word."""
    shown, written = (
        text.split("# === detailed_tensor_compare path bootstrap ===")[1].split("# === end bootstrap ===")[0]
        for text in (
            (SKILLS / "pypto-op-verify/templates/test_template.py").read_text(),
            (operator / "test_op.py").read_text(),
        )
    )
    assert shown == written


@pytest.mark.slow
def test_the_golden_validates_and_profiles(operator: Path) -> None:
    assert program.python("-m", "pypto_op.cli", "script", str(operator / "op_golden.py")).returncode == 0
    report = operator / "GOLDEN_PERF_REPORT.md"
    script = SKILLS / "pypto-golden-generate/scripts/profile_golden.py"
    done = program.with_torch(str(script), str(operator / "op_golden.py"), "--calls", "2", "--rounds", "2", "--out", str(report))
    assert done.returncode == 0, done.stderr
    assert [f for f in lint_path(report, stage=2).findings if f.status == "FAIL"] == []
    refused = program.with_torch(str(script), str(operator / "op_golden.py"), "--function", "no_such")
    assert refused.returncode == 2
    assert "no_such" in refused.stderr and "Traceback" not in refused.stderr


@pytest.mark.slow
def test_neither_check_nor_profile_of_the_golden_loads_the_compiler(operator: Path) -> None:
    """torch's compiler, sympy and distributed tensors take as long as torch itself, and each request would pay twice."""
    golden = str(operator / "op_golden.py")
    profiled = [str(SKILLS / "pypto-golden-generate/scripts/profile_golden.py"), golden, "--calls", "2", "--rounds", "2"]
    for words in ([golden], profiled):
        done = program.python("-X", "importtime", *words)
        assert done.returncode == 0, done.stderr[-600:]
        loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
        assert "torch" in loaded
        assert not {"sympy", "torch._dynamo", "torch.distributed.tensor"} & loaded


@pytest.mark.sim
def test_the_kernel_is_right(operator: Path) -> None:
    words = ["verify", str(operator), "--modes", "sim", "--case", "L3_T_16_plus_1_float16", "--json", "--quiet"]
    done = command(*words)
    assert done.code == 0, done.stdout + done.stderr
    assert done.report["status"] == "PARTIAL"


@pytest.mark.sim
def test_a_staged_coder_can_try_a_wrapper(operator: Path) -> None:
    done = program.python("-m", "pypto_op.cli", "script", str(operator / "_debug/try_impl.py"))
    assert done.returncode == 0, done.stderr
    assert "output 0: (37, 64) torch.float32" in done.stdout
    assert "NaN 0" in done.stdout


PROBED = """\
import pypto
import torch


@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def kernel(
    x: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32),
    probe: pypto.Tensor([pypto.DYNAMIC, 64], pypto.DT_FP32),
):
    total = x.shape[0]
    for step in pypto.loop((total + 15) // 16, name="ROWS", idx_name="step"):
        pypto.set_vec_tile_shapes(16, 64)
        row = step * 16
        tile = pypto.exp(pypto.view(x, [16, 64], [row, 0], valid_shape=[pypto.min(total - row, 16), 64]))
        pypto.assemble(tile, [row, 0], probe)
        pypto.assemble(tile * 2.0, [row, 0], out)


def probed_wrapper(x):
    out, probe = torch.empty(x.shape), torch.empty(x.shape)
    kernel(x, out, probe)
    return {"exp": probe, "out": out}
"""


@pytest.mark.sim
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (None, "every step agrees"),
        (("tile * 2.0", "tile * 2.5"), "first step that is off: out"),
        ((", 64]))", ", 64]) * 1.5)"), "first step that is off: exp"),
    ],
)
def test_steps_are_compared_in_order(tmp_path: Path, wrong: tuple[str, str] | None, says: str) -> None:
    """A right copy agrees; a wrong factor shows at `out`, a wrong exponent already at `exp`."""
    right, planted = wrong or ("", "")
    assert right in PROBED
    (tmp_path / "probed.py").write_text(PROBED.replace(right, planted) if right else PROBED)
    shutil.copy(SKILLS / "pypto-precision-compare/templates/compare_steps.py", tmp_path)
    done = program.python("-m", "pypto_op.cli", "script", str(tmp_path / "compare_steps.py"))
    assert says in done.stdout + done.stderr
    assert done.returncode == (1 if wrong else 0)
