"""Whether a host tensor's values come from the operator's inputs or from a kernel, or were only built from constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from pypto_op_lint.facts.flow import bindings_of
from pypto_op_lint.facts.foreign import method_called
from pypto_op_lint.facts.objects import stored_in
from pypto_op_lint.facts.tensors import TENSOR_ATTRIBUTES
from pypto_op_lint.nodes import children
from pypto_op_lint.tree import Binding, Function, Parameter

if TYPE_CHECKING:
    from pypto_op_lint.facts import Facts

_BUILDS = (
    "empty", "empty_like", "empty_strided", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like", "arange",
    "eye", "linspace", "logspace", "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "new_empty",
    "new_zeros", "new_ones", "new_full", "tril_indices", "triu_indices", "range",
)  # fmt: skip
"""Functions and methods whose result holds nothing of the values of their arguments."""
_MEASURES = {"size", "dim", "numel", "stride", "element_size", "is_contiguous", "get_device", "data_ptr", "nelement"}
_READS = {"tolist", "item", "numpy"}
_VALUED = {"assign", "augmented", "loop"}
_MOST_DEPTH = 25


class DataFlow:
    """Follows values, not shapes: `torch.ones(x.shape[0])` carries nothing of `x`."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._known: dict[int, bool] = {}
        self._depth = 0
        self._launched: set[str] | None = None

    def carries(self, node: cst.CSTNode | None) -> bool:
        """Whether the values of `node` may depend on what the operator was given or on what a kernel wrote.

        A parameter of which nothing is known counts as carrying; one that is annotated as a plain number does not.
        """
        if node is None:
            return False
        if self._depth > _MOST_DEPTH:
            return True
        key = id(node)
        if key not in self._known:
            self._known[key] = False
            self._depth += 1
            self._known[key] = self._look(node)
            self._depth -= 1
        return self._known[key]

    def reads_values(self, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether `node` computes on numbers that were read out of a tensor (`x.tolist()`, `x.item()`, `x.numpy()`)."""
        if depth > _MOST_DEPTH:
            return False
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _READS:
            return self.carries(node.func.value)
        if isinstance(node, cst.Name):
            found = bindings_of(self._facts.tree, node)
            return any(b.value is not None and self.reads_values(b.value, depth + 1) for b, _ in found if b.kind in _VALUED)
        return any(self.reads_values(child, depth + 1) for child in children(node))

    def _look(self, node: cst.CSTNode) -> bool:
        if type(node) is cst.Name:
            return self._name(node)
        if type(node) is cst.Attribute:
            of_module = bool(self._facts.ev.paths(node))
            if not of_module and node.attr.value in TENSOR_ATTRIBUTES and self.carries(node.value):
                return True
            return any(self.carries(stored) for stored in stored_in(self._facts.ev, node))
        if type(node) is cst.Call:
            return self._call(node)
        if isinstance(node, (cst.Lambda, cst.BaseString, cst.BaseNumber)):
            return False
        return any(self.carries(child) for child in children(node))

    def _call(self, node: cst.Call) -> bool:
        names = {name.rpartition(".")[2] for name in self._facts.callee_names(node)}
        receiver, method = (method_called(self._facts.ev, node) if not names else None) or (None, "")
        if (names and names <= set(_BUILDS)) or method in _BUILDS or method in _MEASURES:
            return False
        if self.carries(receiver):
            return True
        if any(self.carries(arg.value) for arg in node.args):
            return True
        calls = self._facts.calls.calls_at(node)
        return any(self._returns_data(call.function) for call in calls if call.kind == "call")

    def _returns_data(self, function: Function) -> bool:
        if isinstance(function.node, cst.Lambda):
            return self.carries(function.node.body)
        results = function.returned
        return any(self.carries(value) for value in results)

    def _name(self, node: cst.Name) -> bool:
        if node.value in self._written_by_launches():
            return True
        return any(self._binding(b, f) for b, f in bindings_of(self._facts.tree, node))

    def _binding(self, binding: Binding, function: Function | None) -> bool:
        if binding.kind == "parameter" and function is not None and isinstance(binding.value, cst.Param):
            parameter = function.parameter(binding.value.name.value)
            if parameter is None:
                return True
            arguments = self._arguments(function, parameter)
            if arguments and all(a is not None for a in arguments):
                return any(self.carries(a) for a in arguments)
            plain = parameter.node.annotation is not None or parameter.node.default is not None
            return self._facts.tensors.host_parameter(function, parameter) or not plain
        if binding.kind in ("assign", "augmented", "loop", "with"):
            return self.carries(binding.value)
        return False

    def _arguments(self, function: Function, parameter: Parameter) -> list[cst.BaseExpression | None]:
        """Return what the product passes; a self-test's calls say nothing about it, and a wrapper has callers elsewhere."""
        facts = self._facts
        if id(function) in facts.ev.exported_functions:
            return []
        return [c.argument(parameter) for c in facts.calls.calls_of(function) if facts.in_product(c.site)]

    def _written_by_launches(self) -> set[str]:
        """Names that the file hands to a launch for a parameter that the kernel writes to, or may write to."""
        if self._launched is None:
            self._launched = set()
            written = set(self._facts.writes.outputs())
            for call in self._facts.launches.all:
                given = {id(call.argument(p)): p.name for p in call.function.parameters}
                for arg in call.call.args:
                    known = given.get(id(arg.value))
                    if isinstance(arg.value, cst.Name) and (known is None or not written or known in written):
                        self._launched.add(arg.value.value)
        return self._launched
