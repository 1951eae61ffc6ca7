"""OL02: an output is written into, not rebound."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Binding, Function, Parameter, Site

_REBINDS = ("assign", "annotation", "augmented", "loop", "with", "other")
_UNPACKED = (cst.Element, cst.StarredElement, cst.Tuple, cst.List)
_HELPER = "def _body(x, out):\n    pypto.set_vec_tile_shapes(64, 128)\n    {}\n"
_THIN = "for i in pypto.loop(1, name='L', idx_name='i'):\n    _body(x, out)\n"


class OutputRebound(Rule):
    """A tensor parameter of the kernel is rebound before anything read it, so its result is lost.

    What it does:
        In graph code, helpers included, reports `out = ...` (and `out += ...`, unpacking, walrus) on a tensor parameter whose
        own value was never read before: the name then points to a new tensor and the caller's stays as it was. Rebinding an
        input after reading it (`x = pypto.cast(x, ...)`) is fine, and so is rebinding a scalar.

    Why:
        pypto reports nothing, and the output keeps whatever was in memory.

    Example:
        out = pypto.exp(x)

    Use instead:
        out[:] = pypto.exp(x)

    Known limits:
        An output that was read first and rebound afterwards is not reported here; OL51 sees that it is never written.
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
    ]

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
        reads = [s.order for s in function.sites if self._reads(s, parameter.name)]
        statement_end = self._end(first)
        before = [order for order in reads if order < first.site.order or (order < statement_end and first.kind != "augmented")]
        after = [order for order in reads if order >= statement_end]
        if not before and (first.kind != "augmented" or not after):
            self.report(first.site, f"`{parameter.name}` is rebound: the caller's tensor keeps its old content")

    def _end(self, binding: Binding) -> int:
        """Return the order behind everything of the binding's statement."""
        site = binding.site
        if binding.kind in ("loop", "with"):
            return site.order + 1
        inside = [s.order for s in self.facts.tree.sites(cst.Name) if s.within(site)]
        return max([site.order, *inside]) + 1

    @staticmethod
    def _reads(site: Site, name: str) -> bool:
        """Whether `site` uses the name's value; the left side of `out, y = ...` does not, nor that of `out[:] = ...`."""
        if not isinstance(site.node, cst.Name) or site.node.value != name:
            return False
        while site.parent is not None and isinstance(site.parent.node, _UNPACKED):
            site = site.parent
        around = site.parent
        if around is not None and isinstance(around.node, cst.Subscript) and site.role == "value" and around.role == "target":
            return False  # `out[:] = ...` writes the old tensor, it does not read it
        return site.role not in ("target", "attr", "keyword", "name")
