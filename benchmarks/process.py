"""Commands that benchmarks start, with the processor time that they and their children used."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

_SPENT = Path(__file__).with_name("spent.py")


@dataclass(frozen=True)
class Done:
    """A command that ended.

    Attributes:
        code: its exit code.
        seconds: on the clock.
        cpu_seconds: of processor time, with those of every child that was waited for; of `command` with those of all workers.
        output: standard output and error together.
    """

    code: int
    seconds: float
    cpu_seconds: float
    output: str

    def spent(self) -> dict[str, float]:
        """Return both times, rounded to a tenth of a second."""
        return {"seconds": round(self.seconds, 1), "cpu_seconds": round(self.cpu_seconds, 1)}

    def last_lines(self, count: int) -> str:
        """Return the last lines of the output."""
        return "\n".join(self.output.strip().splitlines()[-count:])


def run(command: Sequence[str], cwd: Path, *, apart: bool = False) -> Done:
    """Run a command to its end in `cwd`; its threads are left to one core, so that workers do not crowd each other.

    Args:
        apart: `output` is standard output alone.
    """
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(
            command,
            cwd=cwd,
            stdout=output,
            stderr=subprocess.DEVNULL if apart else subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read().decode(errors="replace")
    return Done(child.returncode, time.monotonic() - began, usage.ru_utime + usage.ru_stime, said)


def command(words: Sequence[str], cwd: Path, *, apart: bool = False) -> Done:
    """Run `pypto-op WORDS` to its end in `cwd`; its processor time is the command's own sum (`benchmarks.spent`)."""
    with tempfile.TemporaryDirectory() as folder:
        spent = Path(folder) / "spent"
        done = run([sys.executable, str(_SPENT), str(spent), *words], cwd, apart=apart)
        return replace(done, cpu_seconds=float(spent.read_text(encoding="utf-8"))) if spent.is_file() else done


def digest_of(*files: Path) -> str:
    """Return the sha256 of files, in their order."""
    whole = hashlib.sha256()
    for path in files:
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def digest_of_text(text: str) -> str:
    """Return the sha256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
