"""Runs kernels' own tests, each in a fork of this process, which has loaded torch, Triton and pytest: a server on standard input.

A request is a line of JSON: `kind` (`script`: a file with `test_*`, whose results are held against those of the untouched file;
`pytest`: a test file of a package), `root`, `file`, `kept` (where the untouched results lie), `most` (the smallest so many
parametrisations per test function), `limit` in seconds. The answer is a line with `ok` and `why`.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import io
import json
import math
import os
import signal
import sys
import time
import types
from pathlib import Path
from typing import Any


def main() -> None:
    """Serve until standard input ends."""
    interpreted = sys.argv[1] == "interpret"
    if interpreted:
        os.environ["TRITON_INTERPRET"] = "1"
    import pytest  # noqa: F401
    import torch

    import triton  # noqa: F401

    torch.set_num_threads(1)
    if interpreted:
        _pretend_device()
    sys.meta_path.append(_Absences())
    for line in sys.stdin:
        print(json.dumps(_forked(json.loads(line))), flush=True)


def _pretend_device() -> None:
    """Let the interpreter stand for the device, as `triton verify` does."""
    from triton.runtime import autotuner

    from pypto_op.backends import hostshim
    from pypto_op.triton.run.interpreter import bfloat16, gaps, hostdevice, libdevice

    hostshim.install()
    hostdevice.install()
    bfloat16.mend()
    gaps.mend()
    libdevice.install()
    autotuner.Autotuner._bench = lambda self, *args, config, **meta: [float(self.configs.index(config))] * 3  # type: ignore[method-assign]


class _Absent(types.ModuleType):
    """Stands for a package that tests import and these do not call."""

    __path__: list[str] = []
    __version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__bool__": lambda self: False})  # `is_torch_npu_available()` says no


class _Absences(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds such packages where they are not installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Answer for packages that tests import at their top."""
        top = name.partition(".")[0]
        return (
            importlib.machinery.ModuleSpec(name, self, is_package=True)
            if top in ("transformers", "tokenizers", "datasets")
            else None
        )

    def create_module(self, spec: Any) -> types.ModuleType:
        """Return the module that stands there."""
        return _Absent(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing."""


def _forked(request: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        answer: dict[str, Any] = {"ok": False, "why": "nothing was said"}
        try:
            with Path(os.devnull).open("w") as silent, contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
                answer = _script(request) if request["kind"] == "script" else _pytest(request)
        except BaseException as error:
            answer = {"ok": False, "why": f"{type(error).__name__}: {error}"[:300]}
        finally:
            os.write(writing, json.dumps(answer).encode())
            os._exit(0)
    os.close(writing)
    end = time.monotonic() + request["limit"]
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(reading)
            return {"ok": False, "why": "Timeout"}
        time.sleep(0.02)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    return json.loads(said) if said else {"ok": False, "why": "Crashed"}  # type: ignore[no-any-return]


def _script(request: dict[str, Any]) -> dict[str, Any]:
    """Run a file and compare what its tests return with what those of the untouched file returned."""
    import torch

    torch.manual_seed(0)
    path = Path(request["file"])
    scope: dict[str, Any] = {"__name__": "own", "__file__": str(path)}
    sys.modules["own"] = types.ModuleType("own")
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), scope)  # noqa: S102
    found = [value for name, value in scope.items() if name.startswith("result")]
    if not found:
        found = [value() for name, value in list(scope.items()) if name.startswith("test_") and callable(value)]
    found = _on_host(found)
    kept = Path(request["kept"])
    if not kept.exists():
        torch.save(found, kept)
        return {"ok": bool(found), "why": "kept"}
    torch.testing.assert_close(found, torch.load(kept, weights_only=False), equal_nan=True, rtol=1e-3, atol=1e-3)
    return {"ok": True, "why": ""}


def _on_host(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, dict):
        return {key: _on_host(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_on_host(item) for item in value if item is not None]
    return 0.0 if value is None or isinstance(value, str) else value


class _Smallest:
    """A plugin that keeps the smallest parametrisations of each test function."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.failed = ""
        self.passed = 0

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Choose."""
        by_function: dict[str, list[Any]] = {}
        for item in items:
            by_function.setdefault(item.originalname or item.name, []).append(item)
        items[:] = [item for group in by_function.values() for item in sorted(group, key=_size)[: self._most]]

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note the first failure."""
        self.passed += report.when == "call" and report.passed
        if report.failed and not self.failed:
            self.failed = f"{report.nodeid.rpartition('::')[2]}: {str(report.longrepr)[-200:]}"


def _size(item: Any) -> float:
    given = getattr(item, "callspec", types.SimpleNamespace(params={})).params.values()
    return math.prod(max(1, number) for value in given for number in _numbers(value))


def _numbers(value: Any) -> list[int]:
    if isinstance(value, (list, tuple)):
        return [number for item in value for number in _numbers(item)]
    return [value] if type(value) is int else []


def _pytest(request: dict[str, Any]) -> dict[str, Any]:
    import pytest

    root = request["root"]
    os.chdir(root)
    sys.path[:0] = [root, f"{root}/src"]
    plugin = _Smallest(request["most"])
    more = ["-k", request["select"]] if request.get("select") else []
    usual = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts="]
    words = [*usual, *request.get("words", []), *more, request["file"]]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = pytest.main([f"--rootdir={root}", *words], plugins=[plugin])
    if code == 0 and plugin.passed:
        return {"ok": True, "why": f"{plugin.passed} passed"}
    return {"ok": False, "why": plugin.failed or f"pytest ended with {int(code)}: {said.getvalue()[-300:]}"}


if __name__ == "__main__":
    main()
