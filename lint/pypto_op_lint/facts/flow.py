"""Which bindings of a name can reach a use of it."""

from __future__ import annotations

import libcst as cst

from pypto_op_lint.tree import Binding, Function, Scope, Site, Tree

_LOOPS = frozenset({cst.For, cst.While})
_PLAIN = ("assign", "function", "class", "import")
_BLOCKS = frozenset({cst.IndentedBlock, cst.SimpleStatementSuite})
_OWN_NAMES = frozenset({cst.For, cst.FunctionDef, cst.ClassDef})
# Classes are compared, here and in other hot places: asking `isinstance` costs ten times that, nodes being abstract base classes.


def visible(home: Scope, bindings: list[Binding], use: Site) -> list[Binding]:
    """Return those of `bindings`, made in `home`, whose value a use in `home` or in a scope inside it may see."""
    if len(bindings) < 2 or home.kind == "comprehension":
        return bindings
    if use.scope is home:
        return reaching(bindings, use)
    return lasting(bindings) if home.kind == "module" else bindings


def bindings_of(tree: Tree, node: cst.Name) -> list[tuple[Binding, Function | None]]:
    """Return the bindings that a name may mean where it stands, each with the function it is bound in."""
    site = tree.site(node)
    found = site.scope.lookup(node.value) if site is not None else None
    if site is None or found is None:
        return []
    home, bindings = found
    return [(b, home.function) for b in visible(home, bindings, site)]


def lasting(bindings: list[Binding]) -> list[Binding]:
    """Return what a module's name may stand for once the module is imported: nothing before its last sure binding."""
    for place in range(len(bindings) - 1, 0, -1):
        binding = bindings[place]
        plain = binding.kind in _PLAIN or isinstance(binding.site.node, cst.Del)
        if plain and binding.site.function is None and _block(binding.site) is None:
            return bindings[place:]
    return bindings


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
    if binding.site.node.__class__ in _OWN_NAMES:
        return binding.kind == "loop" and any(s.role == "iter" and s.parent is binding.site for s in (use, *use.ancestors()))
    return use.within(binding.site)


def _surely_ran(binding: Binding, use: Site) -> bool:
    if binding.kind == "parameter":
        return True
    if binding.kind == "augmented":
        return False
    block = _block(binding.site)
    if binding.kind == "loop" and binding.site.node.__class__ is cst.For:
        return use.within(binding.site)
    if binding.site.node.__class__ is cst.NamedExpr:
        return _statement(binding.site) is _statement(use)
    return block is None or use.within(block)


def _block(site: Site) -> Site | None:
    return next((a for a in site.ancestors() if a.node.__class__ in _BLOCKS), None)


def _statement(site: Site) -> Site | None:
    return next((a for a in site.ancestors() if a.node.__class__ is cst.SimpleStatementLine), None)


def _share_loop(one: Site, other: Site) -> bool:
    loops = [a for a in one.ancestors() if a.node.__class__ in _LOOPS]
    return any(other.within(loop) for loop in loops)
