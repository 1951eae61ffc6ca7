"""What a kernel file shows of a mistake: its lines, the linter's findings, its tile widths."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pypto_op.diagnose.readable import check_readable
from pypto_op.errors import ContractError
from pypto_op.python_text import parsed
from pypto_op.workspace import OpWorkspace

_FLOAT32_BYTES = 4


@dataclass(frozen=True)
class KernelText:
    """A kernel file, ready to be searched."""

    path: Path  # the file
    text: str  # its text
    findings: dict[str, int] = field(default_factory=dict)  # rule id to the first line it fires at
    widths: tuple[tuple[int, int], ...] = ()  # line and last number of each set_vec_tile_shapes call that can be read

    def line(self, number: int) -> str:
        """Return a line, "" where there is none."""
        lines = self.text.splitlines()
        return lines[number - 1].strip() if 1 <= number <= len(lines) else ""

    def tile_line(self, words: str) -> int:
        """Return the line of the tile call that `words` of pypto speak of, 0 where several may be meant.

        Words of L0, L1 or a cube speak of cube tiles; where there are several calls, the sizes in the words decide.
        """
        kind = "set_cube_tile_shapes" if re.search(r"\bL[01][ABC]?\b|[kmn]L0|[Cc]ube", words) else "set_vec_tile_shapes"
        calls = [(number, line) for number, line in enumerate(self.text.splitlines(), 1) if f"pypto.{kind}(" in line]
        sizes = set(re.findall(r"\d+", words))
        whole = re.search(r"tile \[([\d, ]+)\]", words)
        exact = [n for n, line in calls if whole and re.findall(r"\d+", line.partition("(")[2]) == re.findall(r"\d+", whole[1])]
        if exact:
            return exact[0]
        named = [number for number, line in calls if set(re.findall(r"\d+", line.partition("(")[2])) <= sizes]
        lines = [number for number, _ in calls]
        return named[0] if len(named) == 1 else lines[0] if len(lines) == 1 else 0

    def in_wrapper(self, number: int) -> bool:
        """Whether a line stands in a wrapper, where a launch raises what happened in the kernel."""
        try:
            tree = ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError):
            return False
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.endswith("_wrapper")]
        return any(node.lineno <= number <= (node.end_lineno or node.lineno) for node in functions)

    def only_calls(self, number: int) -> bool:
        """Whether a line is a wrapper's, or a jit function's that hands everything over to a function of the file."""
        tree = parsed(self.text)
        if tree is None or self.in_wrapper(number):
            return tree is not None
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        names = {node.name for node in functions}
        entries = [node for node in functions if any("jit" in ast.unparse(one) for one in node.decorator_list)]
        return any(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names and _holds(node, number)
            for entry in entries
            for node in ast.walk(entry)
        )

    def called_before(self, call: int, raised: int) -> bool:
        """Whether the helper that holds the line `raised` is called above the line `call`, in the same function, too."""
        tree = parsed(self.text)
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)] if tree is not None else []
        helper = max((one for one in functions if _holds(one, raised)), key=lambda one: one.lineno, default=None)
        caller = max((one for one in functions if _holds(one, call)), key=lambda one: one.lineno, default=None)
        if helper is None or caller is None:
            return False
        calls = [one for one in ast.walk(caller) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)]
        return any(
            isinstance(one.func, ast.Name) and one.func.id == helper.name and (one.end_lineno or 0) < call for one in calls
        )

    def narrow_tile(self, width_bytes: int) -> int:
        """Return the line of a vector tile whose last axis, as float32, is no multiple of `width_bytes`; 0 for none."""
        return next((line for line, last in self.widths if last * _FLOAT32_BYTES % width_bytes), 0)


def _holds(node: ast.FunctionDef | ast.Call, number: int) -> bool:
    return node.lineno <= number <= (node.end_lineno or node.lineno)


def read_kernel(given: Path | str, rules: frozenset[str]) -> KernelText:
    """Read a kernel, a path or the text itself, and ask the linter for `rules`.

    Raises:
        ContractError: the file is missing, cannot be read, or belongs to the judge.
    """
    from pypto_op.documents.reading import read_text

    if isinstance(given, str) and "\n" in given:
        path, text = Path("kernel_code"), given
    else:
        path = Path(given).expanduser()
        check_readable(path)
        text = read_text(path)
    return KernelText(path, text, _findings(path, text, rules), tuple(_widths(text)))


def _findings(path: Path, text: str, rules: frozenset[str]) -> dict[str, int]:
    from pypto_op_lint import api

    # Outside an operator the linter goes by the name, which a scratch copy need not have.
    at = path if OpWorkspace.owning(path) else path.with_name("kernel_impl.py")
    try:
        result = api.lint_path(at, text=text, rules=sorted(rules), loose=True)
    except ContractError:
        return {}
    found: dict[str, int] = {}
    for finding in result.findings:
        found.setdefault(finding.rule_id, finding.line or 0)
    return found


def _widths(text: str) -> Iterator[tuple[int, int]]:
    tree = parsed(text)
    if tree is None:
        return
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, int)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        if node.func.attr != "set_vec_tile_shapes":
            continue
        last = node.args[-1]
        value = constants.get(last.id) if isinstance(last, ast.Name) else getattr(last, "value", None)
        if isinstance(value, int) and len(node.args) > 1:
            yield node.lineno, value
