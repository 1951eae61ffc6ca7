"""`pypto-op benchmark`: what it refuses to time, and what it writes about a kernel that has its PASS."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.calling import Answer, command
from tests.judge.judging import place, sim_problem, verify
from tests.passes import pass_for_bytes
from tests.telling import told_lines

from pypto_op.backends.registry import get_backend
from pypto_op.documents import schema
from pypto_op.errors import ContractError, InfraError
from pypto_op.judge.cases.contract import load_contract
from pypto_op.judge.cases.subject import resolve
from pypto_op.judge.running.away import Told
from pypto_op.perf.admission import refuse_unjudged
from pypto_op.perf.benchmark import _mode_entry, _row, benchmark_operator
from pypto_op.perf.measuring import Request, _states, _time
from pypto_op.perf.samples import Samples, interval, spreads
from pypto_op.pool.pool import Pool
from pypto_op.pool.work import Errand, Job
from pypto_op.proof import evidence
from pypto_op.proof.closure import Loaded
from pypto_op.proof.key import KEY_ENV
from pypto_op.vocabulary import Loader, Mode
from pypto_op.workspace import OpWorkspace

pytestmark = pytest.mark.sim

CASES = [
    {"id": "structure", "level": "L1", "shape": {"N": 16, "D": 32}, "precision": False, "atol": 1e-6, "rtol": 1e-5},
    {"id": "small", "level": "L2", "shape": {"N": 16, "D": 32}, "atol": 1e-6, "rtol": 1e-5},
    {"id": "small_again", "level": "L2", "shape": {"N": 16, "D": 32}, "seed": 7, "atol": 1e-6, "rtol": 1e-5},
    {"id": "edge", "level": "L3", "shape": {"N": 17, "D": 32}, "atol": 1e-6, "rtol": 1e-5},
    {"id": "large", "level": "L4", "shape": {"N": 161, "D": 32}, "atol": 1e-6, "rtol": 1e-5},
]


def benchmark(ws: OpWorkspace, *arguments: str, modes: str = "sim", as_json: bool = True) -> Answer:
    words = ["benchmark", str(ws.root), "--modes", modes, *(["--json"] if as_json else []), *arguments]
    return command(*words)


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> OpWorkspace:
    """sum_diff with a PASS of its whole suite; tests that change it give it back as it was."""
    if problem := sim_problem():
        pytest.skip(problem)
    patch = pytest.MonkeyPatch()
    patch.setenv(KEY_ENV, str(tmp_path_factory.mktemp("account") / "seal.key"))
    ws = place("sum_diff", tmp_path_factory.mktemp("perf"), cases=CASES)
    assert verify(ws.root).code == 0
    yield ws
    patch.undo()


@pytest.fixture(scope="module")
def timed(verified: OpWorkspace) -> Answer:
    answer = benchmark(verified, "--repeats", "2")
    assert answer.stdout == verified.perf_report.read_text(encoding="utf-8"), "--json prints the file's bytes"
    return answer


def test_result(verified: OpWorkspace, timed: Answer) -> None:
    assert timed.code == 0, timed.stderr
    schema.check(timed.report, "perf_result", file=verified.perf_report)
    passed = pass_for_bytes(verified)
    assert passed is not None
    assert (timed.report["verdict_seal"], timed.report["hashes"]) == (passed["seal"], passed["hashes"])
    assert timed.report["caveats"], "what the cost model does not see stands beside its figures"


def test_one_row_per_shape_of_the_ordinary_and_the_long_level(timed: Answer) -> None:
    rows = timed.report["per_shape_results"]
    assert [(row["case_id"], row["status"]) for row in rows] == [("small", "ok"), ("large", "ok")]
    assert [row["label"] for row in rows] == ["N=16, D=32 float32", "N=161, D=32 float32"]
    assert (timed.report["total_cases"], timed.report["passed_cases"], timed.report["failed_cases"]) == (2, 2, 0)


def test_figures_of_the_cost_model(timed: Answer) -> None:
    small, large = timed.report["per_shape_results"]
    for row in (small, large):
        assert len(row["samples"]) == 4, "two repeats, each with the suite's seed and a fresh one"
        assert row["minimum"] <= row["median"] <= row["maximum"]
        assert row["spread"] == 0.0, "the cost model is deterministic"
        assert 0.0 < row["cost"]["utilisation"] <= 1.0
    assert large["median"] > small["median"]
    assert large["cost"]["tasks"] > small["cost"]["tasks"]


def test_noise_is_that_of_equal_inputs(verified: OpWorkspace, timed: Answer) -> None:
    """Another length is other work: it is told beside the noise, not as noise."""
    assert spreads([(42, 10.0), (7, 12.0), (42, 10.0), (7, 12.0)]) == (0.0, pytest.approx(2 / 11))
    assert spreads([(42, 10.0), (7, 12.0)]) == (None, pytest.approx(2 / 11))
    assert spreads([(42, 10.0), (42, 11.0)]) == (pytest.approx(1 / 10.5), None)
    assert all(row["across_inputs"] == 0.0 for row in timed.report["per_shape_results"])


def test_interval_of_a_ratio() -> None:
    low, high = interval([10.0, 10.2, 9.9, 10.1, 10.0], [8.0, 8.1, 7.9, 8.2, 8.0])
    assert 0.75 < low <= 0.8 <= high < 0.85


def test_two_kernels_take_turns_on_the_same_inputs(verified: OpWorkspace, timed: Answer) -> None:
    told = benchmark(verified, "--levels", "L2", "--repeats", "2", "--compare", str(verified.impl))
    assert told.code == 0, told.stderr
    compared = told.report["compared"]
    schema.check(told.report, "perf_result", file=verified.perf_report)
    assert compared["geometric_mean"] == pytest.approx(1.0)
    assert [(row["ratio"], row["low"], row["high"], row["null"]) for row in compared["rows"]] == [(1.0, 1.0, 1.0, 1.0)]
    history = benchmark(verified, "--history")
    assert len(history.report) >= 2 and history.report[-1]["impl"] == told.report["hashes"]["impl"]
    assert "N=16, D=32 float32" in benchmark(verified, "--history", as_json=False).stdout


def test_a_kernel_without_a_pass_is_nothing_to_compare_with(verified: OpWorkspace, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    assert "no such kernel to compare with" in refused(verified, "--compare", str(other))
    other.write_text(verified.impl.read_text() + "\n")
    assert "no sealed PASS for the kernel to compare with" in refused(verified, "--compare", str(other))


def test_a_kernel_that_is_verified_as_the_remedy_says_can_be_compared_with(verified: OpWorkspace, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(verified.impl.read_text(encoding="utf-8") + "# another\n", encoding="utf-8")
    told = refused(verified, "--compare", str(other))
    words = re.findall(r"`pypto-op (verify .*?)`", told)[0].split()
    assert command(*words, "--modes", "sim", "--quiet").code == 0
    answer = benchmark(verified, "--levels", "L2", "--compare", str(other), as_json=False)
    told = " ".join(answer.stdout.split())
    assert answer.code == 0 and "small, sim: takes 1.000 of the time of other.py [1.000, 1.000]" in told


def test_table_for_people(verified: OpWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # a worker of pytest-xdist has it
    answer = benchmark(verified, "--levels", "L2", as_json=False)
    assert answer.code == 0
    assert "N=16, D=32 float32" in answer.stdout and "utilisation" in answer.stdout
    assert "races and missing synchronisation" in answer.stdout, "a pipe is not 80 columns wide: rows and sentences stay whole"
    assert "cost model" in answer.stdout


# -- what is not timed ---------------------------------------------------------------------------------------------


def refused(ws: OpWorkspace, *arguments: str, modes: str = "sim") -> str:
    answer = benchmark(ws, *arguments, modes=modes)
    assert (answer.code, answer.stdout) == (2, "")
    assert len(told_lines(answer.stderr)) == 1
    assert not ws.perf_report.exists(), "an earlier result does not stay beside bytes that it is not about"
    return answer.stderr


@pytest.fixture
def unverified(tmp_path: Path, verified: OpWorkspace) -> OpWorkspace:
    """sum_diff without any verdict; `verified` only stands for its key."""
    ws = place("sum_diff", tmp_path, cases=CASES[1:3])
    ws.perf_report.write_text("{}")
    return ws


def test_no_verdict(unverified: OpWorkspace) -> None:
    assert "no sealed PASS for exactly these bytes" in refused(unverified)


def test_no_implementation(unverified: OpWorkspace) -> None:
    unverified.impl.unlink()
    assert "the implementation is missing" in refused(unverified)


def test_a_verdict_that_somebody_wrote(unverified: OpWorkspace, verified: OpWorkspace) -> None:
    report = json.loads(verified.report.read_text())
    report["hashes"] |= evidence.file_hashes(unverified)
    unverified.report.write_text(json.dumps(report))
    assert "no sealed PASS" in refused(unverified)


@pytest.mark.parametrize("file", ["impl", "golden", "suite", "interfaces", "test_inputs", "spec"])
def test_one_byte_changed(verified: OpWorkspace, file: str) -> None:
    path: Path = getattr(verified, file)
    before = path.read_bytes()
    try:
        path.write_bytes(before + b"\n")
        assert "no sealed PASS for exactly these bytes" in refused(verified)
    finally:
        path.write_bytes(before)
    assert pass_for_bytes(verified) is not None


def test_a_failing_kernel(unverified: OpWorkspace) -> None:
    source = unverified.impl.read_text()
    unverified.impl.write_text(source.replace("x_tile - y_tile", "y_tile - x_tile"))
    assert verify(unverified.root).code == 1
    assert "no sealed PASS" in refused(unverified)


@pytest.mark.parametrize("part", [("--case", "small"), ("--policy", "mere_mare@1")])
def test_a_pass_of_a_part_or_by_another_rule(unverified: OpWorkspace, part: tuple[str, ...]) -> None:
    assert verify(unverified.root, *part).code == 0
    assert "a part of the suite only, or another tolerance" in refused(unverified)


def test_earlier_benchmarks_are_read_here(verified: OpWorkspace) -> None:
    answer = benchmark(verified, "--history", "--pool", "ray://local")
    assert (answer.code, answer.stderr.strip()) == (2, "pypto-op: --history takes no --pool; leave it out")


def test_no_shape_to_time(verified: OpWorkspace) -> None:
    assert "compares numbers" in refused(verified, "--levels", "L1")


def test_no_machine_to_time_on(verified: OpWorkspace) -> None:
    from pypto_op.backends.npu import NpuBackend

    if NpuBackend().availability().ok:
        pytest.skip("there is an NPU")
    answer = benchmark(verified, modes="npu")
    assert (answer.code, answer.stdout) == (3, "")
    assert len(told_lines(answer.stderr)) == 1


def test_a_mode_without_a_pass(verified: OpWorkspace) -> None:
    """A verdict given in sim does not open the benchmark on a device."""
    verdict = pass_for_bytes(verified)
    assert verdict is not None
    refuse_unjudged(verified, verdict, [Mode.SIM])
    with pytest.raises(ContractError, match="says nothing about npu"):
        refuse_unjudged(verified, verdict, [Mode.SIM, Mode.NPU])


def test_a_file_that_changes_while_it_is_timed(verified: OpWorkspace) -> None:
    before = verified.spec.read_bytes()
    try:
        with pytest.raises(ContractError, match="changed while it was timed: spec"):
            benchmark_operator(
                verified, modes=[Mode.SIM], levels=["L2"], progress=lambda record: verified.spec.write_bytes(before + b" ")
            )
        assert not verified.perf_report.exists()
    finally:
        verified.spec.write_bytes(before)


class Elsewhere(Pool):
    """A cluster of one host, whose files are not all those of this one."""

    away = True

    def run(self, errand: Errand, jobs: Sequence[Job], **how: Any) -> Iterator[tuple[Job, Any]]:
        assert [job.alone for job in jobs] == [True], "whoever times has the machine for himself"
        with errand.away().open() as bench:
            how["greet"](bench.hello)
            answer = bench.do(jobs[0].payload, lambda record: None)
        yield jobs[0], answer._replace(told=Told({**answer.told.loaded, str(Loader.CANDIDATE): {self.other: "0" * 64}}, {}))


def test_figures_of_a_host_whose_files_are_others_are_refused(verified: OpWorkspace, tmp_path: Path) -> None:
    other = tmp_path / "helper.py"
    other.write_text("FACTOR = 2\n")
    pool = Elsewhere()
    pool.other = str(other)
    with pytest.raises(InfraError, match=r"another file than here was loaded where it was timed: \S*helper.py"):
        benchmark_operator(verified, modes=[Mode.SIM], levels=["L2"], pool=pool)
    assert not verified.perf_report.exists()


def test_timed_outputs_are_judged_too(unverified: OpWorkspace) -> None:
    """A kernel that is wrong while it is timed has no time: here one that never had a PASS, put past the gate."""
    unverified.impl.write_text(unverified.impl.read_text().replace("x_tile - y_tile", "y_tile - x_tile"))
    contract = load_contract(unverified)
    backend = get_backend(Mode.SIM)
    cases, samples = contract.select(["L2"], None), Samples()
    _time(
        resolve(unverified, 1),
        contract,
        cases,
        {Mode.SIM: backend},
        {Mode.SIM: backend.availability()},
        Request(modes=[Mode.SIM]),
        7,
        samples,
        None,
        Loaded(),
    )
    row = _row(cases[0], Mode.SIM, samples.costs(cases[0], Mode.SIM), samples.fault(cases[0], Mode.SIM))
    assert row["status"] == "failed"
    assert "outside the tolerance" in row["reason"]


def test_a_device_tells_its_state() -> None:
    from tests.backends.standin_npu import Layer

    from pypto_op.backends.npu import NpuBackend

    backend = NpuBackend(Layer())
    states = _states({Mode.NPU: backend, Mode.SIM: get_backend(Mode.SIM)})
    assert states == {Mode.NPU: {"Aicore Freq(MHZ)": "1800", "Temperature(C)": "40"}}
    entry = _mode_entry(Mode.NPU, backend.availability(), [states, {}])
    assert entry["state_before"]["Aicore Freq(MHZ)"] == "1800" and "state_after" not in entry, "it was gone"


@pytest.mark.slow
def test_a_device_that_vanishes_while_it_times(unverified: OpWorkspace, tmp_path: Path) -> None:
    """Each shape that was not timed says why, and has no time; no earlier figure stands in."""
    from tests.backends.standin_npu import Layer

    from pypto_op.backends.npu import NpuBackend

    layer = Layer(worker_class="standin_npu:Vanishing")
    layer.variables["STANDIN_HERE"] = str(tmp_path / "gone")
    backend = NpuBackend(layer)
    contract = load_contract(unverified)
    cases, samples = contract.select(["L2"], None), Samples()
    available = {Mode.NPU: backend.availability()}
    subject = resolve(unverified, 1)
    _time(subject, contract, cases, {Mode.NPU: backend}, available, Request(modes=[Mode.NPU]), 7, samples, None, Loaded())
    row = _row(cases[0], Mode.NPU, samples.costs(cases[0], Mode.NPU), samples.fault(cases[0], Mode.NPU))
    assert (row["status"], row["median"], row["samples"]) == ("failed", None, [])
    assert "the device is lost" in row["reason"]
