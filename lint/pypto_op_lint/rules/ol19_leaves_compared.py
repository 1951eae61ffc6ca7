"""OL19: a test compares every leaf with the compare helper."""

import libcst as cst

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.examples import TEST
from pypto_op_lint.facts.bindings import dotted
from pypto_op_lint.findings import WARN
from pypto_op_lint.rule import TESTS, Invalid, Rule, Valid
from pypto_op_lint.tree import Function, Site

_OURS = "detailed_tensor_compare"
_HELPERS = frozenset({_OURS, "assert_allclose", "assert_close"})
_CALL = 'detailed_tensor_compare(demo_wrapper(x), demo_golden(x), tensor_name="out", atol=1e-3, rtol=1e-3)'


class LeavesCompared(Rule):
    """A test never calls the compare helper, or calls it so that a mismatch cannot be told.

    What it does:
        Looks for a call of `detailed_tensor_compare` (or `assert_allclose`, `assert_close`) in code that the test really runs.
        A tensor name that is given by position is reported; a result that nobody looks at, and a call without
        `tensor_name=`, are warnings.

    Why:
        `torch.allclose` broadcasts and says nothing; the helper checks shape, dtype, NaN places and every element, and names
        the leaf that is wrong.

    Example:
        assert torch.allclose(out, expected)

    Use instead:
        result = detailed_tensor_compare(out, expected, tensor_name="out", atol=1e-3, rtol=1e-3)
        assert result["all_close"]

    Known limits:
        It does not count leaves; the judge does.
    """

    id = "OL19"
    name = "leaves-compared"
    severity = Severity.S1
    artifacts = TESTS
    needs = frozenset({"calls"})
    MESSAGE = "the test never compares with detailed_tensor_compare"
    FIX_HINT = "call detailed_tensor_compare(actual, expected, tensor_name=..., atol=..., rtol=...) on every leaf and assert its all_close"

    VALID = [
        Valid(TEST, artifact=Artifact.TEST),
        Valid(
            TEST.replace(_CALL, _CALL.replace("detailed_", "compare.detailed_")).replace(
                "from detailed_tensor_compare import detailed_tensor_compare",
                "import detailed_tensor_compare as compare",
            ),
            artifact=Artifact.TEST,
        ),
        Valid(TEST.replace("result = ", "torch.testing.assert_close(x, x)\n    result = "), artifact=Artifact.TEST),
    ]
    INVALID = [
        Invalid(
            TEST.replace(
                f"result = {_CALL}", 'result = {"all_close": torch.allclose(demo_wrapper(x), demo_golden(x))}'
            ),
            artifact=Artifact.TEST,
        ),
        Invalid(
            TEST.replace(f"result = {_CALL}", f"# {_CALL}\n    result = {{'all_close': True}}"), artifact=Artifact.TEST
        ),
        Invalid(
            TEST.replace(
                f"    result = {_CALL}\n    assert",
                f"    if False:\n        {_CALL}\n    result = {{'all_close': 1}}\n    assert",
            ),
            artifact=Artifact.TEST,
        ),
        Invalid(TEST.replace('tensor_name="out"', '"out"'), artifact=Artifact.TEST),
        Invalid(
            TEST.replace(f'result = {_CALL}\n    assert result["all_close"]', _CALL),
            artifact=Artifact.TEST,
            status="WARN",
        ),
    ]

    def check_file(self) -> None:
        """Find the calls that run."""
        calls = [site for site in self._live() if isinstance(site.node, cst.Call) and self._is_helper(site.node)]
        if not calls:
            self.report(None)
        for site in calls:
            self._check_call(site)

    def _live(self) -> list[Site]:
        """Sites of the module and of the functions that it or pytest calls."""
        facts = self.facts
        tests = [f for f in facts.tree.functions if f.name.startswith("test")]
        from_module = [c.function for c in facts.calls.calls_in(facts.tree.module_sites)]
        live: list[Function] = facts.calls.reach([*tests, *from_module])
        return [*facts.tree.module_sites, *(site for function in live for site in function.sites)]

    def _is_helper(self, node: cst.Call) -> bool:
        names = self.facts.callee_names(node) | {dotted(node.func)}
        return any(name.rpartition(".")[2] in _HELPERS for name in names)

    def _check_call(self, site: Site) -> None:
        node: cst.Call = site.node  # type: ignore[assignment]
        names = self.facts.callee_names(node) | {dotted(node.func)}
        if not any(name.rpartition(".")[2] == _OURS for name in names):
            return
        positional = [a for a in node.args if a.keyword is None and not a.star]
        keywords = {a.keyword.value for a in node.args if a.keyword is not None}
        spread = any(a.star for a in node.args)
        if len(positional) > 2:
            self.report(site, "the tensor's name is given by position", hint="write tensor_name=...")
        elif "tensor_name" not in keywords and not spread:
            self.report(site, "the compared leaf has no name", hint="add tensor_name=...", status=WARN)
        if site.parent is not None and isinstance(site.parent.node, cst.Expr):
            self.report(
                site,
                "nobody looks at the result of the comparison, so a mismatch cannot fail the test",
                hint='assert the result: `assert result["all_close"]`',
                status=WARN,
            )
