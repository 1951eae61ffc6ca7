"""PX12: a module golden says where it comes from."""

import re

import libcst as cst

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.findings import Edit
from pypto_op_lint.rule import Invalid, Rule, Valid

_DERIVED = "# Derived from module_interfaces.yaml - do not hand-edit. On YAML changes, regenerate."
_MADE = "# generated during Phase M{k} scaffolding; do not hand-edit below the header"
_IS_DERIVED = re.compile(r"#\s*derived\s+from\s+\S*module_interfaces\.yaml\b", re.IGNORECASE)
_IS_MADE = re.compile(r"#\s*generated\s+during\s+phase\s+m_?(\d+)\s+scaffolding\b", re.IGNORECASE)
_BODY = '"""Golden of M1."""\n\n\ndef demo_module1_golden(x):\n    return (x * x,)\n'
_HEADER = f"{_DERIVED}\n{_MADE.format(k=1)}\n"


class ModuleGoldenHeader(Rule):
    """A module golden lacks its header, or names another phase in it.

    What it does:
        Looks among the comments before the first import or function for `# Derived from module_interfaces.yaml ...` and
        `# generated during Phase M_k scaffolding ...`, with the k of the file's own phase. The docstring may stand before.

    Why:
        Who changes the contract must know which files go with it, and that this one is not patched to fit a kernel.

    Example:
        def demo_module1_golden(x): ...   # first line of the file

    Use instead:
        # Derived from module_interfaces.yaml - do not hand-edit. On YAML changes, regenerate.
        # generated during Phase M1 scaffolding; do not hand-edit below the header

    Known limits:
        A header is a claim; the hash that the verified phase freezes keeps the file as it is.
    """

    id = "PX12"
    name = "module-golden-header"
    severity = Severity.S1
    artifacts = frozenset({Artifact.MODULE_GOLDEN})
    MESSAGE = "the module golden lacks its header"
    FIX_HINT = f"begin the file with `{_DERIVED}` and `{_MADE.format(k='_k')}`"

    VALID = [
        Valid(_HEADER + _BODY, artifact=Artifact.MODULE_GOLDEN),
        Valid(
            "#!/usr/bin/env python3\n" + _HEADER.replace(" - do", " \u2014 do").replace("M1", "M_1") + _BODY,
            artifact=Artifact.MODULE_GOLDEN,
        ),
        Valid(
            _BODY.replace('."""\n', '."""\n' + _HEADER.upper().replace("MODULE_INTERFACES.YAML", "eval/module_interfaces.yaml")),
            artifact=Artifact.MODULE_GOLDEN,
        ),
    ]
    INVALID = [
        Invalid(_BODY, artifact=Artifact.MODULE_GOLDEN, replacement=_HEADER + _BODY),
        Invalid(
            f"{_DERIVED}\n{_BODY}",
            artifact=Artifact.MODULE_GOLDEN,
            files={"modules/demo_module1_impl.py": "import pypto\n"},
            lines=(1,),
        ),
        Invalid(_HEADER.replace("M1", "M2") + _BODY, artifact=Artifact.MODULE_GOLDEN, lines=(2,)),
        Invalid(_BODY + _HEADER, artifact=Artifact.MODULE_GOLDEN),
        Invalid('"""\n' + _HEADER + '"""\n' + _BODY, artifact=Artifact.MODULE_GOLDEN),
    ]

    def check_file(self) -> None:
        """Look at the comments before the code."""
        k = self.unit.phase
        comments = self._comments()
        derived = any(_IS_DERIVED.match(text) for _, text in comments)
        made = [(line, int(match[1])) for line, text in comments if (match := _IS_MADE.match(text))]
        wrong = [line for line, phase in made if k is not None and phase != k]
        if wrong:
            self.report(wrong[0], f"the header names another phase than M{k}")
        missing = ([] if derived else [_DERIVED]) + ([] if made or k is None else [_MADE.format(k=k)])
        if missing:
            hint = f"begin the file with {' and '.join(f'`{line}`' for line in missing)}"
            edit = Edit(1, 0, 1, 0, "".join(f"{line}\n" for line in missing)) if not self.unit.text.startswith("#!") else None
            self.report(1, hint=hint, edit=edit)

    def _comments(self) -> list[tuple[int, str]]:
        """Return the comments before the first statement that is no docstring, with their lines."""
        tree = self.unit.tree
        if tree is None:
            return []
        body = tree.body
        start = next((tree.position(node)[0] for node in body if not _is_docstring(node)), None)
        docstrings = [tree.position(node) for node in body if _is_docstring(node)]
        lines = self.unit.text.splitlines()[: start - 1 if start is not None else None]
        inside = {n for first, _, last, _ in docstrings for n in range(first, last + 1)}
        return [(n, line.strip()) for n, line in enumerate(lines, 1) if line.lstrip().startswith("#") and n not in inside]


def _is_docstring(node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.SimpleStatementLine) or len(node.body) != 1:
        return False
    expression = node.body[0]
    return isinstance(expression, cst.Expr) and isinstance(expression.value, (cst.SimpleString, cst.ConcatenatedString))
