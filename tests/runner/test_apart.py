"""A command of an agent is alone: what it did not start it can neither end nor look into."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from tests.runner.running import Running, calls, says

from pypto_op.backends.worker import isolation
from pypto_op.runner import apart
from pypto_op.runner.leash import leashed

needs_name_spaces = pytest.mark.skipif(not isolation.allowed(), reason="this machine allows no name spaces of one's own")

MODULES = ("runner/apart.py", "runner/view.py", "runner/supervisor.py", "backends/worker/linux.py", "backends/processes.py")


def said(words: str, folder: Path, **environment: str) -> str:
    with tempfile.TemporaryFile() as out:
        env = {**os.environ, **environment}
        with leashed(["bash", "-c", words], cwd=folder, env=env, stdout=out, stderr=subprocess.STDOUT, narrow=True) as child:
            child.wait(60)
        out.seek(0)
        return out.read().decode()


def python(code: str) -> str:
    return shlex.join([sys.executable, "-c", code])


@needs_name_spaces
@pytest.mark.slow
def test_a_program_of_an_agent_does_not_find_the_runner(running: Running) -> None:
    """The guard knows words; what a program makes up by itself, the kernel refuses."""
    code = f"import os; os.kill(int('{os.getpid()}'), 0)"
    running.run([calls(("Bash", {"command": python(code)})), says("done")])
    assert "ProcessLookupError" in running.told(1)


@needs_name_spaces
def test_everything_that_it_can_name_it_has_started(tmp_path: Path) -> None:
    """Neither the runner nor its key's keeper is among its processes, and ending all of them ends the command alone."""
    seen = said("ls -d /proc/[0-9]* | wc -l; kill -9 -1; sleep 60", tmp_path)  # "" where the kill came before the count
    assert int(seen or 0) <= 6, "the first process, a shell or two, and what this line starts"
    assert said("kill -9 1 2>&1; kill -INT 1; echo here", tmp_path) == "here\n", "the first of all is deaf"
    began = time.monotonic()
    assert said("kill -9 2; sleep 60", tmp_path) == "" and time.monotonic() - began < 30
    assert said(f"cat /proc/{os.getpid()}/environ", tmp_path).endswith("No such file or directory\n")


@needs_name_spaces
@pytest.mark.slow
def test_it_is_an_agent_still(tmp_path: Path) -> None:
    """The state tool looks for the mark above a process; a command that throws its own environment away has not got rid of it."""
    code = python("from pypto_op.state.callers import harness_above; print(bool(harness_above()))")
    assert said(f"env -i {code}", tmp_path, AI_AGENT="pypto-op run") == "True\n"
    assert said(f"setsid -f env -i {code}; sleep 8", tmp_path, AI_AGENT="pypto-op run") == "True\n", "also an orphan"


@pytest.mark.slow
@needs_name_spaces
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_its_supervisor(tmp_path: Path, number: int) -> None:
    with leashed(["sleep", "617"], cwd=tmp_path, env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        below = psutil.Process(child.pid).children(recursive=True)
        assert any("617" in process.cmdline() for process in below)
        child.send_signal(number)
        gone, alive = psutil.wait_procs(below, timeout=60)
    assert gone and not alive


@needs_name_spaces
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_somebody_without_rights_is_alone_too() -> None:
    interpreter = next((path for path in ("/usr/bin/python3", "/usr/local/bin/python3") if Path(path).exists()), None)
    if interpreter is None:
        pytest.skip("no interpreter that another account can run")
    with tempfile.TemporaryDirectory(prefix="pypto-op-", dir="/tmp") as folder:
        package = Path(apart.__file__).parents[1]
        for name in (
            "runner/apart.py",
            "runner/view.py",
            "runner/supervisor.py",
            "backends/worker/linux.py",
            "backends/processes.py",
        ):
            target = Path(folder, "pypto_op", name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(package / name, target)
        for path in [Path(folder), *Path(folder).rglob("*")]:
            path.chmod(0o777)
        (Path(folder) / "work").mkdir(mode=0o777)
        (Path(folder) / "work").chmod(0o777)
        alone = [interpreter, "-I", "-S", f"{folder}/pypto_op/runner/supervisor.py"]
        (ours, theirs), (began, begins) = os.pipe(), os.pipe()
        words = [
            *alone,
            str(ours),
            str(begins),
            "alone,narrow",
            "0",
            "sh",
            "-c",
            f"kill -0 {os.getpid()}; id -u; echo $$; touch own",
        ]
        who = {"user": 65534, "group": 65534, "extra_groups": []}
        done = subprocess.run(
            words, cwd=f"{folder}/work", capture_output=True, text=True, check=False, pass_fds=[ours, begins], **who
        )
        for descriptor in (ours, theirs, began, begins):
            os.close(descriptor)
        assert done.stdout, done
        number, process = done.stdout.split()
        assert number == "65534" and int(process) < 20 and "No such process" in done.stderr, done
