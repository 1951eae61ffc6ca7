"""OL26: a kernel takes its tensors first."""

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid

_X = "x: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32),\n"
_OUT = "out: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32),\n"


class TensorsFirst(Rule):
    """A tensor parameter of the kernel stands behind a scalar.

    What it does:
        Reports a parameter annotated with pypto's tensor, called or in brackets, that comes after one that is not.

    Why:
        pypto refuses the kernel when it is decorated: "Non-tensor parameters must come after all tensor parameters".

    Example:
        def scale_kernel(x: pypto.Tensor(...), scale: float, out: pypto.Tensor(...)): ...

    Use instead:
        def scale_kernel(x: pypto.Tensor(...), out: pypto.Tensor(...), scale: float): ...

    Known limits:
        None.
    """

    id = "OL26"
    name = "tensors-first"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"kernels", "tensors"})
    MESSAGE = "a tensor parameter stands behind a scalar"
    FIX_HINT = "move the scalars behind all tensors, in the kernel and at its launch"

    VALID = [
        Valid(impl()),
        Valid(impl(parameters=_X + _OUT + "scale: float,\nflag=False,\n")),
        Valid(impl(parameters="x: pypto.Tensor[[8, 128], pypto.DT_FP32],\n" + _OUT)),
    ]
    INVALID = [
        Invalid(impl(parameters=_X + "scale: float,\n" + _OUT)),
        Invalid(impl(parameters="scale,\n" + _X + _OUT)),
        Invalid(impl(parameters=_X + "scale: float,\nout: pypto.Tensor[[8, 128], pypto.DT_FP32],\n")),
    ]

    def check_file(self) -> None:
        """Compare places."""
        for kernel in self.facts.kernels:
            scalar = ""
            for parameter in kernel.parameters:
                if parameter.kind != "positional":
                    continue
                if not self.facts.tensors.is_tensor_parameter(parameter):
                    scalar = scalar or parameter.name
                elif scalar:
                    self.report(parameter.node, f"the tensor `{parameter.name}` stands behind `{scalar}`, which is no tensor")
