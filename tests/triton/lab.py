"""Builds verification folders and runs the tools on them; the processes that workers are forked from are shared."""

from __future__ import annotations

import json
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests import program
from tests.quickly import read_table

from pypto_op.triton.run.setup.project import Project
from pypto_op.triton.run.setup.request import Request
from pypto_op.triton.run.verify import verify_triton

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXAMPLES = ROOT / "examples" / "triton"
SCRIPTS = ROOT / "skills" / "kernel-verifier" / "scripts"

FRESH = sorted(path.stem for path in (HERE / "fresh").glob("*.yaml"))
"""Tables of implementations, in fresh/, that were written before anybody looked how they would be judged."""

EXPO = """
    import torch
    import torch.nn as nn


    class Model(nn.Module):
        def forward(self, x):
            return torch.exp(x)


    def get_inputs():
        return [torch.randn(8, 64)]


    def get_init_inputs():
        return []
"""

IMPORTS = """
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
"""

EXP_KERNEL = """
@triton.jit
def exp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)
"""
"""What `EXPO` asks for."""

HEAD = """
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


def run(kernel, x, out=None):
    out = torch.empty_like(x) if out is None else out
    kernel[(triton.cdiv(max(1, x.numel()), 512),)](x, out, x.numel(), BLOCK=512)
    return out

"""


EACH = """
out = torch.empty_like(x)
kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
return out
"""
"""The forward of a table's entry that names none."""


def task(forward: str, inputs: str, *, init: str = "", more: str = "", of: str = "*xs", takes: str = "", given: str = "") -> str:
    """Return a task whose model's forward has these lines, and whose get_inputs returns this expression, or has these lines."""
    return (
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
        + nn_class("Model", init, forward, of, takes)
        + _inputs(inputs, given)
        + textwrap.dedent(more)
    )


def _inputs(inputs: str, given: str = "") -> str:
    body = inputs if "return " in inputs else f"return {inputs}"
    return f"\n\ndef get_inputs():\n{_indented(body, 1)}\n\n\ndef get_init_inputs():\n    return [{given}]\n"


def impl(forward: str, *, init: str = "", kernels: str = "") -> str:
    """Return an implementation with `copy_kernel`, `run` and these lines of forward."""
    return HEAD + textwrap.dedent(kernels) + "\n\n" + nn_class("ModelNew", init, forward)


def nn_class(name: str, init: str, forward: str, of: str = "*xs", takes: str = "") -> str:
    """Return a module: the lines of its constructor and of its forward; `x` is the first of many arguments."""
    constructor = (
        f"    def __init__(self{takes and f', {takes}'}):\n        super().__init__()\n{_indented(init, 2)}\n\n" if init else ""
    )
    first = "        x = xs[0]\n" if of == "*xs" else ""
    return f"class {name}(nn.Module):\n{constructor}    def forward(self, {of}):\n{first}{_indented(forward, 2)}\n"


def _indented(text: str, levels: int) -> str:
    return textwrap.indent(textwrap.dedent(text).strip(), "    " * levels)


def told(entry: dict[str, str], heads: dict[str, str]) -> str:
    """Return the file that an entry of corpus/table.yaml or exploits/table.yaml tells."""
    parts = [f'"""{entry["why"]}"""'] if "why" in entry else []
    parts += [entry.get("imports", "") + IMPORTS, heads[entry.get("head") or next(iter(heads))], entry.get("before", "")]
    made = entry.get("rest") or nn_class("ModelNew", entry.get("init", ""), entry["forward"], entry.get("of", "x"))
    return "\n\n".join([*parts, made])


def exploits() -> dict[str, str]:
    """Return the files of exploits/ by name: those that its table tells, and what would not fit there."""
    found = read_table(HERE / "exploits" / "table.yaml")
    files = {path.stem: path.read_text(encoding="utf-8") for path in (HERE / "exploits").glob("*.py")}
    return files | {name: told(entry, found["heads"]) for name, entry in found["exploits"].items()}


def folder(path: Path, task_text: str, impl_text: str, op: str = "expo", name: str = "triton_ascend_impl") -> Project:
    """Write both files and return the project."""
    path.mkdir(parents=True, exist_ok=True)
    (path / f"{op}_torch.py").write_text(textwrap.dedent(task_text), encoding="utf-8")
    (path / f"{op}_{name}.py").write_text(textwrap.dedent(impl_text), encoding="utf-8")
    return Project.at(path, op, name)


def fresh(table: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the files of a table of `FRESH`: kind (cheats, honest), name, the task's text, the implementation's text."""
    found = read_table(HERE / "fresh" / f"{table}.yaml")
    for kind in ("cheats", "honest"):
        for name, told in found[kind].items():
            entry = told if isinstance(told, dict) else {"forward": told}
            yield kind, name, _fresh_task(entry), _fresh_impl(entry)


def _fresh_task(entry: dict[str, str]) -> str:
    inputs = entry.get("inputs", "torch.randn(4, 6)")
    inputs = inputs if "return " in inputs else f"[{inputs}]"
    if "task" in entry:
        head = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"
        return head + entry["task"] + (_inputs(inputs) if "inputs" in entry else "")
    want = entry.get("want", "torch.exp(x)")
    forward = want if "return " in want else f"return {want}"
    of = entry.get("of", "x") if _whole(entry) and "want" in entry else "*xs"
    built = {"takes": entry.get("takes", ""), "given": entry.get("with", "")}
    text = task(forward, inputs, init=entry.get("model", ""), of=of, **built)
    return text.replace("\n\ndef get_inputs", f"\n{entry['reference']}\n\n\ndef get_inputs") if "reference" in entry else text


def _whole(entry: dict[str, str]) -> bool:
    """Whether the implementation brings its own kernels."""
    return "impl" in entry or "kernels" in entry


def _fresh_impl(entry: dict[str, str]) -> str:
    if _whole(entry):
        init = entry.get("init", entry.get("model", ""))
        made = entry.get("impl") or (
            f"{entry['kernels']}\n\n"
            + nn_class("ModelNew", init, entry.get("forward", EACH), entry.get("of", "x"), entry.get("takes", ""))
        )
        return f"{(HERE / 'fresh' / 'kernels_of_another_reader.txt').read_text(encoding='utf-8')}\n\n{made}"
    names = ["kernels", *([entry["add"]] if "add" in entry else [])]
    kernels = "\n\n".join((HERE / "fresh" / f"{name}.txt").read_text(encoding="utf-8") for name in names)
    return impl(entry["forward"], init=entry.get("init", ""), kernels=kernels) + "\n" + entry.get("more", "")


def verify(project: Project, **wanted: Any) -> dict[str, Any]:
    """Verify in the interpreter."""
    wanted.setdefault("timeout", 240.0)
    return verify_triton(project, Request(target="interpret", **wanted))


def first_error(result: dict[str, Any]) -> str:
    """Return the type of the first failure, "" when all is right."""
    return str(result["failures"][0]["error_type"]) if result["failures"] else ""


def script(name: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run one of the skill's scripts."""
    return program.python(SCRIPTS / f"{name}.py", *arguments, cwd=cwd)


def read(path: Path) -> Any:
    """Read a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))
