"""OL60: the test must run the kernel."""

from collections.abc import Iterator

import libcst as cst

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.examples import TEST, impl
from pypto_op_lint.facts import Facts
from pypto_op_lint.facts.values import Path
from pypto_op_lint.import_statements import dotted
from pypto_op_lint.nodes import inside
from pypto_op_lint.rule import TESTS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site
from pypto_op_lint.units import Unit

_IMPL = {"demo_impl.py": impl()}
_HOST_ONLY = {"demo_impl.py": impl(after="def demo_reference(x):\n    return x\n")}


class TestReachesKernel(Rule):
    """Nothing that the test calls of the impl leads to a jit kernel.

    What it does:
        Collects what the test's functions call of the impl, however it is imported (names, `as`, the module, a
        package path, loaded from a file), and follows these functions in the impl. At least one must launch a
        kernel, and the test may not put another function in its place.

    Why:
        A test that compares the golden with another host function passes without ever running the kernel.

    Example:
        from softmax_impl import softmax_reference

        def test_softmax():
            check(softmax_reference(x), softmax_golden(x))

    Use instead:
        from softmax_impl import softmax_wrapper

        def test_softmax():
            check(softmax_wrapper(x), softmax_golden(x))

    Known limits:
        Says that a launch can be reached, not that its result is what is compared; the judge measures that by running it.
    """

    id = "OL60"
    name = "test-reaches-kernel"
    severity = Severity.S0
    artifacts = TESTS
    needs = frozenset({"siblings", "calls"})
    MESSAGE = "the test calls nothing of the impl that launches a kernel"
    FIX_HINT = "import the impl's wrapper and compare what it returns with the golden"

    VALID = [
        Valid(TEST, artifact=Artifact.TEST, files=_IMPL),
        Valid(TEST, artifact=Artifact.TEST),
        Valid(
            TEST.replace("from demo_impl import demo_wrapper", "import custom.demo.demo_impl as kernels").replace(
                "demo_wrapper(x)", "kernels.demo_wrapper(x)"
            ),
            artifact=Artifact.TEST,
            files=_IMPL,
        ),
        Valid(
            TEST.replace("import demo_wrapper", "import demo_wrapper as run, DECORATED").replace(
                "demo_wrapper(x)", "_both(run, x)"
            )
            + "\n\ndef _both(function, x):\n    return function(x)\n",
            artifact=Artifact.TEST,
            files=_IMPL,
        ),
        Valid(
            TEST.replace("demo_impl", "demo_module12_impl").replace("demo_wrapper", "demo_module12_wrapper"),
            artifact=Artifact.MODULE_TEST,
            phase=2,
            files={"modules/demo_module12_impl.py": impl().replace("demo_wrapper", "demo_module12_wrapper")},
        ),
    ]
    INVALID = [
        Invalid(TEST.replace("demo_wrapper", "demo_reference"), artifact=Artifact.TEST, files=_HOST_ONLY),
        Invalid(
            TEST.replace("from demo_impl import demo_wrapper", "import demo_impl").replace(
                "demo_wrapper(x)", "demo_impl.demo_reference(x)"
            ),
            artifact=Artifact.TEST,
            files=_HOST_ONLY,
        ),
        Invalid(
            TEST.replace("demo_impl import demo_wrapper", "custom.demo.demo_impl import demo_reference as demo_wrapper"),
            artifact=Artifact.TEST,
            files=_HOST_ONLY,
        ),
        Invalid(
            TEST.replace("from demo_impl import demo_wrapper", "import demo_impl").replace(
                "demo_wrapper(x)", "demo_impl.demo_wrapper(x)"
            )
            + "\n\ndemo_impl.demo_wrapper = demo_golden\n",
            artifact=Artifact.TEST,
            files=_IMPL,
        ),
        Invalid(TEST.replace("demo_wrapper(x)", "demo_golden(x)"), artifact=Artifact.TEST, files=_IMPL),
        Invalid(
            TEST.replace("demo_wrapper(x)", "demo_golden(x)") + "\n\ndef _never():\n    demo_wrapper(1)\n",
            artifact=Artifact.TEST,
            files=_IMPL,
        ),
        Invalid(TEST, artifact=Artifact.TEST, files={"demo_impl.py": impl(decorator="")}),
        Invalid(
            TEST.replace("demo_wrapper(x), demo", "actual, demo").replace(
                "    result =",
                "    try:\n        actual = demo_wrapper(x)\n    except Exception:\n"
                "        actual = demo_golden(x)\n    result =",
            ),
            artifact=Artifact.TEST,
            files=_IMPL,
        ),
        Invalid(
            TEST.replace("demo_impl", "demo_module1_impl"),
            artifact=Artifact.MODULE_TEST,
            files={"modules/demo_module1_impl.py": impl(wrapper="def demo_wrapper(x):\n    return x\n")},
        ),
    ]

    def check_file(self) -> None:
        """Follow the test's calls into the impl."""
        target = self._impl()
        if target is None or target.tree is None:
            return
        module = target.path.stem
        called = list(_called(self.facts, module))
        names = {name for name, _ in called}
        launching = {
            name for name in names if any(target.facts.launches.may_launch(f) for f in target.facts.wrappers_named(name))
        }
        replaced = next((r for r in _replaced(self.facts, module) if r[0] in launching), None)
        if replaced is not None:
            self.report(replaced[1], f"the test puts something else in the place of `{module}.{replaced[0]}`")
            return
        runs = [site for name, site in called if name in launching]
        if runs:
            if all(_is_hushed(site) for site in runs):
                self.report(
                    runs[0],
                    "the test goes on when the kernel fails: what it compares may come from elsewhere",
                    hint="let an exception of the wrapper end the test; do not catch it, or raise again",
                )
            return
        seen = ", ".join(f"`{name}`" for name in sorted(names)) or "nothing"
        where = next((site for _, site in called), None) or self._import_of(module)
        self.report(where, f"the test calls {seen} of `{module}`, and that launches no kernel")

    def _impl(self) -> Unit | None:
        ws = self.files.ws
        if self.unit.artifact is Artifact.TEST:
            return self.files.existing(ws.impl)
        phase = self.context.phase or self.unit.phase
        return self.files.existing(ws.module_impl(phase)) if phase is not None else None

    def _import_of(self, module: str) -> Site | None:
        for site in self.facts.tree.sites(cst.Import, cst.ImportFrom):
            if module in self.code(site.node, 500):
                return site
        return None


def _is_hushed(site: Site) -> bool:
    """Whether an exception raised here is caught by the test and not raised again."""
    inner = site
    for around in site.ancestors():
        if isinstance(around.node, cst.Try) and inner.role == "body":
            return any(not _raises(handler.body) for handler in around.node.handlers)
        inner = around
    return False


def _raises(body: cst.CSTNode) -> bool:
    """Whether a handler raises, fails the test or leaves the program."""
    for node in inside(body):
        if isinstance(node, (cst.Raise, cst.Assert)):
            return True
        if isinstance(node, cst.Call) and isinstance(node.func, (cst.Attribute, cst.Name)):
            word = node.func.attr.value if isinstance(node.func, cst.Attribute) else node.func.value
            if word in ("fail", "skip", "exit", "_exit", "xfail", "skipTest"):
                return True
    return False


def _called(facts: Facts, module: str) -> Iterator[tuple[str, Site]]:
    """Yield the names of `module` that code run by the test calls or hands on, with where."""
    tests = [f for f in facts.tree.functions if f.name.startswith(("test", "main")) or f.site.scope.kind == "class"]
    started = [call.function for call in facts.calls.calls_in(facts.tree.module_sites)]
    live = [s for f in facts.calls.reach([*tests, *started]) for s in f.sites] + facts.tree.module_sites
    for site in live:
        if not isinstance(site.node, cst.Call):
            continue
        for node in (site.node.func, *(arg.value for arg in site.node.args)):
            for value in facts.ev.values(node):
                if isinstance(value, Path):
                    parts = value.name.lstrip(".").split(".")
                    if module in parts[:-1]:
                        yield parts[parts.index(module) + 1], site
        # A module loaded from a file has no name of its own here; its functions are told by theirs.
        func = site.node.func
        if isinstance(func, cst.Attribute) and not facts.ev.paths(func):
            yield func.attr.value, site


def _replaced(facts: Facts, module: str) -> Iterator[tuple[str, Site]]:
    """Yield the names of `module` that the test binds anew: by assignment, `setattr`, `monkeypatch.setattr` or `mock.patch`."""
    for site in facts.tree.sites(cst.AssignTarget):
        target = site.node.target  # type: ignore[attr-defined]
        if isinstance(target, cst.Attribute) and _is_module(facts, target.value, module):
            before = site.parent.node.value if site.parent is not None else None  # type: ignore[attr-defined]
            if before is None or target.attr.value not in {n.attr.value for n in inside(before) if isinstance(n, cst.Attribute)}:
                yield target.attr.value, site
    for site in facts.tree.sites(cst.Call):
        node: cst.Call = site.node  # type: ignore[assignment]
        word = dotted(node.func).rpartition(".")[2]
        texts = [str(c.value) for a in node.args[:2] if (c := facts.ev.constant(a.value)) is not None]
        if word in ("setattr", "object") and len(node.args) >= 2 and _is_module(facts, node.args[0].value, module) and texts:
            yield texts[-1], site
        elif word in ("setattr", "patch") and texts and texts[0].rpartition(".")[0].rpartition(".")[2] == module:
            yield texts[0].rpartition(".")[2], site


def _is_module(facts: Facts, node: cst.CSTNode, module: str) -> bool:
    return any(path.rpartition(".")[2] == module for path in facts.ev.paths(node))
