"""Figures of the cost model: the arithmetic, and agreement with what pypto's own script prints."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pypto_op.backends import sim
from pypto_op.backends.cost import read_cost
from pypto_op.vocabulary import Outcome
from pypto_op.workspace import OpWorkspace

from . import kernels
from .conftest import QUICK


def write_launch(folder: Path, cores: list[list[tuple[int, int, int]]], successors: dict[int, list[int]]) -> None:
    """Write what the cost model writes: per core (task, start cycle, end cycle), and the successors of each task."""
    (folder / "CostModelSimulationOutput").mkdir(parents=True)
    document = [
        {
            "blockIdx": i,
            "coreType": "AIV",
            "tasks": [{"seqNo": 0, "taskId": t, "execStart": a, "execEnd": b} for t, a, b in core],
        }
        for i, core in enumerate(cores)
    ]
    document.append({"blockIdx": len(cores), "coreType": "HUB", "tasks": []})
    (folder / "CostModelSimulationOutput" / "_simulate.swim.json").write_text(json.dumps(document))
    lines = ["seqNo,taskId,rootIndex,rootHash,opmagic,leafIndex,leafHash,coreType,psgId,successors"]
    lines += [f"0,{t},0,0,0,0,0,0,0,{','.join(map(str, s))}" for t, s in successors.items()]
    (folder / "dyn_topo.txt").write_text("\n".join(lines) + "\n")


def test_arithmetic(tmp_path: Path) -> None:
    """Two of three cores work; task 2 waits 1800 cycles for its predecessor and 1800 for the scheduler."""
    cores = [[(1, 1800, 5400)], [(2, 9000, 10800)], []]
    write_launch(tmp_path / "output_1", cores, {1: [2], 2: []})
    cost = read_cost(tmp_path)
    assert cost is not None
    assert cost == {
        "launches": 1,
        "end_to_end_us": 5.0,
        "utilisation": round(3 / 15, 6),
        "bubble_ratio": round(1 - 3 / 10, 6),
        "tasks": 2,
        "cores": 3,
        "cores_used": 2,
        "wait_schedule_us": 2.0,
        "wait_predecessor_us": 2.0,
    }


def test_launches_add_up_weighted_by_time(tmp_path: Path) -> None:
    write_launch(tmp_path / "output_1", [[(1, 0, 1800)]], {1: []})
    write_launch(tmp_path / "output_2", [[(1, 0, 1800), (2, 5400, 7200)]], {1: [], 2: []})
    cost = read_cost(tmp_path)
    assert cost is not None
    assert (cost["launches"], cost["tasks"], cost["end_to_end_us"]) == (2, 3, 5.0)
    assert cost["utilisation"] == round((1.0 * 1 + 0.5 * 4) / 5, 6)


def test_launches_behind_the_first_call_do_not_count(tmp_path: Path) -> None:
    for number in (1, 2):
        write_launch(tmp_path / f"output_{number}", [[(1, 0, 1800 * number)]], {1: []})
    cost = read_cost(tmp_path, 1)
    assert cost is not None
    assert (cost["launches"], cost["end_to_end_us"]) == (1, 1.0)


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", "[3]", '[{"coreType": "AIV"}]', '[{"coreType": "AIV", "tasks": [{}]}]'])
def test_files_that_say_nothing(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "output_1" / "CostModelSimulationOutput"
    folder.mkdir(parents=True)
    (folder / "_simulate.swim.json").write_text(text)
    assert read_cost(tmp_path) is None


def test_no_files(tmp_path: Path) -> None:
    assert read_cost(tmp_path) is None
    assert read_cost(tmp_path / "missing") is None


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.usefixtures("numeric")
def test_agrees_with_pyptos_own_script(operator: OpWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pypto

    from pypto_op.backends import debris

    seen: list[Path] = []
    monkeypatch.setattr(debris, "clear", seen.append)
    operator.impl.write_text(kernels.GOOD)
    x = torch.ones(500, 32)
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK, cost_model=True) as session:
        result = session.run("case", [x])
        assert result.outcome is Outcome.OK
        assert result.cost is not None
        output = min(seen[0].glob("output_*"))  # the others are of the worker's own further runs
        scripts = Path(pypto.__file__).parent / "lib" / "scripts"
        figures = output / "CostModelSimulationOutput"
        command = [sys.executable, str(scripts / "draw_swim_lane.py"), str(figures / "_simulate.swim.json")]
        command += [str(output / "dyn_topo.txt"), str(output / "program.json")]
        command += ["--label_type=1", "--time_convert_denominator=1800"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        bubbles = (figures / "bubble_analysis.log").read_text()
    end_to_end = float(re.search(r"End-to-End Time: ([\d.]+)", printed)[1])  # type: ignore[index]
    utilisation = float(re.search(r"Utilization: +([\d.]+)%", printed)[1])  # type: ignore[index]
    tasks = int(re.search(r"Total Task Count:(\d+)", printed)[1])  # type: ignore[index]
    fakes = int(re.search(r"Fake Task Count:(\d+)", printed)[1])  # type: ignore[index]
    waits = sum(map(float, re.findall(r"Wait Schedule Time: ([-\d.e]+)", bubbles)))
    assert result.cost["end_to_end_us"] == pytest.approx(end_to_end, abs=0.006)
    assert result.cost["utilisation"] * 100 == pytest.approx(utilisation, abs=0.006)
    assert result.cost["tasks"] == tasks - fakes
    assert result.cost["wait_schedule_us"] == pytest.approx(waits, rel=1e-3)


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_numbers_do_not_depend_on_the_cost_model(operator: OpWorkspace) -> None:
    operator.impl.write_text(kernels.GOOD.replace("tile * 2.0", "pypto.exp(tile * 0.01)"))
    x = torch.randn(37, 32)
    outputs = []
    for cost_model in (False, True):
        backend = sim.SimBackend()
        with backend.open(operator.impl, "double_wrapper", operator, limits=QUICK, cost_model=cost_model) as session:
            result = session.run("case", [x])
        assert (result.cost is not None) == cost_model
        outputs.append(result.outputs[0])
    assert torch.equal(*outputs)


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_the_judges_own_second_call_costs_the_kernel_nothing(tmp_path: Path) -> None:
    """The first case with numbers from the host is run once more on other values, to see whether the host computed them."""
    root = tmp_path / "custom" / "rmsnorm"
    shutil.copytree(Path(__file__).parents[2] / "examples" / "ops" / "rmsnorm", root)
    workspace = OpWorkspace.at(root)
    values = [torch.randn(9, 16), torch.ones(16), 1e-6]
    with sim.SimBackend().open(workspace.impl, "rmsnorm_wrapper", workspace, limits=QUICK, cost_model=True) as session:
        first, second = session.run("one", values), session.run("two", values)
    assert first.cost is not None and first.launches == first.cost["launches"] == 1
    assert first.cost == second.cost
