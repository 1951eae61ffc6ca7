"""PX07: what can be told about valid shapes from the source."""

from __future__ import annotations

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import BODY, PARAMETERS, impl
from pypto_op_lint.facts.ragged import ragged_loop
from pypto_op_lint.facts.values import Const, Seq, Value
from pypto_op_lint.findings import WARN
from pypto_op_lint.pypto_names import names
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site

_VALID = "valid_shape=[pypto.min(rows - i * 64, 64), 128]"
_STORAGE = {"view": 1, "reshape": 1, "full": 0}
"""Operations whose storage shape is written beside the valid shape, and the place of that argument in the function form."""


def _body(old: str, new: str) -> str:
    assert old in BODY
    return impl(BODY.replace(old, new))


class ValidShape(Rule):
    """A `valid_shape` is passed wrongly, contradicts the storage shape, or is missing on a ragged tail.

    What it does:
        Reports `valid_shape` where the operation takes none or takes it by keyword only, with another rank than the
        storage shape, and with a known entry that is not positive or larger than the storage. Warns when a view
        steps by the index of a loop whose count is rounded up and says no valid shape; the view may stand in
        a helper that gets the offset as an argument.

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
        Valid(
            impl(
                BODY.replace(f"pypto.view(x, [64, 128], [i * 64, 0], {_VALID})", "_load(x, i * 64, rows - i * 64)"),
                before="def _load(t, row, left):\n    left = pypto.min(left, 64)\n"
                "    return pypto.view(t, [64, 128], [row, 0], valid_shape=[left, 128])\n",
            )
        ),
        Valid(_body(f"pypto.view(x, [64, 128], [i * 64, 0], {_VALID})", f"x.view([64, 128], [i * 64, 0], {_VALID})")),
        Valid(
            impl(
                BODY.replace(f"[i * 64, 0], {_VALID}", "[table[i * 64] * 64, 0]"),
                parameters=f"{PARAMETERS}table: pypto.Tensor([pypto.DYNAMIC], pypto.DT_INT32),\n",
                wrapper="def demo_wrapper(x, table):\n    out = torch.empty_like(x)\n    demo_kernel(x, out, table)\n    return out\n",
            )
        ),
    ]
    INVALID = [
        Invalid(_body("valid_shape=[", "[")),
        Invalid(_body("pypto.exp(tile)", "pypto.exp(tile, valid_shape=[64, 128])")),
        Invalid(_body(_VALID, "valid_shape=[128, 128]")),
        Invalid(_body(_VALID, "valid_shape=[0, 128]")),
        Invalid(_body("pypto.exp(tile)", "pypto.reshape(tile, [128, 64], valid_shape=[64])")),
        Invalid(_body("pypto.exp(tile)", "tile.reshape([128, 64], valid_shape=[64, 65])")),
        Invalid(_body(", " + _VALID, ""), status=WARN),
        Invalid(
            impl(
                BODY.replace(f"pypto.view(x, [64, 128], [i * 64, 0], {_VALID})", "_load(x, i * 64)"),
                before="def _load(t, row):\n    return pypto.view(t, [64, 128], [row, 0])\n",
            ),
            status=WARN,
        ),
        Invalid(
            impl(
                BODY.replace(f"pypto.view(x, [64, 128], [i * 64, 0], {_VALID})", "_load(x, i * 64, 64) + _load(x, i * 64, 128)"),
                before="def _load(t, row, rows):\n    return pypto.view(t, [64, 128], [row, 0], valid_shape=[rows, 128])\n",
            ),
        ),
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
        if given is not None and Const.of(None) in self.facts.ev.values(given):
            given = None  # for one caller at least
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
            numbers = _numbers(small)
            sizes = _numbers(large) if len(_numbers(large)) == len(large) else []
            # Where both differ from caller to caller, only what no caller can have right is reported.
            largest = min(numbers, default=0) if len(sizes) > 1 else max(numbers, default=0)
            if numbers and min(numbers) <= 0:
                self.report(given, f"entry {place} of the valid shape is {min(numbers)}")
            elif sizes and largest > max(sizes):
                self.report(given, f"entry {place} of the valid shape is {largest}, the storage holds {max(sizes)}")

    def _entries(self, node: cst.BaseExpression) -> list[tuple[Value, ...]] | None:
        values = self.facts.ev.values(node)
        if len(values) != 1 or not isinstance(values[0], Seq):
            return None
        return list(values[0].items)

    def _tail(self, site: Site, node: cst.Call, plain: list[cst.BaseExpression], method: bool) -> None:
        """Warn about a view that steps with a loop whose count is rounded up."""
        offsets = _keyword(node, "offsets") or (plain[2 - method] if len(plain) > 2 - method else None)
        if offsets is None:
            return
        loop = ragged_loop(self.facts, offsets)
        if loop is not None:
            where = "" if loop.function is site.function else f" of `{loop.function.name}`" if loop.function is not None else ""
            self.report(
                site,
                f"`{self.code(node, 50)}` steps with a loop{where} whose count is rounded up: its last turn reads past the end",
                hint="pass `valid_shape=[pypto.min(total - offset, tile), ...]`, or loop over whole tiles only",
                status=WARN,
            )


def _keyword(node: cst.Call, word: str) -> cst.BaseExpression | None:
    return next((a.value for a in node.args if a.keyword is not None and a.keyword.value == word), None)


def _numbers(values: tuple[Value, ...]) -> list[int]:
    return [int(v.value) for v in values if isinstance(v, Const) and v.kind == "int"]
