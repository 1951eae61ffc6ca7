"""OL06: min and max of the graph are pypto's."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import BODY, impl
from pypto_op_lint.facts.values import Const, Param, Result, Seq, Value
from pypto_op_lint.pypto_names import names
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid

_NUMBERS = {"builtins.int", "builtins.float", "builtins.bool"}
_BUILTINS = {"builtins.min", "builtins.max"}
_WAYS_TO_A_BUILTIN = {name.rpartition(".")[2] for name in _BUILTINS} | {
    "builtins", "__builtins__", "__import__", "importlib", "sys", "getattr", "globals", "vars", "eval",
}  # fmt: skip
"""Where a file reads none of these names, no builtin is handed on in it: looking at every argument of every call is dear."""


class NoBuiltinMinMax(Rule):
    """Graph code calls Python's `min` or `max` on something that is not a plain number.

    What it does:
        In the kernel and in the helpers it calls, reports Python's own `min` and `max`, also under another name,
        unless every argument is a plain number while tracing: a constant, an `int` or `float` parameter of the kernel,
        arithmetic on them.

    Why:
        On a symbol Python's `min` compares and keeps one side for all turns of the loop; on a tensor it crashes the process or
        silently keeps one side.

    Example:
        size = min(rows - i * 64, 64)

    Use instead:
        size = pypto.min(rows - i * 64, 64)

    Known limits:
        Since 0.2.1 pypto takes `min` and `max` of two sizes for its own; there they pass.
        An `int` parameter of the kernel is a plain number, too, but the file cannot tell a later change to a
        symbol; it is reported.
    """

    id = "OL06"
    name = "no-builtin-min-max"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"graph_sites", "calls"})
    MESSAGE = "graph code calls Python's own `min` or `max`"
    FIX_HINT = "use `pypto.min` / `pypto.max` for symbols and sizes, `pypto.minimum` / `pypto.maximum` for tensors"

    VALID = [
        Valid(impl()),
        Valid(impl("tile = min(64, 128)\n" + BODY)),
        Valid(
            impl(
                "most = max(SIZES.values())\nfew = min(*STEPS)\nlast = max(2 * j for j in range(3))\n" + BODY,
                before='SIZES = {"a": 8, "b": 16}\nSTEPS = (1, 2)\n',
            )
        ),
        Valid(impl(BODY.replace("pypto.exp(tile)", "pypto.maximum(tile, 0.0)"))),
        Valid(
            impl(
                wrapper="def demo_wrapper(x):\n    rows = max(x.shape[0], 1)\n"
                "    out = torch.empty((rows, 128))\n    demo_kernel(x, out)\n    return out\n"
            )
        ),
        Valid(impl(BODY.replace("pypto.min(", "min("), before="def min(a, b):\n    return pypto.min(a, b)\n")),
    ]
    INVALID = [
        Invalid(impl(BODY.replace("pypto.min(", "min("))),
        Invalid(impl(BODY.replace("pypto.exp(tile)", "max(tile, x)"))),
        Invalid(impl("most = max(size for size in x.shape)\n" + BODY)),
        Invalid(impl(BODY.replace("pypto.min(", "smaller("), before="smaller = min\n")),
        Invalid(impl(BODY.replace("pypto.exp(tile)", "functools.reduce(max, [tile, x])"), before="import functools\n")),
        Invalid(impl(BODY.replace("pypto.min(", "builtins.min("), before="import builtins\n")),
        Invalid(
            impl(
                "pypto.set_vec_tile_shapes(64, 128)\n_body(x, out, x.shape[0])\n",
                before="def _body(x, out, rows):\n    size = min(rows, 64)\n    out[:] = pypto.exp(x)\n",
            )
        ),
    ]

    def check_file(self) -> None:
        """Look at every call of the graph."""
        can_be_handed_on = not _WAYS_TO_A_BUILTIN.isdisjoint(self.facts.names_read)
        for site in self.facts.graph_sites(cst.Call):
            node: cst.Call = site.node  # type: ignore[assignment]
            found = self.facts.callee_names(node) & _BUILTINS
            if not found:
                if can_be_handed_on:
                    self._handed_on(node)
            elif not self._is_of_numbers(node):
                word = min(found).rpartition(".")[2]
                sizes = self._sizes(node, word)
                if not (sizes and names().can("python_min_max")):
                    edit = self.replace(node.func, f"pypto.{word}") if sizes else None
                    self.report(site, f"`{self.code(node, 40)}` is Python's own `{word}`", edit=edit)

    def _is_of_numbers(self, node: cst.Call) -> bool:
        if len(node.args) == 1:
            return self._is_table(node.args[0].value)
        return all(self._is_table(arg.value) if arg.star else self._is_plain(arg.value) for arg in node.args)

    def _is_plain(self, node: cst.BaseExpression) -> bool:
        """Whether `node` is a number of Python while tracing: a constant, a number parameter, arithmetic on them."""
        if isinstance(node, cst.BinaryOperation):
            return self._is_plain(node.left) and self._is_plain(node.right)
        if isinstance(node, cst.UnaryOperation):
            return self._is_plain(node.expression)
        return all(isinstance(v, Const) or self._is_number(v) for v in self.facts.ev.values(node))

    def _is_table(self, node: cst.BaseExpression) -> bool:
        """Whether `node` gives nothing but plain numbers: a list or dict of constants, a generator over one."""
        if isinstance(node, (cst.GeneratorExp, cst.ListComp, cst.SetComp)):
            return self._is_plain(node.elt)
        return all(
            isinstance(v, Seq) and v.items and all(isinstance(one, Const) for item in v.items for one in item)
            for v in self.facts.ev.values(node)
        )

    def _is_number(self, value: Value) -> bool:
        if isinstance(value, Result) and value.callee == "builtins.len":
            return True
        if not isinstance(value, Param) or value.parameter.node.annotation is None:
            return False
        return bool(self.facts.ev.paths(value.parameter.node.annotation.annotation) & _NUMBERS)

    def _handed_on(self, node: cst.Call) -> None:
        for arg in node.args:
            found = self.facts.ev.paths(arg.value) & _BUILTINS
            if found and len(node.args) > 1:
                self.report(arg.value, f"Python's own `{min(found).rpartition('.')[2]}` is handed to `{self.code(node, 40)}`")

    def _sizes(self, node: cst.Call, word: str) -> bool:
        """Whether `pypto.min`/`pypto.max` surely is meant: the plain builtin on two arguments, neither a tensor."""
        plain = isinstance(node.func, cst.Name) and node.func.value == word
        two = len(node.args) == 2 and not any(arg.star or arg.keyword for arg in node.args)
        return plain and two and not any(self.facts.tensors.in_graph(arg.value) for arg in node.args)
