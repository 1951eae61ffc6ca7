"""OL01: one kernel, written as one literal decorator."""

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import BODY, DECORATOR, HEAD, WRAPPER, impl
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid

_SECOND_KERNEL = """
@pypto.frontend.jit
def other_kernel(x: pypto.Tensor([8, 8], pypto.DT_FP32), out: pypto.Tensor([8, 8], pypto.DT_FP32)):
    pypto.set_vec_tile_shapes(8, 8)
    out[:] = pypto.exp(x)
"""


class SingleLiteralJit(Rule):
    """The file has other than one jit kernel, or spells its decorator through an alias.

    What it does:
        Counts the jit entries of the file, nested and conditional ones included, however they are spelled. There must be
        exactly one, a plain `def`, decorated literally with `@pypto.frontend.jit` or `@pypto.frontend.jit(...)`.

    Why:
        One operator is one launch. With a second kernel an intermediate result goes through global memory and the
        pipeline between the two is lost. Tools that find the kernel look for the literal decorator.

    Example:
        import pypto.frontend as F

        @F.jit
        def softmax_kernel(x, out): ...

    Use instead:
        import pypto

        @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
        def softmax_kernel(x, out): ...

    Known limits:
        A decorator chosen at run time (`@(jit if fast else plain)`) is not followed.
    """

    id = "OL01"
    name = "single-literal-jit"
    severity = Severity.S0
    artifacts = IMPLS
    needs = frozenset({"jit_entries"})
    MESSAGE = "the file has no jit kernel"
    FIX_HINT = (
        "write `import pypto` and decorate exactly one plain function with `@pypto.frontend.jit` or `@pypto.frontend.jit(...)`"
    )

    VALID = [
        Valid(impl()),
        Valid(impl(decorator="@pypto.frontend.jit")),
        Valid(
            impl(
                decorator="",
                before="""
                import functools

                @functools.lru_cache(maxsize=None)
                def _build(dtype):
                    @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
                    def kernel(x: pypto.Tensor([64, 64], dtype), out: pypto.Tensor([64, 64], dtype)):
                        pypto.set_vec_tile_shapes(64, 64)
                        for i in pypto.loop(1, name="L", idx_name="i"):
                            out[:] = pypto.exp(x)
                    return kernel
                """,
                wrapper="""
                def demo_wrapper(x):
                    out = torch.empty_like(x)
                    launch = _build(pypto.DT_FP32)
                    launch(x, out)
                    return out
                """,
            ).replace("def demo_kernel", "def _demo_plan")
        ),
    ]
    INVALID = [
        Invalid(impl(decorator="")),
        Invalid(impl(before=_SECOND_KERNEL)),
        Invalid(impl(head=HEAD + "import pypto as pt\n", decorator="@pt.frontend.jit")),
        Invalid(impl(head=HEAD + "import pypto.frontend as F\n", decorator="@F.jit")),
        Invalid(impl(head=HEAD + "from pypto import frontend\n", decorator="@frontend.jit()")),
        Invalid(impl(head=HEAD + "from pypto.frontend import jit\n", decorator="@jit")),
        Invalid(impl(decorator="", wrapper="demo_kernel = pypto.frontend.jit(demo_kernel)\n\n\n" + WRAPPER)),
        Invalid(impl(decorator="", before='"""\n@pypto.frontend.jit\ndef k(): ...\n"""')),
        Invalid(
            impl(decorator="").replace("def demo_kernel", f"if False:\n    {DECORATOR}\n    def k(): ...\n\ndef demo_kernel")
        ),
        Invalid(impl(BODY).replace("def demo_kernel", "async def demo_kernel")),
    ]

    def check_file(self) -> None:
        """Count and judge the jit entries."""
        entries = self.facts.jit_entries
        if not entries:
            self.report(None)
        for entry in entries[1:]:
            first = entries[0].function.name
            self.report(
                entry.node,
                f"`{entry.function.name}` is a second jit kernel beside `{first}`: one operator is one launch",
                hint="make it a plain helper that the one kernel calls, or move its work into the kernel",
            )
        for entry in entries:
            if not entry.literal:
                self.report(
                    entry.node,
                    f"the jit decorator of `{entry.function.name}` is not written literally (`{self.code(entry.node, 40)}`)",
                )
            elif entry.function.is_async:
                self.report(entry.node, f"the kernel `{entry.function.name}` is an `async def`")
