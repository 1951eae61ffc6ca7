"""OL05: a kernel's tensors are annotated as pypto tensors."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Function, Parameter

_USED_AS_TENSOR = {"shape", "move", "assemble", "view", "reshape", "dtype", "exp", "sum"}
_TENSOR_FIRST = frozenset(
    {"pypto.view", "pypto.assemble", "pypto.cast", "pypto.reshape", "pypto.matmul", "pypto.exp", "pypto.sum", "pypto.transpose"}
)
_SCALARS = "x: pypto.Tensor([8, 128], pypto.DT_FP32),\nout: pypto.Tensor([8, 128], pypto.DT_FP32),\n{},\n"


class TensorAnnotated(Rule):
    """A tensor parameter of the kernel has no annotation, or one that is not pypto's tensor.

    What it does:
        Reports a parameter of the jit kernel that is used as a tensor (sliced, viewed, assembled, asked for its shape, or
        given a torch tensor at the launch) and is not annotated with `pypto.Tensor`. A scalar needs no annotation.

    Why:
        pypto takes a parameter without `pypto.Tensor` for a constant and stops when it meets a tensor.

    Example:
        def exp_kernel(x, out): ...

    Use instead:
        def exp_kernel(
            x: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32),
            out: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32),
        ): ...

    Known limits:
        A parameter that nothing in the file uses counts as a scalar.
    """

    id = "OL05"
    name = "tensor-annotated"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"kernels", "tensors"})
    MESSAGE = "a tensor parameter is not annotated"
    FIX_HINT = "annotate it: `x: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32)`"

    VALID = [
        Valid(impl()),
        Valid(impl(parameters=_SCALARS.format("eps"))),
        Valid(impl(parameters=_SCALARS.format("eps: float = 1e-6"))),
    ]
    INVALID = [
        Invalid(impl(parameters="x,\nout,\n")),
        Invalid(impl(parameters="x: pypto.Tensor([8, 128], pypto.DT_FP32),\nout,\n")),
        Invalid(impl(parameters="x: torch.Tensor,\nout: torch.Tensor,\n")),
        Invalid(impl(parameters="x: int,\nout: pypto.Tensor([8, 128], pypto.DT_FP32),\n")),
    ]

    def check_file(self) -> None:
        """Look at every parameter of every kernel."""
        for kernel in self.facts.kernels:
            for parameter in kernel.parameters:
                annotation = parameter.node.annotation
                if annotation is not None and isinstance(annotation.annotation, cst.SimpleString):
                    self.report(
                        parameter.node, f"the annotation of `{parameter.name}` is a string, which pypto does not evaluate"
                    )
                    continue
                if parameter.kind in ("args", "kwargs"):
                    self.report(parameter.node, f"`{parameter.name}` gathers parameters, which then have no annotation")
                    continue
                if self.facts.tensors.is_tensor_parameter(parameter):
                    continue
                if annotation is not None and self._is_torch(annotation.annotation):
                    self.report(parameter.node, f"`{parameter.name}` is annotated as a torch tensor, not as a pypto one")
                elif self._used_as_tensor(kernel, parameter):
                    word = "has no annotation" if annotation is None else f"is annotated `{self.code(annotation.annotation)}`"
                    self.report(parameter.node, f"`{parameter.name}` is used as a tensor and {word}")

    def _is_torch(self, node: cst.BaseExpression) -> bool:
        return any(name.startswith("torch.") and name.endswith("Tensor") for name in self.facts.ev.paths(node))

    def _used_as_tensor(self, kernel: Function, parameter: Parameter) -> bool:
        name = parameter.name
        for site in kernel.sites:
            node = site.node
            if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == name:
                if node.attr.value in _USED_AS_TENSOR:
                    return True
            elif isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name) and node.value.value == name:
                if site.role == "target" or any(isinstance(e.slice, cst.Slice) for e in node.slice):
                    return True
            elif isinstance(node, cst.Call) and self.facts.callee_names(node) & _TENSOR_FIRST and node.args:
                first = node.args[0].value
                if isinstance(first, cst.Name) and first.value == name:
                    return True
        return any(self.facts.tensors.on_host(call.argument(parameter)) for call in self.facts.calls.calls_of(kernel))
