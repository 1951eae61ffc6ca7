"""How outcomes are worded: output caps, pypto's log, and the ends of processes."""

from __future__ import annotations

import os

import pytest

from pypto_op.backends import pypto_log
from pypto_op.backends.capture import Capture
from pypto_op.backends.endings import classify
from pypto_op.backends.worker.loading import Failure, failure_of, load_module
from pypto_op.vocabulary import Outcome


@pytest.fixture
def pipe() -> tuple[int, int]:
    read, write = os.pipe()
    os.set_blocking(read, False)
    return read, write


def test_capture_keeps_both_ends(pipe: tuple[int, int]) -> None:
    read, write = pipe
    capture = Capture(read, 40)
    os.write(write, b"begin " + b"x" * 1000 + b" end")
    text = capture.take()
    assert text.startswith("begin xxx")
    assert text.endswith("xxx end")
    assert "970 bytes left out" in text
    os.write(write, "grün".encode() + b"\xff")
    assert capture.take() == "grün\ufffd"
    os.close(write)
    capture.pump()
    assert not capture.open


def test_the_log_is_told_apart() -> None:
    log = "[ERROR] PYPTO(2):2026-11-21 04:28:40.023 [pass.cpp:79][PASS]:[A.B]:Run pass  [X] failed."
    noise = "[ERROR] PYPTO(2):2026-11-21 04:28:40.023 [dev_encode_types.h:148][MACHINE]:ErrCode: F7A001! #data.valid"
    info = "[INFO ] PYPTO(2):2026-11-21 04:28:40.023 [flow_verifier.cpp:62][VERIFY]:tensor_graph Verify NO_COMPARE"
    text = "\n".join(["mine", noise, info, log, "[ERROR] mine too"])
    assert pypto_log.without_log(text) == "mine\n[ERROR] mine too"
    assert pypto_log.without_noise(text) == f"mine\n{info}\n{log}\n[ERROR] mine too"
    assert pypto_log.first_error(text) == "[A.B]:Run pass [X] failed."
    assert pypto_log.first_error("mine\n" + noise) == ""


@pytest.mark.parametrize(
    ("how", "stderr", "killed", "outcome", "words"),
    [
        ({"exit": 0}, "", False, Outcome.EXITED, "exit code 0 at import"),
        ({"signal": 11}, 'File "/x/a_impl.py", line 7 in f', False, Outcome.CRASHED, "a_impl.py:7: killed by SIGSEGV (seg"),
        ({"signal": 9}, "", False, Outcome.CRASHED, "SIGKILL"),
        ({"signal": 9}, "", True, Outcome.OUT_OF_MEMORY, "memory ran out"),
        ({"signal": 6}, "terminate: std::bad_alloc", False, Outcome.OUT_OF_MEMORY, "memory ran out"),
        ({"signal": 6}, "terminate: other", False, Outcome.CRASHED, "SIGABRT (abort)"),
        ({"signal": 77}, "", False, Outcome.CRASHED, "signal 77"),
        ({}, "", False, Outcome.CRASHED, "processes were killed"),
        ({"exit": 0}, "pypto-op: the channel to the judge is lost: bad", False, Outcome.CRASHED, "channel"),
    ],
)
def test_endings(how: dict[str, int], stderr: str, killed: bool, outcome: Outcome, words: str) -> None:
    found = classify(how, stderr, when="at import", file_name="a_impl.py", killed_for_memory=killed)
    assert found[0] is outcome
    assert words in found[1]


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            "Errcode: F21004!\nop [MUL]tile shape not set, func Operation, file operation.cpp, line 184\nlibx.so(+0x1) [0x7]",
            "RuntimeError: Errcode: F21004! op [MUL]tile shape not set",
        ),
        (
            "83, 31, 10, ASSEMBLEOpError\nfunc: A\n<64>\nout of bounds for storage",
            "RuntimeError: ASSEMBLEOpError: out of bounds for storage",
        ),
        ("plain\nmore", "RuntimeError: plain"),
        ("", "RuntimeError"),
        ("x" * 1000, "RuntimeError: " + "x" * 397 + "..."),
    ],
)
def test_the_telling_line_of_an_error(message: str, shown: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    found = failure_of(RuntimeError(message), tmp_path / "a_impl.py", Outcome.EXCEPTION)
    assert (found.outcome, found.detail) == (Outcome.EXCEPTION, f"a_impl.py: {shown}")


def test_a_deep_expression_is_a_syntax_error(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "deep.py"
    path.write_text("x = " + "(" * 5000 + "1" + ")" * 5000)
    with pytest.raises(Failure) as caught:
        load_module(path)
    assert caught.value.outcome is Outcome.SYNTAX_ERROR
