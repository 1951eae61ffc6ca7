"""Bad input for every tool of the debugger and for `diagnose`: one line on what is missing, an exit code, no traceback."""

from __future__ import annotations

import gzip
import os
import resource
import shutil
from pathlib import Path

import pytest
from tests.calling import Answer, command
from tests.debug.asking import place

from pypto_op.backends import toolchain
from pypto_op.debug.commands import debug

ON_A_LOG = {
    "diagnose": ("diagnose",),
    "host-stacktrace-analyzer": ("debug", "host-stacktrace-analyzer", "--log"),
    "aicore-error-locator": ("debug", "aicore-error-locator", "--log"),
    "environment-setup": ("debug", "environment-setup", "--log"),
}
ON_A_RUN = ("pass-error-locator", "memory-overlap-detector", "machine-workspace")
ON_AN_OPERATOR = ("precision-compare", "precision-debug", "dump")
ON_A_MANIFEST = {"snapshot-generate": (), "snapshot-bisect": ("--manifest",)}

CRASH = (
    b'Fatal Python error: Segmentation fault\n  File "/w/soft_impl.py", line 7 in kernel\n'
    b"libhccl.so: cannot open shared object file\n"
)
LOGS = {
    "empty": b"",
    "binary": b"\x7fELF\x00\xff\xfe" * 20_000,
    "cut off": b"\xe6\x97\xa5\xe5\xbf\x97: Traceback (most recent call las",
    "interleaved": b"".join(bytes([byte]) + b"\xff" for byte in CRASH),
    "huge": b"step 1 of 2\n" * 300_000,
    "one line": b"x" * 5_000_000,
    "compressed": gzip.compress(CRASH),
    "a report of other shapes": b'{"first_failure": 3, "error": [1], "checks": [7, {"modes": 2}], "stdout": 5}',
}


def one_line_each(answer: Answer, codes: set[int]) -> None:
    assert answer.code in codes, answer
    assert "Traceback" not in answer.stdout + answer.stderr
    if answer.code == 2:
        lines = [line for line in answer.stderr.strip().splitlines() if not line.endswith(" so far")]  # a busy machine's waits
        assert len(lines) == 1, answer.stderr


def test_the_table_has_every_tool() -> None:
    assert set(debug.commands) == {*ON_A_LOG, *ON_A_RUN, *ON_AN_OPERATOR, *ON_A_MANIFEST} - {"diagnose"}


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("tool", ON_A_LOG)
def test_bad_input_is_said_in_one_line_with_a_documented_exit_code(tool: str, log: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(LOGS[log])
    one_line_each(command(*ON_A_LOG[tool], path), {3} if tool == "diagnose" else {1})


@pytest.mark.parametrize("tool", ON_A_LOG)
def test_an_empty_log_is_called_so(tool: str, tmp_path: Path) -> None:
    (tmp_path / "run.log").touch()
    answer = command(*ON_A_LOG[tool], tmp_path / "run.log")
    assert f"{tmp_path / 'run.log'} is empty" in answer.stdout + answer.stderr, answer


@pytest.mark.parametrize("tool", ["diagnose", "aicore-error-locator"])
def test_a_compressed_log_is_called_so(tool: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(LOGS["compressed"])
    answer = command(*ON_A_LOG[tool], path)
    assert f"{path} is compressed: unpack it first" in answer.stdout + answer.stderr, answer


def test_a_mistyped_name_is_no_text_of_a_log(tmp_path: Path) -> None:
    operator = place(tmp_path, "softmax").root
    for words in (("diagnose", "--log"), ("triage", operator, "--log")):
        answer = command(*words, "runlog")
        one_line_each(answer, {2})
        assert "runlog: no such file or folder" in answer.stderr, answer


@pytest.mark.parametrize("report", ["[]", '{"status"', "null"])
def test_a_report_that_cannot_be_read_is_no_run_that_went_well(report: str, tmp_path: Path) -> None:
    operator = place(tmp_path, "softmax")
    operator.report.parent.mkdir(exist_ok=True)
    operator.report.write_text(report)
    answer = command("diagnose", operator.root)
    one_line_each(answer, {2})
    assert "its report cannot be read" in answer.stderr, answer


@pytest.mark.slow
@pytest.mark.parametrize("tool", ON_A_LOG)
def test_a_long_log_takes_seconds_and_its_last_line_is_found(tool: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    line = "[INFO ] PYPTO(2):2026-11-21 06:38:47.206 [flow_verifier.cpp:62][VERIFY]:tensor graph step {} of loop ROWS\n"
    cause = "[ERROR] No space left on device; errorStr: The DDR address of the MTE instruction is out of range.\n"
    with path.open("w") as file:
        for part in range(8):
            file.writelines(line.format(part * 100_000 + step) for step in range(100_000))
        file.write(cause + '  File "/w/custom/soft/soft_impl.py", line 13 in kernel\n')
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    answer = command(*ON_A_LOG[tool], path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 5, "processor seconds"
    found = "soft_impl.py:13" if tool == "host-stacktrace-analyzer" else "800001"
    assert answer.code in (0, 1, 3) and found in answer.stdout, answer


@pytest.mark.parametrize("tool", ON_A_LOG)
def test_a_log_that_is_not_there_or_is_a_folder(tool: str, tmp_path: Path) -> None:
    for wrong in (tmp_path / "no" / "run.log", tmp_path):
        answer = command(*ON_A_LOG[tool], wrong)
        one_line_each(answer, {2})
        assert str(wrong) in answer.stderr


@pytest.mark.parametrize(
    ("tool", "option"),
    [("host-stacktrace-analyzer", "--kernel"), ("host-stacktrace-analyzer", "--binary"), ("aicore-error-locator", "--run-dir"),
     ("environment-setup", "--memory"), ("diagnose", "--kernel")],
)  # fmt: skip
def test_what_an_option_names_beside_the_log_is_there(tool: str, option: str, tmp_path: Path) -> None:
    """Without it the answer, "nothing found", would look like one that looked there."""
    (tmp_path / "run.log").write_bytes(CRASH)
    answer = command(*ON_A_LOG[tool], tmp_path / "run.log", option, tmp_path / "nosuch")
    one_line_each(answer, {2})
    assert f"{tmp_path / 'nosuch'}" in answer.stderr and "; " in answer.stderr, answer


@pytest.mark.parametrize("tool", ["machine-workspace", "memory-overlap-detector", "pass-error-locator", "aicore-error-locator"])
def test_a_file_where_a_run_folder_belongs_is_called_so(tool: str, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(CRASH)
    words = ["--log", log, "--run-dir", log] if tool == "aicore-error-locator" else [log]
    answer = command("debug", tool, *words)
    one_line_each(answer, {2})
    assert f"{log}: is no folder; name a folder" in answer.stderr, answer


@pytest.mark.parametrize("log", ["empty", "binary"])
@pytest.mark.parametrize("tool", ["diagnose", "host-stacktrace-analyzer"])
def test_a_log_that_says_nothing_is_told_with_a_remedy(tool: str, log: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(LOGS[log])
    answer = command(*ON_A_LOG[tool], path)
    remedy = (
        "; give all that the run printed, as text" if tool == "diagnose" else ": name the file with all that the crash printed"
    )
    assert remedy in answer.stdout + answer.stderr, answer


@pytest.mark.timeout(60)
@pytest.mark.parametrize("tool", [*ON_A_LOG, "triage", "machine-workspace"])
def test_a_pipe_or_a_device_is_not_waited_for(tool: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    operator = place(tmp_path, "softmax").root
    (tmp_path / "output_1").mkdir()
    (tmp_path / "output_1" / "program.json").write_text('{"functions": []}')
    others = {"triage": ("triage", operator, "--log"), "machine-workspace": ("debug", tool, tmp_path / "output_1", "--log")}
    words = ON_A_LOG.get(tool) or others[tool]
    for wrong in (tmp_path / "pipe", Path("/dev/zero")):
        answer = command(*words, wrong)
        one_line_each(answer, {2})
        assert f"{wrong}: a pipe or device" in answer.stderr, answer


@pytest.mark.parametrize("tool", ON_A_MANIFEST)
def test_an_empty_manifest_is_called_empty(tool: str, tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    answer = command("debug", tool, *ON_A_MANIFEST[tool], tmp_path / "empty.log")
    one_line_each(answer, {2})
    assert "empty.log: the file is empty" in answer.stderr and "NoneType" not in answer.stderr, answer


@pytest.mark.parametrize("tool", ON_A_LOG)
def test_without_binutils_what_was_found_is_still_told(tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "run.log"
    path.write_bytes(CRASH + b"/opt/libtile_fwk_interface.so(_ZN3npu8tile_fwk3SubE+0x51)[0x7f1]\n507015 aicore exception\n")
    answer = command(*ON_A_LOG[tool], path)
    one_line_each(answer, {0, 1, 3})
    assert answer.stdout.strip()
    if tool == "host-stacktrace-analyzer":
        assert answer.code == 0 and "soft_impl.py:7" in answer.stdout and "c++filt is not installed" in answer.stdout


@pytest.mark.parametrize(
    "said", [CRASH + b"[ERROR] aicore error, errcode 507015\n", b"step 1 of 2\n"], ids=["failure", "nothing"]
)
@pytest.mark.parametrize("tool", ON_A_LOG)
def test_json_of_a_log_is_as_its_schema_says(tool: str, said: bytes, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(said)
    answer = command(*ON_A_LOG[tool], path, "--json")
    answer.result("diagnosis" if tool == "diagnose" else f"debug_{tool.replace('-', '_')}")
    assert answer.code in (0, 1, 3)


@pytest.mark.parametrize("tool", [*ON_A_RUN, *ON_AN_OPERATOR, *ON_A_MANIFEST, *sorted(set(ON_A_LOG) - {"diagnose"})])
def test_with_json_too_a_missing_artefact_is_one_line_and_no_half_document(tool: str, tmp_path: Path) -> None:
    """What each prints of a real failure is held against its schema in test_in_sim and test_snapshots."""
    words = {**ON_A_LOG, **{name: ("debug", name, *more) for name, more in ON_A_MANIFEST.items()}}.get(tool, ("debug", tool))
    case = ("--case", "L1") if tool in ON_AN_OPERATOR else ()
    answer = command(*words, tmp_path / "none", *case, "--json")
    one_line_each(answer, {2})
    assert not answer.stdout


@pytest.mark.parametrize("tool", ON_A_RUN)
@pytest.mark.parametrize("left", ["nothing", "a file", "empty graphs", "cut graphs", "binary graphs"])
def test_what_a_run_should_have_left(tool: str, left: str, tmp_path: Path) -> None:
    run = tmp_path / "output_1"
    passes = run / "Pass_00_ExpandFunction"
    if left == "a file":
        run.write_text("x")
    elif left != "nothing":
        passes.mkdir(parents=True)
        raw = {"empty graphs": b"", "cut graphs": b'{"functions": [{"func_magic', "binary graphs": b"\x00\xff" * 999}[left]
        for name in ("program.json", "dyn_topo.txt", f"{passes.name}/After_000_ExpandFunction_TENSOR_a_1.json"):
            (run / name).write_bytes(raw)
    answer = command("debug", tool, run)
    one_line_each(answer, {1, 2, 3})
    assert answer.stderr.strip() or answer.stdout.strip()


@pytest.mark.parametrize("tool", ON_AN_OPERATOR)
def test_an_operator_that_lacks_a_part(tool: str, tmp_path: Path) -> None:
    one_line_each(command("debug", tool, tmp_path / "none", "--case", "L1"), {2})
    ws = place(tmp_path, "softmax")
    answer = command("debug", tool, ws.root)
    one_line_each(answer, {2})
    assert "--case" in answer.stderr
    one_line_each(command("debug", tool, ws.root, "--case", "no_such_case"), {2})
    for missing in (ws.suite, ws.impl):
        kept = missing.read_bytes()
        missing.write_bytes(b"\x00\xff(") if missing == ws.suite else missing.unlink()
        one_line_each(command("debug", tool, ws.root, "--case", "L2_two_by_two_fp32"), {2})
        missing.write_bytes(kept)


@pytest.mark.parametrize("tool", ON_A_MANIFEST)
@pytest.mark.parametrize("raw", [None, b"", b"\x00\xff\xfe", b"op: softmax\n", b"- 1\n- 2\n"])
def test_a_manifest_that_is_none(tool: str, raw: bytes | None, tmp_path: Path) -> None:
    ws = place(tmp_path, "softmax")
    ws.debug_dir.mkdir(exist_ok=True)
    manifest = ws.debug_dir / "snapshot_manifest.yaml"
    if raw is not None:
        manifest.write_bytes(raw)
    answer = command("debug", tool, *ON_A_MANIFEST[tool], manifest)
    one_line_each(answer, {2})
    assert "snapshot_manifest.yaml" in answer.stderr
    shutil.rmtree(ws.debug_dir)


@pytest.mark.parametrize("absent", ["cmake", "g++"])
@pytest.mark.parametrize("tool", ON_AN_OPERATOR)
def test_without_cmake_or_compiler_the_lack_is_named(
    tool: str, absent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sim` has no numbers then: an infrastructure fault, which never exits 1."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in {"sh", "env", *toolchain.REQUIRED} - {absent}:
        found = shutil.which(name)
        if found is not None:
            (tools / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    answer = command("debug", tool, place(tmp_path, "softmax").root, "--case", "L2_two_by_two_fp32")
    assert answer.code == 3 and f"({absent} not on PATH); {toolchain.INSTALL_LINE}" in answer.stderr
    one_line_each(answer, {3})
