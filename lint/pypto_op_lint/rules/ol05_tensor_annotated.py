"""OL05: a kernel's tensors are annotated as pypto tensors."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import BODY, PARAMETERS, impl
from pypto_op_lint.facts.values import Cls
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Function, Parameter

_MOST_DEPTH = 8
_USED_AS_TENSOR = {"shape", "move", "assemble", "view", "reshape", "dtype", "exp", "sum"}
_TENSOR_FIRST = frozenset(
    {"pypto.view", "pypto.assemble", "pypto.cast", "pypto.reshape", "pypto.matmul", "pypto.exp", "pypto.sum", "pypto.transpose"}
)
_SCALARS = "x: pypto.Tensor([8, 128], pypto.DT_FP32),\nout: pypto.Tensor([8, 128], pypto.DT_FP32),\n{},\n"


class TensorAnnotated(Rule):
    """A tensor parameter of the kernel has no annotation, or one that is not pypto's tensor.

    What it does:
        Reports a parameter of the jit kernel that is used as a tensor (sliced, viewed, assembled, asked for its shape, there
        or in a helper, or given a torch tensor at the launch) and is not annotated with `pypto.Tensor`. A scalar needs no
        annotation. An object of a class of the file (a configuration) is a constant, whatever its attributes are called.

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
        Valid(
            impl(
                BODY.replace("pypto.exp(tile)", "pypto.exp(pypto.cast(tile, config.dtype))"),
                parameters=f"{PARAMETERS}config: Config,\n",
                before="class Config:\n    dtype = pypto.DT_FP32\n",
            )
        ),
    ]
    INVALID = [
        Invalid(impl(parameters="x,\nout,\n")),
        Invalid(impl(parameters="x: pypto.Tensor([8, 128], pypto.DT_FP32),\nout,\n")),
        Invalid(impl(parameters="x: torch.Tensor,\nout: torch.Tensor,\n")),
        Invalid(
            impl(
                "_body(x, out)\n",
                parameters="x: pypto.Tensor([8, 128], pypto.DT_FP32),\nout,\n",
                before="def _body(x, y):\n    pypto.set_vec_tile_shapes(8, 128)\n    pypto.assemble(pypto.exp(x), [0, 0], y)\n",
                wrapper="def demo_wrapper(*tensors):\n    demo_kernel(*tensors)\n    return tensors[-1]\n",
            )
        ),
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
        calls = self.facts.calls.calls_of(kernel)
        if any(self.facts.tensors.on_host(call.argument(parameter)) for call in calls):
            return True
        annotation = parameter.node.annotation
        if annotation is not None and any(isinstance(value, Cls) for value in self.facts.ev.values(annotation.annotation)):
            return False
        return self._worked_on(kernel, parameter, 0)

    def _worked_on(self, function: Function, parameter: Parameter, depth: int) -> bool:
        """Whether `function`, or a helper that it hands the parameter to, does with it what only a tensor allows."""
        name = parameter.name
        for use in function.named(name):
            site = use.parent
            if site is None or use.role != "value":
                continue
            if isinstance(site.node, cst.Attribute) and site.node.attr.value in _USED_AS_TENSOR:
                return True
            if isinstance(site.node, cst.Subscript) and (
                site.role == "target" or any(isinstance(e.slice, cst.Slice) for e in site.node.slice)
            ):
                return True
        return any(self._takes_tensor(site.node, name, depth) for site in function.of(cst.Call))  # type: ignore[arg-type]

    def _takes_tensor(self, node: cst.Call, name: str, depth: int) -> bool:
        names = self.facts.callee_names(node)
        places = [i for i, arg in enumerate(node.args) if isinstance(arg.value, cst.Name) and arg.value.value == name]
        if not places:
            return False
        if (names & _TENSOR_FIRST and places[0] == 0) or ("pypto.assemble" in names and places[-1] == len(node.args) - 1):
            return True
        handed = [
            (c.function, p)
            for c in self.facts.calls.calls_at(node)
            for p in c.function.parameters
            for place in places
            if c.argument(p) is node.args[place].value
        ]
        return depth < _MOST_DEPTH and any(self._worked_on(f, p, depth + 1) for f, p in handed)
