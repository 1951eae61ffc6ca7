"""`pypto-op triage` on verdicts that the judge really gave, and on such verdicts with one signal changed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.judge.judging import command, place, verify
from tests.telling import told_lines

from pypto_op.diagnose.triage import _choice
from pypto_op.documents import schema
from pypto_op.workspace import FAILURE_FILES, OpWorkspace
from pypto_op_lint.guard.commands import judge_command
from pypto_op_lint.guard.paths import Surroundings
from pypto_op_lint.guard.policy import Policy

pytestmark = pytest.mark.usefixtures("private_key")

CASES = [{"id": "tile", "level": "L2", "shape": {"N": 40, "D": 64}}]


@pytest.fixture
def operator(tmp_path: Path) -> OpWorkspace:
    return place("sum_diff", tmp_path, cases=CASES)


def edit(operator: OpWorkspace, before: str, after: str) -> None:
    source = operator.impl.read_text()
    assert before in source
    operator.impl.write_text(source.replace(before, after))


def routed(operator: OpWorkspace, *words: str) -> dict[str, Any]:
    answer = command("triage", str(operator.root), "--json", *words)
    assert answer.code == 0, answer
    found: dict[str, Any] = json.loads(answer.stdout)
    schema.check(found, "triage")
    return found


FAULTS = {
    "wrong values": ("x_tile * 2.0", "x_tile * 3.0", "precision", "pypto-precision-debug", "wrong-numbers"),
    "no tile": ("            pypto.set_vec_tile_shapes(16, 32)\n", "", "tile_shape", "pypto-general-debug", "said"),
    "environment": (
        "    total = torch.empty",
        "    raise ImportError('libhccl.so: cannot open shared object file: No such file or directory')\n    total = torch.empty",
        "infra",
        "pypto-environment-setup",
        "environment",
    ),
    "device memory": (
        "    total = torch.empty",
        "    raise RuntimeError('rtMalloc failed. size:68719476736 ret:207001')\n    total = torch.empty",
        "oom",
        "pypto-machine-workspace",
        "said",
    ),
    "device error": (
        "    total = torch.empty",
        "    raise RuntimeError('NPU function error: AclrtSynchronizeStream, error code is 507015')\n    total = torch.empty",
        "aicore",
        "pypto-aicore-error-locator",
        "said",
    ),
    "crash": (
        "    total = torch.empty",
        "    os.kill(os.getpid(), 11)\n    total = torch.empty",
        "host_crash",
        "pypto-host-stacktrace-analyzer",
        "said",
    ),
    "one output": ("    return total, diff", "    return total", "structural", "pypto-general-debug", "category"),
    "unwritten": (
        "            pypto.assemble(x_tile - y_tile, [row, 0], diff)\n",
        "",
        "precision",
        "pypto-general-debug",
        "empty",
    ),
}


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_real_failure_leads_to_its_one_skill(fault: str, operator: OpWorkspace) -> None:
    before, after, category, skill, row = FAULTS[fault]
    edit(operator, before, after)
    assert verify(operator.root, "--case", "tile").code == (3 if category == "infra" else 1), "the machine's fault is no FAIL"
    found = routed(operator)
    assert (found["category"], found["skill"], found["row"]) == (category, skill, row), found
    assert found["contradictions"] == [] and found["notes"] == [], found
    assert found["why"] and found["signals"]
    if found["hits"] and fault != "crash":
        assert found["hits"][0]["log_line"] is None or found["hits"][0]["log_file"], found["hits"][0]
    told = command("triage", str(operator.root)).stdout
    assert told.startswith(f"{category}: load {skill}")


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_a_failure_leaves_a_whole_folder_and_is_diagnosed_from_it(operator: OpWorkspace) -> None:
    edit(operator, "    total = torch.empty", "    raise KeyError('TILE_FWK_DEVICE_ID')\n    total = torch.empty")
    verify(operator.root, "--case", "tile")
    folder = operator.failure_dir("tile")
    assert {path.name for path in folder.iterdir()} >= set(FAILURE_FILES)
    record = json.loads((folder / "failure.json").read_text())
    schema.check(record, "failure")
    assert record["case_id"] == "tile" and record["outcome"] == "exception"
    for given in (folder, operator.root):
        answer = command("diagnose", str(given), "--json")
        hit = json.loads(answer.stdout)["hits"][0]
        assert answer.code == 0 and hit["id"] == "device-id-unset" and hit["log_file"]
    (folder / "stderr.txt").unlink()
    assert "stderr.txt is missing" in command("diagnose", str(folder)).stderr
    edit(operator, "KeyError('TILE", "KeyError('no TILE")
    assert "has changed since this run" in command("diagnose", str(folder)).stderr
    told = routed(operator)
    assert any("verify again" in note for note in told["notes"])
    assert told["next"][0] == f"pypto-op verify {shlex.quote(str(operator.root))}", "all else is about the earlier kernel"


@pytest.fixture
def report(operator: OpWorkspace) -> dict[str, Any]:
    """A real verdict on wrong numbers, to change one signal of."""
    edit(operator, "x_tile * 2.0", "x_tile * 3.0")
    verify(operator.root, "--case", "tile")
    found: dict[str, Any] = json.loads(operator.report.read_text())
    return found


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_one_changed_signal_changes_the_route(operator: OpWorkspace, report: dict[str, Any]) -> None:
    def route(**change: Any) -> dict[str, Any]:
        changed = json.loads(json.dumps(report))
        changed["first_failure"].update(change)
        operator.report.write_text(json.dumps(changed))
        return routed(operator)

    near = route(cpu_reproducer_candidate=True)
    assert near["skill"] is None and near["near_miss"] and "pypto-op reproduce" in near["next"][0]
    graph = route(divergence_fingerprint="ir_divergence")
    assert graph["skill"] == "pypto-pass-error-locator"
    device = route(divergence_fingerprint="kernel_ok_npu_only")
    assert device["skill"] != "pypto-precision-debug" and device["row"].startswith("device-side")
    drift = route(divergence_fingerprint="kernel_ok_npu_only", drift_onset_iter=3)
    assert (drift["skill"], drift["page"]) == ("pypto-op-verify", "references/intermediate-snapshot-automation.md")
    assert route(divergence_fingerprint="all_fail")["skill"] == "pypto-precision-debug"
    silent = route(failure_category="other")
    assert (silent["category"], silent["skill"]) == ("precision", "pypto-precision-debug"), "the numbers decide"


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_signals_that_contradict_are_said(operator: OpWorkspace, report: dict[str, Any], tmp_path: Path) -> None:
    found = routed(operator, "--log", "RuntimeError: rtMalloc failed. size:1 ret:207001")
    assert found["skill"] == "pypto-machine-workspace"
    assert found["contradictions"] == ["the verdict says precision, the words say oom (device-out-of-memory)"]
    two = "rtMalloc failed. ret:207001\nerrorStr: VEC instruction error: the ub address out of bounds\n"
    assert any("of oom and of aicore" in words for words in routed(operator, "--log", two)["contradictions"])
    other = {**report["checks"][0], "id": "other"}
    report["checks"].append(other)
    report["first_failure"]["divergence_fingerprint"] = "kernel_ok_npu_only"
    operator.report.write_text(json.dumps(report))
    assert any("but sim fails in case" in words for words in routed(operator)["contradictions"])
    empty = report["checks"][0]["modes"]["sim"]["per_tensor"]
    for leaf in empty:
        leaf["zero_output"] = not leaf["all_close"]
    report["first_failure"].update(divergence_fingerprint=None, cpu_reproducer_candidate=True)
    operator.report.write_text(json.dumps(report))
    found = routed(operator)
    assert found["row"] == "empty" and any("near miss" in words for words in found["contradictions"])


@pytest.mark.sim
@pytest.mark.usefixtures("numeric", "report")
def test_wrong_numbers_lead_to_the_line_by_the_commands_that_are_printed(operator: OpWorkspace) -> None:
    compare, workarounds, maps = routed(operator)["next"]
    assert "debug precision-debug" in workarounds and "--error-maps" in maps
    answer = command(*shlex.split(compare)[1:], "--json")
    assert answer.code == 0, answer.stderr
    (wrong,) = [number for number, text in enumerate(operator.impl.read_text().splitlines(), 1) if "* 3.0" in text]
    assert abs(json.loads(answer.stdout)["divergences"][0]["line"] - wrong) <= 3


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize(("fault", "tool"), [("crash", "host-stacktrace-analyzer"), ("device error", "aicore-error-locator")])
def test_what_a_run_printed_goes_to_the_skills_own_tool(fault: str, tool: str, operator: OpWorkspace) -> None:
    edit(operator, *FAULTS[fault][:2])
    verify(operator.root, "--case", "tile")
    (line,) = [line for line in routed(operator)["next"] if f"debug {tool}" in line]
    assert command(*shlex.split(line)[1:]).code in (0, 1), line


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_a_run_without_a_verdict_is_said_not_routed(operator: OpWorkspace) -> None:
    operator.test_inputs.write_text("")
    assert verify(operator.root, "--case", "tile").report["status"] == "ERROR"
    answer = command("triage", str(operator.root))
    assert answer.code == 2 and "gave no verdict" in answer.stderr and len(told_lines(answer.stderr)) == 1, answer.stderr


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_what_was_mended_is_not_asked_for_again(operator: OpWorkspace) -> None:
    right = operator.test_inputs.read_text()
    operator.test_inputs.write_text("")
    assert verify(operator.root, "--case", "tile").report["status"] == "ERROR"
    operator.test_inputs.write_text(right)
    told = command("triage", str(operator.root)).stderr
    assert f"changed since; run `pypto-op verify {operator.root}`" in told and "test_inputs" not in told


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_an_interrupted_run_is_called_so(operator: OpWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as once:
        once.setattr("pypto_op.judge.verify.run_cases", broken)
        assert verify(operator.root).code == 130
    answer = command("triage", str(operator.root))
    assert (
        answer.code == 2 and f"was interrupted before it gave a verdict; run `pypto-op verify {operator.root}`" in answer.stderr
    )


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_nothing_to_triage_is_one_line(operator: OpWorkspace, tmp_path: Path) -> None:
    answer = command("triage", str(operator.root))
    assert answer.code == 2 and "no run has failed here" in answer.stderr and len(told_lines(answer.stderr)) == 1
    verify(operator.root, "--case", "tile")
    answer = command("triage", str(operator.root))
    assert answer.code == 2 and "nothing to triage" in answer.stderr and len(told_lines(answer.stderr)) == 1
    found = routed(operator, "--log", "Segmentation fault")
    assert found["skill"] == "pypto-host-stacktrace-analyzer" and "only the words" in found["notes"][0]
    operator.report.write_text("{broken")
    assert command("triage", str(operator.root)).code == 2
    operator.report.unlink()
    assert routed(operator, "--log", "lost heartbeat")["status"] is None


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_a_log_from_elsewhere_is_what_the_next_commands_are_about(operator: OpWorkspace, tmp_path: Path) -> None:
    """Nothing failed in this folder, so commands that name the folder would answer that nothing is there."""
    log = tmp_path / "a device's run.log"
    for words, skill, tool in (
        ("Tensor-likes are not close!\nMismatched elements: 64 / 4096 (1.6%)\n", "pypto-precision-debug", ""),
        ("Segmentation fault\n", "pypto-host-stacktrace-analyzer", "host-stacktrace-analyzer"),
        ("ImportError: libhccl.so: cannot open shared object file\n", "pypto-environment-setup", "environment-setup"),
    ):
        log.write_text(words)
        found = routed(operator, "--log", str(log))
        assert found["skill"] == skill and found["category"] != "other", found
        again, *tools = found["next"]
        assert shlex.split(again) == ["pypto-op", "diagnose", str(log)] and command(*shlex.split(again)[1:]).code == 0
        assert [shlex.split(line)[2] for line in tools] == [tool] * bool(tool), tools
        assert all(command(*shlex.split(line)[1:]).code in (0, 1, 3) for line in tools), "3: it needs a person"


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
def test_without_a_verdict_what_is_missing_is_said(operator: OpWorkspace) -> None:
    edit(operator, *FAULTS["crash"][:2])
    verify(operator.root, "--case", "tile")
    operator.report.unlink()
    for words in ((), ("--log", "nothing that is known was said")):
        answer = command("triage", str(operator.root), *words)
        assert answer.code == 3 and "load " in answer.stdout, answer
        assert (
            "no verdict is there" in answer.stderr and "pypto-op verify" in answer.stderr and len(told_lines(answer.stderr)) == 1
        )


@pytest.mark.sim
@pytest.mark.usefixtures("numeric")
@pytest.mark.parametrize("fault", ["wrong values", "one output", "crash"])
def test_the_next_steps_pass_the_guard_and_keep_the_whole_verdict(
    fault: str, operator: OpWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(operator, *FAULTS[fault][:2])
    verify(operator.root, "--case", "tile")
    before = operator.report.read_bytes()
    monkeypatch.chdir(operator.root.parents[1])
    lines = routed(operator)["next"]
    assert not [line for line in lines if str(operator.root) in line], "what may be typed here is short"
    guard = Policy(Surroundings(operator.root.parents[1], Path("/home/somebody"), operator.root.parents[1]), "pypto-op-debugger")
    assert [line for line in lines if judge_command(guard, line, str(operator.root.parents[1]))] == []
    for line in lines:
        if " debug dump" not in line and "precision-debug" not in line:
            assert command(*shlex.split(line)[1:]).code in (0, 1), line
    assert operator.report.read_bytes() == before


def test_what_is_judged_once_the_kernel_is_mended_compares_numbers() -> None:
    """`--case` of a case that only runs ended in exit 2, "no verdict", for a kernel that was right by then."""
    checks = [{"id": "runs", "level": "L1", "status": "ERROR"}, {"id": "base", "level": "L2", "status": "ERROR"}]
    assert _choice({"checks": checks}, "runs") == _choice({"checks": checks}, "base") == "--case base "
    assert _choice({"checks": checks[:1]}, "runs") == "", "all cases"
    assert _choice(None, "base") == "--case base "
