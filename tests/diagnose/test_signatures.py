"""Signatures of machines, tool chains and crashes: each log leads to its entry, however it comes along."""

from __future__ import annotations

import functools
import io
import random
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.diagnose.device_logs import DeviceLog, all_logs

from pypto_op.diagnose import knowledge, log_stream, routes
from pypto_op.diagnose.log_text import parse_log
from pypto_op.diagnose.search import Hit, diagnose, explain
from pypto_op.documents import schema
from pypto_op.errors import ContractError

LOGS = all_logs()
ROOT = Path(__file__).parents[2]
PLAIN = "[INFO ] PYPTO(2):2026-11-21 06:38:47.206 [flow_verifier.cpp:62][VERIFY]:tensor graph step {n} of loop ROWS, task {n}\n"
HARMLESS = """[INFO ] PYPTO(2):2026-11-21 06:38:47.206 [flow_verifier.cpp:62][VERIFY]:tensor_graph Verify NO_COMPARE
[EVENT] TDT(94,main):2026-05-19-15:59:07.741.638 [process_mode_manager.cpp:103] enter into open process deviceId[0] rankSize[0]
loaded libhccl.so from /usr/local/Ascend/latest/lib64/libhccl.so; libascend_hal.so found
UB buffer size threshold 196608, L1 buffer size threshold 524288.
aclrtMalloc 1048576 bytes, ret 0; workspace of stitchPool is 8388608; 0 errors, 0 failed
export TILE_FWK_DEVICE_ID=3; source set_env.sh; TROWEXPANDADD is supported; device 3 is idle
compiled kernel_aicore/TENSOR_softmax_1.cce in 1.2 s
Max stitch function num  user expected is 128. PASS, max_abs_diff: 1e-7, all_close: True
"""


def first(text: str) -> Hit | None:
    hits = diagnose(parse_log(text)).hits
    return hits[0] if hits else None


def leads(found: Hit | None, log: DeviceLog) -> bool:
    return found is not None and (found.entry.id, str(found.entry.category), found.entry.skill) == (
        log.expect,
        log.category,
        log.skill,
    )


def test_there_are_logs_enough_each_with_its_source_and_each_signature_has_one() -> None:
    assert len(LOGS) >= 40 and all(len(log.source) > 10 for log in LOGS)
    signatures = {entry.id for entry in knowledge.entries() if entry.example is None}
    known = {entry.id for entry in knowledge.entries()}
    assert signatures <= {log.expect for log in LOGS} <= known


@pytest.mark.parametrize("path", sorted(knowledge.SIGNATURES.glob("*.yaml")), ids=lambda path: path.stem)
def test_signatures_keep_to_the_schema(path: Path) -> None:
    schema.check(yaml.safe_load(path.read_text(encoding="utf-8")), "signatures", file=path)


def test_the_router_keeps_to_its_schema_and_every_skill_exists() -> None:
    schema.check(yaml.safe_load(routes.FILE.read_text(encoding="utf-8")), "routes", file=routes.FILE)
    named = {entry.skill for entry in knowledge.entries()} | {row.skill for row in routes.rows() if row.skill}
    skills = {path.parent.name for path in ROOT.glob("skills/*/SKILL.md")}
    assert named - {routes.BY_TEXT, routes.BY_CATEGORY} <= skills
    pages = [(row.skill, row.page) for row in routes.rows() if row.skill and row.page.startswith("references/")]
    assert all((ROOT / "skills" / skill / page).is_file() for skill, page in pages)


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_a_log_leads_to_its_entry_category_and_skill(log: DeviceLog) -> None:
    found = first(log.text)
    assert leads(found, log), found
    assert found and found.log[1] >= 1
    shown = log.text.splitlines()[found.log[1] - 1]
    assert found.seen.split()[0] in shown, "the line that is named is the one that shows it"


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_it_is_found_in_company(log: DeviceLog) -> None:
    lines = log.text.splitlines(keepends=True)
    mixed = "".join(line + PLAIN.format(n=n) for n, line in enumerate(lines))
    assert leads(first(mixed), log), "another process writes in between"
    assert leads(first(HARMLESS + log.text + HARMLESS), log)


@pytest.mark.parametrize("log", LOGS[::8], ids=lambda log: log.name)
def test_it_is_found_in_broken_bytes_and_behind_colours(log: DeviceLog, tmp_path: Path) -> None:
    """Bytes become text before a signature looks at them, so what holds for some logs holds for all."""
    lines = log.text.splitlines(keepends=True)
    assert leads(first("".join(f"\x1b[31m{line.rstrip()}\x1b[0m\r\n" for line in lines)), log)
    broken = tmp_path / "broken.log"
    broken.write_bytes(b"\xff\xfe\x80 \xc3\x28\n" + log.text.encode() + b"\n\x00\x01\xe9\x94")
    assert leads(explain(broken).hits[0], log)
    utf16 = tmp_path / "utf16.log"
    utf16.write_bytes(log.text.encode("utf-16"))
    if log.text.isascii():
        assert leads(explain(utf16).hits[0], log)


@functools.cache
def _filler(lines: int) -> bytes:
    return "".join(PLAIN.format(n=n) for n in range(lines)).encode()


def _in_the_middle(log: DeviceLog, whole_bytes: int) -> tuple[bytes, int]:
    """Return a log of so many bytes and more that has another one inside, and the lines before it."""
    filler = _filler(whole_bytes // len(PLAIN) + 2000)
    return filler + log.text.encode() + b"\n" + filler[:200_000], filler.count(b"\n")


@pytest.mark.slow
@pytest.mark.parametrize("log", LOGS[::24], ids=lambda log: log.name)
def test_it_is_found_in_the_middle_of_a_long_log(log: DeviceLog, tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    text, before = _in_the_middle(log, log_stream.WHOLE_BYTES)
    path.write_bytes(text)
    found = explain(path)
    assert found.hits and leads(found.hits[0], log), [hit.entry.id for hit in found.hits]
    line = before + log.text[: log.text.find(found.hits[0].seen.split()[0])].count("\n") + 1
    assert abs(found.hits[0].log[1] - line) <= 3


@pytest.mark.slow
def test_of_each_the_lines_that_tell_are_kept_of_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the search of the lines beside them costs, the test above pays for some; a stream begins at 64 kB here."""
    monkeypatch.setattr(log_stream, "WHOLE_BYTES", 65536)
    beside = re.compile(re.escape(PLAIN.strip()).replace(r"\{n\}", "[0-9]*"))
    for log in LOGS:
        pieces, _ = log_stream.read_pieces(io.BytesIO(_in_the_middle(log, 65536)[0]), log.name)
        kept = [line for piece in pieces for line in piece.text.splitlines() if not beside.match(line)]
        assert leads(first("\n".join(kept)), log), log.name


WAITED = {
    "collective-failed": "EI0006: [PID: 171] 2026-08-12-12:10:41.100.871 Getting socket times out.\n",
    "scheduler-timeout": "[ERROR] TIMEOUT_EXIT after 800000 idle iterations, 3 running, 0 ready\n",
    "run-timed-out": "subprocess.TimeoutExpired: Command 'python3 test_op.py' timed out after 600 seconds\n",
    "aicpu-exception": "rtStreamSynchronize failed: error code is 507018\n",
}
STOPPED = {
    "aicore-exception": "[ERROR] Aicore kernel execute failed, device_id=0, stream_id=2, task_id=5, fault kernel_name=op_1\n",
    "aicore-address-out-of-range": "errorStr: The DDR address of the MTE instruction is out of range.\n",
    "device-out-of-memory": "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB\n",
    "host-segfault": "rank 3: Segmentation fault (core dumped)\n",
}


@pytest.mark.parametrize("stopped", STOPPED)
@pytest.mark.parametrize("waited", WAITED)
def test_what_stopped_comes_before_who_waited_for_it(waited: str, stopped: str) -> None:
    """Of several ranks, or of a core and its scheduler, one fails; the others may well say so first."""
    for text in (WAITED[waited] + STOPPED[stopped], STOPPED[stopped] + WAITED[waited]):
        found = first(text)
        assert found and found.entry.id == stopped, text
    alone = first(WAITED[waited])
    assert alone and alone.entry.id == waited, "who waits alone is the answer"


def test_a_run_that_went_well_shows_nothing() -> None:
    assert first(HARMLESS) is None


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030"])
def test_chinese_is_read_in_both_encodings(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "zh.log"
    path.write_bytes("[错误] 设备被占用\n./run.sh: 第 4 行: 30991 段错误 (核心已转储)\n".encode(encoding))
    assert {hit.entry.id for hit in explain(path).hits} == {"device-busy", "host-segfault"}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "is empty"),
        (random.Random(1).randbytes(5000), "is not text"),
        (b"half a line " * 500, "ends in the middle of a line"),
    ],
)
def test_what_is_wrong_with_a_log_is_said_in_one_line(raw: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.log"
    path.write_bytes(raw)
    found = explain(path)
    assert not found.hits and any(said in note and "\n" not in note for note in found.notes)


def test_a_truncated_log_still_tells(tmp_path: Path) -> None:
    log = next(log for log in LOGS if log.name == "rt_malloc")
    path = tmp_path / "cut.log"
    path.write_bytes(log.text.encode()[:-40])
    assert leads(explain(path).hits[0], log)


MEASURED = """
import re, sys, time
from pathlib import Path
from pypto_op.diagnose.search import explain
begin = time.process_time()
found = explain(sys.argv[1])
seconds = time.process_time() - begin
peak = re.search("VmHWM: *(\\d+) kB", Path("/proc/self/status").read_text().replace("\\t", " "))
print(found.hits[0].entry.id, found.hits[0].log[1], int(peak[1]) // 1024, seconds)
"""
"""Peak memory since the program began; `ru_maxrss` of a child counts the parent's memory too, from which it was started."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "noise",
    [PLAIN, "[ERROR] task {n} failed with code {n}\n", "[INFO] RUNTIME({n},main) at 0x{n:012x}, size {n}\n"],
    ids=["plain", "errors", "addresses"],
)
def test_a_huge_log_is_read_with_bounded_memory(noise: str, tmp_path: Path) -> None:
    """64 MiB here; memory does not depend on the size."""
    block = "".join(noise.format(n=n) for n in range(20000)).encode()
    path, lines = tmp_path / "huge.log", 0
    with path.open("wb") as file:
        while file.tell() < 32 * 1024**2:
            lines += 20000
            file.write(block)
        file.write(b"RuntimeError: NPU out of memory. Tried to allocate 22.00 MiB\n")
        while file.tell() < 64 * 1024**2:
            file.write(block)
    done = subprocess.run([sys.executable, "-c", MEASURED, path], capture_output=True, text=True, check=True)
    name, line, megabytes, seconds = done.stdout.split()
    assert (name, int(line)) == ("device-out-of-memory", lines + 1)
    assert int(megabytes) < 100, f"{megabytes} MiB"
    assert float(seconds) < 1.5, f"{seconds} processor seconds for 64 MiB"


@pytest.mark.slow
def test_one_diagnosis_costs_little() -> None:
    some = LOGS[::5]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    for log in some:
        first(log.text)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_utime - before) / len(some) < 0.2


def test_a_folder_of_device_logs_is_read_and_the_file_is_named(tmp_path: Path) -> None:
    below = tmp_path / "ascend" / "log" / "debug" / "plog"
    below.mkdir(parents=True)
    (below / "plog-1.log").write_text(HARMLESS)
    (below / "plog-2.log").write_text(HARMLESS + "[ERROR] RUNTIME(1,python):Device[0] lost heartbeat.\n")
    (below / "core.bin").write_bytes(b"\0" * 100)
    hit = explain(tmp_path).hits[0]
    assert (hit.entry.id, hit.log) == ("device-lost", (str(below / "plog-2.log"), HARMLESS.count("\n") + 1))


def test_log_and_kernel_may_be_texts_or_paths(tmp_path: Path) -> None:
    kernel = "import pypto\n\n\n@pypto.frontend.jit\ndef kernel(x: pypto.Tensor([4, 8], pypto.DT_FP32)):\n    y = max(x, x)\n"
    path = tmp_path / "kernel.py"
    path.write_text(kernel)
    log = tmp_path / "run.log"
    log.write_text("Segmentation fault\n")
    for error_log in ("Segmentation fault", "Segmentation fault\n", log, str(log)):
        for kernel_code in (kernel, path, str(path)):
            hit = explain(error_log, kernel_code).hits[0]
            assert (hit.entry.id, hit.line) == ("python-max", 6)
    for wrong in (str(tmp_path / "no.log"), "no.log", "logs/no"):
        with pytest.raises(ContractError, match="cannot be read"):
            explain(wrong)
    assert explain("507015").hits[0].entry.id == "aicore-exception"
