"""What no log may do: make a cause of a number or a word in passing, or hold up the search by its shape."""

from __future__ import annotations

import base64
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.diagnose.device_logs import DeviceLog, all_logs
from tests.diagnose.test_signatures import first, leads

from pypto_op.diagnose.log_text import parse_log
from pypto_op.diagnose.search import diagnose, explain

CODES = (507015, 507018, 507014, 507046, 507035, 507899, 207001, 207018, 107001, 107003, 161002, 561103, 507054, 507010)
NAMES = ("EZ9999", "EL0004", "EE9999", "EI0006", "E39001", "F21004")
WORDS = (
    "out of memory", "segmentation fault", "SIGSEGV", "SIGKILL", "bus error", "aicore exception", "device lost", "bad_alloc",
    "ECC error", "No space left on device", "overlapping memory", "507015", "device busy", "stack smashing detected",
)  # fmt: skip
_SEEDS = 40
GUILTY = {
    "host-segfault": (
        "Segmentation fault without core dump in worker 3",
        "the default signal handler printed: Segmentation fault (core dumped)",
        "worker 2 never came back: Segmentation fault (core dumped)",
        "process 4711 died of SIGSEGV in the registered handler",
        "expected exit status 0, got SIGSEGV",
        "Segmentation fault after retrying 3 times",
        "the launcher's hook saw Segmentation fault (core dumped)",
        "caught signal SIGSEGV, dumping stack",
        "*** SIGSEGV handler called, process will exit ***",
        "skipped 3 batches, then Segmentation fault (core dumped)",
        "no answer from worker 5: Segmentation fault (core dumped)",
        "Segmentation fault; errors=0 before",
        "hook installed, step 1 ok, Segmentation fault (core dumped)",
        "worker 3: Segmentation fault (core dumped), falling back to the CPU",
    ),
    "device-out-of-memory": (
        "NPU out of memory. Tried to allocate 2.00 GiB without fragmentation limit: 64",
        "RuntimeError: NPU out of memory, default pool; see also PYTORCH_NPU_ALLOC_CONF",
        "NPU out of memory while loading docs/example.bin",
        "NPU out of memory; to avoid fragmentation set max_split_size_mb",
        "NPU out of memory although retries were enabled",
        "allocator handler: NPU out of memory, 0 errors before",
        "the default allocator ran NPU out of memory",
        "NPU out of memory: never seen with batch 8, expected 12 GiB",
        "not enough room: NPU out of memory",
        "skipping warm-up, NPU out of memory",
        "NPU out of memory, using the default allocator",
    ),
    "aicore-exception": (
        "aicore exception in default stream, error code is 507015",
        "rtStreamSynchronize failed without retry, error code is 507015",
        "aclrtSynchronizeStream returned 507015 although the default timeout is disabled",
        "expected ret 0, but got: ret=507015",
        "the registered exception handler got error code 507015",
        "an aicore exception was handled by aborting the stream",
        "never recovered from aicore exception, aborting",
        "handled 3 requests, then aicore exception 507015 in stream 4: error code is 507015",
    ),
    "library": (
        "ImportError: libhccl.so: cannot open shared object file: No such file or directory (default path)",
        "libhccl.so: cannot open shared object file; registered paths: 3",
        "without LD_LIBRARY_PATH: libhccl.so: cannot open shared object file",
        "example run: OSError: libascend_hal.so: cannot open shared object file",
        "/usr/bin/ld: cannot find -lascendcl: No such file or directory",
        "ImportError: libhccl.so: cannot open shared object file, falling back to the CPU failed too",
        "[ERROR] libascend_hal.so: cannot open shared object file, using the default device",
    ),
    "no-space": (
        "OSError: [Errno 28] No space left on device; skipped checkpoint",
        "write failed without warning: No space left on device",
        "default tmp: No space left on device",
        "retries disabled; No space left on device",
        "never mind the cache: No space left on device",
    ),
    "host-out-of-memory": (
        "terminate called without an active handler after throwing an instance of 'std::bad_alloc'",
        "the default new handler threw std::bad_alloc",
        "MemoryError: std::bad_alloc without retry",
    ),
}
"""What must be named first -> lines that report it with words which elsewhere say that nothing happened."""

NEVER = (
    "runs without out of memory since patch 3",
    "never hit SIGSEGV in 100 runs",
    "default action for SIGSEGV is to dump core",
    "installed handler for SIGSEGV",
    "no Segmentation fault seen",
    "SIGSEGV handler registered",
    "retry policy avoids out of memory",
    "out of memory handler enabled",
    "without NPU out of memory errors the batch may grow",
    "aicore exception handler installed",
    "tests for aicore exception: 12 passed",
    "expected no std::bad_alloc, got none",
    "bad_alloc is never thrown here",
    "default: fail on No space left on device = false",
    "the aicore exception callback is registered by default",
    "checking that libhccl.so is there ... ok",
    "device lost simulation disabled",
    "watchdog enabled: restarts after device lost",
    "[WARN] libascend_hal.so: cannot open shared object file, falling back to sim",
    "libhccl.so not found in /opt/extra, using /usr/local/Ascend/ascend-toolkit/latest/lib64/libhccl.so",
    "[警告] libascend_hal.so: 无法打开，改用仿真",
    "output contains 0 NaN values",
    "nan_count=0 inf_count=0",
    "numbers: the mean is nan-safe",
    "输出不存在NaN",
    "UserWarning: Input/output error codes are logged",
    "skipping device cuda: Torch not compiled with CUDA enabled",
)
"""Lines that speak of a failure without having one."""


def _cann(r: random.Random, n: int) -> str:
    level = r.choice(("INFO", "EVENT", "DEBUG", "INFO "))
    code, word = r.choice(CODES), r.choice(WORDS)
    return r.choice(
        (
            f"[{level}] RUNTIME({code},python):[api_impl.cc:{n}]task {code}, {word} watch armed",
            f"[{level}] GE({n},main):2026-05-19-15:59:07.741.638 [model.cc:{n}]{code} OpCheck error code table loaded, {word}: 0",
            f"[{level}] HCCL({n},py):2026-05-19-15:59:07.741.638 [hccl.cc:1]retry 0, timeout {code} us, result = {code}",
        )
    )


def _python(r: random.Random, n: int) -> str:
    code, word, name = r.choice(CODES), r.choice(WORDS), r.choice(NAMES)
    return r.choice(
        (
            f"2026-05-19 15:59:07,741 - trainer - INFO - step {code} loss 0.{n} ({word} guard active)",
            f"INFO:root:seed={code} batch={r.choice(CODES)}",
            f"DEBUG:root:checking for {word} ... ok",
            f"(Worker_DP0 pid={code}) INFO 03-25 06:14:02 [engine.py:88] {word} monitor started on port {code % 60000}",
            f"I0325 12:00:0{n % 10}.123456 {code} executor.cc:{n}] {word} test skipped",
            f'{{"level": "info", "step": {code}, "msg": "{word} checks passed"}}',
            f'level=info ts=2026 msg="{name} table" rows={code}',
        )
    )


def _bare(r: random.Random, n: int) -> str:
    code, word, name = r.choice(CODES), r.choice(WORDS), r.choice(NAMES)
    slug = word.replace(" ", "_")
    return r.choice(
        (
            f"step {code} loss 0.33 tokens 1073741824",
            f"epoch {n}: {code} samples, {r.choice(CODES)} tokens/s",
            f"loading /data/{name}/shard_{code}.bin",
            f"wrote out/{slug}_{code}.txt ({code} bytes)",
            f"tests/test_{slug}.py::test_{slug}_is_reported PASSED [ {n % 100}%]",
            f"The test test_{slug} PASSED",
            f"address 0x{code:012x} size {code} alignment 32",
            f"rows {code} x {r.choice(CODES)}: max_abs_diff 1e-7, PASS",
            f"{code} {r.choice(CODES)} {n}",
            f"seed {code}, retries 0, errors=0",
            f"no {word} found; 0 errors, 0 failed",
            f"postcode {code}, order {name}-{n}",
            f"see docs/{slug}.md for {name}",
        )
    )


def _build(r: random.Random, n: int) -> str:
    code, word = r.choice(CODES), r.choice(WORDS)
    return r.choice(
        (
            f"[{n % 100:3d}%] Building CXX object src/CMakeFiles/host.dir/error_{code}.cc.o",
            f"-- Found Python3: /usr/bin/python3 ({word} handler enabled)",
            f"gcc -O2 -DLIMIT={code} -c src/sigsegv_handler.c -o build/sigsegv_handler.o",
            f"Successfully installed torch-2.{n % 10} pkg-{code}",
        )
    )


def innocent(r: random.Random, lines: int = 60) -> str:
    """Return the log of a run that went well, of several runtimes."""
    kinds: tuple[Callable[[random.Random, int], str], ...] = (_cann, _python, _bare, _build)
    return "".join(r.choice(kinds)(r, n) + "\n" for n in range(lines))


@pytest.mark.parametrize("seed", range(_SEEDS))
def test_a_log_of_a_run_that_went_well_names_no_cause(seed: int) -> None:
    text = innocent(random.Random(seed))
    found = [(hit.entry.id, hit.seen, text.splitlines()[hit.log[1] - 1]) for hit in diagnose(parse_log(text)).hits]
    assert not found


@pytest.mark.parametrize(("cause", "line"), [(cause, line) for cause, lines in GUILTY.items() for line in lines])
def test_a_calm_word_elsewhere_in_the_line_hides_no_failure(cause: str, line: str) -> None:
    hits = diagnose(parse_log(f"step 1 of 3\n{line}\nbye\n")).hits
    assert hits and cause in hits[0].entry.id


@pytest.mark.parametrize("line", NEVER)
def test_what_is_denied_or_only_prepared_for_is_no_cause(line: str) -> None:
    assert not diagnose(parse_log(f"step 1 of 3\n{line}\nbye\n")).hits


@pytest.mark.parametrize("log", all_logs(), ids=lambda log: log.name)
def test_a_failure_is_found_among_innocent_lines(log: DeviceLog) -> None:
    r = random.Random(log.name)
    assert leads(first(innocent(r, 20) + log.text + "\n" + innocent(r, 20)), log)


@pytest.mark.parametrize(
    "text",
    [
        "step 507015 loss 0.33 tokens 1073741824\n",
        "INFO seed=207001 batch=507018\nAssertionError: shapes differ: (4, 5) and (4, 6)\n",
        "INFO: checking for out of memory ... no problem\nINFO retry=0 timeout=30\nValueError: eps must be positive, got 0\n",
    ],
)
def test_a_number_or_a_word_in_passing_is_no_cause(text: str) -> None:
    assert not diagnose(parse_log(text)).hits


@pytest.mark.parametrize(
    "words", ["failed: {}", "error code is {}", "ret:{}", "runtime result = {}", "errno:{}", "ErrCode={}, desc=[x"]
)
def test_a_code_in_the_syntax_of_runtimes_is_one(words: str) -> None:
    for code, entry in ((507015, "aicore-exception"), (207001, "device-out-of-memory"), (507018, "aicpu-exception")):
        found = first(innocent(random.Random(code), 10) + f"aclrtSynchronizeStream failed, {words.format(code)}\n")
        assert found is not None and found.entry.id == entry


SAID = b"ImportError: libhccl.so: cannot open shared object file\n"
SHAPES: dict[str, Callable[[random.Random], bytes]] = {
    "errors": lambda r: b"error failed E\n" * 130_000 + SAID,
    "binary": lambda r: r.randbytes(2_000_000) + b"\n" + SAID,
    "dashes": lambda r: b"a-" * 900_000 + b"\n" + SAID,
}
LARGE_SHAPES: dict[str, Callable[[random.Random], bytes]] = {
    "one line": lambda r: b"word " * 1_000_000 + SAID.strip() + b" word" * 1_000_000,
    "a graph": lambda r: b'{"op": "ADD", "in": [1, 2]}, ' * 170_000 + SAID.strip() + b', {"op": "MUL"}' * 300_000,
    "blob": lambda r: base64.b64encode(r.randbytes(7_500_000)) + b"\n" + SAID,
    "blob in lines": lambda r: base64.encodebytes(r.randbytes(1_400_000)) + SAID,
    "dashes in lines": lambda r: (b"a-" * 250 + b"\n") * 3800 + SAID,
    "nesting": lambda r: b"[" * 10_000_000 + b"\n" + SAID,
    "large binary": lambda r: r.randbytes(10_000_000) + b"\n" + SAID,
}


@pytest.mark.parametrize("name", [*SHAPES, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE_SHAPES)])
def test_no_shape_of_a_log_holds_the_search_up_or_hides_the_cause(name: str, tmp_path: Path) -> None:
    """10 MB in one line took more than 120 s; a second for each 90 kB is what a search costs."""
    path = tmp_path / "odd.log"
    path.write_bytes((SHAPES | LARGE_SHAPES)[name](random.Random(5)))
    begin = time.process_time()
    found = explain(path)
    assert time.process_time() - begin < 10
    assert found.hits and found.hits[0].entry.id == "cann-library-missing"


def test_a_compressed_log_says_so(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b"NPU out of memory\n" * 100))
    assert any("compressed" in note for note in explain(path).notes)
