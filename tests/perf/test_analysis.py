"""What is told of a launch: usage, gaps, critical path, leaves and chains, on tasks whose answers are known by hand."""

from __future__ import annotations

import configparser
import importlib.util
import json
from pathlib import Path

import pytest

from pypto_op.backends.cost import PROGRAM
from pypto_op.backends.launches import CYCLES_PER_US, TASK_TIMES, TOPOLOGY
from pypto_op.errors import ContractError
from pypto_op.hardware import MACHINE
from pypto_op.perf.analysis import analyse
from pypto_op.perf.bound import Work, bound_of
from pypto_op.perf.launches import read_launch
from pypto_op.perf.lever import levers


def folder(path: Path) -> Path:
    """A launch: a cube task, two vector tasks that follow it in a chain, and one that waits for nothing but the scheduler."""

    def task(number: int, start: float, end: float) -> dict[str, int]:
        return {"seqNo": 0, "taskId": number, "execStart": int(start * CYCLES_PER_US), "execEnd": int(end * CYCLES_PER_US)}

    cores = [
        {"coreType": "AIC", "blockIdx": 0, "tasks": [task(1, 1.0, 5.0)]},
        {"coreType": "AIC", "blockIdx": 1, "tasks": []},
        {"coreType": "AIV", "blockIdx": 0, "tasks": [task(2, 6.0, 8.0), task(4, 8.0, 9.0)]},
        {"coreType": "AIV", "blockIdx": 1, "tasks": [task(3, 9.0, 11.0)]},
        {"coreType": "AICPU", "blockIdx": 0, "tasks": []},
    ]
    rows = ["seqNo,taskId,rootIndex,leafHash,successors", "0,1,0,77,2", "0,2,0,88,3", "0,3,0,88,", "0,4,0,99,"]
    operation = {"opcode": "EXP", "line": 12, "op_attr": {"IS_CUBE": False}}
    product = {"opcode": "A_MUL_B", "line": 9, "op_attr": {"IS_CUBE": True}}
    of_pypto = {"opcode": "DIV", "line": 404, "file": "/venv/site-packages/pypto/operator.py"}
    loop = "TENSOR_ROWS_Unroll1"
    program = {
        "functions": [
            {"rawname": loop, "file": "k.py", "line": 7, "hash": "1", "operations": []},
            {
                "rawname": "TENSOR_ROWS_Unroll1_PATH0_hiddenfunc0_leaf0",
                "hash": "77",
                "operations": [product, {"opcode": "COPY_IN"}, of_pypto],
            },
            {"rawname": f"{loop}_PATH0_hiddenfunc0_leaf1", "hash": "88", "operations": [operation]},
        ]
    }
    for name, text in ((TASK_TIMES, json.dumps(cores)), (TOPOLOGY, "\n".join(rows)), (PROGRAM, json.dumps(program))):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text, encoding="utf-8")
    return path


def test_a_launch_by_hand(tmp_path: Path) -> None:
    found = analyse(read_launch(folder(tmp_path)))
    assert found.us == pytest.approx(10.0), "from the first start to the last end"
    cube, vector = found.usage
    assert (cube.cores, cube.used, cube.tasks, cube.utilisation) == (2, 1, 1, pytest.approx(0.2))
    assert (vector.used, vector.busy, vector.balance) == (2, pytest.approx(0.25), pytest.approx(2.5 / 3))
    assert [task.name[1] for task in found.path] == [1, 2, 3] and found.path_busy == pytest.approx(0.8)
    assert (found.waits_task_us, found.waits_scheduler_us) == (pytest.approx(4 + 7), pytest.approx(1 + 1))
    assert [(chain.leaves, chain.count, chain.waits_us) for chain in found.chains] == [(("88", "88"), 1, pytest.approx(1.0))]


def test_a_leaf_leads_to_lines_of_the_kernel(tmp_path: Path) -> None:
    rows = {row.hash: row for row in analyse(read_launch(folder(tmp_path))).leaves}
    leaf = rows["77"].leaf
    assert leaf is not None
    assert (leaf.loop, leaf.line, leaf.unit, leaf.lines, leaf.moves) == ("ROWS", 7, "cube", (9,), 1)
    assert (rows["88"].tasks, rows["88"].critical) == (2, pytest.approx(0.5))
    assert rows["99"].leaf is None, "the graph does not know it"


def test_the_lever_names_figures_and_a_place(tmp_path: Path) -> None:
    analysis = analyse(read_launch(folder(tmp_path)))
    found = levers(analysis, bound_of(Work(bytes=1000)))
    assert found and any("line" in lever.why or "loop ROWS" in lever.why for lever in found)
    near = bound_of(Work(bytes=int(9 * MACHINE.memory_bytes_per_us)))
    assert levers(analysis, near)[0].name == "none"


@pytest.mark.parametrize("at_work", [2, 7])
def test_no_advice_against_the_other(at_work: int, tmp_path: Path) -> None:
    """Cores that wait for the scheduler want fewer tasks; where most have none at all, they want more."""
    place = folder(tmp_path)
    late = [
        {"seqNo": 0, "taskId": n << 20, "execStart": int(3 * n * CYCLES_PER_US), "execEnd": int((3 * n + 1) * CYCLES_PER_US)}
        for n in range(3)
    ]
    cores = [{"coreType": "AIV", "blockIdx": n, "tasks": late if n < at_work else []} for n in range(8)]
    (place / TASK_TIMES).write_text(json.dumps(cores), encoding="utf-8")
    alone = [f"0,{n << 20},0,88," for n in range(3)]
    (place / TOPOLOGY).write_text("\n".join(["seqNo,taskId,rootIndex,leafHash,successors", *alone]), encoding="utf-8")
    found = analyse(read_launch(place))
    assert found.waits_scheduler_us > 1
    names = [lever.name.partition(":")[0] for lever in levers(found, bound_of(Work(bytes=1000)))]
    assert ("more tasks at once" in names, "fewer, larger tasks" in names) == (at_work == 2, at_work == 7)


def test_steps_in_a_row_are_told_first(tmp_path: Path) -> None:
    """A row of tasks of one loop, each after the one before, on two cores of many: larger steps, not smaller ones."""
    place = folder(tmp_path)
    turns = range(1, 7)
    rows = [
        {"seqNo": 0, "taskId": n << 20, "execStart": int(2 * n * CYCLES_PER_US), "execEnd": int((2 * n + 1) * CYCLES_PER_US)}
        for n in turns
    ]
    cores = [{"coreType": "AIV", "blockIdx": n, "tasks": rows if n == 0 else []} for n in range(8)]
    (place / TASK_TIMES).write_text(json.dumps(cores), encoding="utf-8")
    after = [f"0,{n << 20},0,88,{(n + 1) << 20 if n < 6 else ''}" for n in turns]
    (place / TOPOLOGY).write_text("\n".join(["seqNo,taskId,rootIndex,leafHash,successors", *after]), encoding="utf-8")
    found = analyse(read_launch(place))
    assert found.serial is not None
    assert (found.serial.loop, found.serial.steps, found.serial.us) == ("ROWS", 6, pytest.approx(11.0))
    first = levers(found, bound_of(Work(bytes=1000)))[0]
    assert first.name.startswith("fewer steps in a row") and "6 steps of loop ROWS" in first.why
    alone = [f"0,{n << 20},0,88," for n in turns]
    (place / TOPOLOGY).write_text("\n".join(["seqNo,taskId,rootIndex,leafHash,successors", *alone]), encoding="utf-8")
    assert analyse(read_launch(place)).serial is None, "tasks of one core that need nothing of each other are no row"


def test_no_task_times(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="holds no task times"):
        read_launch(tmp_path)


def test_bounds() -> None:
    found = bound_of(Work(bytes=1_420_800, product_flop=0, vector_flop=0))
    assert found.us == pytest.approx(1.0) and found.by == "memory" and found.least_us < found.us
    product = bound_of(Work(bytes=1, product_flop=2 * 4096**3, bits=16))
    assert product.by == "cube arithmetic" and product.us == pytest.approx(377.8, rel=1e-3)
    wide = bound_of(Work(bytes=1, product_flop=2 * 4096**3, bits=32))
    assert wide.us == pytest.approx(4 * product.us) and "assumed" in wide.assumed and not product.assumed
    assert wide.least_us == pytest.approx(product.us), "no target is refused for what is only assumed"
    assert bound_of(Work(bytes=MACHINE.cache_bytes + 1)).cached_us == bound_of(Work(bytes=MACHINE.cache_bytes + 1)).memory_us


def test_the_machine_is_the_wheels() -> None:
    spec = importlib.util.find_spec("pypto")
    if spec is None or spec.submodule_search_locations is None:
        pytest.skip("pypto is not installed")
    said = configparser.ConfigParser(strict=False, allow_no_value=True)
    said.read(Path(spec.submodule_search_locations[0]) / "lib" / "configs" / "A2A3.ini", encoding="utf-8")
    soc, core, rates = said["SoCInfo"], said["AICoreSpec"], said["AICoreMemoryRates"]
    assert (MACHINE.cube_cores, MACHINE.vector_cores) == (int(soc["cube_core_cnt"]), int(soc["vector_core_cnt"]))
    assert (MACHINE.cache_bytes, MACHINE.megahertz) == (int(soc["l2_size"]), int(core["cube_freq"]))
    assert (MACHINE.cube_side, MACHINE.vector_lanes) == (int(core["cube_k_size"]), int(core["vec_calc_size"]))
    assert (MACHINE.memory_rate, MACHINE.cache_rate) == (int(rates["ddr_rate"]), int(rates["l2_rate"]))
