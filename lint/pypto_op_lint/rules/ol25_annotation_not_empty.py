"""OL25: a tensor annotation says shape and dtype."""

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.facts.annotations import shape_and_dtype
from pypto_op_lint.facts.values import Seq
from pypto_op_lint.findings import WARN
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Parameter

_TWO = "x: {0},\nout: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32),\n"


class AnnotationNotEmpty(Rule):
    """A kernel's tensor annotation has no shape.

    What it does:
        For each parameter of the kernel that is annotated with `pypto.Tensor`, asks for a shape that is not empty, given by
        position, by keyword, in brackets, or through a name. An annotation without a dtype is a warning.

    Why:
        With an empty shape every axis is open, and pypto fails on the first view with a message that names another place.

    Example:
        x: pypto.Tensor([], pypto.DT_FP32)

    Use instead:
        x: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32)

    Known limits:
        A shape that is computed is taken to be one.
    """

    id = "OL25"
    name = "annotation-not-empty"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"kernels", "tensors"})
    MESSAGE = "a tensor annotation has no shape"
    FIX_HINT = "write the shape as a list, pypto.DYNAMIC for a dynamic axis, and the dtype"

    VALID = [
        Valid(impl()),
        Valid(impl(parameters=_TWO.format("pypto.Tensor(shape=[pypto.DYNAMIC, 128], dtype=pypto.DT_FP32)"))),
        Valid(impl(parameters=_TWO.format("pypto.Tensor[[pypto.DYNAMIC, 128], pypto.DT_FP32]"))),
        Valid(impl(parameters=_TWO.format("pypto.Tensor(ROWS, pypto.DT_FP32)"), before="ROWS = [pypto.DYNAMIC, 128]\n")),
        Valid(impl(parameters=_TWO.format("IN"), before="IN = pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32)\n")),
    ]
    INVALID = [
        Invalid(impl(parameters=_TWO.format("pypto.Tensor()"))),
        Invalid(impl(parameters=_TWO.format("pypto.Tensor([], pypto.DT_FP32)"))),
        Invalid(impl(parameters=_TWO.format("pypto.Tensor(shape=[], dtype=pypto.DT_FP32)"))),
        Invalid(impl(parameters=_TWO.format("pypto.Tensor(NONE, pypto.DT_FP32)"), before="NONE = []\n")),
        Invalid(impl(parameters=_TWO.format("pypto.Tensor"))),
        Invalid(impl(parameters=_TWO.format("pypto.Tensor([pypto.DYNAMIC, 128])")), status="WARN"),
    ]

    def check_file(self) -> None:
        """Look at every tensor parameter."""
        for kernel in self.facts.kernels:
            for parameter in kernel.parameters:
                if self.facts.tensors.is_tensor_parameter(parameter):
                    self._check(parameter)

    def _check(self, parameter: Parameter) -> None:
        assert parameter.node.annotation is not None
        node = parameter.node.annotation.annotation
        arguments = shape_and_dtype(self.facts, node)
        if arguments is None:
            return
        shape, dtype = arguments
        is_dtype = shape is not None and any(n.startswith("pypto.DT_") for n in self.facts.ev.paths(shape))
        if shape is None or is_dtype or any(isinstance(v, Seq) and not v.items for v in self.facts.ev.values(shape)):
            self.report(parameter.node, f"the annotation of `{parameter.name}` has no shape")
        elif dtype is None:
            self.report(parameter.node, f"the annotation of `{parameter.name}` has no dtype", status=WARN)
