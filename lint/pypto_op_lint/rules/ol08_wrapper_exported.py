"""OL08: the impl exports a wrapper under the agreed name."""

import libcst as cst

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.examples import WRAPPER, impl
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Function


class WrapperExported(Rule):
    """The module exports no plain function `*_wrapper`.

    What it does:
        Wants a host function at module level whose name ends in `_wrapper`: a `def`, or a name bound to one. A
        kernel, a lambda or an `async def` does not count. One must have the exact name that tests and the judge
        import: `<op>_wrapper`, or `<op>_module<suffix>_wrapper` in a staged file.

    Why:
        The wrapper is the operator's interface; the tests are generated against its name.

    Example:
        def run(x): ...

    Use instead:
        def softmax_wrapper(x): ...

    Known limits:
        A wrapper that is a class with `__call__` is not recognised.
    """

    id = "OL08"
    name = "wrapper-exported"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"wrappers", "kernels"})
    MESSAGE = "the module exports no function whose name ends in `_wrapper`"
    FIX_HINT = "define `<op>_wrapper(...)`, in a staged file `<op>_module<suffix>_wrapper(...)`, at module level"

    VALID = [
        Valid(impl()),
        Valid(impl(wrapper=WRAPPER.replace("demo_wrapper", "_run") + "\n\ndemo_wrapper = _run\n")),
        Valid(impl(wrapper=WRAPPER.replace("demo_wrapper", "demo_module12_wrapper")), artifact=Artifact.MODULE_IMPL, phase=2),
    ]
    INVALID = [
        Invalid(impl(wrapper=WRAPPER.replace("demo_wrapper", "run_demo"))),
        Invalid(impl(wrapper=WRAPPER.replace("def demo_wrapper", "async def demo_wrapper"))),
        Invalid(impl(wrapper="def _make():\n    def demo_wrapper(x):\n        return x\n    return demo_wrapper\n")),
        Invalid(impl(wrapper="").replace("demo_kernel", "demo_wrapper")),
        Invalid(impl(wrapper=WRAPPER.replace("demo_wrapper", "other_wrapper"))),
        Invalid(impl(wrapper=WRAPPER + "\n\ndel demo_wrapper\n")),
        Invalid(impl(wrapper="demo_wrapper = lambda x: demo_kernel(x, torch.empty_like(x))\n")),
    ]

    def check_file(self) -> None:
        """Look at what the module binds."""
        exported = {
            name: [f for f in self.facts.wrappers_named(name) if self._is_wrapper(f)]
            for name, bindings in self.facts.tree.module.bindings.items()
            if name.endswith("_wrapper")
            and not all(b.site.in_main for b in bindings)
            and not isinstance(bindings[-1].site.node, cst.Del)
        }
        found = {name: functions for name, functions in exported.items() if functions}
        wanted = self._agreed_name()
        if not found:
            self.report(None, hint=f"define `{wanted}(...)` at module level")
        elif wanted not in found:
            name, functions = next(iter(found.items()))
            self.report(
                functions[0].site,
                f"the module exports `{name}`; tests and the judge import `{wanted}`",
                hint=f"call it `{wanted}`",
            )

    def _is_wrapper(self, function: Function) -> bool:
        plain = isinstance(function.node, cst.FunctionDef) and not function.is_async
        return plain and not self.facts.is_kernel(function)

    def _agreed_name(self) -> str:
        staged = self.unit.artifact is Artifact.MODULE_IMPL
        if staged and self.unit.phase is None:  # a number that names no phase, which OL50 tells
            return f"{self.unit.path.stem.removesuffix('_impl')}_wrapper"
        return self.files.ws.wrapper_name(self.unit.phase if staged else None)
