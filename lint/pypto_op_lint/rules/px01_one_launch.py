"""PX01: a wrapper launches its kernel exactly once."""

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import WRAPPER, impl
from pypto_op_lint.facts.launches import MANY
from pypto_op_lint.facts.values import Path, Result
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Function

_CACHES = frozenset({"functools.lru_cache", "functools.cache"})


class OneLaunch(Rule):
    """A wrapper launches no kernel on some path, or more than one.

    What it does:
        Counts, over the paths through each `*_wrapper`, the launches it makes itself or through helpers, aliases and
        factories. Every path that returns must launch once; a path for an empty input may launch nothing. A wrapper behind
        a cache of results is reported. Launches in loops are OL45's.

    Why:
        The operator is one kernel. A wrapper that launches none returns what the host computed or memory that nobody wrote; a
        second launch puts an intermediate result into global memory.

    Example:
        def norm_wrapper(x):
            norm_kernel(x, scratch)
            norm_kernel(scratch, out)
            return out

    Use instead:
        def norm_wrapper(x):
            norm_kernel(x, out)
            return out

    Known limits:
        A kernel that the file gets from elsewhere is not counted.
    """

    id = "PX01"
    name = "one-launch"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"wrappers", "launches", "kernels"})
    MESSAGE = "a wrapper does not launch its kernel exactly once"
    FIX_HINT = "launch the one kernel once, after allocating its outputs, and let it do all stages"

    VALID = [
        Valid(impl()),
        Valid(impl(wrapper=WRAPPER.replace("    demo_kernel", "    if x.numel() == 0:\n        return out\n    demo_kernel"))),
        Valid(
            impl(
                wrapper="""
                def launch_demo(x, out):
                    demo_kernel(x, out)


                def demo_wrapper(x):
                    out = torch.empty_like(x)
                    if x.dim() == 2:
                        launch_demo(x, out)
                    else:
                        launch_demo(x.reshape(-1, 128), out.view(-1, 128))
                    return out
                """
            )
        ),
    ]
    INVALID = [
        Invalid(impl(wrapper=WRAPPER.replace("    demo_kernel(x, out)\n", "")), lines=(22,)),
        Invalid(impl(wrapper=WRAPPER.replace("    demo_kernel(x, out)\n", "    demo_kernel(x, out)\n" * 2)), lines=(22,)),
        Invalid(
            impl(
                wrapper="""
                def _once(x, out):
                    demo_kernel(x, out)


                def demo_wrapper(x):
                    out = torch.empty_like(x)
                    _once(x, out)
                    _once(out, out)
                    return out
                """
            )
        ),
        Invalid(impl(before="import functools\n", wrapper="\n@functools.lru_cache(maxsize=None)\n" + WRAPPER)),
        Invalid(impl(wrapper=WRAPPER.replace("    demo_kernel", "    if x.shape[0] == 1:\n        return out\n    demo_kernel"))),
        Invalid(impl(wrapper=WRAPPER.replace("    demo_kernel", "    x.shape[0] > 16 and demo_kernel"))),
        Invalid(impl(wrapper="def demo_wrapper(x):\n    return torch.empty_like(x)\n    demo_kernel(x, x)\n")),
        Invalid(impl(wrapper=WRAPPER.replace("    demo_kernel", "    if x.shape[0] > 16:\n        demo_kernel"))),
        Invalid(
            impl(
                wrapper=WRAPPER.replace(
                    "    demo_kernel(x, out)",
                    "    try:\n        demo_kernel(x, out)\n    except RuntimeError:\n        demo_kernel(x, out)",
                )
            )
        ),
    ]

    def check_file(self) -> None:
        """Count each wrapper's launches."""
        if not self.facts.kernels:
            return
        for wrapper in self.facts.wrappers:
            count = self.facts.launches.count(wrapper)
            most = count.most
            if most == 0 and wrapper.name.endswith("_wrapper"):
                self.report(wrapper.site, f"`{wrapper.name}` launches no jit kernel on any path")
            elif count.least == 0 and most == 1:
                self.report(
                    wrapper.site,
                    f"`{wrapper.name}` has a path that launches nothing and returns what no kernel wrote",
                    hint="launch on every path; only an empty input may return early, and what is not supported must raise",
                )
            elif 1 < most < MANY:
                self.report(wrapper.site, f"`{wrapper.name}` launches {most} times on one path instead of once")
        for function in self.facts.host_functions:
            if self._is_cached(function) and self.facts.launches.may_launch(function):
                self.report(
                    function.site,
                    f"a cache stands before `{function.name}`: with the same argument again it launches nothing",
                    hint="cache what builds the kernel, not what launches it",
                )

    def _is_cached(self, function: Function) -> bool:
        values = [v for decorator in function.decorators for v in self.facts.ev.values(decorator)]
        names = {v.name for v in values if isinstance(v, Path)} | {v.callee for v in values if isinstance(v, Result)}
        return bool(names & _CACHES)
