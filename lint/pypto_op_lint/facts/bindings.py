"""Who binds which name: fills the scopes of a tree."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from pypto_op_lint.import_statements import imported_by
from pypto_op_lint.tree import Binding, Scope, Site, Tree

BINDING_NODES = (
    cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For, cst.CompFor, cst.WithItem, cst.Import,
    cst.ImportFrom, cst.FunctionDef, cst.ClassDef, cst.ExceptHandler, cst.MatchAs, cst.MatchStar, cst.Del,
)  # fmt: skip


def bind_names(tree: Tree) -> None:
    """Record every binding of `tree` in its scope, in source order. Star imports bind the name `*`."""
    for kind, word in ((cst.Global, "global"), (cst.Nonlocal, "nonlocal")):
        for site in tree.sites(kind):
            for item in site.node.names:  # type: ignore[attr-defined]
                site.scope.outer_names[item.name.value] = word
    owners = {id(function.site): function for function in tree.functions}
    for site in tree.sites(*BINDING_NODES):
        for name, binding in _bindings(site):
            binding.function = owners.get(id(site)) if binding.kind == "function" else None
            _scope_of(site, name).bindings.setdefault(name, []).append(binding)


def _scope_of(site: Site, name: str) -> Scope:
    scope = site.scope
    if isinstance(site.node, cst.NamedExpr):
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
    declared = scope.outer_names.get(name)
    if declared == "global":
        return scope.module
    if declared == "nonlocal":
        outer = scope.parent
        while outer is not None and outer.parent is not None and name not in outer.bindings:
            outer = outer.parent
        return outer or scope
    return scope


def _bindings(site: Site) -> Iterator[tuple[str, Binding]]:
    node = site.node
    if isinstance(node, cst.Assign):
        for target in node.targets:
            yield from unpack(target.target, node.value, site, "assign")
    elif isinstance(node, cst.AnnAssign):
        if isinstance(node.target, cst.Name):
            kind = "assign" if node.value is not None else "annotation"
            yield node.target.value, Binding(kind, site, node.value)
    elif isinstance(node, cst.AugAssign):
        if isinstance(node.target, cst.Name):
            yield node.target.value, Binding("augmented", site, node.value)
    elif isinstance(node, cst.NamedExpr):
        if isinstance(node.target, cst.Name):
            yield node.target.value, Binding("assign", site, node.value)
    elif isinstance(node, (cst.For, cst.CompFor)):
        yield from unpack(node.target, node.iter, site, "loop")
    elif isinstance(node, cst.WithItem):
        if node.asname is not None:
            yield from unpack(node.asname.name, node.item, site, "with")
    elif isinstance(node, (cst.Import, cst.ImportFrom)):
        yield from ((name.bound, Binding("import", site, target=name.target)) for name in imported_by(node))
    elif isinstance(node, cst.FunctionDef):
        yield node.name.value, Binding("function", site)
    elif isinstance(node, cst.ClassDef):
        yield node.name.value, Binding("class", site)
    else:
        yield from _rare(node, site)


def _rare(node: cst.CSTNode, site: Site) -> Iterator[tuple[str, Binding]]:
    name: cst.CSTNode | None = None
    if isinstance(node, cst.ExceptHandler) and node.name is not None:
        name = node.name.name
    elif isinstance(node, (cst.MatchAs, cst.MatchStar)):
        name = node.name
    elif isinstance(node, cst.Del):
        name = node.target
    if isinstance(name, cst.Name):
        yield name.value, Binding("other", site)


def unpack(
    target: cst.CSTNode, value: cst.CSTNode, site: Site, kind: str, path: tuple[int | str, ...] = ()
) -> Iterator[tuple[str, Binding]]:
    """Yield the names that `target = value` binds, each with its path into the value."""
    if isinstance(target, cst.Name):
        yield target.value, Binding(kind, site, value, path)
    elif isinstance(target, (cst.Tuple, cst.List)):
        starred = False
        for index, element in enumerate(target.elements):
            if isinstance(element, cst.StarredElement):
                starred = True
                yield from unpack(element.value, value, site, kind, (*path, "*"))
            else:
                # Behind a star the distance from the end is what is known.
                place = index - len(target.elements) if starred else index
                yield from unpack(element.value, value, site, kind, (*path, place))
