"""PX04: a kernel declares no result."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.findings import Edit
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Function


def _returning(annotation: str) -> str:
    return impl().replace("DT_FP32),\n):", f"DT_FP32),\n){annotation}:")


class NoKernelReturnAnnotation(Rule):
    """A function that the front end parses has a return annotation.

    What it does:
        Reports `-> anything`, `-> None` included, on a function decorated with `pypto.frontend.jit` or
        `pypto.frontend.function`. `--fix` removes it.

    Why:
        A kernel's results are parameters that it writes to. pypto's front end takes a return annotation for the declaration of
        an output.

    Example:
        @pypto.frontend.jit
        def softmax_kernel(x: pypto.Tensor([8], pypto.DT_FP32), out: pypto.Tensor([8], pypto.DT_FP32)) -> None: ...

    Use instead:
        @pypto.frontend.jit
        def softmax_kernel(x: pypto.Tensor([8], pypto.DT_FP32), out: pypto.Tensor([8], pypto.DT_FP32)): ...

    Known limits:
        Helpers and wrappers may annotate their results.
    """

    id = "PX04"
    name = "no-kernel-return-annotation"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"kernels"})
    MESSAGE = "a jit function has a return annotation"
    FIX_HINT = "remove the annotation behind `->`; write results into output parameters"

    VALID = [
        Valid(impl()),
        Valid(
            impl(
                wrapper="def demo_wrapper(x) -> torch.Tensor:\n    out = torch.empty_like(x)\n"
                "    demo_kernel(x, out)\n    return out\n"
            )
        ),
    ]
    INVALID = [
        Invalid(_returning(" -> None"), replacement=impl()),
        Invalid(impl(before="@pypto.frontend.function\ndef step(x: pypto.Tensor([8], pypto.DT_FP32)) -> None:\n    x[:] = x\n")),
        Invalid(_returning(" -> pypto.Tensor([8, 8], pypto.DT_FP32)"), replacement=impl()),
    ]

    def check_file(self) -> None:
        """Look at each kernel's header."""
        for kernel in self.facts.tree.functions:
            node = kernel.node
            if self.facts.is_parsed(kernel) and isinstance(node, cst.FunctionDef) and node.returns is not None:
                shown = self.code(node.returns.annotation, 30)
                self.report(
                    node.returns.annotation,
                    f"the kernel `{kernel.name}` is annotated `-> {shown}`: pypto takes it for an output",
                    edit=self._removal(kernel, node.returns.annotation),
                )

    def _removal(self, kernel: Function, annotation: cst.BaseExpression) -> Edit | None:
        """Cut from behind the closing bracket to the end of the annotation, where both are on one line."""
        tree = self.unit.tree
        assert tree is not None
        line, column, end_line, end_column = tree.position(annotation)
        before = self.unit.text.split("\n")[line - 1][:column]
        start = before.rfind(")")
        if start < 0 or before[start + 1 :].strip() != "->":
            return None
        return Edit(line, start + 1, end_line, end_column, "")
