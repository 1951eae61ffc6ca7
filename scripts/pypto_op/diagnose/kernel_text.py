"""What a kernel file shows of a mistake: its lines, and the linter's findings."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

from pypto_op.diagnose.kernel_loops import KernelLoops
from pypto_op.diagnose.readable import check_readable
from pypto_op.errors import ContractError
from pypto_op.python_text import parsed
from pypto_op.workspace import OpWorkspace


@dataclass(frozen=True)
class KernelText:
    """A kernel file, ready to be searched."""

    path: Path  # the file
    text: str  # its text
    findings: dict[str, list[tuple[int, str]]] = field(default_factory=dict)  # rule id to line and message of each finding

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
        if parsed(self.text) is None:
            return False
        kernel = KernelLoops(self.text)
        caller = kernel.function_of(call)
        return bool(caller) and any(line < call and kernel.function_of(line) == caller for line in kernel.callers(raised, ""))


def _holds(node: ast.Call, number: int) -> bool:
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
    return KernelText(path, text, _findings(path, text, rules))


def _findings(path: Path, text: str, rules: frozenset[str]) -> dict[str, list[tuple[int, str]]]:
    from pypto_op_lint import api

    # Outside an operator the linter goes by the name, which a scratch copy need not have.
    at = path if OpWorkspace.owning(path) else path.with_name("kernel_impl.py")
    try:
        result = api.lint_path(at, text=text, rules=sorted(rules), loose=True)
    except ContractError:
        return {}
    found: dict[str, list[tuple[int, str]]] = {}
    for finding in result.findings:
        found.setdefault(finding.rule_id, []).append((finding.line or 0, finding.message))
    return found
