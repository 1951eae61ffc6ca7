"""Runs files of tests under pytest, each test in a process of its own: `forked.py FILE WORDS...` under the host shim.

FILE gets one line of JSON for each test: `test` (its name in pytest), `end` (right, wrong, cannot, skipped), `why`, and the
processor `seconds` of its process. Torch and pypto are loaded once, and each test begins in a fork of that process.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pypto  # noqa: F401  # under the shim this makes the process a simulator, before it forks
import pytest
from _pytest.runner import runtestprotocol

SECONDS = 120
"""Of processor time for one test; on the clock ten times as much."""
MEMORY = 8 << 30
"""Bytes of address space that one test may take beside what its process has already."""


class Forked:
    """A plugin of pytest: each test in a fork.

    Args:
        target: the file of rows.
        ending: maps a failure's text to (end, why).
    """

    def __init__(self, target: Path, ending: Any) -> None:
        self._target, self._ending = target, ending

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool:
        """Run one test in a fork, and write its row."""
        before = time.monotonic()
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            self._run(item, writer)
        os.close(writer)
        row = self._row(child, reader, before)
        self._write({"test": item.nodeid, **row})
        return True

    def pytest_collectreport(self, report: Any) -> None:
        """Write the row of a file that cannot be collected."""
        if report.failed:
            self._write({"test": f"{report.nodeid}::(collection)", "seconds": 0.0, **self._ending(str(report.longrepr))})

    def _run(self, item: Any, writer: int) -> None:
        """Run a test in this process, and end it."""
        os.setsid()
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        row: dict[str, str] = {"end": "right", "why": ""}
        for report in runtestprotocol(item, log=False, nextitem=None):
            if report.skipped:
                row = {"end": "skipped", "why": str(report.longrepr[-1] if isinstance(report.longrepr, tuple) else "")[:200]}
            elif report.failed:
                row = self._ending(str(report.longrepr))
                break
        os.write(writer, json.dumps(row).encode())
        os._exit(0)

    def _row(self, child: int, reader: int, before: float) -> dict[str, Any]:
        """Wait for a test's process; one that ends without a row died."""
        while True:
            pid, status, usage = os.wait4(child, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - before > 10 * SECONDS:
                os.killpg(child, signal.SIGKILL)
            time.sleep(0.05)
        with os.fdopen(reader, "rb") as said:
            text = said.read()
        seconds = round(usage.ru_utime + usage.ru_stime, 1)
        if text:
            return {"seconds": seconds, **json.loads(text)}
        code = os.waitstatus_to_exitcode(status)
        why = f"killed by signal {-code}" if code < 0 else f"its process ended with exit code {code}"
        return {"seconds": seconds, "end": "cannot", "why": "too slow" if code in (-signal.SIGXCPU, -signal.SIGKILL) else why}

    def _write(self, row: dict[str, Any]) -> None:
        with self._target.open("a", encoding="utf-8") as target:
            target.write(json.dumps(row) + "\n")


def main() -> int:
    """Run what the arguments name, one file after the other, each in a fork that collects it."""
    from benchmarks.framework import running

    target, files, options = Path(sys.argv[1]), sys.argv[2:], ["-q", "-p", "no:cacheprovider", "-p", "xdist"]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # but xdist, whose hooks the framework's conftest has
    for name in files:
        child = os.fork()
        if not child:
            code = pytest.main([*options, "--rootdir", os.getcwd(), name], plugins=[Forked(target, running.ending_of)])
            sys.stdout.flush()
            os._exit(int(code))
        _, status = os.waitpid(child, 0)
        with target.open("a", encoding="utf-8") as rows:
            rows.write(json.dumps({"file": name, "code": os.waitstatus_to_exitcode(status)}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
