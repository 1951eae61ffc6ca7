"""The hidden verdict: the team's kernel, judged on the hidden cases against the hidden golden, far from the workspace."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pypto_op import own_python
from pypto_op.evals.requests import DRAWS, Request, folder
from pypto_op.vocabulary import Status
from pypto_op.workspace import OpWorkspace

_SECONDS = 1800
_LARGEST = 65536


def judge(request: Request, op_dir: Path) -> dict[str, Any]:
    """Judge the kernel of `op_dir` with the real judge, in processes of its own; nothing is written to `op_dir`.

    Returns:
        `status`, `cases_passed`, `cases_total`, `reading` (the golden that it agrees with, or the first), `said` (why not),
        and where it passed `time`, `unit` of the timed case; None where nothing was timed.
    """
    kernel = OpWorkspace(op_dir, request.op).impl
    if not kernel.is_file():
        return _row(str(Status.FAIL), said="there is no kernel")
    found: dict[str, Any] = {}
    for reading in request.data.get("readings", [f"{request.op}_golden"]):
        row = _judge_reading(request, reading, op_dir)
        found = found or row
        if row["status"] == Status.PASS:
            return row
    return found


def _judge_reading(request: Request, reading: str, op_dir: Path) -> dict[str, Any]:
    with made(request, reading) as root:
        for path in op_dir.glob("*.py"):
            if "golden" not in path.name and not path.name.startswith("test_"):
                shutil.copy(path, root / path.name)
        code, said = _run(["verify", "--quiet", "--modes", "sim", str(root)], root.parents[1])
        report = _document(OpWorkspace.at(root).report)
        if report is None:
            return _row(str(Status.ERROR), reading=reading, said=said[-400:] or f"exit code {code}")
        first = (report["first_failure"] or {}).get("summary") or (report["error"] or {}).get("message") or ""
        row = _row(report["status"], report["cases_passed"], report["cases_total"], reading=reading, said=first)
        return row | (_timed(root) if report["status"] == Status.PASS else {})


def _timed(root: Path) -> dict[str, Any]:
    _, said = _run(["benchmark", "--modes", "sim", "--levels", "L4", "--json", str(root)], root.parents[1])
    result = parsed(said)
    rows = [row for row in (result or {}).get("per_shape_results", []) if row["median"] is not None]
    if not rows or result is None:
        return {"time": None, "unit": None}
    return {"time": float(rows[0]["median"]), "unit": str(result["modes"][rows[0]["mode"]]["unit"])}


def _row(status: str, passed: int = 0, total: int = 0, *, reading: str = "", said: str = "") -> dict[str, Any]:
    found = {"status": status, "cases_passed": passed, "cases_total": total, "reading": reading, "said": said}
    return {**found, "time": None, "unit": None}


def _run(words: list[str], cwd: Path) -> tuple[int, str]:
    """Run a command of this bundle; return its exit code, and its output."""
    try:
        done = subprocess.run(
            own_python.running("pypto_op.cli", *words), cwd=cwd, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return -1, f"no answer within {_SECONDS} s"
    return done.returncode, done.stdout if done.stdout.strip() else done.stderr


def _document(path: Path) -> dict[str, Any] | None:
    return parsed(path.read_text(encoding="utf-8")) if path.is_file() else None


def parsed(text: str) -> dict[str, Any] | None:
    """Return the JSON object of a text, such as what a command printed; None for anything else."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


# -- the operator that the judge reads -----------------------------------------------------------------------------


@contextmanager
def made(request: Request, reading: str = "") -> Iterator[Path]:
    """Make an operator's folder of a request's data in a private folder, which goes with the block; it has no kernel."""
    with tempfile.TemporaryDirectory(prefix="pypto-op-hidden-") as private:
        ws = OpWorkspace(Path(private).resolve() / "custom" / request.op, request.op)
        ws.interfaces.parent.mkdir(parents=True)
        ws.spec.write_text(_spec(request), encoding="utf-8")
        ws.interfaces.write_text(json.dumps(_interfaces(request), indent=1), encoding="utf-8")
        ws.suite.write_text(json.dumps(_suite(request), indent=1), encoding="utf-8")
        ws.golden.write_text(golden_text(request, reading or f"{request.op}_golden"), encoding="utf-8")
        ws.test_inputs.write_text(inputs_text(request), encoding="utf-8")
        yield ws.root


def golden_text(request: Request, reading: str) -> str:
    """Return the golden's file, in which the function `reading` has the name that the judge calls."""
    name = f"{request.op}_golden"
    text = request.golden.read_text(encoding="utf-8").partition("\n\ndef independent(")[0] + "\n"
    if reading != name:
        text = re.sub(rf"\bdef {name}\(", "def _other_reading(", text)
        text = re.sub(rf"\bdef {reading}\(", f"def {name}(", text)
    return text


def inputs_text(request: Request) -> str:
    """Return the module that draws the inputs of a case."""
    text = (folder() / DRAWS).read_text(encoding="utf-8")
    return text.replace("_INPUTS = []", f"_INPUTS = {list(request.data['inputs'])!r}", 1)


def _spec(request: Request) -> str:
    import yaml

    data, scalars = request.data, [entry for entry in request.data["inputs"] if "value" in entry]
    head = {
        "schema_version": "1.0",
        "op_name": request.op,
        "supported_dtypes": sorted({case["dtype"] for case in data["cases"]}),
        "p0_shapes": [dict(case["shape"]) for case in data["cases"][:2]],
        "tolerance": data["tolerance"],
        "dynamic_axes": data["dynamic_axes"],
        "dynamic_axes_ranges": {axis: [1, _LARGEST] for axis in data["dynamic_axes"]},
        "default_params": {entry["name"]: entry["value"] for entry in scalars},
        "perf_target": None,
    }
    return f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n\n# {request.op}: hidden specification\n"


def _interfaces(request: Request) -> dict[str, Any]:
    first = request.data["cases"][0]["dtype"]

    def port(entry: Mapping[str, Any]) -> dict[str, Any]:
        return {"name": entry["name"], "shape": entry["shape"], "dtype": first if entry["dtype"] == "case" else entry["dtype"]}

    outputs = [port(entry) for entry in request.data["outputs"]]
    module = {
        "id": 1,
        "name": "whole",
        "description": request.id,
        "inputs": [{"name": entry["name"], "source": "primary"} for entry in request.data["inputs"]],
        "outputs": outputs,
    }
    return {
        "schema_version": 1,
        "op": request.op,
        "primary_inputs": [port(entry) for entry in request.data["inputs"]],
        "modules": [module],
        "final_outputs": [{"name": entry["name"], "source": "module_1"} for entry in outputs],
    }


def _suite(request: Request) -> dict[str, Any]:
    cases = request.data["cases"]
    timed = next((case for case in cases if case.get("timed")), cases[1])
    rows = [
        {
            "id": case["id"],
            "level": "L4" if case is timed else "L3",
            "shape": case["shape"],
            "dtype": {"default": case["dtype"]},
            "precision": True,
            **request.data["tolerance"][case["dtype"]],
            "seed": 42,
            **{name: case[name] for name in ("scalars", "draws") if name in case},
        }
        for case in cases
    ]
    return {"schema_version": 1, "op": request.op, "total_modules": 1, "cases": rows}
