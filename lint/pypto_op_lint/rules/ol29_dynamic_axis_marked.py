"""OL29: a dynamic axis is marked."""

from pypto_op.vocabulary import Severity
from pypto_op_lint.documents import front_matter
from pypto_op_lint.examples import impl
from pypto_op_lint.facts.annotations import has_dynamic_axis
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid

STATIC = "x: pypto.Tensor([64, 128], pypto.DT_FP32),\nout: pypto.Tensor([64, 128], pypto.DT_FP32),\n"
_FRONT = '---\nschema_version: "2.1"\nop_name: demo\ndynamic_axes: {}\n---\n'


class DynamicAxisMarked(Rule):
    """No axis of the kernel's tensors is dynamic.

    What it does:
        Warns when no tensor annotation of the kernel has `pypto.DYNAMIC`, `pypto.frontend.dynamic("T")` or -1, unless
        DESIGN.md or SPEC.md says that the operator has no dynamic axis (`dynamic_axes: []`).

    Why:
        A kernel with fixed shapes is compiled again for every length.

    Example:
        x: pypto.Tensor([64, 128], pypto.DT_FP32)

    Use instead:
        x: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32)

    Known limits:
        Which axis ought to be dynamic it does not know.
    """

    id = "OL29"
    name = "dynamic-axis-marked"
    severity = Severity.S2
    artifacts = IMPLS
    needs = frozenset({"kernels", "tensors", "siblings"})
    MESSAGE = "no axis of the kernel's tensors is dynamic"
    FIX_HINT = "mark the axes of SPEC.md's dynamic_axes with pypto.DYNAMIC, or say `dynamic_axes: []` there"

    VALID = [
        Valid(impl()),
        Valid(impl(parameters=STATIC), files={"DESIGN.md": _FRONT.format("[]")}),
        Valid(impl(parameters=STATIC.replace("[64, 128]", "SHAPE"), before="SHAPE = [pypto.DYNAMIC, 128]\n")),
        Valid(impl(parameters=STATIC.replace("64, 128", "T, 128"), before='T = pypto.frontend.dynamic("T")\n')),
    ]
    INVALID = [
        Invalid(impl(parameters=STATIC)),
        Invalid(impl(parameters=STATIC), files={"SPEC.md": _FRONT.format("[rows]")}),
        Invalid(impl("# pypto.DYNAMIC\nout[:] = pypto.exp(x)\n", parameters=STATIC), files={"DESIGN.md": _FRONT.format("[T]")}),
    ]

    def check_file(self) -> None:
        """Look at the annotations, then at the documents."""
        if not self.facts.kernels or has_dynamic_axis(self.facts):
            return
        declared: list[object] = []
        for path in (self.files.ws.design, self.files.ws.spec):
            data = front_matter(self.files.existing(path))
            if data is not None and "dynamic_axes" in data:
                declared.append(data["dynamic_axes"])
        if all(declared):
            self.report(self.facts.kernels[0].site)
