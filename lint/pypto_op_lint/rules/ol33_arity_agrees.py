"""OL33: golden and wrapper take the same arguments."""

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import GOLDEN, impl
from pypto_op_lint.facts import Facts
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid


class ArityAgrees(Rule):
    """The wrapper and its golden take different numbers of required arguments.

    What it does:
        Compares the required positional parameters of `<op>_wrapper` with those of `<op>_golden`; for a staged file, those
        of the cumulative pair.

    Why:
        The judge calls both with the same inputs; with other parameters one of them fails on every case.

    Example:
        def softmax_golden(x): ...
        def softmax_wrapper(x, block_size): ...

    Use instead:
        def softmax_wrapper(x): ...

    Known limits:
        Names and order are OL50's business. `*args` on either side ends the comparison.
    """

    id = "OL33"
    name = "arity-agrees"
    severity = Severity.S2
    artifacts = IMPLS
    needs = frozenset({"wrappers_named", "siblings"})
    MESSAGE = "wrapper and golden take different arguments"
    FIX_HINT = "give the wrapper the golden's parameters; sizes and options are found from the tensors"

    VALID = [
        Valid(impl(), files={"demo_golden.py": GOLDEN}),
        Valid(impl(), files={"demo_golden.py": "def demo_golden(x, scale=1.0):\n    return x * scale\n"}),
        Valid(impl()),
    ]
    INVALID = [
        Invalid(impl(), files={"demo_golden.py": "def demo_golden(x, y):\n    return x + y\n"}),
        Invalid(impl().replace("def demo_wrapper(x)", "def demo_wrapper(x, block, device)"), files={"demo_golden.py": GOLDEN}),
    ]

    def check_file(self) -> None:
        """Compare the two signatures."""
        ws, phase = self.files.ws, self.unit.phase
        golden = self.files.existing(ws.golden if phase is None else ws.module_golden(phase))
        if golden is None or golden.tree is None:
            return
        wrapper = _required(self.facts, ws.wrapper_name(phase))
        reference = _required(golden.facts, ws.golden_name(phase))
        if wrapper is not None and reference is not None and wrapper != reference:
            function = self.facts.wrappers_named(ws.wrapper_name(phase))[0]
            self.report(
                function.site,
                f"`{function.name}` needs {wrapper} argument(s), `{ws.golden_name(phase)}` needs {reference}",
            )


def _required(facts: Facts, name: str) -> int | None:
    functions = facts.wrappers_named(name)
    if not functions:
        return None
    parameters = functions[0].parameters
    if any(p.kind in ("args", "kwargs") for p in parameters):
        return None
    return sum(1 for p in parameters if p.kind == "positional" and p.node.default is None)
