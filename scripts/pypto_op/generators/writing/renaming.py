"""From a staged file to the integrated one, by libcst: names lose the module suffix, staged imports are resolved.

Code is renamed by its names, not as text, so a string or a longer name that happens to hold the suffix stays as it
is. Comments, docstrings and `__all__` speak of names, and follow where they hold exactly one that was renamed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import libcst as cst

from pypto_op.documents.reading import read_text
from pypto_op.errors import ContractError
from pypto_op.workspace import OpWorkspace
from pypto_op_lint.import_statements import dotted, imported_by
from pypto_op_lint.liveness import is_main_test
from pypto_op_lint.nodes import names_in
from pypto_op_lint.parsing import parse_contract

_STUB = re.compile(r"#\s*STUB\b")
_PHASES = re.compile(r"(?:Modules?\s+)?M_?1(?:\s*(?:\.\.+|-|\u2013|to)\s*M_?\d+)?(?:\s+(?:composed|of\s+\w+))*\s*:\s*", re.I)

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


def integrated(ws: OpWorkspace, source: Path) -> str:
    """Return the text of the integrated implementation.

    Args:
        ws: the operator.
        source: the last staged impl.

    Raises:
        ContractError: it does not parse, a staged import cannot be resolved, or two names become one.
    """
    module = _parse(source)
    module = _Resolver(ws, source).resolve(module)
    body = [statement for statement in module.body if not _is_main_block(statement)]
    module = module.with_changes(body=body)
    names = _Names(ws.name)
    module.visit(names)
    _refuse_collisions(names, source)
    renamed = module.visit(_Rename(names.renamed))
    assert isinstance(renamed, cst.Module)
    return _first_words(renamed).code.rstrip("\n") + "\n"


def _parse(path: Path) -> cst.Module:
    return parse_contract(read_text(path), file=path)


# -- names ------------------------------------------------------------------------------------------------------------


class _Names(cst.CSTVisitor):
    """Finds every name with the module suffix, and every other name."""

    def __init__(self, op: str) -> None:
        super().__init__()
        self._pattern = re.compile(rf"(?P<before>_*){re.escape(op)}_module\d+(?P<after>(?:_\w+)?)\Z")
        self._op = op
        self.renamed: dict[str, str] = {}
        self.others: set[str] = set()

    def visit_Name(self, node: cst.Name) -> None:
        match = self._pattern.match(node.value)
        if match:
            self.renamed[node.value] = f"{match['before']}{self._op}{match['after']}"
        else:
            self.others.add(node.value)


def _refuse_collisions(names: _Names, source: Path) -> None:
    taken: dict[str, str] = {}
    for old, new in names.renamed.items():
        other = taken.setdefault(new, old)
        if other != old or new in names.others:
            both = f"{other} and {old}" if other != old else f"{old} and {new}"
            raise ContractError(f"{both} would get one name", file=source, remedy="rename one of them")


class _Rename(cst.CSTTransformer):
    """Renames in code, and in what speaks of code."""

    def __init__(self, renamed: dict[str, str]) -> None:
        super().__init__()
        self._renamed = renamed
        words = "|".join(sorted(map(re.escape, renamed), key=len, reverse=True))
        self._words = re.compile(rf"(?<!\w)(?:{words})(?!\w)") if renamed else None
        self._all_depth = 0

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        new = self._renamed.get(updated_node.value)
        return updated_node if new is None else updated_node.with_changes(value=new)

    def leave_Comment(self, original_node: cst.Comment, updated_node: cst.Comment) -> cst.Comment:
        return updated_node.with_changes(value=self._said(updated_node.value))

    def leave_EmptyLine(self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine) -> cst.EmptyLine | cst.RemovalSentinel:
        stub = updated_node.comment is not None and _STUB.match(updated_node.comment.value)
        return cst.RemoveFromParent() if stub else updated_node

    def leave_TrailingWhitespace(
        self, original_node: cst.TrailingWhitespace, updated_node: cst.TrailingWhitespace
    ) -> cst.TrailingWhitespace:
        if updated_node.comment is not None and _STUB.match(updated_node.comment.value):
            return updated_node.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
        return updated_node

    def visit_Assign(self, node: cst.Assign) -> None:
        self._all_depth += _assigns_all(node)

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        self._all_depth -= _assigns_all(original_node)
        return updated_node

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        return updated_node.with_changes(value=self._said(updated_node.value)) if self._all_depth else updated_node

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> cst.Expr:
        if isinstance(updated_node.value, cst.SimpleString):  # a docstring
            text = updated_node.value.with_changes(value=self._said(updated_node.value.value))
            return updated_node.with_changes(value=text)
        return updated_node

    def _said(self, text: str) -> str:
        return text if self._words is None else self._words.sub(lambda match: self._renamed[match[0]], text)


def _assigns_all(node: cst.Assign) -> bool:
    return any(isinstance(target.target, cst.Name) and target.target.value == "__all__" for target in node.targets)


def _first_words(module: cst.Module) -> cst.Module:
    """Take "M1..M2:" from the beginning of the module's docstring: the reader of the product knows no phases."""
    if not module.body or module.get_docstring() is None:
        return module
    line = module.body[0]
    assert isinstance(line, cst.SimpleStatementLine)
    statement = line.body[0]
    if not isinstance(statement, cst.Expr) or not isinstance(statement.value, cst.SimpleString):
        return module
    string = statement.value
    start = len(string.prefix) + len(string.quote)
    head, text = string.value[:start], string.value[start:]
    match = _PHASES.match(text)
    if match and len(text) > match.end() + len(string.quote):
        text = text[match.end() :]
        if re.match(r"[a-z]{2,}\b(?!\()", text):  # a word, not a name of the formula
            text = text[0].upper() + text[1:]
    changed = line.with_changes(body=[statement.with_changes(value=string.with_changes(value=head + text)), *line.body[1:]])
    return module.with_changes(body=[changed, *module.body[1:]])


def _is_main_block(statement: cst.CSTNode) -> bool:
    """Whether a statement is `if __name__ == "__main__":`, which is a self-test and no part of the product."""
    return isinstance(statement, cst.If) and is_main_test(statement.test)


# -- staged imports ---------------------------------------------------------------------------------------------------


class _Resolver:
    """Replaces `from <op>_module1_impl import helper` by the helper, and by what it needs of that file."""

    def __init__(self, ws: OpWorkspace, source: Path) -> None:
        self._ws, self._source = ws, source
        self._pattern = re.compile(rf"(?:.*\.)?{re.escape(ws.name)}_module\d+_impl\Z")
        self._known: dict[str, str] = {}

    def resolve(self, module: cst.Module, depth: int = 0) -> cst.Module:
        """Return the module without imports of staged files."""
        if depth > 32:
            raise ContractError("staged files import one another", file=self._source, remedy="write the functions out")
        staged = [self._staged_names(statement) is not None for statement in module.body]
        plain = [statement for statement, is_staged in zip(module.body, staged, strict=True) if not is_staged]
        own = {name for statement in plain for name in _defined(statement)}
        body: list[Statement] = []
        for statement in module.body:
            names = self._staged_names(statement)
            if names is None:
                body.append(statement)
                continue
            file, wanted = names
            for found in self._taken_from(file, wanted, depth):
                if self._is_new(found, own):
                    body.append(found)
        return module.with_changes(body=body)

    def _staged_names(self, statement: cst.CSTNode) -> tuple[Path, list[str]] | None:
        """Return the file and the names of a staged import, None for any other statement."""
        if not isinstance(statement, cst.SimpleStatementLine):
            return None
        for small in statement.body:
            if isinstance(small, cst.Import):
                for alias in small.names:
                    self._refuse_if_staged(alias.evaluated_name)
            if not isinstance(small, cst.ImportFrom) or not self._pattern.match(dotted(small.module)):
                continue
            if isinstance(small.names, cst.ImportStar) or any(alias.asname for alias in small.names):
                raise ContractError(
                    f"imports from {dotted(small.module)} by `*` or `as`", file=self._source, remedy="import the plain names"
                )
            file = self._source.parent / f"{dotted(small.module).rpartition('.')[2]}.py"
            return file, [alias.evaluated_name for alias in small.names]
        return None

    def _refuse_if_staged(self, module: str) -> None:
        if self._pattern.match(module):
            raise ContractError(
                f"imports the whole module {module}", file=self._source, remedy="write `from ... import` with the names"
            )

    def _taken_from(self, file: Path, wanted: Sequence[str], depth: int) -> list[Statement]:
        """Return the statements of a file that define `wanted`, and those that they need, in the file's order."""
        if not file.is_file():
            raise ContractError("is missing; it is imported", file=file, remedy=f"see {self._source.name}")
        module = self.resolve(_parse(file), depth + 1)
        by_name = {name: statement for statement in module.body for name in _defined(statement)}
        for name in wanted:
            if name not in by_name:
                raise ContractError(f"defines no {name}, which {self._source.name} imports", file=file)
        needed: set[int] = set()
        waiting = list(wanted)
        while waiting:
            statement = by_name.get(waiting.pop())
            if statement is not None and id(statement) not in needed:
                needed.add(id(statement))
                waiting += sorted(names_in(statement))
        return [statement for statement in module.body if id(statement) in needed]

    def _is_new(self, statement: Statement, own: set[str]) -> bool:
        """Whether a statement is not there yet; the same name with other contents is refused."""
        text = cst.Module(body=[statement]).code.strip()
        new = False
        for name in _defined(statement):
            if name in self._known and self._known[name] == text:
                continue
            is_import = isinstance(statement, cst.SimpleStatementLine) and isinstance(
                statement.body[0], (cst.Import, cst.ImportFrom)
            )
            if name in own and is_import:
                continue
            if name in own or name in self._known:
                raise ContractError(f"{name} is defined twice, differently", file=self._source, remedy="keep one of them")
            self._known[name] = text
            new = True
        return new


def _defined(statement: cst.CSTNode) -> list[str]:
    """Return the names that a top-level statement binds."""
    if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
        return [statement.name.value]
    names: list[str] = []
    if isinstance(statement, cst.SimpleStatementLine):
        for small in statement.body:
            if isinstance(small, cst.Assign):
                names += [name for target in small.targets for name in sorted(names_in(target.target))]
            elif isinstance(small, (cst.AnnAssign, cst.AugAssign)):
                names += sorted(names_in(small.target))
            names += [name.bound for name in imported_by(small) if name.bound != "*"]
    return names
