"""OL45: the host must not drive the kernel from a loop."""

import re

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.facts.launches import LoopedLaunch
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Function, Site

_TIMING = re.compile(r"bench|profile|perf|warm|timing|measure|demo", re.IGNORECASE)


class LaunchLoop(Rule):
    """Host code launches the kernel once per chunk instead of once.

    What it does:
        Follows every call from the host's functions to the kernel, through aliases, factories and helpers, and reports
        a launch inside a `for`, `while`, comprehension, `map` or recursion, and a row of launches of the same kernel one
        after the other on one path.

    Why:
        Each launch costs as much as a small kernel, nothing overlaps between launches, and a chunk's carried state has to
        go through global memory.

    Example:
        def attention_wrapper(q, k, v):
            out = torch.empty_like(q)
            for c in range(chunks):
                attention_kernel(q[c], k[c], v, out[c])
            return out

    Use instead:
        def attention_wrapper(q, k, v):
            out = torch.empty_like(q)
            attention_kernel(q, k, v, out)
            return out

        and `for c in pypto.loop(chunks, name="CHUNK", idx_name="c")` in the kernel.

    Known limits:
        A loop that repeats one identical launch in a function that times (`run_benchmark`, ...) and that no wrapper calls is
        taken for a measurement.
    """

    id = "OL45"
    name = "launch-loop"
    severity = Severity.S0
    artifacts = IMPLS
    needs = frozenset({"host_functions", "launches", "wrappers", "calls"})
    MESSAGE = "the kernel is launched in a loop of the host"
    FIX_HINT = (
        "launch the kernel once with whole tensors and put the loop into it: `for i in "
        "pypto.loop(n, name=..., idx_name=...)` with `pypto.view` and `pypto.assemble`"
    )

    VALID = [
        Valid(impl()),
        Valid(
            impl(
                wrapper="""
                def demo_wrapper(x):
                    size = 1
                    for n in x.shape:
                        size = size * n
                    out = torch.empty_like(x)
                    demo_kernel(x, out)
                    return out
                """
            )
        ),
        Valid(
            impl(
                after="""
                def run_benchmark(x, repeats=10):
                    for _ in range(repeats):
                        demo_wrapper(x)
                """
            )
        ),
        Valid(
            impl(
                wrapper="""
                def demo_wrapper(x):
                    out = torch.empty_like(x)
                    if x.numel() == 0:
                        return out
                    if x.is_contiguous():
                        demo_kernel(x, out)
                    else:
                        demo_kernel(x.contiguous(), out)
                    return out
                """
            )
        ),
    ]
    INVALID = [
        Invalid(impl(wrapper=f"def demo_wrapper(x):\n    out = torch.empty_like(x)\n{body}\n    return out\n"))
        for body in (
            "    for i in range(4):\n        demo_kernel(x[i], out[i])",
            "    for i, part in enumerate(x):\n        demo_kernel(part, out[i])",
            "    i = 0\n    while i < 4:\n        demo_kernel(x[i], out[i])\n        i += 1",
            "    [demo_kernel(a, b) for a, b in zip(x, out)]",
            "    launch = demo_kernel\n    for i in list(range(4)):\n        launch(x[i], out[i])",
            "    def one(i):\n        demo_kernel(x[i], out[i])\n    for i in range(4):\n        one(i)",
            "    list(map(lambda i: demo_kernel(x[i], out[i]), range(4)))",
            "    demo_kernel(x[:8], out[:8])\n    demo_kernel(x[8:], out[8:])",
        )
    ] + [
        Invalid(
            impl(
                before="def _step(x, out, n):\n    demo_kernel(x[n], out[n])\n    if n:\n        _step(x, out, n - 1)\n",
                wrapper="def demo_wrapper(x):\n    out = torch.empty_like(x)\n    _step(x, out, 3)\n    return out\n",
            )
        ),
        Invalid(
            impl(
                wrapper="""
                def launch_demo(x, out):
                    for i in range(4):
                        demo_kernel(x[i], out[i])


                def demo_wrapper(x):
                    out = torch.empty_like(x)
                    launch_demo(x, out)
                    return out
                """
            )
        ),
    ]

    def check_file(self) -> None:
        """Report loops around launches, then rows of launches."""
        facts = self.facts
        looped = facts.launches.looped(facts.host_functions)
        reached = facts.calls.reach([f for f in facts.wrappers if f.name.endswith("_wrapper")])
        seen: set[int] = set()
        for launch in looped:
            if id(launch.loop) in seen or self._measures(launch, reached):
                continue
            seen.add(id(launch.loop))
            what = "is repeated by recursion" if launch.loop is launch.call.site else "runs in a loop of the host"
            where = launch.function.name if launch.function is not None else "the module"
            self.report(launch.loop, f"the launch `{self.code(launch.call.call, 50)}` {what} in `{where}`")
        self._rows(reached, {id(launch.call.site) for launch in looped})

    def _measures(self, launch: LoopedLaunch, reached: list[Function]) -> bool:
        function = launch.function
        if function is None or any(function is f for f in reached):
            return False
        return bool(_TIMING.search(function.name)) and not self._varies(launch)

    def _varies(self, launch: LoopedLaunch) -> bool:
        """Whether what is launched depends on the turn of the loop."""
        bound = {
            name
            for scope in {launch.loop.scope, launch.call.site.scope}
            for name, bindings in scope.bindings.items()
            if any(b.site.within(launch.loop) and b.kind in ("loop", "augmented") for b in bindings)
        }
        sites = launch.function.of(cst.Name) if launch.function is not None else []
        names = {getattr(s.node, "value", "") for s in sites if s.within(launch.call.site)}
        return bool(bound & names)

    def _rows(self, reached: list[Function], looped: set[int]) -> None:
        """Report the second and later launches of one kernel on one path of one function."""
        facts = self.facts
        for function in facts.host_functions:
            own = [c for c in facts.launches.in_function(function) if c.kind == "call" and id(c.site) not in looped]
            if len(own) < 2 or (_TIMING.search(function.name) and not any(function is f for f in reached)):
                continue
            for place, later in enumerate(own):
                before = [c for c in own[:place] if c.function is later.function]
                if any(not _exclusive(c.site, later.site) for c in before):
                    self.report(
                        later.site,
                        f"`{self.code(later.call, 50)}` launches `{later.function.name}` once more on the same path: an "
                        "unrolled loop of launches",
                    )


def _exclusive(one: Site, other: Site) -> bool:
    """Whether two sites lie on different branches, or the first one's branch returns."""
    ones = {id(a): a for a in (one, *one.ancestors())}
    inner = other
    for around in other.ancestors():
        if isinstance(around.node, (cst.If, cst.Try, cst.Match, cst.IfExp)) and id(around) in ones:
            side = next(s for s in (one, *one.ancestors()) if s.parent is around)
            return side.role != inner.role or side is not inner
        inner = around
    return _returns_after(one, other)


def _returns_after(one: Site, other: Site) -> bool:
    for around in one.ancestors():
        if isinstance(around.node, cst.IndentedBlock):
            if other.within(around):
                return False
            last = around.node.body[-1]
            if isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], (cst.Return, cst.Raise)):
                return True
    return False
