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
    "applied_ai": "kernels/triton/{}.py",
    "bitsandbytes": "bitsandbytes/backends/triton/{}.py",
    "deepseek": "inference/{}.py",
    "flash_attention": "flash_attn/ops/triton/{}.py",
    "flashinfer": "flashinfer/triton/{}.py",
    "sage_attention": "sageattention/triton/{}.py",
    "sgl_kernel_npu": "python/sgl_kernel_npu/sgl_kernel_npu/{}.py",
    "sglang": "python/sglang/srt/layers/attention/{}.py",
}
_PACKAGES = ("attorch", "liger")
"""Collections whose files import others of their package; a file of the rest is an implementation once ModelNew is added."""
_ABOUT_HERE = {
    "liger": ["src/liger_kernel/utils.py", "src/liger_kernel/ops/utils.py"],
    "sgl_kernel_npu": ["python/sgl_kernel_npu/sgl_kernel_npu/utils/triton_utils.py"],
}
_PATHS = {"liger": "src", "sgl_kernel_npu": "python/sgl_kernel_npu"}
"""The folders of a checkout from which its files are imported."""
_TASK = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {model}

    def forward(self, {args}):
        {want}


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
    want = entry["want"] if "return " in entry["want"] else f"return {entry['want']}"
    task = _TASK.format(**{"model": "pass", **entry, "want": _lines(want)})
    (folder / "op_torch.py").write_text(task, encoding="utf-8")
    words = entry | {"init": entry.get("init", "pass"), "call": _lines(entry["call"])}
    own = _IMPL.format(**words)
    file = source / FILES[entry["source"]].format(entry["file"])
    impl = folder / "op_triton_ascend_impl.py"
    if entry["source"] not in _PACKAGES:
        text = file.read_text(encoding="utf-8")
        if entry["source"] == "tritonbench":
            text = re.split(r"^#{20,}$", text, flags=re.MULTILINE)[0]
        impl.write_text("import torch\n" + text + own, encoding="utf-8")
        _about(entry["source"], source, folder)
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
    _about(name, source, folder, str(file.relative_to(source)))
    return folder / file.relative_to(source / _PATHS[name])


def _about(name: str, source: Path, folder: Path, *files: str) -> None:
    """Copy what files of a collection import, and these, to where they are imported from."""
    for part in (*_ABOUT_HERE.get(name, ()), *files):
        target = folder / Path(part).relative_to(_PATHS[name])
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / part, target)


def _lines(text: str) -> str:
    return text.replace("; ", "\n        ")


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
        "kernel": " ".join(filter(None, (entry["file"], entry.get("function")))),
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
