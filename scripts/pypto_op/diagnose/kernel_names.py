"""Where the text of a kernel's file says what a line uses: numbers, conditions, states, and the order of what is handed over."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pypto_op.diagnose.kernel_loops import KernelLoops, is_view, offset_of

_OPERATORS = {"MULS": ast.Mult, "DIVS": ast.Div, "ADDS": ast.Add, "SUBS": ast.Sub}
_MOST_CALLS = 6
"""Calls that a parameter is followed through."""


class KernelNames(KernelLoops):
    """The names of a kernel's file, beside its loops."""

    def number_of(self, line: int, opcode: str, number: float) -> int | None:
        """Return the line that says which number an operation of a line takes; None where it is no other line's to say.

        Args:
            line: the operation's.
            opcode: one that takes a number, such as MULS.
            number: what it took.
        """
        statement = self._statement(line)
        operator = _OPERATORS.get(opcode)
        if statement is None or operator is None:
            return None
        for node in ast.walk(statement):
            if isinstance(node, ast.BinOp) and isinstance(node.op, operator):
                for side in (node.right, node.left):
                    name = side.operand if isinstance(side, ast.UnaryOp) else side
                    found = self._definition(name.id, line) if isinstance(name, ast.Name) else None
                    if found is not None and self._may_be(found, number):
                        return found
        return None

    def used_next(self, line: int) -> int | None:
        """Return the line that hands back, as it is, what a line makes and binds to a name; None where none does."""
        holder, statement = self._holder(line), self._statement(line)
        if holder is None or not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            return None
        name = statement.targets[0].id
        later = [node for node in ast.walk(holder) if isinstance(node, ast.Name) and _loads(node, {name}) and node.lineno > line]
        first = min((node.lineno for node in later), default=0)
        back = [node for node in ast.walk(holder) if isinstance(node, ast.Return) and node.lineno == first]
        parts = back[0].value.elts if back and isinstance(back[0].value, ast.Tuple) else [one.value for one in back]
        return first if any(isinstance(part, ast.Name) and part.id == name for part in parts) else None

    def uses(self, definition: int) -> int:
        """Return how many lines use the name that a line of the module defines; 1 where it defines none."""
        for node in self._tree.body:
            if isinstance(node, ast.Assign) and node.lineno == definition:
                names = {target.id for target in node.targets if isinstance(target, ast.Name)}
                return len({one.lineno for one in ast.walk(self._tree) if isinstance(one, ast.Name) and _loads(one, names)})
        return 1

    def guard_of(self, line: int) -> int | None:
        """Return the line of the innermost condition on a turn that holds a line, None where none does."""
        held = [
            node
            for node in ast.walk(self._tree)
            if isinstance(node, ast.If) and node.lineno <= line <= (node.end_lineno or 0) and "cond" in ast.unparse(node.test)
        ]
        return max((node.lineno for node in held), default=None)

    def choice_of(self, line: int) -> int | None:
        """Return the line of the condition on a turn that chooses between a line and another way to the same; None for none.

        Both ways call the same function, or write the same state.
        """
        guard = self.guard_of(line)
        node = next((one for one in ast.walk(self._tree) if isinstance(one, ast.If) and one.lineno == guard), None)
        if node is None or not node.orelse:
            return None
        return node.lineno if _reached(node.body) & _reached(node.orelse) else None

    def writes_of(self, state: str, lines: Sequence[int]) -> list[int]:
        """Return the lines that write a state, `state[:] = ...`, in the functions that hold some of `lines`.

        Args:
            state: its name; where no function writes it by that name, every state that they write counts.
            lines: of operations that were recorded together with the write.
        """
        held = {holder.lineno: holder for line in lines if (holder := self._holder(line)) is not None}
        written = [found for one in held.values() for node in ast.walk(one) if (found := _written(node))]
        named = [line for line, name in written if name == state]
        return sorted(set(named or [line for line, _ in written]))

    def extents_of(self, line: int) -> list[int]:
        """Return the lines that define the names in the bound of the loop of a line, in the same function."""
        loop = next((node for node in ast.walk(self._tree) if isinstance(node, ast.For) and node.lineno == line), None)
        holder = self._holder(line)
        if loop is None or holder is None:
            return []
        names = {node.id for node in ast.walk(loop.iter) if isinstance(node, ast.Name)}
        return sorted(node.lineno for node in ast.walk(holder) if isinstance(node, ast.Assign) and _binds(node, names))

    def table_of(self, line: int) -> int | None:
        """Return the line that takes a number which a line uses out of a tensor, `page = table[b, j]`; None for none."""
        statement = self._statement(line)
        names = [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)] if statement is not None else []
        return next((found for name in names if (found := self._taken(name, line))), None)

    def offset_of_call(self, view: int, call: int, axis: int) -> int | None:
        """Return the line that computes the offset which a call hands to a helper's view on an axis; None: none is plain.

        It is plain where the helper's parameter is the offset, the call hands over a name, the name is computed once, and the
        extent on that axis is not computed beside it.
        """
        helper = self._holder(view)
        views = [one for one in self._calls if is_view(one) and one.lineno <= view <= (one.end_lineno or 0)]
        calls = [one for one in self._calls_of(helper.name) if one.lineno == call] if helper is not None else []
        if helper is None or len(views) != 1 or len(calls) != 1:
            return None
        valid = next((word.value for word in views[0].keywords if word.arg == "valid_shape"), None)
        offset, extent = (self._computed(_part(given, axis), helper, calls[0]) for given in (offset_of(views[0]), valid))
        return offset if extent is None else None

    def _computed(self, part: ast.expr | None, helper: ast.FunctionDef, call: ast.Call) -> int | None:
        """Return the one line that computes what a call hands over for a helper's parameter, None where it is another form."""
        parameters = [one.arg for one in helper.args.args]
        if not isinstance(part, ast.Name) or part.id not in parameters or parameters.index(part.id) >= len(call.args):
            return None
        given, caller = call.args[parameters.index(part.id)], self._holder(call.lineno)
        if not isinstance(given, ast.Name) or caller is None:
            return None
        made = [node for node in ast.walk(caller) if isinstance(node, ast.Assign) and _binds(node, {given.id})]
        return made[0].lineno if len(made) == 1 and isinstance(made[0].value, (ast.BinOp, ast.Call)) else None

    def returns(self, function: str) -> list[int]:
        """Return the lines of each `return` of several values in a function."""
        held = [node for node in self._functions if node.name == function]
        found = [one for node in held for one in ast.walk(node) if isinstance(one, ast.Return)]
        return sorted(one.lineno for one in found if isinstance(one.value, ast.Tuple))

    def exchanged_arguments(self) -> list[int]:
        """Return the lines of calls of a kernel that hand a name over in the place of a parameter of another handed name."""
        found = []
        for kernel in (node for node in self._functions if any("jit" in ast.unparse(one) for one in node.decorator_list)):
            parameters = [one.arg for one in kernel.args.args]
            for call in self._calls_of(kernel.name, len(parameters)):
                given = [_base(one) for one in call.args]
                if len(given) != len(parameters) or len(set(given) & set(parameters)) < 2:
                    continue
                crossed = [a for a, p in zip(given, parameters, strict=True) if a != p and a in parameters and p in given]
                if crossed:
                    at = given.index(crossed[0])
                    found.append(call.args[at].lineno)
        return found

    def _definition(self, name: str, line: int, deep: int = 0) -> int | None:
        """Return the line that makes the number called `name` at `line`: a constant, or what the wrapper hands over."""
        holder = self._holder(line)
        if holder is None or deep > _MOST_CALLS:
            return None
        for node in ast.walk(holder):
            if isinstance(node, ast.Assign) and node.lineno < line and _binds(node, {name}):
                return node.lineno if _is_made(node.value) else None
        for function in self._holders(line):
            parameters = [one.arg for one in function.args.args]
            if name in parameters:
                return self._handed_over(function, parameters.index(name), deep)
        for node in self._tree.body:
            if isinstance(node, ast.Assign) and _binds(node, {name}):
                return node.lineno if _is_made(node.value) else None
        return None

    def _taken(self, name: str, line: int, deep: int = 0) -> int | None:
        holder = self._holder(line)
        if holder is None or deep > _MOST_CALLS:
            return None
        for node in ast.walk(holder):
            if isinstance(node, ast.Assign) and node.lineno < line and _binds(node, {name}):
                return node.lineno if isinstance(node.value, ast.Subscript) else None
        parameters = [one.arg for one in holder.args.args]
        for call in self._calls_of(holder.name) if name in parameters else ():
            given = call.args[parameters.index(name)] if len(call.args) > parameters.index(name) else None
            if isinstance(given, ast.Name) and (found := self._taken(given.id, call.lineno, deep + 1)):
                return found
        return None

    def _may_be(self, line: int, number: float) -> bool:
        """Say whether what a line makes may be a number: where it is written out, whether it is that one."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Assign) and node.lineno == line:
                try:
                    written = float(ast.literal_eval(node.value))
                except (ValueError, TypeError, SyntaxError):
                    return True
                return abs(abs(written) - abs(number)) <= 1e-6 * abs(number)
        return True

    def _handed_over(self, function: ast.FunctionDef, at: int, deep: int) -> int | None:
        name = function.args.args[at].arg
        is_kernel = any("jit" in ast.unparse(one) for one in function.decorator_list)
        for call in self._calls_of(function.name, len(function.args.args) if is_kernel else None):
            given = next((word.value for word in call.keywords if word.arg == name), None)
            given = call.args[at] if given is None and at < len(call.args) else given
            if isinstance(given, ast.Name):
                return self._definition(given.id, given.lineno, deep + 1)
            if given is not None and _is_made(given):
                return given.lineno
        return None

    def _calls_of(self, name: str, count: int | None = None) -> Iterator[ast.Call]:
        """Yield the calls of a function; of a kernel, which is called by another name, those with as many arguments."""
        own = {function.name for function in self._functions}
        for call in self._calls:
            called = call.func.id if isinstance(call.func, ast.Name) else ""
            if called == name or (called and called not in own and len(call.args) == count):
                yield call

    def _statement(self, line: int) -> ast.stmt | None:
        held = [
            node
            for node in ast.walk(self._tree)
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0) and not hasattr(node, "body")
        ]
        return held[0] if held else None


def _part(given: ast.expr | None, axis: int) -> ast.expr | None:
    parts = given.elts if isinstance(given, (ast.List, ast.Tuple)) else []
    return parts[axis] if axis < len(parts) else None


def _loads(node: ast.Name, names: set[str]) -> bool:
    return isinstance(node.ctx, ast.Load) and node.id in names


def _binds(node: ast.Assign, names: set[str]) -> bool:
    return any(isinstance(one, ast.Name) and one.id in names for target in node.targets for one in ast.walk(target))


def _written(node: ast.AST) -> tuple[int, str] | None:
    """Return line and name of the state that a statement writes, `name[:] = ...`, None for none."""
    for target in node.targets if isinstance(node, ast.Assign) else ():
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            return target.lineno, target.value.id
    return None


def _reached(statements: Sequence[ast.stmt]) -> set[str]:
    """Return what statements call by a plain name, and the states that they write."""
    nodes = [node for one in statements for node in ast.walk(one)]
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return called | {found[1] for node in nodes if (found := _written(node))}


def _is_made(value: ast.expr) -> bool:
    """Say whether an expression makes a number, which `float(eps)` or a plain name does not."""
    if isinstance(value, ast.UnaryOp):
        return _is_made(value.operand)
    number = isinstance(value, ast.Constant) and isinstance(value.value, (int, float))
    return number or isinstance(value, ast.BinOp)


def _base(value: ast.expr) -> str:
    """Return the name that an expression such as `lse.reshape(tokens, 1)` begins with, "" for none."""
    while isinstance(value, (ast.Call, ast.Attribute, ast.Subscript)):
        value = value.func if isinstance(value, ast.Call) else value.value
    return value.id if isinstance(value, ast.Name) else ""
