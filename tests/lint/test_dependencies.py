"""What the linter takes from the rest is what docs/architecture.md says, and none of it loads torch."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pypto_op_lint

ROOT = Path(__file__).parents[2]


def _modules_taken() -> Iterator[str]:
    for path in Path(pypto_op_lint.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                room, _, inner = node.module.partition(".")
                names = [inner] if inner else [alias.name for alias in node.names]
            elif isinstance(node, ast.Import):
                room, names = "", [alias.name.removeprefix("pypto_op.") for alias in node.names if "pypto_op." in alias.name]
                room = "pypto_op" if names else ""
            else:
                continue
            yield from (name for name in names if room == "pypto_op" and name != "__version__")


def test_the_page_names_every_module_that_the_linter_takes() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    told = re.search(r"`pypto_op_lint` imports of `pypto_op` only\s(.*?)\.\n", page, re.DOTALL)
    assert told is not None
    assert set(re.findall(r"`(\w+)`", told[1])) == {name.split(".")[0] for name in _modules_taken()}


def test_none_of_it_loads_torch() -> None:
    imports = "; ".join(f"import pypto_op.{name}" for name in sorted(set(_modules_taken())))
    subprocess.run([sys.executable, "-c", f"import sys; {imports}; sys.exit('torch' in sys.modules)"], check=True)
