"""pypto's interpreter forgets a turn of a loop when it is over: it kept two copies of all its inputs and outputs, and more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import program, quickly

quickly.skip_without("pypto")
pytestmark = [pytest.mark.sim, pytest.mark.slow]

KERNEL = Path(__file__).with_name("kept_turns.py")


def run(*words: str) -> dict[str, Any]:
    done = program.python("-m", "pypto_op.cli", "script", KERNEL, *words)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_thirty_turns_take_no_more_memory_than_one_and_no_files() -> None:
    found = run()
    assert found["right"] and found["grew"] < 600 and found["wrote"] < 50, found


def test_where_passes_are_compared_all_is_kept() -> None:
    found = run("keep")
    assert found["right"] and found["grew"] > 1000 and found["wrote"] > 500, found


def test_who_compares_passes_or_saves_tensors_has_all_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    import pypto
    from pypto.frontend.parser import entry

    from pypto_op.backends.worker import kernel_lines, pypto_hooks

    switched: dict[str, bool] = {}
    monkeypatch.setattr(pypto_hooks, "_switch", lambda name, on: switched.update({name: on}))
    monkeypatch.setattr(kernel_lines, "follow", lambda: None)
    wrapper: Any = entry.JitCallableWrapper
    for name in ("_set_run_mode", "_set_config_option", "_setup_verify_data", "__call__"):
        monkeypatch.setattr(wrapper, name, wrapper.__dict__[name])
    monkeypatch.setattr(wrapper, "_set_config_option", lambda self: None)
    monkeypatch.setattr(pypto, "cond", pypto.cond)
    options: dict[str, Any] = {}
    monkeypatch.setattr(pypto, "set_verify_options", lambda **one: options.update(one))
    monkeypatch.setattr(pypto, "get_verify_options", lambda: options)
    monkeypatch.setattr(pypto, "set_global_config", lambda *_: None)
    none = list(pypto_hooks.NO_PASS)
    further: dict[str, Any] = {}
    pypto_hooks.simulate(numeric=True, further=lambda: pypto.set_verify_options(**further))
    for passes, saved, kept in ((["ExpandFunction"], False, True), (none, True, True), (none, False, False)):
        further |= {"pass_verify_pass_filter": passes, "pass_verify_save_tensor": saved}
        wrapper._set_config_option(None)
        assert switched == {"pypto_op_keep_turns": kept, "pypto_op_follow_program": False}
