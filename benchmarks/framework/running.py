"""Runs one script, or one file of tests, of a checkout: each in processes of its own, with a limit of time and memory."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TESTS = "python/tests/st"
HELPERS = "framework/tests/cmake/scripts/helper"
SECONDS = 600
MEMORY = max(20 << 30, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 7 // 8)
"""Bytes that a script may take: most of a large machine, since two of the framework's own models need more than 20 GiB."""
_WRONG = re.compile(r"AssertionError|Not equal to tolerance|not close|mismatch", re.IGNORECASE)
_ERROR = re.compile(r"^(?:E\s+)?((?:\w+\.)*\w*(?:Error|Exception|Exit)\b.*)$", re.MULTILINE)


def script(source: Path, name: str) -> dict[str, Any]:
    """Return the row of a script: how it ended, kernels launched, processor seconds, and its last error."""
    with tempfile.TemporaryDirectory() as folder:
        place = _copied(source, Path(folder), name)
        done = _run([name], place, Path(folder) / "launches.json")
    row = {"seconds": done["cpu"], "launches": done["launches"]}
    if done["code"] == 0:
        return row | {"end": "right" if done["launches"] else "no kernel", "why": ""}
    return row | {"end": "wrong" if _WRONG.search(done["said"]) else "cannot", "why": _why(done)}


def tests(source: Path, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the rows of files of tests, with one entry for each test; each test ran in a process of its own (`forked`)."""
    with tempfile.TemporaryDirectory() as folder:
        place, target = _copied(source, Path(folder), names[0]), Path(folder) / "rows"
        target.touch()
        runner = Path(__file__).with_name("forked.py")
        line = [sys.executable, "-m", "pypto_op.backends.hostshim", str(runner), str(target), *names]
        with (Path(folder) / "said").open("wb") as said:
            subprocess.run(line, cwd=place, env=_environment(), stdin=subprocess.DEVNULL, stdout=said, stderr=said, check=True)
        return rows_of(target.read_text(encoding="utf-8"))


def rows_of(lines: str) -> dict[str, dict[str, Any]]:
    """Return the rows of files from the lines that `forked` wrote."""
    rows = [json.loads(line) for line in lines.splitlines()]
    found: dict[str, dict[str, Any]] = {row["file"]: {"seconds": 0.0, "tests": {}} for row in rows if "file" in row}
    for row in (row for row in rows if "test" in row):
        file, _, test = row["test"].partition("::")
        entry = found[file]
        entry["seconds"] = round(entry["seconds"] + row["seconds"], 1)
        entry["tests"][test] = {"end": row["end"], "why": row["why"]}
    return found


def ending_of(text: str) -> dict[str, str]:
    """Return how a test ended that failed with this text."""
    return {"end": "wrong" if _WRONG.search(text) else "cannot", "why": _last_error(text)}


def _copied(source: Path, folder: Path, name: str) -> Path:
    """Return a copy of the part of a checkout that a file may need: scripts write beside themselves."""
    place = folder / "checkout"
    top = name.partition("/")[0]
    shutil.copytree(source / top, place / top, ignore=shutil.ignore_patterns("__pycache__", "src"))
    if (source / HELPERS).is_dir():  # python/tests/st/operation imports them by their place
        shutil.copytree(source / HELPERS, place / HELPERS)
    for one in ("conftest.py", "pytest.ini"):
        if (source / one).is_file():
            shutil.copy(source / one, place / one)
    return place


def _run(words: list[str], place: Path, counted: Path) -> dict[str, Any]:
    """Run a script with its launches counted; return exit code, output, launches and processor seconds."""
    counted.unlink(missing_ok=True)
    line = [sys.executable, "-m", "benchmarks.framework.counting", str(counted), str(place / words[0]), *words[1:]]
    env, cwd = _environment(), (place / words[0]).parent
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(
            line, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True, preexec_fn=_limited,
        )  # fmt: skip
        status, usage = _waited(child)
        output.seek(0)
        said = output.read().decode(errors="replace")
    launches = json.loads(counted.read_text()) if counted.is_file() else 0
    return {"code": status, "said": said, "launches": launches, "cpu": round(usage.ru_utime + usage.ru_stime, 1)}


def _environment() -> dict[str, str]:
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]), "OMP_NUM_THREADS": "2"}
    env.pop("TILE_FWK_DEVICE_ID", None)
    return env


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _waited(child: subprocess.Popen[bytes]) -> tuple[int, resource.struct_rusage]:
    """Wait for a process with its group, no longer than SECONDS of processor time, or six times as long on the clock."""
    began = time.monotonic()
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode, usage
        if time.monotonic() - began > 6 * SECONDS or _cpu_of(child.pid) > SECONDS:
            os.killpg(child.pid, 9)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = -9
            return -1000, usage
        time.sleep(0.2)


def _cpu_of(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _why(done: dict[str, Any]) -> str:
    if done["code"] == -1000:
        return f"not done after {SECONDS} s of processor time"
    if done["code"] < 0:
        return f"killed by signal {-done['code']}"
    return _last_error(done["said"]) or f"exit code {done['code']}"


def _last_error(said: str) -> str:
    found = _ERROR.findall(said)
    return re.sub(r"/\S*/", "", found[-1])[:200] if found else ""
