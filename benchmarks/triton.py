"""The Triton path on this machine: the static check warm and cold, and what verify costs beyond the kernel itself.

Figures of a GPU are measured by `tests/triton/on_gpu.sh` and kept in `benchmarks/results/triton_gpu.json`.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.table import Row, Table, percentiles

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples" / "triton"
SCRIPT = ROOT / "skills" / "kernel-verifier" / "scripts" / "validate_triton_impl.py"


def run(quick: bool) -> list[Table]:
    """Return the tables; the second only where Triton is installed."""
    tables = [_static(quick)]
    if importlib.util.find_spec("triton") is not None:
        tables.append(_verify(quick))
    return tables


def _static(quick: bool) -> Table:
    from pypto_op.triton.static.validate import validate_file

    files = sorted(EXAMPLES.glob("*/*_triton_ascend_impl.py"))
    warm: list[float] = []
    for _ in range(2 if quick else 8):
        for file in files:
            begin = time.perf_counter()
            assert validate_file(file)["valid"]
            warm.append((time.perf_counter() - begin) * 1e3)
    cold = [_script(files[0]) for _ in range(2 if quick else 7)]
    rows = [
        Row("validate_file, warm, one of six honest files", percentiles(warm), 30, "p50"),
        Row("validate_triton_impl.py, a process of its own", percentiles(cold), 700, "p50"),
    ]
    return Table("Triton: static check", "ms", rows, ["warm: libcst parsed and walked; positions only when there is a finding"])


def _script(file: Path) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, str(SCRIPT), str(file), "--json"], check=True, capture_output=True)
    return (time.perf_counter() - begin) * 1e3


def _verify(quick: bool) -> Table:
    from pypto_op.triton.run.setup.project import Project
    from pypto_op.triton.run.setup.request import Request
    from pypto_op.triton.run.verify import verify_triton

    per_case: list[float] = []
    whole: list[float] = []
    with tempfile.TemporaryDirectory(prefix="pypto-op-") as folder:
        work = shutil.copytree(EXAMPLES / "softmax", Path(folder) / "softmax")
        project = Project.at(work, "softmax", "triton_ascend_impl")
        for _ in range(2 if quick else 5):
            begin = time.perf_counter()
            result = verify_triton(project, Request(target="interpret", seeds=1))
            whole.append((time.perf_counter() - begin) * 1e3)
            assert result["status"] == "PASS", result
            per_case += [case["seconds"] * 1e3 for case in result["cases"][1:]]
    rows = [
        Row("one more small case, both processes and the comparison", percentiles(per_case)),
        Row("verify, four cases, from a warm process", percentiles(whole[1:] or whole)),
    ]
    notes = [
        "interpreter: most of a case is the interpreter's own time; the first run also starts the process that workers fork from"
    ]
    return Table("Triton: verify on the CPU", "ms", rows, notes)
