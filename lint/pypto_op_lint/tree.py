"""One pass over a file's tree: where every node stands, which scope it is in, and who binds which name.

libcst's own visitors rebuild the tree and its metadata providers walk it once each; this pass touches each node once and
leaves out white space and punctuation. Code that can never run (`if False:`, `if TYPE_CHECKING:`, statements after a
`return`) is left out altogether, so that no rule counts it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TypeVar

import libcst as cst

from pypto_op_lint.liveness import constant_truth, is_main_test, live_statements
from pypto_op_lint.nodes import FIELDS, child_fields, is_node, named_children
from pypto_op_lint.pieces import ParsedFile, Piece

NodeT = TypeVar("NodeT", bound=cst.CSTNode)

_SCOPE_NODES = frozenset({cst.FunctionDef, cst.Lambda, cst.ClassDef, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp})
_SPECIAL = _SCOPE_NODES | {cst.If, cst.IndentedBlock, cst.While}


class Site:
    """A node at its place in a file.

    Attributes:
        node: the libcst node.
        parent: the site around it; None for a statement of the module.
        role: the field of the parent's node that holds it ("body", "iter", "value", ...).
        scope: the scope in which names in it are looked up.
        order: position in source order.
        in_main: it lies under `if __name__ == "__main__":`.
        function: the function whose body holds it; None for module and class level.
    """

    __slots__ = ("function", "in_main", "node", "order", "parent", "role", "scope")

    def __init__(self, node: cst.CSTNode, parent: Site | None, role: str, scope: Scope, order: int, in_main: bool) -> None:
        self.node = node
        self.parent = parent
        self.role = role
        self.scope = scope
        self.order = order
        self.in_main = in_main
        self.function: Function | None = scope.inside

    def ancestors(self) -> Iterator[Site]:
        """Yield the sites around this one, innermost first."""
        site = self.parent
        while site is not None:
            yield site
            site = site.parent

    def within(self, other: Site) -> bool:
        """Whether this site is `other` or lies inside it."""
        return self is other or any(site is other for site in self.ancestors())


class Scope:
    """A module, class, function, lambda or comprehension, and what it binds.

    Attributes:
        kind: "module", "class", "function" or "comprehension".
        site: the defining site; None for the module.
        parent: the scope around it.
        bindings: name -> everything that binds it here, in source order.
        function: the function this is the scope of.
        inside: the function whose body this scope is, or lies in.
    """

    __slots__ = ("bindings", "function", "inside", "kind", "outer_names", "parent", "site")

    def __init__(self, kind: str, site: Site | None, parent: Scope | None) -> None:
        self.kind, self.site, self.parent = kind, site, parent
        self.bindings: dict[str, list[Binding]] = {}
        self.function: Function | None = None
        self.inside: Function | None = parent.inside if parent is not None else None
        self.outer_names: dict[str, str] = {}

    @property
    def module(self) -> Scope:
        """The outermost scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def lookup(self, name: str) -> tuple[Scope, list[Binding]] | None:
        """Return the scope that `name` refers to from here and its bindings there; None when nothing binds it."""
        scope: Scope | None = self
        first = True
        while scope is not None:
            declared = scope.outer_names.get(name)
            if declared == "global":
                scope = scope.module
            elif name in scope.bindings and (first or scope.kind != "class"):
                return scope, scope.bindings[name]
            if declared == "global":
                found = scope.bindings.get(name)
                return (scope, found) if found else None
            scope, first = scope.parent, False
        return None


@dataclasses.dataclass(eq=False)
class Binding:
    """One binding of a name.

    Attributes:
        kind: assign, annotation, augmented, loop, with, import, function, class, parameter or other.
        site: the node that binds.
        value: the bound expression (the iterated one for a loop), if there is one.
        path: indexes into `value` for unpacking, outermost first; "*" for a starred target.
        target: the imported dotted name for an import.
        function: the function for a def.
    """

    kind: str
    site: Site
    value: cst.CSTNode | None = None
    path: tuple[int | str, ...] = ()
    target: str = ""
    function: Function | None = None


@dataclasses.dataclass(eq=False)
class Parameter:
    """A parameter of a function of the file."""

    name: str
    node: cst.Param
    kind: str  # "positional", "keyword", "args" or "kwargs"
    index: int


@dataclasses.dataclass(eq=False)
class Function:
    """A `def` or lambda of the file.

    Attributes:
        name: its name; "<lambda>" for a lambda.
        site: its own site.
        scope: the scope of its body.
        parameters: in order; positional ones first.
        sites: every site in its body, nested functions and decorators excluded.
    """

    name: str
    site: Site
    scope: Scope
    parameters: list[Parameter]
    sites: list[Site] = dataclasses.field(default_factory=list)

    @property
    def node(self) -> cst.FunctionDef | cst.Lambda:
        """The definition."""
        return self.site.node  # type: ignore[return-value]

    @property
    def decorators(self) -> list[cst.BaseExpression]:
        """Decorator expressions, outermost first."""
        node = self.node
        return [d.decorator for d in node.decorators] if isinstance(node, cst.FunctionDef) else []

    @property
    def owner(self) -> Function | None:
        """The function that this one is nested in."""
        return self.site.function

    @property
    def is_top_level(self) -> bool:
        """Defined directly in the module (conditional definitions included), not in a class or function."""
        return self.site.scope.kind == "module"

    @property
    def is_async(self) -> bool:
        """`async def`."""
        return isinstance(self.node, cst.FunctionDef) and self.node.asynchronous is not None

    def parameter(self, name: str) -> Parameter | None:
        """Return the parameter called `name`."""
        return next((p for p in self.parameters if p.name == name), None)


class Tree:
    """A file's live code.

    Attributes:
        body: the module's statements.
        module: the module scope.
        functions: every function and lambda, in source order.
        scopes: every scope.
    """

    def __init__(self, parsed: ParsedFile) -> None:
        self._pieces = parsed.pieces
        self.body = parsed.body
        self.module = Scope("module", None, None)
        self.scopes: list[Scope] = [self.module]
        self.functions: list[Function] = []
        self._by_type: dict[type, list[Site]] = {}
        self._by_id: dict[int, Site] = {}
        self.module_sites: list[Site] = []
        _Walk(self).run()

    def sites(self, *types: type[cst.CSTNode]) -> list[Site]:
        """Return the sites of nodes of exactly these types, in source order."""
        if len(types) == 1:
            return self._by_type.get(types[0], [])
        found = [site for kind in types for site in self._by_type.get(kind, ())]
        return sorted(found, key=lambda s: s.order)

    def dispose(self) -> None:
        """Cut the circles between sites, scopes and functions, so that their memory returns without a collection."""
        for function in self.functions:
            function.sites.clear()
        for scope in self.scopes:
            scope.bindings.clear()
            scope.function = scope.inside = scope.site = None
        self._by_type.clear()
        self._by_id.clear()
        self.module_sites.clear()

    def types(self) -> Iterator[type]:
        """Yield the node types that occur."""
        yield from self._by_type

    def site(self, node: cst.CSTNode) -> Site | None:
        """Return where `node` stands; None for dead code and punctuation."""
        return self._by_id.get(id(node))

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


_Pending = tuple[cst.CSTNode, Site | None, str, Scope, bool]
"""A node that is still to be visited, with its parent, role, scope and whether it is under the main block."""


class _Walk:
    """Builds sites, scopes and functions; then the bindings."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def run(self) -> None:
        tree = self._tree
        stack: list[_Pending] = [
            (statement, None, "body", tree.module, False) for statement in reversed(live_statements(tree.body))
        ]
        by_type, by_id = tree._by_type, tree._by_id
        order = 0
        while stack:
            node, parent, role, scope, in_main = stack.pop()
            kind = node.__class__
            site = Site(node, parent, role, scope, order, in_main)
            order += 1
            by_id[id(node)] = site
            if kind in by_type:
                by_type[kind].append(site)
            else:
                by_type[kind] = [site]
            (scope.inside.sites if scope.inside is not None else tree.module_sites).append(site)
            if kind in _SPECIAL:
                self._special(site, stack)
            elif fields := FIELDS.get(kind) or child_fields(kind):
                for name in fields:
                    value = getattr(node, name)
                    if value is None:
                        continue
                    if value.__class__ in (tuple, list):
                        stack.extend([(child, site, name, scope, in_main) for child in reversed(value)])
                    elif is_node(value.__class__):
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
        self._tree.scopes.append(inner)
        if isinstance(node, (cst.FunctionDef, cst.Lambda)):
            name = node.name.value if isinstance(node, cst.FunctionDef) else "<lambda>"
            inner.function = inner.inside = Function(name, site, inner, _parameters(node.params))
            self._tree.functions.append(inner.function)
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
