"""A node at its place, what binds names there, and the functions of a file: the parts that a `Tree` is made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import libcst as cst


class Site:
    """A node at its place in a file."""

    __slots__ = ("function", "in_main", "node", "order", "parent", "role", "scope")

    def __init__(self, node: cst.CSTNode, parent: Site | None, role: str, scope: Scope, order: int, in_main: bool) -> None:
        self.node = node  # the libcst node
        self.parent = parent  # the site around it; None for a statement of the module
        self.role = role  # the field of the parent's node that holds it ("body", "iter", "value", ...)
        self.scope = scope  # the scope in which names in it are looked up
        self.order = order  # position in source order
        self.in_main = in_main  # it lies under `if __name__ == "__main__":`
        self.function: Function | None = scope.inside  # the function whose body holds it; None for module and class level

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
    """One binding of a name."""

    kind: str  # assign, annotation, augmented, loop, with, import, function, class, parameter or other
    site: Site  # the node that binds
    value: cst.CSTNode | None = None  # the bound expression (the iterated one for a loop), if there is one
    path: tuple[int | str, ...] = ()  # indexes into `value` for unpacking, outermost first; "*" for a starred target
    target: str = ""  # the imported dotted name for an import
    function: Function | None = None  # the function for a def


@dataclasses.dataclass(eq=False)
class Parameter:
    """A parameter of a function of the file."""

    name: str
    node: cst.Param
    kind: str  # "positional", "keyword", "args" or "kwargs"
    index: int


@dataclasses.dataclass(eq=False)
class Function:
    """A `def` or lambda of the file."""

    name: str  # its name; "<lambda>" for a lambda
    site: Site  # its own site
    scope: Scope  # the scope of its body
    parameters: list[Parameter]  # in order; positional ones first
    # every site in its body, nested functions and decorators excluded
    sites: list[Site] = dataclasses.field(default_factory=list)
    _by_type: dict[type, list[Site]] = dataclasses.field(default_factory=dict, repr=False)
    _by_name: dict[str, list[Site]] = dataclasses.field(default_factory=dict, repr=False)

    def of(self, kind: type[cst.CSTNode]) -> list[Site]:
        """Return the sites of nodes of exactly this type in its body, in source order."""
        if not self._by_type and self.sites:
            for site in self.sites:
                self._by_type.setdefault(site.node.__class__, []).append(site)
        return self._by_type.get(kind, [])

    def named(self, name: str) -> list[Site]:
        """Return the sites in its body at which `name` stands, in source order."""
        if not self._by_name:
            for site in self.of(cst.Name):
                self._by_name.setdefault(site.node.value, []).append(site)  # type: ignore[attr-defined]
        return self._by_name.get(name, [])

    @property
    def returned(self) -> list[cst.BaseExpression | None]:
        """The expressions of its `return` statements."""
        return [site.node.value for site in self.of(cst.Return)]  # type: ignore[attr-defined]

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
