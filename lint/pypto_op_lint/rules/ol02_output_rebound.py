"""OL02: an output is written into, not rebound."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import BODY, impl
from pypto_op_lint.nodes import names_in
from pypto_op_lint.rule import IMPLS, Invalid, LintContext, Rule, Valid
from pypto_op_lint.tree import Binding, Function, Parameter, Site
from pypto_op_lint.units import Unit

_REBINDS = ("assign", "annotation", "augmented", "loop", "with", "other")
_UNPACKED = (cst.Element, cst.StarredElement, cst.Tuple, cst.List)
_QUESTIONS = {"shape", "dtype", "dim", "format", "size"}
_HELPER = "def _body(x, out):\n    pypto.set_vec_tile_shapes(64, 128)\n    {}\n"
_THIN = "for i in pypto.loop(1, name='L', idx_name='i'):\n    _body(x, out)\n"


class OutputRebound(Rule):
    """A tensor parameter of the kernel is rebound before anything read it, so its result is lost.

    What it does:
        In graph code, helpers included, reports `out = ...` (and `out += ...`, unpacking, walrus) on a tensor parameter whose
        own value was never read before, and on one that was written into before and is not used again: the name then points
        to a new tensor and the caller's stays as it was. Rebinding an input after reading it (`x = pypto.cast(x, ...)`) is
        fine, and so is rebinding a scalar.

    Why:
        pypto reports nothing, and the output keeps whatever was in memory.

    Example:
        out = pypto.exp(x)

    Use instead:
        out[:] = pypto.exp(x)

    Known limits:
        An output that was read, never written and rebound afterwards is not reported here; OL51 sees that nothing writes it.
    """

    id = "OL02"
    name = "output-rebound"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"graph_functions", "tensors"})
    MESSAGE = "an output is rebound instead of written"
    FIX_HINT = "write into the parameter: `out[:] = ...`, `out.move(...)` or `pypto.assemble(tile, [row, 0], out)`"

    VALID = [
        Valid(impl()),
        Valid(impl("pypto.set_vec_tile_shapes(64, 128)\nx = pypto.cast(x, pypto.DT_FP32)\nout[:] = pypto.exp(x)\n")),
        Valid(impl("pypto.set_vec_tile_shapes(64, 128)\nout.move(pypto.exp(x))\n")),
        Valid(
            impl(
                "pypto.set_vec_tile_shapes(8, 128)\nscale = scale * 2.0\nout[:] = x * scale\n",
                parameters="""
                x: pypto.Tensor([8, 128], pypto.DT_FP32),
                out: pypto.Tensor([8, 128], pypto.DT_FP32),
                scale: float,
                """,
            )
        ),
        Valid(impl(_THIN, before=_HELPER.format("out[:] = pypto.exp(x)"))),
    ]
    INVALID = [
        Invalid(impl("pypto.set_vec_tile_shapes(64, 128)\nout = pypto.exp(x)\n")),
        Invalid(impl("pypto.set_vec_tile_shapes(64, 128)\nout: object = pypto.exp(x)\n")),
        Invalid(impl("pypto.set_vec_tile_shapes(64, 128)\nout, other = pypto.exp(x), pypto.abs(x)\n")),
        Invalid(impl("pypto.set_vec_tile_shapes(64, 128)\nout += pypto.exp(x)\n")),
        Invalid(impl(_THIN, before=_HELPER.format("out = pypto.exp(x)"))),
        Invalid(impl("pypto.set_vec_tile_shapes(64, 128)\nif x.shape[0]:\n    out = pypto.exp(x)\n")),
        Invalid(impl(BODY + "out = pypto.exp(x)\n")),
        Invalid(impl("rows = out.shape[0]\npypto.set_vec_tile_shapes(64, 128)\nout = pypto.exp(x)\n")),
    ]

    def __init__(self, context: LintContext, unit: Unit | None) -> None:
        super().__init__(context, unit)
        self._known: dict[tuple[int, str], bool] = {}

    def check_file(self) -> None:
        """Look at the bindings of every tensor parameter of the graph."""
        for function in self.facts.graph_functions:
            for parameter in function.parameters:
                if self._is_tensor(function, parameter):
                    self._check(function, parameter)

    def _is_tensor(self, function: Function, parameter: Parameter) -> bool:
        tensors = self.facts.tensors
        if self.facts.is_kernel(function):
            return tensors.is_tensor_parameter(parameter)
        arguments = [c.argument(parameter) for c in self.facts.calls.calls_of(function) if self.facts.in_graph(c.site)]
        return bool(arguments) and all(tensors.in_graph(a) for a in arguments)

    def _check(self, function: Function, parameter: Parameter) -> None:
        rebinds = [b for b in function.scope.bindings.get(parameter.name, []) if b.kind in _REBINDS]
        if not rebinds:
            return
        first = min(rebinds, key=lambda b: b.site.order)
        start, end = first.site.order, self._end(first)
        uses = [s for s in function.named(parameter.name) if self._looks_up(s)]
        values = [s for s in uses if not self._asks_only(s) and not self._is_destination(s)]
        own = first.kind != "augmented"
        read_before = [s for s in values if s.order < start or (s.order < end and own)]
        asked_before = [s for s in uses if self._asks_only(s) and s.order < start]
        after = [s for s in uses if s.order >= end]
        never_read = not read_before and not asked_before and (own or not after)
        if never_read or (not after and (not read_before or self._lost(function, parameter, first))):
            self.report(first.site, f"`{parameter.name}` is rebound: the caller's tensor keeps its old content")

    def _lost(self, function: Function, parameter: Parameter, rebind: Binding) -> bool:
        """Whether an output that the graph writes is bound, for the last time, to something that is no view of it."""
        writes = self.facts.writes
        written = any(_name_of(w.target) == parameter.name and w.site.function is function for w in writes.all)
        views = rebind.value is not None and parameter.name in names_in(rebind.value)
        return written and not views and rebind.kind in ("assign", "augmented")

    @staticmethod
    def _asks_only(site: Site) -> bool:
        """`out.shape`, `out.dtype`: what the tensor is, not what it holds."""
        around = site.parent.node if site.parent is not None else None
        return isinstance(around, cst.Attribute) and around.attr.value in _QUESTIONS

    def _is_destination(self, site: Site) -> bool:
        """Whether a name stands where something is written into it: `assemble(tile, [i, 0], out)`, `_store(tile, out)`."""
        arg, call = site.parent, site.parent.parent if site.parent is not None else None
        if arg is None or call is None:
            return False
        if any(w.target is site.node and w.site is call for w in self.facts.writes.all):
            return True
        if not isinstance(arg.node, cst.Arg) or not isinstance(call.node, cst.Call):
            return False
        handed = [
            (c.function, p)
            for c in self.facts.calls.calls_at(call.node)
            for p in c.function.parameters
            if c.argument(p) is site.node
        ]
        return bool(handed) and all(self._only_written(f, p) for f, p in handed)

    def _only_written(self, function: Function, parameter: Parameter) -> bool:
        """Whether a helper writes into `parameter` and never looks at what it holds."""
        key = (id(function), parameter.name)
        if key not in self._known:
            self._known[key] = True  # a call of itself does not decide
            uses = [s for s in function.named(parameter.name) if self._looks_up(s)]
            self._known[key] = all(self._asks_only(s) or self._is_destination(s) for s in uses)
        return self._known[key]

    def _end(self, binding: Binding) -> int:
        """Return the order behind everything of the binding's statement."""
        site = binding.site
        if binding.kind in ("loop", "with"):
            return site.order + 1
        last = self.facts.tree.last_inside(site)
        return last.order + 1

    @staticmethod
    def _looks_up(site: Site) -> bool:
        """Whether the name at `site` is looked up; the left side of `out, y = ...` does not, nor that of `out[:] = ...`."""
        while site.parent is not None and isinstance(site.parent.node, _UNPACKED):
            site = site.parent
        around = site.parent
        if around is not None and isinstance(around.node, cst.Subscript) and site.role == "value" and around.role == "target":
            return False  # `out[:] = ...` writes the old tensor, it does not read it
        return site.role not in ("target", "attr", "keyword", "name")


def _name_of(node: cst.CSTNode) -> str:
    while isinstance(node, cst.Subscript):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""
