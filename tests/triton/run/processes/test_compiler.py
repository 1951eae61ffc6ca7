"""What Triton's compiler needs once in each process is made in the one that others are forked from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pypto_op.backends.launcher import Zygote
from pypto_op.backends.processes import children_of
from pypto_op.errors import InfraError
from pypto_op.triton.run.processes import compiler, model


def test_the_library_is_hashed_and_nothing_is_left_running(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = pytest.importorskip("triton.runtime.cache")
    cache.triton_key.cache_clear()
    monkeypatch.setenv("TRITON_CACHE_DIR", "/nowhere")
    before = children_of(os.getpid())
    compiler.make_ready()
    assert cache.triton_key.cache_info().currsize == 1
    assert os.environ["TRITON_CACHE_DIR"] == "/nowhere"
    assert children_of(os.getpid()) == before


def test_what_a_driver_builds_lies_in_the_cache_of_each_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(folder: str) -> None:
        built = Path(folder, "KEY", "utils.so")
        built.parent.mkdir()
        built.write_bytes(b"\x7fELF")
        os._exit(0)

    monkeypatch.setattr(compiler, "_built", {})
    monkeypatch.setattr(compiler, "_build", build)
    monkeypatch.setenv("TRITON_CACHE_DIR", "")
    compiler.make_ready()
    (tmp_path / "task.py").write_text("")
    model.prepare({"device": {"target": "cuda"}, "file": str(tmp_path / "task.py"), "enclosure": {"scratch": str(tmp_path)}})
    assert os.environ["TRITON_CACHE_DIR"] == str(tmp_path / "triton")
    assert (tmp_path / "triton" / "KEY" / "utils.so").read_bytes() == b"\x7fELF"


def test_a_process_that_others_are_forked_from_calls_what_it_is_told_to() -> None:
    told = {"pypto": False, "calculator": None, "switch": None, "preload": ["pypto_op.vocabulary:no_such_function"]}
    zygote = Zygote(told, {})
    try:
        with pytest.raises(InfraError, match="no_such_function"):
            assert zygote.namespaces
    finally:
        zygote.close()
