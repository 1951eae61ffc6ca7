"""Which bindings of a name can reach a use of it."""

from __future__ import annotations

import libcst as cst

from pypto_op_lint.tree import Binding, Site

_LOOPS = (cst.For, cst.While)
_BLOCKS = (cst.IndentedBlock, cst.SimpleStatementSuite)


def reaching(bindings: list[Binding], use: Site) -> list[Binding]:
    """Return those of `bindings` whose value `use`, in the same scope, may see.

    The last binding that surely ran before the use hides the earlier ones; a later one counts when both stand in one loop.
    """
    if len(bindings) < 2:
        return bindings
    before = [b for b in bindings if b.site.order < use.order and not _inside_value(b, use)]
    surely = [b for b in before if _surely_ran(b, use)]
    start = before.index(surely[-1]) if surely else 0
    seen = before[start:]
    later = [b for b in bindings if b not in before and _share_loop(b.site, use)]
    found = seen + later
    return found or bindings


def _inside_value(binding: Binding, use: Site) -> bool:
    """`x = f(x)`: the use on the right sees what was there before. A loop's body does see the loop's target."""
    if isinstance(binding.site.node, (cst.For, cst.FunctionDef, cst.ClassDef)):
        return binding.kind == "loop" and any(s.role == "iter" and s.parent is binding.site for s in (use, *use.ancestors()))
    return use.within(binding.site)


def _surely_ran(binding: Binding, use: Site) -> bool:
    if binding.kind == "parameter":
        return True
    if binding.kind == "augmented":
        return False
    block = _block(binding.site)
    if binding.kind == "loop" and isinstance(binding.site.node, cst.For):
        return use.within(binding.site)
    if isinstance(binding.site.node, cst.NamedExpr):
        return _statement(binding.site) is _statement(use)
    return block is None or use.within(block)


def _block(site: Site) -> Site | None:
    return next((a for a in site.ancestors() if isinstance(a.node, _BLOCKS)), None)


def _statement(site: Site) -> Site | None:
    return next((a for a in site.ancestors() if isinstance(a.node, cst.SimpleStatementLine)), None)


def _share_loop(one: Site, other: Site) -> bool:
    loops = [a for a in one.ancestors() if isinstance(a.node, _LOOPS)]
    return any(other.within(loop) for loop in loops)
