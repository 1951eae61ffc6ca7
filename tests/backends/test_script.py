"""`pypto-op script FILE`: a file for the device runs here, with our Python, and its exit code is the command's."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests import quickly

quickly.skip_without("torch")
pytestmark = pytest.mark.slow


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pypto_op.cli", "script", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_runs_with_its_arguments_and_its_exit_code(tmp_path: Path) -> None:
    file = tmp_path / "a script.py"
    file.write_text("import sys, torch_npu\nprint(sys.argv[1:], __name__)\nsys.exit(7)\n")
    done = run(str(file), "--out", "x y", "-h")
    assert done.stdout == "['--out', 'x y', '-h'] __main__\n"
    assert done.returncode == 7


def test_a_file_that_imports_its_neighbours_runs_as_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "ours" / "models"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (package.parent / "sizes.py").write_text("WIDTH = 3\n")
    (package / "run.py").write_text("import sys, torch_npu\nfrom ..sizes import WIDTH\nprint(WIDTH, sys.argv[1:], __name__)\n")
    monkeypatch.chdir(tmp_path)
    done = run("-m", "ours.models.run", "-m", "x")
    assert (done.returncode, done.stdout) == (0, "3 ['-m', 'x'] __main__\n"), done.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-m", "ours.nope"], 1, "no module ours.nope in"),
        (["-m"], 2, "-m MODULE"),
        ([], 2, "name a file, or a module with -m MODULE"),
    ],
)
def test_what_cannot_be_run_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1) and said in done.stderr, done.stderr


@pytest.mark.parametrize(("asked", "policy"), [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "active"}, "ACTIVE")])
def test_the_threads_of_a_script_sleep_while_they_wait(tmp_path: Path, asked: dict[str, str], policy: str) -> None:
    file = tmp_path / "threads.py"
    file.write_text("import torch\n")
    env = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    env |= {"OMP_DISPLAY_ENV": "true", **asked}
    words = [sys.executable, "-m", "pypto_op.cli", "script", str(file)]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert f"OMP_WAIT_POLICY = '{policy}'" in done.stderr


def test_a_missing_file_is_named_in_one_place(tmp_path: Path) -> None:
    done = run(str(tmp_path / "nope.py"))
    assert done.returncode == 2
    assert "nope.py" in done.stderr and "Traceback" not in done.stderr


def test_a_script_that_needs_torch_alone_builds_nothing(tmp_path: Path) -> None:
    file = tmp_path / "golden.py"
    file.write_text("import sys, torch, torch_npu\nprint(torch.ones(2, device='npu:0').sum().item(), 'pypto' in sys.modules)\n")
    cache = tmp_path / "cache"
    done = subprocess.run(
        [sys.executable, "-m", "pypto_op.cli", "script", str(file)],
        env={**os.environ, "PYPTO_OP_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["2.0", "False"]), done.stderr
    assert not cache.exists()


def test_pypto_of_a_script_is_the_ordinary_module(tmp_path: Path) -> None:
    file = tmp_path / "probe.py"
    file.write_text(
        "import pypto, importlib\nprint(pypto.__spec__.origin == pypto.__file__, importlib.import_module('pypto') is pypto)\n"
        "print(hasattr(pypto.runtime, 'verify'), pypto._controller.cond is not pypto.cond)\n"  # loaded once, and ours
    )
    done = subprocess.run(
        [sys.executable, "-m", "pypto_op.cli", "script", str(file)], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["True"] * 4, done.stderr


@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), signal.SIGKILL)", "ctypes.string_at(0)", "os._exit(3)"])
def test_nothing_stays_in_the_folder_for_temporary_files(tmp_path: Path, end: str) -> None:
    """Whatever ends the script; after a crash a helper tidies up, which may take a moment."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    file = tmp_path / "probe.py"
    file.write_text(
        f"import ctypes, os, signal, sys\nimport pypto\nprint(len(os.listdir({str(temporary)!r})))\nsys.stdout.flush()\n{end}\n"
    )
    command = [sys.executable, "-m", "pypto_op.cli", "script", str(file)]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert int(done.stdout.split()[0]) >= 1, done.stderr
    deadline = time.monotonic() + 120
    while list(temporary.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert list(temporary.iterdir()) == []


_TWICE = """
import multiprocessing as mp
import sys
import pypto, torch, torch_npu

@pypto.frontend.jit()
def twice(x: pypto.Tensor([4, 16], pypto.DT_FP32), out: pypto.Tensor([4, 16], pypto.DT_FP32)):
    pypto.set_vec_tile_shapes(4, 16)
    out.move(pypto.mul(x, 2.0))

def work(queue, x):
    out = torch.zeros(4, 16, device="npu:0")
    twice(x, out)
    queue.put(out.sum().item())

if __name__ == "__main__":
    mp.set_start_method(sys.argv[1])
    queue = mp.Queue()
    process = mp.Process(target=work, args=(queue, torch.ones(4, 16)))
    process.start()
    process.join(200)
    print(queue.get(timeout=1), process.exitcode)
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_process_that_a_script_starts_runs_as_the_script_does(tmp_path: Path, method: str) -> None:
    pytest.importorskip("pypto")
    file = tmp_path / "spawns.py"
    file.write_text(_TWICE)
    done = run(str(file), method)
    assert done.stdout.split() == ["128.0", "0"], done.stderr


_STARTS = """
import os, subprocess, sys
child, way = sys.argv[1:]
python = sys.executable
if way == "the same":
    subprocess.run([python, child, "a"], check=True)
elif way == "shell":
    subprocess.run(f"'{python}' -u '{child}' a", shell=True, check=True)
elif way == "own path":
    subprocess.run([python, child, "a"], env={**os.environ, "PYTHONPATH": "/nowhere"})
elif way == "isolated":
    subprocess.run([python, "-I", child, "a"])
else:
    subprocess.run([python, "-c", "import sys; print('torch' in sys.modules, sys.path[0] == '')"], check=True)
"""

_CHILD = """
import os, sys
import pypto, torch, torch_npu
print(torch.npu.is_host_shim, os.environ["TILE_FWK_DEVICE_ID"], sys.argv[1:], pypto.__spec__.origin == pypto.__file__)
"""


@pytest.mark.parametrize(
    ("way", "printed", "told"),
    [
        ("the same", "True 0 ['a'] True", ""),
        ("shell", "True 0 ['a'] True", ""),
        ("plain", "False True", ""),
        ("own path", "", "is started with another PYTHONPATH: what it runs does not see the simulator"),
        ("isolated", "", "is started with -I: what it runs does not see the simulator"),
    ],
)
def test_a_python_that_a_script_starts_by_subprocess_sees_what_the_script_sees(
    tmp_path: Path, way: str, printed: str, told: str
) -> None:
    """Or a line says that it does not; a child that asks for none of it starts as ever."""
    pytest.importorskip("pypto")
    (tmp_path / "child.py").write_text(_CHILD)
    (tmp_path / "starts.py").write_text(_STARTS)
    done = run(str(tmp_path / "starts.py"), str(tmp_path / "child.py"), way)
    assert done.stdout.strip() == printed and done.stderr.count("does not see") == bool(told), done.stderr
    assert told in done.stderr and done.returncode == 0


def test_the_own_start_up_file_of_a_child_is_loaded(tmp_path: Path) -> None:
    """Python knows one `sitecustomize` only, the first of the search path; ours loads the next."""
    (tmp_path / "sitecustomize.py").write_text("print('theirs')\n")
    file = tmp_path / "starts.py"
    file.write_text(
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import sys, torch_npu; print(sys.path.count(\"\"))'])\n"
    )
    command = [sys.executable, "-m", "pypto_op.cli", "script", str(file)]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split().count("theirs") >= 2 and done.stdout.split()[-1] == "1", done.stderr


_RECORDED = """
import sys
import pypto, torch, torch_npu

def record(x, out, *, rows=4):
    pypto.set_vec_tile_shapes(4, 16)
    with pypto.function("TWICE", x, out):
        for i in pypto.loop(1, name="L", idx_name="i"):
            pypto.assemble(pypto.mul(pypto.view(x, [4, 16], [i, 0]), 2.0), [i, 0], out)

pypto.runtime._device_init()
record(pypto.tensor((4, 16), pypto.DT_FP32, "x"), pypto.tensor((4, 16), pypto.DT_FP32, "out"))
x, out = torch.arange(64.0), torch.zeros(64)  # flat: a device looks at the memory alone
data = [pypto.from_torch(x, "x"), pypto.from_torch(out[: int(sys.argv[1])], "out")]
pypto.runtime._device_run_once_data_from_host(*data)
print(torch.equal(out, 2 * x))
if sys.argv[2:]:
    pypto.runtime._device_run_once_data_from_host(*data)
pypto.runtime._device_fini()
"""


@pytest.mark.parametrize(("words", "told"), [
    (["64"], ""),
    (["60"], "a tensor of shape [60] is given where [4, 16] is declared"),
    (["64", "again"], "in sim a recorded function runs once"),
])  # fmt: skip
def test_the_older_interface_computes(tmp_path: Path, words: list[str], told: str) -> None:
    """`pypto.function` records, `_device_run_once_data_from_host` brings the data."""
    pytest.importorskip("pypto")
    file = tmp_path / "recorded.py"
    file.write_text(_RECORDED)
    done = run(str(file), *words)
    assert told in done.stderr and (done.returncode == 0) is (not told), done.stderr
    assert done.stdout.split() == (["True"] if words[0] == "64" else [])


_GLOBAL = """
import sys
import pypto, torch, torch_npu

ROWS = [0]

@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
def doubled(x: pypto.Tensor([pypto.DYNAMIC, 16], pypto.DT_FP32), out: pypto.Tensor([pypto.DYNAMIC, 16], pypto.DT_FP32)):
    pypto.set_vec_tile_shapes(4, 16)
    for i in pypto.loop(ROWS[0] // 4 if sys.argv[1] == "global" else x.shape[0] // 4, name="L", idx_name="i"):
        pypto.assemble(pypto.view(x, [4, 16], [i * 4, 0]) * 2.0, [i * 4, 0], out)

for ROWS[0] in (4, 8, 12):
    x, out = torch.ones(ROWS[0], 16), torch.zeros(ROWS[0], 16)
    doubled(x, out)
    print(int(out.sum()))
"""


@pytest.mark.parametrize(("way", "lines"), [("global", 1), ("size", 0)])
def test_what_a_device_would_not_compile_again_is_told_once(tmp_path: Path, way: str, lines: int) -> None:
    pytest.importorskip("pypto")
    file = tmp_path / "doubled.py"
    file.write_text(_GLOBAL)
    done = run(str(file), way)
    assert done.stdout.split() == ["128", "256", "384"], done.stderr
    told = [line for line in done.stderr.splitlines() if "a device compiles it once" in line]
    assert len(told) == lines and all("doubled is built with 2 for [8, 16]" in line for line in told), done.stderr
