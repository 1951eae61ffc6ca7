"""Which expressions are tensors: torch's in host code, pypto's in the graph. Says yes only on evidence in the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from pypto_op_lint.facts.flow import bindings_of
from pypto_op_lint.facts.foreign import method_called
from pypto_op_lint.facts.objects import AUTOGRAD, stored_in
from pypto_op_lint.facts.values import Func, Result
from pypto_op_lint.import_statements import dotted
from pypto_op_lint.pypto_names import names
from pypto_op_lint.tree import Binding, Function, Parameter

if TYPE_CHECKING:
    from pypto_op_lint.facts import Facts

TENSOR_ANNOTATIONS = {"pypto.Tensor", "pypto.tensor"}
_TORCH_TENSORS = {"torch.Tensor", "torch.FloatTensor", "torch.HalfTensor", "torch.BFloat16Tensor"}
_SHOWS_TENSOR = {
    "shape", "dtype", "device", "dim", "size", "stride", "numel", "contiguous", "is_contiguous", "reshape", "view", "to",
    "new_empty", "new_zeros", "permute", "transpose", "unsqueeze", "squeeze", "flatten", "clone", "data_ptr", "ndim",
    "element_size", "float", "half", "bfloat16", "cpu", "npu", "expand", "detach",
}  # fmt: skip
_TAKES_TENSOR = {
    "reshape", "flatten", "transpose", "permute", "clone", "squeeze", "unsqueeze", "chunk", "split", "narrow", "is_tensor",
    "numel", "movedim", "contiguous", "exp", "softmax", "sum", "mul", "add", "matmul", "sigmoid", "tanh", "relu", "triu",
    "tril",
}  # fmt: skip
_NOT_TENSOR_METHODS = {
    "size", "dim", "numel", "item", "tolist", "stride", "data_ptr", "element_size", "is_contiguous", "get_device",
    "nelement", "ndimension", "storage_offset", "storage", "untyped_storage", "type", "is_floating_point",
    "is_complex", "backward", "register_hook", "__len__", "share_memory_",
}  # fmt: skip
_NOT_TENSOR_CALLS = {
    "torch.is_tensor", "torch.finfo", "torch.iinfo", "torch.device", "torch.Size", "torch.numel", "torch.dtype",
    "torch.get_default_dtype", "torch.is_floating_point", "torch.is_storage", "torch.manual_seed", "torch.allclose",
    "torch.equal", "torch.Generator", "torch.is_grad_enabled", "torch.no_grad", "torch.inference_mode",
    "torch.promote_types", "torch.result_type", "torch.can_cast", "torch.compile", "torch.set_grad_enabled",
    "torch.broadcast_shapes", "torch.set_default_dtype", "torch.use_deterministic_algorithms", "torch.autocast",
}  # fmt: skip
_NOT_TENSOR_MODULES = (
    "torch.npu.", "torch.cuda.", "torch.library.", "torch.utils.", "torch.testing.", "torch.autograd.", "torch.version.",
    "torch.backends.", "torch.distributed.", "torch.ops.", "torch.profiler.", "torch.jit.", "torch._",
)  # fmt: skip
TENSOR_ATTRIBUTES = {"T", "mT", "H", "mH", "data", "grad", "real", "imag"}
_MOST_DEPTH = 25


class Tensors:
    """Decides, with the file's evidence, whether an expression is a tensor."""

    def __init__(self, facts: Facts) -> None:
        self._facts, self._ev = facts, facts.ev
        _ = facts.calls
        self._host: dict[int, bool] = {}
        self._graph: dict[int, bool] = {}
        self._shown: dict[int, dict[str, set[str]]] = {}
        self._to_torch: dict[int, set[str]] = {}
        self._depth = 0

    # -- host -----------------------------------------------------------------------------------------------

    def on_host(self, node: cst.CSTNode | None) -> bool:
        """Whether `node`, in host code, is a torch tensor."""
        if node is None or self._depth > _MOST_DEPTH:
            return False
        key = id(node)
        if key not in self._host:
            self._host[key] = False
            self._depth += 1
            self._host[key] = self._host_kind(node)
            self._depth -= 1
        return self._host[key]

    def _host_kind(self, node: cst.CSTNode) -> bool:
        if type(node) is cst.Name:
            return any(self._host_binding(b, f) for b, f in bindings_of(self._facts.tree, node))
        if type(node) is cst.Call:
            return self._host_call(node)
        if type(node) is cst.Attribute:
            if node.attr.value in TENSOR_ATTRIBUTES and self.on_host(node.value):
                return True
            return any(self.on_host(stored) for stored in stored_in(self._ev, node))
        if type(node) is cst.Subscript:
            return self.on_host(node.value) or any(self.on_host(item) for item in self._items(node.value, node))
        if type(node) is cst.BinaryOperation:
            return self.on_host(node.left) or self.on_host(node.right)
        if type(node) is cst.UnaryOperation:
            return not isinstance(node.operator, cst.Not) and self.on_host(node.expression)
        if type(node) is cst.Comparison:
            identity = (cst.Is, cst.IsNot, cst.In, cst.NotIn)
            plain = not any(isinstance(c.operator, identity) for c in node.comparisons)
            return plain and (self.on_host(node.left) or any(self.on_host(c.comparator) for c in node.comparisons))
        if type(node) is cst.IfExp:
            return self.on_host(node.body) or self.on_host(node.orelse)
        if type(node) is cst.NamedExpr:
            return self.on_host(node.value)
        return False

    def _host_binding(self, binding: Binding, function: Function | None) -> bool:
        if binding.kind == "parameter" and function is not None and isinstance(binding.value, cst.Param):
            parameter = function.parameter(binding.value.name.value)
            return parameter is not None and self.host_parameter(function, parameter)
        if binding.kind == "loop":
            items = self._items(binding.value) if binding.value is not None else []
            return self.on_host(binding.value) or any(self._element(item, binding.path) for item in items)
        if binding.kind not in ("assign", "augmented"):
            return False
        return self._element(binding.value, binding.path) if binding.path else self.on_host(binding.value)

    def _element(self, value: cst.CSTNode | None, path: tuple[int | str, ...]) -> bool:
        for step in path:
            if isinstance(value, (cst.Tuple, cst.List)) and isinstance(step, int):
                if not -len(value.elements) <= step < len(value.elements):
                    return False
                value = value.elements[step].value
            else:
                return self.on_host(value)
        return self.on_host(value)

    def _items(self, container: cst.CSTNode, subscript: cst.Subscript | None = None) -> list[cst.CSTNode]:
        """Return the expressions that a container written in the file holds; only the one a constant index picks."""
        if isinstance(container, cst.Name):
            values = [b.value for b, _ in bindings_of(self._facts.tree, container) if b.kind == "assign" and not b.path]
            return [n for v in values if v is not None and not isinstance(v, cst.Name) for n in self._items(v, subscript)]
        if isinstance(container, (cst.ListComp, cst.GeneratorExp)):
            return [container.elt]
        if isinstance(container, cst.Dict):
            return [element.value for element in container.elements]
        if not isinstance(container, (cst.List, cst.Tuple)):
            return []
        items: list[cst.CSTNode] = [element.value for element in container.elements]
        index = subscript.slice[0].slice if subscript is not None and len(subscript.slice) == 1 else None
        place = self._ev.constant(index.value) if isinstance(index, cst.Index) else None
        if place is not None and isinstance(place.value, int) and -len(items) <= place.value < len(items):
            return [items[place.value]]
        return items

    def host_parameter(self, function: Function, parameter: Parameter) -> bool:
        """Whether a parameter of a host function is a torch tensor, by its annotation, its use, or what it is given."""
        annotation = parameter.node.annotation
        if annotation is not None:
            found = self._annotation_names(annotation.annotation)
            if found & _TORCH_TENSORS:
                return True
            if found:
                return False
        if parameter.kind == "args":
            return False
        if parameter.index and function.name == "backward" and self._is_autograd(function):
            return True
        default = parameter.node.default
        if default is not None and not (isinstance(default, cst.Name) and default.value == "None"):
            return False
        if self._shown_attributes(function).get(parameter.name, set()) & _SHOWS_TENSOR:
            return True
        passed = [(c, c.argument(parameter)) for c in self._facts.calls.calls_of(function)]
        if any(argument is not None and self.on_host(argument) for _, argument in passed):
            return True
        return self._goes_to_torch(function, parameter.name) or self._goes_to_kernel(function, parameter.name)

    def _is_autograd(self, function: Function) -> bool:
        """Whether a method belongs to a `torch.autograd.Function`, whose `backward` gets gradients."""
        home = function.site.scope.site.node if function.site.scope.site is not None else None
        return isinstance(home, cst.ClassDef) and any(self._ev.paths(base.value) & AUTOGRAD for base in home.bases)

    def _annotation_names(self, annotation: cst.BaseExpression) -> set[str]:
        """Names in an annotation; `Optional[torch.Tensor]`, `torch.Tensor | None` and quoted ones count."""
        if isinstance(annotation, cst.SimpleString):
            return {str(annotation.evaluated_value)}
        if isinstance(annotation, cst.Subscript):
            inner = [e.slice.value for e in annotation.slice if isinstance(e.slice, cst.Index)]
            return {name for node in inner for name in self._annotation_names(node)}
        if isinstance(annotation, cst.BinaryOperation):
            return self._annotation_names(annotation.left) | self._annotation_names(annotation.right)
        found = self._ev.paths(annotation)
        return found or ({dotted(annotation)} - {""})

    def _shown_attributes(self, function: Function) -> dict[str, set[str]]:
        """For each name of `function`, the attributes that its body takes of it."""
        kept = self._shown.get(id(function))
        if kept is None:
            kept = self._shown[id(function)] = {}
            for site in function.of(cst.Attribute):
                node: cst.Attribute = site.node  # type: ignore[assignment]
                if isinstance(node.value, cst.Name):
                    kept.setdefault(node.value.value, set()).add(node.attr.value)
        return kept

    def _goes_to_torch(self, function: Function, name: str) -> bool:
        """Whether `name` is the first argument of a torch function that takes a tensor there."""
        kept = self._to_torch.get(id(function))
        if kept is None:
            kept = self._to_torch[id(function)] = set()
            for site in function.of(cst.Call):
                node: cst.Call = site.node  # type: ignore[assignment]
                first = node.args[0] if node.args else None
                if first is not None and first.keyword is None and isinstance(first.value, cst.Name):
                    words = {n.rpartition(".")[2] for n in self._facts.callee_names(node) if n.startswith("torch.")}
                    if any(word.endswith("_like") or word in _TAKES_TENSOR for word in words):
                        kept.add(first.value.value)
        return name in kept

    def _goes_to_kernel(self, function: Function, name: str) -> bool:
        for call in self._facts.launches.in_function(function):
            for parameter in call.function.parameters:
                argument = call.argument(parameter)
                if isinstance(argument, cst.Name) and argument.value == name:
                    return self.is_tensor_parameter(parameter)
        return False

    def _host_call(self, node: cst.Call) -> bool:
        callees = self._ev.values(node.func)
        functions = [v.function for v in callees if isinstance(v, Func)]
        if any(isinstance(v, Result) and v.callee.startswith("torch.nn.") for v in callees):
            return True  # `torch.nn.ConstantPad1d(...)(x)`
        for name in self._facts.callee_names(node):
            if name.startswith("torch.") and name not in _NOT_TENSOR_CALLS:
                return not name.startswith(_NOT_TENSOR_MODULES)
            if name.startswith("numpy."):
                return any(self.on_host(arg.value) for arg in node.args)
        if functions:
            return any(self._returns_tensor(f) for f in functions if not self._facts.is_kernel(f))
        method = method_called(self._ev, node)
        return method is not None and method[1] not in _NOT_TENSOR_METHODS and self.on_host(method[0])

    def _returns_tensor(self, function: Function) -> bool:
        if isinstance(function.node, cst.Lambda):
            return self.on_host(function.node.body)
        results = function.returned
        return any(self.on_host(value) for value in results if value is not None)

    # -- graph ----------------------------------------------------------------------------------------------

    def is_tensor_parameter(self, parameter: Parameter) -> bool:
        """Whether a kernel's parameter is annotated as a pypto tensor: bare, called or subscripted."""
        annotation = parameter.node.annotation
        return annotation is not None and self.is_tensor_annotation(annotation.annotation)

    def is_tensor_annotation(self, node: cst.BaseExpression) -> bool:
        """Whether an annotation names pypto's tensor: `pypto.Tensor`, `pypto.Tensor(...)`, `pypto.Tensor[...]`."""
        if isinstance(node, cst.SimpleString):
            return str(node.evaluated_value).startswith(("pypto.Tensor", "pypto.tensor"))
        if isinstance(node, cst.Subscript):
            return bool(self._ev.paths(node.value) & TENSOR_ANNOTATIONS)
        if self._ev.paths(node) & TENSOR_ANNOTATIONS:
            return True
        return any(getattr(v, "callee", "") in TENSOR_ANNOTATIONS for v in self._ev.values(node))

    def in_graph(self, node: cst.CSTNode | None) -> bool:
        """Whether `node`, in graph code, surely is a pypto tensor."""
        if node is None or self._depth > _MOST_DEPTH:
            return False
        key = id(node)
        if key not in self._graph:
            self._graph[key] = True  # a name that is computed from itself: its other bindings decide
            self._depth += 1
            self._graph[key] = self._graph_kind(node)
            self._depth -= 1
        return self._graph[key]

    def _graph_kind(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Name):
            found = bindings_of(self._facts.tree, node)
            return bool(found) and all(self._graph_binding(b, f) for b, f in found)
        if isinstance(node, cst.Call):
            return self._graph_call(node)
        if isinstance(node, cst.BinaryOperation):
            return self.in_graph(node.left) or self.in_graph(node.right)
        if isinstance(node, cst.UnaryOperation):
            return self.in_graph(node.expression)
        if isinstance(node, cst.Subscript):
            slices = any(isinstance(e.slice, cst.Slice) for e in node.slice)
            return slices and self.in_graph(node.value)
        return False

    def _graph_binding(self, binding: Binding, function: Function | None) -> bool:
        if binding.kind == "parameter" and function is not None and isinstance(binding.value, cst.Param):
            parameter = function.parameter(binding.value.name.value)
            if parameter is None:
                return False
            if self.is_tensor_parameter(parameter):
                return True
            arguments = [c.argument(parameter) for c in self._facts.calls.calls_of(function)]
            return bool(arguments) and all(self.in_graph(a) for a in arguments)
        if binding.kind == "augmented":
            return True  # decided by the other bindings of the name
        if binding.kind == "loop" and isinstance(binding.value, (cst.Tuple, cst.List)) and not binding.path:
            return all(self.in_graph(e.value) for e in binding.value.elements)
        return binding.kind == "assign" and not binding.path and self.in_graph(binding.value)

    def _graph_call(self, node: cst.Call) -> bool:
        callees = self._ev.values(node.func)
        functions = [v.function for v in callees if isinstance(v, Func)]
        if functions:
            return all(self._graph_result(f) for f in functions)
        table = names()
        found = self._ev.paths(node.func)
        if found:
            return all(name in table.returns_tensor for name in found)
        if isinstance(node.func, cst.Attribute) and self.in_graph(node.func.value):
            return f"pypto.Tensor.{node.func.attr.value}" in table.returns_tensor
        return False

    def _graph_result(self, function: Function) -> bool:
        if isinstance(function.node, cst.Lambda):
            return self.in_graph(function.node.body)
        results = function.returned
        return bool(results) and all(self.in_graph(value) for value in results)
