"""A file's live code: where every node stands, which scope it is in, and who binds which name."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TypeVar

import libcst as cst

from pypto_op_lint.liveness import live_statements
from pypto_op_lint.nodes import FIELDS
from pypto_op_lint.pieces import ParsedFile, Piece
from pypto_op_lint.sites import Binding, Function, Parameter, Scope, Site
from pypto_op_lint.subtrees import SUBTREES, Subtree, SubtreeCache

NodeT = TypeVar("NodeT", bound=cst.CSTNode)
_ORDER = operator.attrgetter("order")


class Tree:
    """A file's live code.

    Attributes:
        body: the module's statements.
        module: the module scope.
        functions: every function and lambda, in source order.
        scopes: every scope.
    """

    def __init__(self, parsed: ParsedFile, cache: SubtreeCache = SUBTREES) -> None:
        self._pieces = parsed.pieces
        self._cache = cache
        self.body = parsed.body
        self.module = Scope("module", None, None)
        self.scopes: list[Scope] = [self.module]
        self.functions: list[Function] = []
        self.module_sites: list[Site] = []
        self.subtrees: list[Subtree] = []
        self._by_type: dict[type, list[Site]] = {}
        self._by_types: dict[tuple[type, ...], list[Site]] = {}
        self._by_id: dict[int, Site] = {}
        count = 0
        for statement in live_statements(parsed.body):
            subtree = cache.take(statement, self.module, count)
            count += len(subtree.sites)
            self._add(subtree)

    def _add(self, subtree: Subtree) -> None:
        self.subtrees.append(subtree)
        self.scopes.extend(subtree.scopes)
        self.functions.extend(subtree.functions)
        self.module_sites.extend(subtree.module_sites)
        self._by_id.update(subtree.by_id)
        by_type = self._by_type
        for kind, sites in subtree.by_type.items():
            if kind in by_type:
                by_type[kind].extend(sites)
            else:
                by_type[kind] = list(sites)

    def sites(self, *types: type[cst.CSTNode]) -> list[Site]:
        """Return the sites of nodes of exactly these types, in source order."""
        if len(types) == 1:
            return self._by_type.get(types[0], [])
        found = self._by_types.get(types)
        if found is None:
            found = [site for kind in types for site in self._by_type.get(kind, ())]
            found.sort(key=_ORDER)
            self._by_types[types] = found
        return found

    def dispose(self) -> None:
        """Give the subtrees back and let go of everything else."""
        for subtree in self.subtrees:
            self._cache.give_back(subtree)
        self.module.bindings.clear()
        self._by_type.clear()
        self._by_types.clear()
        self._by_id.clear()
        for kept in (self.subtrees, self.scopes, self.functions, self.module_sites):
            kept.clear()

    def types(self) -> Iterator[type]:
        """Yield the node types that occur."""
        yield from self._by_type

    def site(self, node: cst.CSTNode) -> Site | None:
        """Return where `node` stands; None for dead code and punctuation."""
        return self._by_id.get(id(node))

    def last_inside(self, site: Site) -> Site:
        """Return the last site, in source order, that lies in `site`; itself when there is none."""
        found = site
        for name in FIELDS[site.node.__class__]:
            value = getattr(site.node, name)
            for child in reversed(value) if isinstance(value, (tuple, list)) else (value,):
                inner = self._by_id.get(id(child))
                if inner is not None and inner.order > found.order:
                    found = self.last_inside(inner) if inner.order > found.order else found
        return found

    def position(self, node: cst.CSTNode) -> tuple[int, int, int, int]:
        """Return (line, column, end line, end column): lines from 1, columns from 0."""
        site = self._by_id.get(id(node))
        while site is not None:
            piece: Piece | None = self._pieces.get(id(site.node))
            if piece is not None:
                try:
                    return piece.position(node)
                except (RecursionError, KeyError):
                    return piece.first_line, 0, piece.first_line, 0
            site = site.parent
        raise KeyError("node of another file")


__all__ = ["Binding", "Function", "Parameter", "Scope", "Site", "Tree"]
