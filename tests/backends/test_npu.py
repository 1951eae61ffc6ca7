"""The NPU backend through a stand-in device layer, and its answers where there is no device."""

from __future__ import annotations

import pytest
import torch

from pypto_op.backends import npu, processes
from pypto_op.backends.base import Limits
from pypto_op.backends.registry import get_backend
from pypto_op.errors import ContractError, InfraError
from pypto_op.vocabulary import Mode, Outcome
from pypto_op.workspace import OpWorkspace

from . import kernels
from .standin_npu import Layer

LIMITS = Limits(memory_mb=3000, case_seconds=60, startup_seconds=90, output_bytes=4096)


def test_without_a_device_it_says_why(operator: OpWorkspace) -> None:
    backend = get_backend(Mode.NPU)
    available = backend.availability()
    if available.ok:
        pytest.skip("this machine has an NPU")
    assert available.reason
    assert not available.numeric
    with pytest.raises(InfraError, match="no device"):
        backend.open(operator.impl, "double_wrapper", operator)


def test_the_reason_names_the_first_missing_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata, util

    monkeypatch.setattr(util, "find_spec", lambda name: object())
    monkeypatch.setattr(metadata, "version", lambda name: "1.0")
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    assert "ASCEND_HOME_PATH" in npu.Ascend().find().reason
    monkeypatch.setenv("ASCEND_HOME_PATH", "/usr/local/Ascend/8.5")
    found = npu.Ascend().find()
    assert "/dev/davinci" in found.reason or found.indices
    assert found.versions["cann"] == "8.5"


def test_the_state_of_a_device() -> None:
    """Lines as the manual of npu-smi shows them; nobody has run it here."""
    said = """
        NPU ID                         : 0
        Chip Count                     : 1

        Chip ID                        : 0
        Memory Usage Rate(%)           : 44
        Aicore Usage Rate(%)           : 0
        Aicore Freq(MHZ)               : 1800
        Temperature(C)                 : 38

        Chip Name                      : MCU
        Temperature(C)                 : 36
    """
    assert npu.read_state(said) == {"Aicore Usage Rate(%)": "0", "Aicore Freq(MHZ)": "1800", "Temperature(C)": "38"}
    assert npu.read_state("command not found") == {}
    assert npu.NpuBackend(Layer("no driver")).state() == {}
    assert npu.NpuBackend(Layer()).state()["Aicore Freq(MHZ)"] == "1800"


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
class TestWithStandIn:
    def test_a_case_runs_on_the_device(self, operator: OpWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TILE_FWK_DEVICE_ID", "3")
        operator.impl.write_text(kernels.in_wrapper("print('device', os.environ['TILE_FWK_DEVICE_ID'])"))
        backend = npu.NpuBackend(Layer())
        assert backend.availability().ok
        x = torch.randn(20, 32)
        with backend.open(operator.impl, "double_wrapper", operator, limits=LIMITS, cost_model=True) as session:
            result = session.run("case", [x])
            again = session.run("case", [x[:3].clone()])
        assert result.outcome is Outcome.OK, result.detail
        assert torch.equal(result.outputs[0], x * 2)
        assert torch.equal(again.outputs[0], x[:3] * 2)
        assert (result.launches, result.outputs_from_kernel, result.sentinel_left) == (1, True, (0,))
        assert "device 3" in result.stdout
        assert result.cost is not None
        assert result.cost["kernel_time_us"] == 8.0
        assert result.cost["kernels"] == 2
        assert result.cost["runs"] == 10
        times = [result.cost[f"device_time_{which}us"] for which in ("min_", "", "max_")]
        assert 0 < times[0] <= times[1] <= times[2]
        assert result.cost["device_time_cold_us"] > 0

    def test_losses_are_classified_and_mended(self, operator: OpWorkspace) -> None:
        operator.impl.write_text(
            kernels.in_wrapper(
                "if len(x) == 7: os._exit(0)",
                "if len(x) == 9: os.fork() == 0 and (os.setsid(), time.sleep(600))",
            )
        )
        with npu.NpuBackend(Layer()).open(operator.impl, "double_wrapper", operator, limits=LIMITS) as session:
            outcomes = [session.run(str(rows), [torch.ones(rows, 32)]).outcome for rows in (7, 9, 20)]
            launched = session._conversation._launched  # type: ignore[union-attr]  # noqa: SLF001
            below = [launched.warden, *processes.tree_below(launched.warden)]
        assert outcomes == [Outcome.EXITED, Outcome.FORBIDDEN, Outcome.OK]
        assert all(processes.is_gone(process) for process in below)

    def test_a_failure_names_the_line_of_the_kernel(self, operator: OpWorkspace) -> None:
        """Told by what `Npu` itself prepares: the stand-in's simulator follows no kernel here."""
        operator.impl.write_text(kernels.GOOD.replace("tile * 2.0", "pypto.exp(tile, tile)"))
        line = 1 + operator.impl.read_text().splitlines().index("        pypto.assemble(pypto.exp(tile, tile), [i * 16, 0], out)")
        layer = Layer(worker_class="standin_npu:Quiet")
        with npu.NpuBackend(layer).open(operator.impl, "double_wrapper", operator, limits=LIMITS) as session:
            result = session.run("case", [torch.ones(20, 32)])
        assert result.outcome is Outcome.EXCEPTION
        assert f"double_impl.py:{line}: " in result.stderr and "exp() takes 1 positional" in result.stderr

    def test_a_driver_that_does_not_come_up(self, operator: OpWorkspace) -> None:
        operator.impl.write_text(kernels.GOOD)
        layer = Layer(worker_class="standin_npu:Broken")
        with npu.NpuBackend(layer).open(operator.impl, "double_wrapper", operator, limits=LIMITS) as session:
            result = session.run("case", [torch.ones(2, 32)])
        assert result.outcome is Outcome.UNAVAILABLE
        assert result.detail == "npu:0 cannot be used: Initialize:build/torch_npu: rtSetDevice error"


def test_a_device_that_is_not_there(operator: OpWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE_FWK_DEVICE_ID", "5")
    with pytest.raises(ContractError, match="use one of 0, 3"):
        npu.NpuBackend(Layer()).open(operator.impl, "double_wrapper", operator)


def test_a_session_holds_its_device(
    operator: OpWorkspace, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    layer = Layer()
    monkeypatch.setenv("PYPTO_OP_CACHE", str(tmp_path_factory.mktemp("cache")))
    operator.impl.write_text(kernels.GOOD)
    with npu.NpuBackend(layer).open(operator.impl, "double_wrapper", operator):
        with pytest.raises(InfraError, match="npu:0 is busy"):
            npu.take_lease(0, seconds=0.1)
        npu.take_lease(3, seconds=0.1).release()
    npu.take_lease(0, seconds=0.1).release()


def test_caveats_and_reason_of_a_broken_layer() -> None:
    available = npu.NpuBackend(Layer(reason="no NPU: there is no /dev/davinci<N>")).availability()
    assert (available.ok, available.numeric) == (False, False)
    assert available.caveats
