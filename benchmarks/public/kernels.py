"""Verifies public Triton kernels of several collections: each file of a checkout is the implementation of a task of ours."""

from __future__ import annotations

import re
import shutil
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

import yaml

from pypto_op.triton.run.setup.project import Project
from pypto_op.triton.run.setup.request import Request
from pypto_op.triton.run.verify import verify_triton

LIST = Path(__file__).with_name("kernels.yaml")
FILES = {
    "tritonbench": "data/TritonBench_G_v1/{}.py",
    "attorch": "attorch/{}.py",
    "liger": "src/liger_kernel/ops/{}.py",
}
_ABOUT_HERE = {"liger": ["src/liger_kernel/utils.py", "src/liger_kernel/ops/utils.py"]}
_TASK = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {model}

    def forward(self, {args}):
        return {want}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
_IMPL = """


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {args}):
        {call}
"""


def entries() -> list[dict[str, Any]]:
    """Return the list of kernels."""
    found: list[dict[str, Any]] = yaml.safe_load(LIST.read_text(encoding="utf-8"))
    return found


def place(entry: dict[str, Any], source: Path, folder: Path) -> tuple[Project, Path]:
    """Lay task and implementation of an entry out; return the project and the file that has the kernel."""
    folder.mkdir(parents=True)
    (folder / "op_torch.py").write_text(_TASK.format(**{"model": "pass", **entry}), encoding="utf-8")
    words = entry | {"init": entry.get("init", "pass"), "call": entry["call"].replace("; ", "\n        ")}
    own = _IMPL.format(**words)
    file = source / FILES[entry["source"]].format(entry["file"])
    impl = folder / "op_triton_ascend_impl.py"
    if entry["source"] == "tritonbench":
        text = re.split(r"^#{20,}$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[0]
        impl.write_text(text + own, encoding="utf-8")
        return Project.at(folder, "op", "triton_ascend_impl"), impl
    names = file.relative_to(source).parts
    module = ".".join(names[names.index("attorch") if "attorch" in names else 1 :]).removesuffix(".py")
    kept = _beside(entry["source"], source, folder, file)
    head = f"import torch\nimport torch.distributed.tensor\nfrom {module} import *  # noqa\n"
    impl.write_text(head + _imports(module, entry) + own, encoding="utf-8")
    return Project.at(folder, "op", "triton_ascend_impl"), kept


def _imports(module: str, entry: dict[str, Any]) -> str:
    names = sorted(set(re.findall(r"\b[A-Z]\w+(?=[.(])", entry.get("init", "") + entry["call"])) - {"ModelNew"})
    return f"from {module} import {', '.join(names)}\n" if names else ""


def _beside(name: str, source: Path, folder: Path, file: Path) -> Path:
    """Copy what a file of a package needs; return where the file with the kernels lies."""
    if name == "attorch":
        shutil.copytree(source / "attorch", folder / "attorch", ignore=shutil.ignore_patterns("__init__.py", "__pycache__"))
        kernels = folder / "attorch" / re.sub(r"_layers?\.py$", "_kernels.py", file.name)
        return kernels if kernels.is_file() else folder / "attorch" / file.name
    for part in [*_ABOUT_HERE[name], str(file.relative_to(source))]:
        target = folder / Path(part).relative_to("src")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / part, target)
    return folder / file.relative_to(source / "src")


def row(entry: dict[str, Any], source: Path, target: str, seeds: int = 2) -> dict[str, Any]:
    """Verify one kernel."""
    begin = time.process_time()
    with tempfile.TemporaryDirectory(prefix="public-kernel-") as scratch:
        project, _ = place(entry, source, Path(scratch) / "op")
        result = verify_triton(project, Request(target=target, seeds=seeds, timeout=400.0))
    failure = result["failures"][0] if result["failures"] else {}
    said = "\n".join(str(failure.get("error_msg", result["error"] or "")).splitlines()[:2])
    return {
        "collection": entry["source"],
        "kernel": entry["file"],
        "verdict": "PASS" if result["status"] == "PASS" else failure.get("error_type", result["status"]),
        "reason": " ".join(said.replace(scratch, "").split())[:300],
        "seconds": round(time.process_time() - begin, 2),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows in Markdown."""
    lines = ["| collection | kernel | verdict | reason |", "|---|---|---|---|"]
    lines += [f"| {row['collection']} | {row['kernel']} | {row['verdict']} | {_short(row['reason'])} |" for row in rows]
    return "\n".join(lines) + "\n"


def _short(text: str) -> str:
    return textwrap.shorten(text.replace("|", "\\|"), 160)
