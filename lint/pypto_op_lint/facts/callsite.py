"""One call of a function of the file."""

from __future__ import annotations

import libcst as cst

from pypto_op_lint.facts.values import Func
from pypto_op_lint.tree import Parameter, Site


class CallSite:
    """A call of a function of the file, and which argument goes where."""

    __slots__ = ("bound", "call", "caller", "function", "kind", "site", "via_jit")

    def __init__(self, site: Site, func: Func, kind: str) -> None:
        assert isinstance(site.node, cst.Call)
        self.site, self.call, self.kind = site, site.node, kind
        self.function, self.bound, self.via_jit = func.function, func.bound, func.via_jit
        self.caller = site.function

    def argument(self, parameter: Parameter) -> cst.BaseExpression | None:
        """Return the expression passed for `parameter`; None when none is, or it cannot be told."""
        if self.kind != "call":
            return None
        for arg in self.call.args:
            if arg.keyword is not None and arg.keyword.value == parameter.name:
                return arg.value
        index = parameter.index - self.bound
        if parameter.kind != "positional" or index < 0:
            return None
        for place, arg in enumerate(a for a in self.call.args if a.keyword is None):
            if arg.star:
                return None
            if place == index:
                return arg.value
        return None

    def rest(self, parameter: Parameter) -> list[cst.BaseExpression]:
        """Return the arguments that `*args` collects."""
        plain = [arg.value for arg in self.call.args if arg.keyword is None]
        return list(plain[max(0, parameter.index - self.bound) :])

    def hides(self, parameter: Parameter) -> bool:
        """Whether a star, a partial or a plain reference may pass `parameter` unseen."""
        stars = any(arg.star for arg in self.call.args)
        return self.kind != "call" or stars or parameter.index < self.bound
