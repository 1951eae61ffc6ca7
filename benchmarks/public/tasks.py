"""Imports every task of a checkout of KernelBench, and lets `verify` judge the task itself in the kernel's place."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from pypto_op.errors import PyptoOpError
from pypto_op.triton.intake.importing import Request, import_task
from pypto_op.triton.run.setup.project import Project
from pypto_op.triton.run.setup.request import Request as VerifyRequest
from pypto_op.triton.run.verify import verify_triton


def files(source: Path, levels: list[str]) -> list[Path]:
    """Return the tasks of some levels, by number."""
    found = [path for level in levels for path in (source / "KernelBench" / level).glob("*.py")]
    return sorted(found, key=lambda path: (path.parent.name, int(re.match(r"\d*", path.stem)[0] or 0)))  # type: ignore[index]


def row(file: Path) -> dict[str, Any]:
    """Import one task and judge its own `Model`, renamed to `ModelNew`: PyTorch computes, so it must be refused."""
    entry: dict[str, Any] = {"task": f"{file.parent.name}/{file.stem}"}
    begin = time.process_time()
    with tempfile.TemporaryDirectory(prefix="public-task-") as scratch:
        folder = Path(scratch) / "op"
        try:
            found = import_task(file, Request(op_name="op", folder=folder))
        except PyptoOpError as error:
            return {**entry, "import": "refused", "reason": error.one_line()}
        entry |= {
            "import": "imported" if found["small_enough"] else "imported, large",
            "public": [_shape(given["public"]) for given in found["arguments"]],
            "here": [_shape(given["here"]) for given in found["arguments"]],
        }
        shutil.copyfile(folder / "op_torch.py", folder / "op_triton_ascend_impl.py")
        text = (folder / "op_triton_ascend_impl.py").read_text(encoding="utf-8")
        (folder / "op_triton_ascend_impl.py").write_text(re.sub(r"\bModel\b", "ModelNew", text), encoding="utf-8")
        project = Project.at(folder, "op", "triton_ascend_impl")
        result = verify_triton(project, VerifyRequest(target="interpret", seeds=1, timeout=300.0))
    failure = result["failures"][0] if result["failures"] else {}
    entry |= {
        "copy": result["status"] if not failure else failure["error_type"],
        "reason": " ".join(str(failure.get("error_msg", result["error"] or "")).split())[:160],
        "seconds": round(time.process_time() - begin, 2),
    }
    return entry


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows in Markdown."""
    lines = ["| task | import | public shapes | shapes here | its own Model as kernel | reason |", "|---|---|---|---|---|---|"]
    for entry in rows:
        shapes = [", ".join(entry.get(side, [])) for side in ("public", "here")]
        reason = entry["reason"].replace("|", "\\|")
        lines.append(f"| {entry['task']} | {entry['import']} | {shapes[0]} | {shapes[1]} | {entry.get('copy', '')} | {reason} |")
    return "\n".join(lines) + "\n"


def _shape(given: dict[str, Any]) -> str:
    if given["type"] != "tensor":
        return str(given.get("value", given.get("repr", given["type"])))[:24]
    return "x".join(map(str, given["shape"])) or "scalar"
