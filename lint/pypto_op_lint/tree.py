"""A file's live code: where every node stands, which scope it is in, and who binds which name.

libcst's own visitors rebuild the tree and its metadata providers walk it once each; this pass touches each node once and
leaves out white space and punctuation. Code that can never run (`if False:`, `if TYPE_CHECKING:`, statements after a
`return`) is left out altogether, so that no rule counts it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from functools import cached_property

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from pypto_op_lint.liveness import constant_truth, is_main_test, live_statements
from pypto_op_lint.nodes import FIELDS, IS_NODE, named_children
from pypto_op_lint.sites import Binding, Function, Parameter, Scope, Site

_ORDER = operator.attrgetter("order")
_SCOPE_NODES = frozenset({cst.FunctionDef, cst.Lambda, cst.ClassDef, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp})
_SPECIAL = _SCOPE_NODES | {cst.If, cst.IndentedBlock, cst.While}

_Pending = tuple[cst.CSTNode, Site | None, str, Scope, bool]
"""A node that is still to be visited, with its parent, role, scope and whether it is under the main block."""


class Tree:
    """A file's live code."""

    def __init__(self, parsed: cst.Module) -> None:
        self.body = parsed.body  # the module's statements
        self.module = Scope("module", None, None)  # the module scope
        self.scopes: list[Scope] = [self.module]  # every scope
        self.functions: list[Function] = []  # every function and lambda, in source order
        self.module_sites: list[Site] = []  # the sites outside of functions, in source order
        self._parsed = parsed
        self._by_type: dict[type, list[Site]] = {}
        self._by_types: dict[tuple[type, ...], list[Site]] = {}
        self._by_id: dict[int, Site] = {}
        self._ranges: dict[int, Mapping[cst.CSTNode, CodeRange]] = {}
        self._walk()

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
        site: Site | None = self._by_id[id(node)]
        while site is not None:
            top, site = site, site.parent
        index = next(i for i, statement in enumerate(self.body) if statement is top.node)
        down = self._lines_before[index]
        try:
            found = self._ranges_in(index)[node]
        except RecursionError:  # libcst takes many calls a level: the statement is told instead
            return down + 1, 0, down + 1, 0
        return found.start.line + down, found.start.column, found.end.line + down, found.end.column

    def _ranges_in(self, index: int) -> Mapping[cst.CSTNode, CodeRange]:
        """Where the nodes of one statement of the module stand in it; for a whole file that takes twice as long as a parse."""
        if index not in self._ranges:
            alone = self._parsed.with_changes(header=[], body=[self.body[index]], footer=[])
            self._ranges[index] = MetadataWrapper(alone, unsafe_skip_copy=True).resolve(PositionProvider)
        return self._ranges[index]

    @cached_property
    def _lines_before(self) -> list[int]:
        """How many lines stand before each statement of the module."""
        code_for_node = self._parsed.code_for_node
        before = [sum(code_for_node(line).count("\n") for line in self._parsed.header)]
        for statement in self.body:
            before.append(before[-1] + code_for_node(statement).count("\n"))
        return before

    # -- the pass -------------------------------------------------------------------------------------------

    def _walk(self) -> None:
        by_type, by_id, count = self._by_type, self._by_id, 0
        stack: list[_Pending] = [(s, None, "body", self.module, False) for s in reversed(live_statements(self.body))]
        while stack:
            node, parent, role, scope, in_main = stack.pop()
            kind = node.__class__
            by_id[id(node)] = site = Site(node, parent, role, scope, count, in_main)
            count += 1
            if kind in by_type:
                by_type[kind].append(site)
            else:
                by_type[kind] = [site]
            (scope.inside.sites if scope.inside is not None else self.module_sites).append(site)
            if kind in _SPECIAL:
                self._special(site, stack)
            else:
                for name in FIELDS[kind]:
                    value = getattr(node, name)
                    if value is None:
                        continue
                    if value.__class__ in (tuple, list):
                        stack.extend([(child, site, name, scope, in_main) for child in reversed(value)])
                    elif IS_NODE[value.__class__]:
                        stack.append((value, site, name, scope, in_main))

    def _special(self, site: Site, stack: list[_Pending]) -> None:
        node, scope, in_main = site.node, site.scope, site.in_main
        if isinstance(node, cst.If):
            stack.extend(_if_children(site, node, in_main))
        elif isinstance(node, cst.IndentedBlock):
            stack.extend([(s, site, "body", scope, in_main) for s in reversed(live_statements(node.body))])
        elif isinstance(node, cst.While):
            if constant_truth(node.test) is not False:
                stack.extend([(c, site, r, scope, in_main) for r, c in reversed(named_children(node))])
        else:
            stack.extend(self._enter_scope(site, scope))

    def _enter_scope(self, site: Site, outer: Scope) -> list[_Pending]:
        node = site.node
        kind = "function" if isinstance(node, (cst.FunctionDef, cst.Lambda)) else "comprehension"
        inner = Scope("class" if isinstance(node, cst.ClassDef) else kind, site, outer)
        self.scopes.append(inner)
        if isinstance(node, (cst.FunctionDef, cst.Lambda)):
            name = node.name.value if isinstance(node, cst.FunctionDef) else "<lambda>"
            inner.function = inner.inside = Function(name, site, inner, _parameters(node.params))
            self.functions.append(inner.function)
        outside = {"decorators", "returns", "bases", "keywords", "name", "type_parameters"}
        made: list[_Pending] = []
        for role, child in named_children(node):
            if role == "params":
                made.extend(_parameter_children(child, site, outer, inner))
            else:
                made.append((child, site, role, outer if role in outside else inner, site.in_main))
        # Decorators stand before the rest in the source.
        made.sort(key=lambda entry: entry[2] != "decorators")
        return made[::-1]


def _parameter_children(params: cst.CSTNode, site: Site, outer: Scope, inner: Scope) -> list[_Pending]:
    """Annotations and defaults are evaluated outside the function; the parameters bind inside."""
    made: list[_Pending] = []
    assert isinstance(params, cst.Parameters)
    for parameter in _parameters(params):
        made.append((parameter.node, site, "parameter", outer, site.in_main))
        inner.bindings.setdefault(parameter.name, []).append(Binding("parameter", site, parameter.node))
    return made


def _parameters(params: cst.Parameters) -> list[Parameter]:
    found: list[Parameter] = []
    for node in (*params.posonly_params, *params.params):
        found.append(Parameter(node.name.value, node, "positional", len(found)))
    if isinstance(params.star_arg, cst.Param):
        found.append(Parameter(params.star_arg.name.value, params.star_arg, "args", len(found)))
    for node in params.kwonly_params:
        found.append(Parameter(node.name.value, node, "keyword", len(found)))
    if params.star_kwarg is not None:
        found.append(Parameter(params.star_kwarg.name.value, params.star_kwarg, "kwargs", len(found)))
    return found


def _if_children(site: Site, node: cst.If, in_main: bool) -> list[_Pending]:
    truth = constant_truth(node.test)
    main = in_main or (site.scope.kind == "module" and is_main_test(node.test))
    made: list[_Pending] = []
    if node.orelse is not None and truth is not True:
        made.append((node.orelse, site, "orelse", site.scope, in_main))
    if truth is not False:
        made.append((node.body, site, "body", site.scope, main))
    made.append((node.test, site, "test", site.scope, in_main))
    return made


__all__ = ["Binding", "Function", "Parameter", "Scope", "Site", "Tree"]
