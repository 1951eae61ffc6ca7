"""OL52: a view's shape, offsets and valid shape have one rank."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import BODY, impl
from pypto_op_lint.facts.values import Seq, Value
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site

_LISTS = ("shape", "offsets", "valid_shape")


class ViewRanks(Rule):
    """`pypto.view` gets lists of different lengths.

    What it does:
        Compares the lengths of shape, offsets and valid_shape of each `pypto.view` and `tensor.view` of the graph, given by
        position, by keyword or through a name.

    Why:
        pypto fails on it with a message that names another operation ("invalid storage offset").

    Example:
        tile = pypto.view(x, [64, 128], [i * 64])

    Use instead:
        tile = pypto.view(x, [64, 128], [i * 64, 0])

    Known limits:
        Lists that are built at run time are not measured.
    """

    id = "OL52"
    name = "view-ranks"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"foreign_calls", "tensors"})
    MESSAGE = "a view's shape, offsets and valid shape differ in rank"
    FIX_HINT = "give shape, offsets and valid_shape the same number of entries; pad missing axes with 1 and offset 0"

    VALID = [
        Valid(impl()),
        Valid(impl(BODY.replace("[64, 128], [i * 64, 0]", "SHAPE, [i * 64, 0]", 1), before="SHAPE = (64, 128)\n")),
        Valid(impl("pypto.set_vec_tile_shapes(64, 128)\nout[:] = pypto.exp(x.view([64, 128], [0, 0]))\n")),
    ]
    INVALID = [
        Invalid(impl(BODY.replace("[i * 64, 0], valid_shape", "[i * 64], valid_shape"))),
        Invalid(impl(BODY.replace(", 64), 128]", ", 64)]"))),
        Invalid(impl(BODY.replace("[64, 128], [i * 64, 0]", "SHAPE, [i * 64, 0]", 1), before="SHAPE = (1, 64, 128)\n")),
        Invalid(impl(BODY.replace("[64, 128], [i * 64, 0]", "shape=[64, 128], offsets=[0, i * 64, 0]", 1))),
        Invalid(impl("pypto.set_vec_tile_shapes(64, 128)\nout[:] = pypto.exp(x.view([64, 128], [0]))\n")),
    ]

    def check_file(self) -> None:
        """Measure the lists of every view."""
        for site in self.facts.graph_sites(cst.Call):
            node = site.node
            assert isinstance(node, cst.Call)
            if "pypto.view" in self.facts.callee_names(node):
                self._check(site, node, skip=1)
            elif (
                isinstance(node.func, cst.Attribute)
                and node.func.attr.value == "view"
                and self.facts.tensors.in_graph(node.func.value)
            ):
                self._check(site, node, skip=0)

    def _check(self, site: Site, node: cst.Call, *, skip: int) -> None:
        plain: list[tuple[Value, ...]] = []
        for arg in node.args:
            values = self.facts.ev.values(arg.value)
            if arg.star == "*" and len(values) == 1 and isinstance(values[0], Seq):
                plain += values[0].items
            elif arg.star:
                return
            elif arg.keyword is None:
                plain.append(values)
        given = dict(zip(_LISTS, plain[skip:], strict=False))
        given |= {a.keyword.value: self.facts.ev.values(a.value) for a in node.args if a.keyword and a.keyword.value in _LISTS}
        lengths = {name: n for name, value in given.items() if (n := self._length(value)) is not None}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name} has {n}" for name, n in lengths.items())
            self.report(site, f"the lists of a view differ in rank: {shown}")

    def _length(self, values: tuple[Value, ...]) -> int | None:
        lengths = {len(v.items) for v in values if isinstance(v, Seq)}
        return lengths.pop() if len(lengths) == 1 and all(isinstance(v, Seq) for v in values) else None
