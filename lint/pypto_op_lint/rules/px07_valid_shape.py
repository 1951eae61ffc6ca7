"""PX07: what can be told about valid shapes from the source."""

from __future__ import annotations

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import BODY, impl
from pypto_op_lint.facts.values import Const, Seq, Value
from pypto_op_lint.findings import WARN
from pypto_op_lint.nodes import children
from pypto_op_lint.pypto_names import names
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site

_VALID = "valid_shape=[pypto.min(rows - i * 64, 64), 128]"
_STORAGE = {"view": 1, "reshape": 1, "full": 0}
"""Operations whose storage shape is written beside the valid shape, and the place of that argument in the function form."""
_CEILING = {"pypto.ceildiv", "pypto.ceil_div"}


def _body(old: str, new: str) -> str:
    assert old in BODY
    return impl(BODY.replace(old, new))


class ValidShape(Rule):
    """A `valid_shape` is passed wrongly, contradicts the storage shape, or is missing on a ragged tail.

    What it does:
        Reports `valid_shape` where the operation takes none or takes it by keyword only, with another rank than the
        storage shape, and with a known entry that is not positive or larger than the storage. Warns when a view
        inside a loop whose count is rounded up steps by the loop's index and says no valid shape.

    Why:
        The valid shape travels with the tensor. A wrong one makes later operations read padding, or refuses a write far from
        its cause.

    Example:
        tile = pypto.view(x, [64, 128], [i * 64, 0], [rows - i * 64, 128])

    Use instead:
        tile = pypto.view(x, [64, 128], [i * 64, 0], valid_shape=[pypto.min(rows - i * 64, 64), 128])

    Known limits:
        Symbolic entries are not compared. A tensor that is padded to whole tiles needs no valid shape; the warning does not
        know that.
    """

    id = "PX07"
    name = "valid-shape"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"graph_sites", "tensors", "calls"})
    MESSAGE = "a valid shape contradicts the operation or its storage shape"
    FIX_HINT = "write `valid_shape=[...]` by keyword, as many entries as the storage shape, each at most as large"

    VALID = [
        Valid(impl()),
        Valid(_body(_VALID, "valid_shape=[64, 128]")),
        Valid(_body("(rows + 63) // 64", "rows // 64").replace(", " + _VALID, "")),
        Valid(_body("pypto.exp(tile)", "pypto.mul(tile, pypto.full([64, 128], 1.0, pypto.DT_FP32, valid_shape=[32, 128]))")),
        Valid(_body(f"pypto.view(x, [64, 128], [i * 64, 0], {_VALID})", f"x.view([64, 128], [i * 64, 0], {_VALID})")),
    ]
    INVALID = [
        Invalid(_body("valid_shape=[", "[")),
        Invalid(_body("pypto.exp(tile)", "pypto.exp(tile, valid_shape=[64, 128])")),
        Invalid(_body(_VALID, "valid_shape=[128, 128]")),
        Invalid(_body(_VALID, "valid_shape=[0, 128]")),
        Invalid(_body("pypto.exp(tile)", "pypto.reshape(tile, [128, 64], valid_shape=[64])")),
        Invalid(_body("pypto.exp(tile)", "tile.reshape([128, 64], valid_shape=[64, 65])")),
        Invalid(_body(", " + _VALID, ""), status=WARN),
    ]

    def check_file(self) -> None:
        """Look at every pypto operation of the graph."""
        for site in self.facts.graph_sites(cst.Call):
            node: cst.Call = site.node  # type: ignore[assignment]
            for name in self._operations(node):
                self._check(site, node, name)

    def _operations(self, node: cst.Call) -> list[str]:
        """Return the operations that a call may be: functions of pypto, methods of a tensor."""
        found = sorted(n for n in self.facts.callee_names(node) if n in names().parameters)
        if not found and isinstance(node.func, cst.Attribute) and self.facts.tensors.in_graph(node.func.value):
            method = f"pypto.Tensor.{node.func.attr.value}"
            found = [method] if method in names().parameters else []
        return found

    def _check(self, site: Site, node: cst.Call, name: str) -> None:
        parameters = names().parameters[name]
        given = _keyword(node, "valid_shape")
        if "valid_shape" not in parameters:
            if given is not None and not any(p.startswith("**") for p in parameters):
                self.report(given, f"`{name}` takes no `valid_shape`")
            return
        method = name.startswith("pypto.Tensor.")
        limit = names().positional.get(name, 99) - method
        plain = [arg.value for arg in node.args if arg.keyword is None and not arg.star]
        if len(plain) > limit:
            self.report(plain[limit], f"`{name}` takes {limit} arguments by position; `valid_shape` goes by keyword")
            return
        short = name.rpartition(".")[2]
        if short not in _STORAGE:
            return
        place = _STORAGE[short] - method
        word = "size" if short == "full" else "shape"
        storage = _keyword(node, word) or (plain[place] if place < len(plain) else None)
        if given is not None and storage is not None:
            self._compare(given, storage)
        elif given is None and short == "view":
            self._tail(site, node, plain, method)

    def _compare(self, given: cst.BaseExpression, storage: cst.BaseExpression) -> None:
        valid, whole = self._entries(given), self._entries(storage)
        if valid is None or whole is None:
            return
        if len(valid) != len(whole):
            self.report(given, f"the valid shape has {len(valid)} entries, the storage shape {len(whole)}")
            return
        for place, (small, large) in enumerate(zip(valid, whole, strict=True)):
            if small is not None and small <= 0:
                self.report(given, f"entry {place} of the valid shape is {small}")
            elif small is not None and large is not None and small > large:
                self.report(given, f"entry {place} of the valid shape is {small}, the storage holds {large}")

    def _entries(self, node: cst.BaseExpression) -> list[int | None] | None:
        values = self.facts.ev.values(node)
        if len(values) != 1 or not isinstance(values[0], Seq):
            return None
        return [_number(item) for item in values[0].items]

    def _tail(self, site: Site, node: cst.Call, plain: list[cst.BaseExpression], method: bool) -> None:
        """Warn about a view that steps with a loop whose count is rounded up."""
        offsets = _keyword(node, "offsets") or (plain[2 - method] if len(plain) > 2 - method else None)
        if offsets is None:
            return
        used = {n.value for n in _names(offsets)}
        for around in site.ancestors():
            loop = around.node
            if isinstance(loop, cst.For) and isinstance(loop.target, cst.Name) and loop.target.value in used:
                if self._rounds_up(loop.iter):
                    self.report(
                        site,
                        f"`{self.code(node, 50)}` steps with a loop whose count "
                        f"is rounded up, so its last turn reads past the data",
                        hint="pass `valid_shape=[pypto.min(total - offset, tile), ...]`, or loop over whole tiles only",
                        status=WARN,
                    )
                return

    def _rounds_up(self, over: cst.BaseExpression) -> bool:
        if not isinstance(over, cst.Call) or "pypto.loop" not in self.facts.callee_names(over):
            return False
        for arg in over.args:
            if arg.keyword is None and self.facts.ev.constant(arg.value) is None and self._is_ceiling(arg.value, 0):
                return True
        return False

    def _is_ceiling(self, node: cst.BaseExpression, depth: int) -> bool:
        """`(n + t - 1) // t`, `pypto.ceildiv(n, t)`, or a name bound to one."""
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.FloorDivide):
            return isinstance(node.left, cst.BinaryOperation) and isinstance(node.left.operator, (cst.Add, cst.Subtract))
        if isinstance(node, cst.Call):
            return bool(self.facts.callee_names(node) & _CEILING)
        if isinstance(node, cst.Name) and depth < 3:
            site = self.facts.tree.site(node)
            found = site.scope.lookup(node.value) if site is not None else None
            values = [b.value for b in found[1] if b.kind == "assign" and not b.path] if found else []
            return any(isinstance(v, cst.BaseExpression) and self._is_ceiling(v, depth + 1) for v in values)
        return False


def _keyword(node: cst.Call, word: str) -> cst.BaseExpression | None:
    return next((a.value for a in node.args if a.keyword is not None and a.keyword.value == word), None)


def _number(values: tuple[Value, ...]) -> int | None:
    if len(values) == 1 and isinstance(values[0], Const) and values[0].kind == "int":
        return int(values[0].value)
    return None


def _names(node: cst.CSTNode) -> list[cst.Name]:
    if isinstance(node, cst.Name):
        return [node]
    return [name for child in children(node) for name in _names(child)]
