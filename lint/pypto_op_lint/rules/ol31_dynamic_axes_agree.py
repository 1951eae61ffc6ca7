"""OL31: DESIGN.md's dynamic axes are in the kernel."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.documents import front_matter, mapping, mappings
from pypto_op_lint.examples import WRAPPER, impl
from pypto_op_lint.facts.annotations import axis_marks, has_dynamic_axis
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.rules.ol29_dynamic_axis_marked import STATIC

_FRONT = '---\nschema_version: "2.1"\nop_name: demo\ndynamic_axes: {}\n---\n'


_ONE = {"DESIGN.md": _FRONT.format("[T]")}
_TWO = {"DESIGN.md": _FRONT.format("[B, T]")}
_CONTRACT = _TWO | {"eval/module_interfaces.yaml": "primary_inputs:\n  - {name: x, shape: [B, T, 128], dtype: float32}\n"}
_INPUT_AND_OUTPUT = 2
_RESHAPES = frozenset({
    "reshape", "view", "flatten", "unflatten", "permute", "transpose", "swapaxes", "movedim", "squeeze", "unsqueeze",
    "reshape_as", "view_as", "expand", "ravel",
})  # fmt: skip


def _of(shape: str) -> str:
    return STATIC.replace("[64, 128]", shape)


class DynamicAxesAgree(Rule):
    """DESIGN.md names dynamic axes and the kernel marks none, or fewer.

    What it does:
        Where DESIGN.md's `dynamic_axes` is not empty, asks for `pypto.DYNAMIC` (or `pypto.frontend.dynamic("T")`, or -1) in
        an annotation of the kernel's tensors. A tensor that `module_interfaces.yaml` describes with the same name and rank
        must mark as many axes as the contract names dynamic ones in its shape. For axes that the contract does not tell,
        tensors that all have one and the same shape must mark as many as DESIGN.md names, where they have room for them.

    Why:
        The suite tests other lengths than the one in the annotation; the kernel would be wrong or refused there.

    Example:
        dynamic_axes: [T]                                  # DESIGN.md
        x: pypto.Tensor([64, 128], pypto.DT_FP32)          # kernel

    Use instead:
        x: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32)

    Known limits:
        A tensor that the wrapper reshapes is not compared axis by axis. An axis whose size the kernel is built for, an
        argument of its builder, passes.
    """

    id = "OL31"
    name = "dynamic-axes-agree"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"kernels", "tensors", "siblings", "host_sites"})
    MESSAGE = "DESIGN.md names dynamic axes and the kernel marks none"
    FIX_HINT = "mark the dynamic axes with pypto.DYNAMIC in the kernel's annotations"

    VALID = [
        Valid(impl(), files={"DESIGN.md": _FRONT.format("[T]")}),
        Valid(impl(parameters=STATIC), files={"DESIGN.md": _FRONT.format("[]")}),
        Valid(impl(parameters=STATIC)),
        Valid(impl(parameters=STATIC), files={"DESIGN.md": "# no front matter, a dynamic axis in prose\n"}),
        Valid(
            impl(parameters=_of("[T, 128]"), before='T = pypto.frontend.dynamic("T")\n'),
            files={"DESIGN.md": _FRONT.format("[T]")},
        ),
        Valid(impl(parameters=_of("[pypto.DYNAMIC, pypto.DYNAMIC, 128]")), files=_CONTRACT),
        Valid(
            impl(
                parameters=_of("[pypto.DYNAMIC, 128]"),
                wrapper=WRAPPER.replace("demo_kernel(x, out)", "demo_kernel(x.flatten(0, 1), out.flatten(0, 1))"),
            ),
            files=_CONTRACT,
        ),
        Valid(
            impl(
                parameters=_of("[pypto.DYNAMIC, 128]").replace("x:", "k: pypto.Tensor([pypto.DYNAMIC, 128], pypto.DT_FP32),\nx:")
            ),
            files=_TWO,
        ),
        Valid(
            impl(
                parameters=_of("[pypto.DYNAMIC, 8, 128]"),
                wrapper=WRAPPER.replace("demo_kernel(x, out)", "demo_kernel(x.reshape(-1, 8, 128), out.view(-1, 8, 128))"),
            ),
            files=_TWO,
        ),
    ]
    INVALID = [
        Invalid(impl(parameters=STATIC), files={"DESIGN.md": _FRONT.format("[T]")}),
        Invalid(
            impl("# pypto.DYNAMIC\nout[:] = pypto.exp(x)\n", parameters=STATIC), files={"DESIGN.md": _FRONT.format("[{name: T}]")}
        ),
        Invalid(impl(parameters=_of("[pypto.DYNAMIC, 64, 128]")), files=_CONTRACT),
        Invalid(impl(parameters=_of("[pypto.DYNAMIC, 64, 128]")), files=_TWO),
        Invalid(impl(), files=_TWO),
    ]

    def check_file(self) -> None:
        """Compare the two."""
        data = front_matter(self.files.existing(self.files.ws.design))
        axes = [_name(axis) for axis in data["dynamic_axes"]] if data and isinstance(data.get("dynamic_axes"), list) else []
        if not axes or not self.facts.kernels:
            return
        if not has_dynamic_axis(self.facts):
            self.report(self.facts.kernels[0].site, f"DESIGN.md names {len(axes)} dynamic axes and the kernel marks none")
        elif len(axes) > 1:
            self._count(axes)

    def _count(self, axes: list[str]) -> None:
        """Compare the number of axes, tensor by tensor."""
        reshaped, shapes = self._reshaped(), self._contract()
        marked = [
            (p, marks)
            for kernel in self.facts.kernels
            for p in kernel.parameters
            if self.facts.tensors.is_tensor_parameter(p) and (marks := axis_marks(self.facts, p)) is not None
        ]
        compared = False
        for parameter, marks in marked:
            shape = shapes.get(parameter.name)
            if shape is None or len(shape) != len(marks) or parameter.name in reshaped:
                continue
            compared = True
            wanted = [axis for axis in shape if axis in axes]
            if len(wanted) > sum(mark is not False for mark in marks):
                self.report(
                    parameter.node,
                    f"`{parameter.name}` has the dynamic axes {', '.join(wanted)} by the contract and DESIGN.md, "
                    f"and marks {sum(map(bool, marks))} of them",
                )
        told = {axis for shape in shapes.values() for axis in shape} if compared else set()
        if not reshaped and not told.issuperset(axes):
            self._one_shape([marks for _, marks in marked if any(marks)], axes)

    def _one_shape(self, marked: list[list[bool | None]], axes: list[str]) -> None:
        """For axes that no contract tells: all dynamic tensors have one shape, which has room for those that are missing.

        Among three tensors or more there may be two lengths that look alike: then the last axis does not count as room.
        """
        first = marked[0] if marked else []
        missing = len(axes) - sum(map(bool, first))
        room = (first if len(marked) <= _INPUT_AND_OUTPUT else first[:-1]).count(False)
        if all(marks == first for marks in marked) and None not in first and 0 < missing <= room:
            self.report(
                self.facts.kernels[0].site,
                f"DESIGN.md names the dynamic axes {', '.join(axes)}, the kernel's tensors mark {sum(map(bool, first))}",
            )

    def _contract(self) -> dict[str, list[str]]:
        """The shapes of eval/module_interfaces.yaml, by tensor."""
        data = mapping(self.files.existing(self.files.ws.interfaces)) or {}
        made = [out for module in mappings(data.get("modules")) for out in mappings(module.get("outputs"))]
        tensors = [*mappings(data.get("primary_inputs")), *made]
        return {str(t.get("name")): [str(a) for a in t["shape"]] for t in tensors if isinstance(t.get("shape"), list)}

    def _reshaped(self) -> set[str]:
        """Names that host code gives another shape."""
        found = set()
        for site in self.facts.host_sites(cst.Call):
            node: cst.Call = site.node  # type: ignore[assignment]
            if isinstance(node.func, cst.Attribute) and node.func.attr.value in _RESHAPES:
                names = self.facts.callee_names(node)
                whom = node.args[0].value if any(n.startswith("torch.") for n in names) and node.args else node.func.value
                while isinstance(whom, (cst.Attribute, cst.Call, cst.Subscript)):
                    whom = whom.func if isinstance(whom, cst.Call) else whom.value
                found.add(whom.value if isinstance(whom, cst.Name) else "")
        return found


def _name(axis: object) -> str:
    return str(axis.get("name", axis)) if isinstance(axis, dict) else str(axis)
