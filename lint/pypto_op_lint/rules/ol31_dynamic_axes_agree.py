"""OL31: DESIGN.md's dynamic axes are in the kernel."""

from pypto_op.vocabulary import Severity
from pypto_op_lint.documents import front_matter
from pypto_op_lint.examples import impl
from pypto_op_lint.facts.annotations import has_dynamic_axis
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.rules.ol29_dynamic_axis_marked import STATIC

_FRONT = '---\nschema_version: "2.1"\nop_name: demo\ndynamic_axes: {}\n---\n'


class DynamicAxesAgree(Rule):
    """DESIGN.md names dynamic axes and the kernel marks none.

    What it does:
        Where DESIGN.md's `dynamic_axes` is not empty, asks for `pypto.DYNAMIC` in an annotation of the kernel's tensors.

    Why:
        The suite tests other lengths than the one in the annotation; the kernel would be wrong or refused there.

    Example:
        dynamic_axes: [T]                                  # DESIGN.md
        x: pypto.Tensor([64, 128], pypto.DT_FP32)          # kernel

    Use instead:
        x: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32)

    Known limits:
        Names and number of axes are not compared.
    """

    id = "OL31"
    name = "dynamic-axes-agree"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"kernels", "tensors", "siblings"})
    MESSAGE = "DESIGN.md names dynamic axes and the kernel marks none"
    FIX_HINT = "mark the dynamic axes with pypto.DYNAMIC in the kernel's annotations"

    VALID = [
        Valid(impl(), files={"DESIGN.md": _FRONT.format("[T]")}),
        Valid(impl(parameters=STATIC), files={"DESIGN.md": _FRONT.format("[]")}),
        Valid(impl(parameters=STATIC)),
        Valid(impl(parameters=STATIC), files={"DESIGN.md": "# no front matter, a dynamic axis in prose\n"}),
    ]
    INVALID = [
        Invalid(impl(parameters=STATIC), files={"DESIGN.md": _FRONT.format("[T]")}),
        Invalid(
            impl("# pypto.DYNAMIC\nout[:] = pypto.exp(x)\n", parameters=STATIC), files={"DESIGN.md": _FRONT.format("[{name: T}]")}
        ),
    ]

    def check_file(self) -> None:
        """Compare the two."""
        design = self.files.existing(self.files.ws.design)
        data = front_matter(design) if design is not None else None
        axes = data.get("dynamic_axes") if data else None
        if isinstance(axes, list) and axes and self.facts.kernels and not has_dynamic_axis(self.facts):
            self.report(self.facts.kernels[0].site, f"DESIGN.md names {len(axes)} dynamic axes and the kernel marks none")
