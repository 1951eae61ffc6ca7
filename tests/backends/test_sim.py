"""The simulator's own promises: structure only without a compiler, many cases in one session, doctor."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from pypto_op.backends import launcher, sim
from pypto_op.bundle_files import bundle_root
from pypto_op.documents import schema
from pypto_op.errors import InfraError
from pypto_op.install.doctor_command import doctor
from pypto_op.vocabulary import ExitCode, Outcome
from pypto_op.workspace import OpWorkspace

from . import kernels
from .conftest import QUICK


@pytest.fixture
def no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH with a shell and nothing to compile with."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "env"):
        (tools / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tools))


@pytest.mark.sim
@pytest.mark.usefixtures("no_compiler")
class TestStructureOnly:
    def test_it_says_so(self) -> None:
        available = sim.SimBackend().availability()
        assert (available.ok, available.numeric) == (True, False)
        assert "g++" in available.reason
        assert available.caveats[0] == sim.STRUCTURE_ONLY

    def test_shapes_come_back_and_no_numbers(self, operator: OpWorkspace) -> None:
        operator.impl.write_text(kernels.GOOD)
        with sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
            result = session.run("case", [torch.ones(20, 32)])
        assert (result.outcome, result.numeric, result.launches) == (Outcome.OK, False, 1)
        assert result.outputs[0].shape == (20, 32)
        assert result.sentinel_left == (640,), "nothing was computed, and it shows"

    def test_what_the_passes_refuse_is_still_refused(self, operator: OpWorkspace) -> None:
        wide = kernels.GOOD.replace("32]", "2048]").replace("(16, 32)", "(16, 2048)").replace("tile * 2.0", "tile + tile * 2.0")
        operator.impl.write_text(wide)
        with sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
            result = session.run("case", [torch.ones(16, 2048)])
        assert result.outcome is Outcome.EXCEPTION
        assert "exceeds MEM_UB" in result.detail


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_fifty_cases_in_one_session(operator: OpWorkspace) -> None:
    operator.impl.write_text(kernels.GOOD)
    peaks, spent = [], launcher.cpu_seconds()
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
        for rows in range(1, 51):
            x = torch.randn(rows, 32)
            result = session.run(f"case{rows}", [x])
            assert result.outcome is Outcome.OK, f"{rows}: {result.detail}\n{result.stderr}"
            assert torch.equal(result.outputs[0], x * 2), rows
            assert (result.launches, result.sentinel_left) == (1, (0,))
            peaks.append(result.peak_rss_mb)
            left = sum(path.stat().st_size for path in (session.scratch / "pypto").rglob("*") if path.is_file())
            assert left == 0
    assert peaks[-1] < 850, "fifty launches of one kernel do not add up; a worker begins with 500 to 700"
    assert launcher.cpu_seconds() - spent > 0.5, "fifty runs cost seconds, and a session's end must not lose them"
    assert not operator.debug_dir.exists()


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_the_zygote_starts_once(operator: OpWorkspace) -> None:
    operator.impl.write_text(kernels.GOOD)
    for _ in range(3):
        with sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
            assert session.run("case", [torch.ones(1, 32)]).outcome is Outcome.OK
    zygotes = set(launcher.living_zygotes())
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
        assert session.run("case", [torch.ones(1, 32)]).outcome is Outcome.OK
    assert set(launcher.living_zygotes()) == zygotes


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_several_dtypes_and_kernels_in_one_session(operator: OpWorkspace) -> None:
    source = kernels.HEAD + (
        "import functools\n\n\n"
        "@functools.lru_cache\n"
        "def build(dtype, width):\n"
        + "    "
        + kernels.KERNEL.strip().replace("\n", "\n    ").replace("32", "width").replace("pypto.DT_FPwidth", "dtype")
        + "\n    return double_kernel\n\n\n"
        "TYPES = {torch.float32: pypto.DT_FP32, torch.float16: pypto.DT_FP16, torch.bfloat16: pypto.DT_BF16,\n"
        "         torch.int32: pypto.DT_INT32}\n\n\n"
        "def double_wrapper(x):\n"
        "    out = torch.empty_like(x)\n"
        "    build(TYPES[x.dtype], x.shape[1])(x, out)\n"
        "    return out\n"
    )
    operator.impl.write_text(source.replace("tile * 2.0", "pypto.add(tile, tile)"))
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
        for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.float32):
            for width in (32, 64):
                x = (torch.randn(17, width) * 100).to(dtype)
                result = session.run(f"{dtype}{width}", [x])
                assert result.outcome is Outcome.OK, result.detail
                assert torch.equal(result.outputs[0], x + x)


def test_without_pypto(monkeypatch: pytest.MonkeyPatch, operator: OpWorkspace) -> None:
    from pypto_op.backends import calculator

    monkeypatch.setattr(calculator, "find_ingredients", lambda: None)
    available = sim.SimBackend().availability()
    assert not available.ok
    assert "make setup" in available.reason
    with pytest.raises(InfraError, match="not installed"):
        sim.SimBackend().open(operator.impl, "double_wrapper", operator)
    done = CliRunner().invoke(doctor, [], standalone_mode=False)
    assert done.return_value == ExitCode.INFRA


def test_with_another_release_of_pypto(monkeypatch: pytest.MonkeyPatch, operator: OpWorkspace, tmp_path: Path) -> None:
    """0.2.1 keeps its calculator elsewhere: no verdict, and the words name the release and the remedy."""
    from pypto_op.backends import calculator

    found = calculator.find_ingredients()
    assert found is not None and not calculator.other_release(found)
    moved = dataclasses.replace(found, lib_dir=tmp_path)
    monkeypatch.setattr(calculator, "find_ingredients", lambda: moved)
    available = sim.SimBackend().availability()
    assert not available.ok and not available.numeric
    assert "no calculator where 0.2.0 has it" in available.reason and "install pypto==0.2.0" in available.reason
    with pytest.raises(InfraError, match=r"has no calculator where 0\.2\.0 has it"):
        sim.SimBackend().open(operator.impl, "double_wrapper", operator)
    assert CliRunner().invoke(doctor, [], standalone_mode=False).return_value == ExitCode.INFRA


def test_doctor_as_a_document() -> None:
    command = [sys.executable, "-m", "pypto_op.cli", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    document = json.loads(done.stdout)
    assert schema.findings(document, "doctor") == []
    assert done.returncode == (0 if document["sim"]["ok"] and document["sim"]["numeric"] else 3)
    names = [finding["name"] for finding in document["findings"]]
    assert {"python", "torch", "pypto", "c++ tool chain", "calculator", "npu", "node", "memory"} <= set(names)


@pytest.mark.usefixtures("no_compiler")
def test_doctor_names_what_is_missing_what_it_costs_and_what_mends_it() -> None:
    done = CliRunner().invoke(doctor, [], standalone_mode=False)
    assert done.return_value == ExitCode.INFRA, "structure only gives no verdict on numbers"
    assert "never a PASS on precision" in done.output
    assert "-> apt-get install -y cmake g++ make" in done.output
    assert "sim: structure only" in done.output


@pytest.mark.slow
def test_packages_outside_of_the_site_packages_are_named_and_nothing_is_judged(tmp_path: Path) -> None:
    """Workers would take the frames of such a package for a candidate's own, and refuse a right kernel."""
    import numpy

    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(Path(numpy.__file__).parent, elsewhere / "numpy", copy_function=os.link)
    op = tmp_path / "softmax"
    shutil.copytree(bundle_root() / "examples" / "ops" / "softmax", op)
    first = (
        f"import sys\nsys.path.insert(0, {str(elsewhere)!r})\nfrom pypto_op.cli import main\nmain(sys.argv[1:])"  # a .pth file's
    )
    for words in (["doctor"], ["verify", str(op)]):
        done = subprocess.run([sys.executable, "-c", first, *words], capture_output=True, text=True, check=False)
        said = " ".join((done.stdout + done.stderr).split())
        assert f"numpy lies in {elsewhere}, outside of the site packages" in said, said
        assert done.returncode == 3 and "FAIL" not in said
    environment = {**os.environ, "PYTHONPATH": str(elsewhere)}
    named = [sys.executable, "-m", "pypto_op.cli", "doctor"]
    done = subprocess.run(named, capture_output=True, text=True, env=environment, check=False)
    assert "numpy lies in" not in done.stdout + done.stderr, "PYTHONPATH comes behind what is installed"
