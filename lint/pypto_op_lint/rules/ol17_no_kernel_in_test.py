"""OL17: a test holds no kernel."""

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.examples import TEST
from pypto_op_lint.rule import TESTS, Invalid, Rule, Valid

_KERNEL = """

@pypto.frontend.jit
def shadow_kernel(x: pypto.Tensor([8, 8], pypto.DT_FP32), out: pypto.Tensor([8, 8], pypto.DT_FP32)):
    out[:] = pypto.exp(x)
"""


class NoKernelInTest(Rule):
    """A test defines a jit kernel.

    What it does:
        Reports every jit entry in a test, however its decorator is spelled.

    Why:
        Such a test checks its own kernel and not the one that ships.

    Example:
        @pypto.frontend.jit
        def softmax_kernel(x, out): ...

    Use instead:
        from softmax_impl import softmax_wrapper

    Known limits:
        A kernel that the test imports from a third file is not seen here.
    """

    id = "OL17"
    name = "no-kernel-in-test"
    severity = Severity.S1
    artifacts = TESTS
    needs = frozenset({"jit_entries"})
    MESSAGE = "the test defines a kernel of its own"
    FIX_HINT = "delete the kernel from the test and call the impl's wrapper"

    VALID = [
        Valid(TEST, artifact=Artifact.TEST),
        Valid('"""@pypto.frontend.jit kernels live in the impl."""\n' + TEST, artifact=Artifact.TEST),
    ]
    INVALID = [
        Invalid("import pypto\n" + TEST + _KERNEL, artifact=Artifact.TEST),
        Invalid(
            "from pypto.frontend import jit\nimport pypto\n" + TEST + _KERNEL.replace("@pypto.frontend.jit", "@jit()"),
            artifact=Artifact.MODULE_TEST,
            phase=1,
        ),
    ]

    def check_file(self) -> None:
        """Report every jit entry."""
        for entry in self.facts.jit_entries:
            self.report(entry.node, f"the test defines the kernel `{entry.function.name}`")
