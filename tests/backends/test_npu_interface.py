"""What the device's path uses, and what stands in for it, against the names and parameters of the real torch_npu."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pypto_op.backends.hostshim import graphs, interface, modules
from pypto_op.backends.worker import npu as device_path

from . import standin_npu, torch_npu_wheel

_ROOTS = {"npu": "torch.npu", "torch.npu": "torch.npu", "torch_npu": "torch_npu", "profiler": "torch_npu.profiler"}
"""How `worker/npu.py` names the modules."""

_OURS = {"is_host_shim"}
_BESIDE = {"npu", "Format"}
"""Set on torch_npu when it is imported, not written in its modules: its package `npu`, and the layouts (`npu/_format.py`)."""


def _used(source: str) -> Iterator[tuple[str, str, ast.Call | None]]:
    """Yield what a source uses of torch_npu: module, name, and the call where it is one."""
    tree = ast.parse(source)
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (module := _ROOTS.get(ast.unparse(node.value))):
            yield module, node.attr, calls.get(id(node))


def _faults(source: str) -> list[str]:
    """Return what a source asks of torch_npu that the real one does not have."""
    found, seen = [], 0
    for module, name, call in _used(source):
        seen += 1
        ways = interface.forms(module, name)
        if module == "torch_npu" and name in {"npu", "profiler"}:
            continue
        if ways is None:
            found.append(f"{module}.{name}")
        elif call is not None:
            try:
                keywords = {keyword.arg: ... for keyword in call.keywords if keyword.arg}
                interface.check_call(name, ways, tuple(call.args), keywords)
            except TypeError as error:
                found.append(str(error))
    assert seen, "the source uses nothing of torch_npu: have its names changed?"
    return found


def test_the_device_path_uses_what_torch_npu_has() -> None:
    assert _faults(Path(device_path.__file__).read_text()) == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("npu.set_devices(0)", "torch.npu.set_devices"),
        ("npu.set_device()", "missing a required argument: 'device'"),
        ("npu.Event(timing=True)", "unexpected keyword argument 'timing'"),
        ("torch_npu.profiler.profile([1])", "too many positional arguments"),
        ("profiler.trace_handler('x')", "torch_npu.profiler.trace_handler"),
    ],
)
def test_a_name_or_a_call_that_torch_npu_lacks_is_found(line: str, fault: str) -> None:
    line = line.replace("torch_npu.profiler", "profiler")
    (found,) = _faults(line)
    assert fault in found


def test_methods_of_events_are_those_of_torch_npu() -> None:
    tree = ast.parse(Path(device_path.__file__).read_text())
    used = {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node.value) in {"begin", "end"}
    }
    assert used == {"record", "elapsed_time"}
    assert used <= interface.table()["classes"]["torch.npu.Event"].keys()


def test_the_shim_offers_nothing_that_torch_npu_lacks() -> None:
    npu, torch_npu = modules.build()
    for module, known in ((npu, "torch.npu"), (torch_npu, "torch_npu")):
        names = {name for name in vars(module) if not name.startswith("__")} - _OURS - _BESIDE
        assert names
        assert names <= interface.table()["modules"][known].keys()
    for stand_in, real in ((modules.Stream, "Stream"), (modules.Event, "Event"), (graphs.NPUGraph, "NPUGraph")):
        methods = interface.table()["classes"][f"torch.npu.{real}"]
        public = {name: value for name, value in vars(stand_in).items() if inspect.isfunction(value) and name[0] != "_"}
        assert public.keys() <= methods.keys()
        for name, value in public.items():
            given = interface.signature(methods[name][0]).parameters.values()
            inspect.signature(value).bind(..., *(... for parameter in given if parameter.kind is parameter.POSITIONAL_OR_KEYWORD))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda npu: npu.synchronize(0, 1), "too many positional arguments"),
        (lambda npu: npu.set_device(), "missing a required argument: 'device'"),
        (lambda npu: npu.set_compile_mode(False, True), "torch.npu.set_compile_mode()"),
        (lambda npu: npu.memory_allocated(unit="MB"), "unexpected keyword argument 'unit'"),
    ],
)
def test_the_shim_refuses_a_call_that_the_device_refuses(call: Any, said: str) -> None:
    with pytest.raises(TypeError) as caught:
        call(modules.build()[0])
    assert said in str(caught.value)


def test_a_missing_name_says_whether_a_device_has_it() -> None:
    npu, torch_npu = modules.build()
    with pytest.raises(AttributeError, match=r"torch\.npu\.mem_get_info needs an NPU"):
        _ = npu.mem_get_info
    with pytest.raises(AttributeError, match=r"has no such name; did you mean synchronize\?"):
        _ = npu.synchronise
    with pytest.raises(AttributeError, match=r"torch_npu\.npu_fusion_attention needs an NPU"):
        _ = torch_npu.npu_fusion_attention


def test_the_profiler_that_stands_in_refuses_what_the_real_one_refuses() -> None:
    profiler = standin_npu.profiler()
    with pytest.raises(TypeError, match="unexpected keyword argument 'activity'"):
        profiler.profile(activity=["NPU"])
    with pytest.raises(TypeError, match="too many positional"):
        profiler.tensorboard_trace_handler("folder", None, True, False, 1)


def test_a_wheel_is_read_as_text(tmp_path: Path) -> None:
    wheel = tmp_path / "torch_npu-9.8-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("torch_npu/__init__.py", "raise SystemExit('imported')\nfrom . import npu\ndef erase(stream): ...")
        archive.writestr(
            "torch_npu/npu/__init__.py",
            "__all__ = ['compiled']\nfrom .streams import *\nfrom . import graphs\n"
            "if True:\n    def go(a, /, b=1, *c, d, e=2, **f): ...",
        )
        archive.writestr("torch_npu/npu/graphs.py", "import torch_npu\nfrom torch_npu.npu import go\n")
        archive.writestr(
            "torch_npu/npu/streams.py",
            "__all__ = ['Stream', 'Event', 'NPUGraph']\nclass Base:\n    def wait(self, event): ...\nclass Stream(Base):\n"
            "    def __new__(cls, device=None): ...\nclass Event: ...\nclass NPUGraph: ...\nclass Hidden: ...",
        )
        archive.writestr("torch_npu/profiler/__init__.py", "from .kept import profile")
        archive.writestr("torch_npu/profiler/kept.py", "class profile:\n    def __init__(self, *, activities=None): ...")
        archive.writestr("torch_npu/lib/libtorch_npu.so", b"\0npu_cast(Tensor(a!) x, int[2]? y=[1, 2], *, int z=0) -> Tensor\0")
    found = torch_npu_wheel.read_wheel(wheel)
    assert found["version"] == "9.8"
    assert found["modules"]["torch_npu"] == {"erase": ["(stream)"], "npu": [""], "npu_cast": ["(x, y=..., *, z=...)"]}
    names = found["modules"]["torch.npu"]
    assert names["go"] == ["(a, /, b=..., *c, d, e=..., **f)"]
    assert (names["Stream"], names["compiled"], "Hidden" in names) == (["(device=...)"], [""], False)
    assert found["classes"]["torch.npu.Stream"] == {"wait": ["(event)"]}
    interface.check_call("go", names["go"], (1,), {"d": 2, "more": 3})
    with pytest.raises(TypeError, match="'d'"):
        interface.check_call("go", names["go"], (1,), {})


@pytest.mark.slow
def test_the_table_is_what_the_wheel_says(tmp_path: Path) -> None:
    """The wheel is downloaded, read as text, and never installed."""
    asked = f"torch_npu=={interface.table()['version']}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(tmp_path), asked]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        pytest.skip(f"no wheel of {asked}: {(done.stderr.strip().splitlines() or ['pip said nothing'])[-1]}")
    (wheel,) = tmp_path.glob("*.whl")
    assert torch_npu_wheel.read_wheel(wheel) == interface.table()
