"""OL19: a test compares every leaf with the compare helper."""

import libcst as cst

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.examples import TEST
from pypto_op_lint.facts.values import Result
from pypto_op_lint.findings import WARN
from pypto_op_lint.import_statements import dotted
from pypto_op_lint.nodes import names_in
from pypto_op_lint.rule import TESTS, Invalid, Rule, Valid
from pypto_op_lint.testcode import COMPARE, comparisons, last_names, live_sites, sources
from pypto_op_lint.tree import Site

_CALL = 'detailed_tensor_compare(demo_wrapper(x), demo_golden(x), tensor_name="out", atol=1e-3, rtol=1e-3)'

_ONLY_TELLS = frozenset({"print", "warning", "error", "info", "debug", "exception", "print_exc"})


class LeavesCompared(Rule):
    """A test never calls the compare helper, or calls it so that a mismatch cannot be told.

    What it does:
        Looks for a call of `detailed_tensor_compare` (or `assert_allclose`, `assert_close`) in code that the test really runs.
        Reported too: an output of the wrapper that no comparison gets, a comparison of the golden (or the wrapper) with
        itself, a tensor name given by position, an assertion whose failure is caught and dropped, an assertion of a tuple or
        of the whole result, which is always true; a result that is at most printed, and a call without `tensor_name=`, are
        warnings. A test that pytest skips, or expects to fail, does not count.

    Why:
        `torch.allclose` broadcasts and says nothing; the helper checks shape, dtype, NaN places and every element, and names
        the leaf that is wrong.

    Example:
        assert torch.allclose(out, expected)

    Use instead:
        result = detailed_tensor_compare(out, expected, tensor_name="out", atol=1e-3, rtol=1e-3)
        assert result["all_close"]

    Known limits:
        Leaves that go through a container are not counted; the judge counts them.
    """

    id = "OL19"
    name = "leaves-compared"
    severity = Severity.S1
    artifacts = TESTS
    needs = frozenset({"calls"})
    MESSAGE = "the test never compares with detailed_tensor_compare"
    FIX_HINT = (
        "call detailed_tensor_compare(actual, expected, tensor_name=..., atol=..., rtol=...) "
        "on every leaf and assert its all_close"
    )

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
            TEST.replace(f"result = {_CALL}", 'result = {"all_close": torch.allclose(demo_wrapper(x), demo_golden(x))}'),
            artifact=Artifact.TEST,
        ),
        Invalid(TEST.replace(f"result = {_CALL}", f"# {_CALL}\n    result = {{'all_close': True}}"), artifact=Artifact.TEST),
        Invalid(
            TEST.replace(
                f"    result = {_CALL}\n    assert",
                f"    if False:\n        {_CALL}\n    result = {{'all_close': 1}}\n    assert",
            ),
            artifact=Artifact.TEST,
        ),
        Invalid(TEST.replace('tensor_name="out"', '"out"'), artifact=Artifact.TEST),
        Invalid(TEST.replace(f'result = {_CALL}\n    assert result["all_close"]', _CALL), artifact=Artifact.TEST, status="WARN"),
        Invalid(TEST.replace('assert result["all_close"]', 'assert (result["all_close"], "differs")'), artifact=Artifact.TEST),
        Invalid(
            TEST.replace(
                '    assert result["all_close"]',
                '    try:\n        assert result["all_close"]\n    except AssertionError as error:\n        print(error)',
            ),
            artifact=Artifact.TEST,
        ),
    ]

    def check_file(self) -> None:
        """Find the comparisons that run, and what they compare."""
        calls = list(comparisons(self.facts))
        if not calls:
            self.report(None)
            return
        for site in calls:
            self._check_call(site)
        pairs = [pair for pair in map(self._compared, calls) if pair]
        if pairs and all("?" not in a | b and len(a | b) == 1 for a, b in pairs):
            self.report(calls[0], f"the test compares `{next(iter(pairs[0][0]))}` with itself")
        self._check_unpacked(calls)
        for site in live_sites(self.facts):
            if isinstance(site.node, cst.Assert):
                self._check_assertion(site, site.node)

    def _check_assertion(self, site: Site, node: cst.Assert) -> None:
        if isinstance(node.test, cst.Tuple):
            self.report(site, "a tuple is asserted, which is always true", hint='write `assert result["all_close"], "message"`')
        elif any(isinstance(v, Result) and v.callee.endswith(COMPARE) for v in self.facts.ev.values(node.test)):
            self.report(site, "the whole result is asserted, a dict, which is always true", hint='assert result["all_close"]')
        inner = site
        for around in site.ancestors():
            tried = around.node
            if isinstance(tried, cst.Try) and inner.node is tried.body and any(map(_drops, tried.handlers)):
                self.report(site, "the failure of this assertion is caught and dropped", hint="let it fail the test")
                return
            inner = around

    def _compared(self, site: Site) -> tuple[set[str], set[str]] | None:
        assert isinstance(site.node, cst.Call)
        given = [a.value for a in site.node.args if not a.star]
        return (sources(self.facts, given[0]), sources(self.facts, given[1])) if len(given) >= 2 else None

    def _check_unpacked(self, calls: list[Site]) -> None:
        """`y, total = op_wrapper(x)`: each of the names must be compared."""
        used = {name for site in calls for arg in site.node.args for name in names_in(arg.value)}  # type: ignore[attr-defined]
        for site in live_sites(self.facts):
            node = site.node
            if not isinstance(node, cst.Assign) or not isinstance(node.value, cst.Call):
                continue
            if not any(name.endswith("_wrapper") for name in last_names(self.facts, node.value)):
                continue
            for target in node.targets:
                if isinstance(target.target, cst.Tuple):
                    names = [e.value.value for e in target.target.elements if isinstance(e.value, cst.Name)]
                    missing = [n for n in names if n not in used and not self._collected(n, site)]
                    if missing and len(missing) < len(names):
                        self.report(site, f"{', '.join(f'`{n}`' for n in missing)} of the wrapper's outputs is never compared")

    def _collected(self, name: str, assignment: Site) -> bool:
        """Whether the name goes into a list, a zip or another function, from where it may be compared."""
        for site in live_sites(self.facts):
            node = site.node
            if site.order <= assignment.order:
                continue
            if isinstance(node, (cst.List, cst.Tuple, cst.Dict)) and site.role != "target" and name in names_in(node):
                return True
            if isinstance(node, cst.Call):
                own = [a.value for a in node.args if isinstance(a.value, cst.Name)]
                if any(n.value == name for n in own) and self.facts.calls.calls_at(node):
                    return True
        return False

    def _check_call(self, site: Site) -> None:
        node: cst.Call = site.node  # type: ignore[assignment]
        if COMPARE not in last_names(self.facts, node):
            return
        positional = [a for a in node.args if a.keyword is None and not a.star]
        keywords = {a.keyword.value for a in node.args if a.keyword is not None}
        spread = any(a.star for a in node.args)
        if len(positional) > 2:
            self.report(site, "the tensor's name is given by position", hint="write tensor_name=...")
        elif "tensor_name" not in keywords and not spread:
            self.report(site, "the compared leaf has no name", hint="add tensor_name=...", status=WARN)
        if not _is_looked_at(site):
            self.report(
                site,
                "nobody looks at the result of the comparison, so a mismatch cannot fail the test",
                hint='assert the result: `assert result["all_close"]`',
                status=WARN,
            )


def _is_looked_at(site: Site) -> bool:
    """Whether the result of a call goes anywhere but into a print or a log."""
    parent = site.parent.node if site.parent is not None else None
    if isinstance(parent, cst.Assign) and site.function is not None and isinstance(parent.targets[0].target, cst.Name):
        uses = site.function.named(parent.targets[0].target.value)
        return any(u.role != "target" and not _is_told(u) for u in uses)
    return not isinstance(parent, cst.Expr) and not _is_told(site)


def _is_told(site: Site) -> bool:
    call = next((s.node for s in site.ancestors() if isinstance(s.node, cst.Call)), None)
    return call is not None and dotted(call.func).rpartition(".")[2] in _ONLY_TELLS


def _drops(handler: cst.ExceptHandler) -> bool:
    """Whether a handler catches a failed assertion and does nothing but print."""
    kinds = set() if handler.type is None else names_in(handler.type)
    if handler.type is not None and not kinds & {"AssertionError", "Exception", "BaseException"}:
        return False
    lines = handler.body.body
    small = [part for line in lines if isinstance(line, cst.SimpleStatementLine) for part in line.body]
    if len(small) < len(lines):
        return False
    calls = [p.value for p in small if isinstance(p, cst.Expr) and isinstance(p.value, cst.Call)]
    prints = all(dotted(call.func).rpartition(".")[0] in ("", "logging", "logger", "traceback") for call in calls)
    named = all(dotted(call.func).rpartition(".")[2] in _ONLY_TELLS for call in calls)
    return prints and named and all(isinstance(p, (cst.Pass, cst.Continue, cst.Expr)) for p in small)
