"""One pass over a statement of a module: its sites, scopes and functions, kept while the statement stays as it is.

libcst's own visitors rebuild the tree and its metadata providers walk it once each; this pass touches each node once and
leaves out white space and punctuation. Code that can never run (`if False:`, `if TYPE_CHECKING:`, statements after a
`return`) is left out altogether, so that no rule counts it.
"""

from __future__ import annotations

from collections import OrderedDict

import libcst as cst

from pypto_op_lint.liveness import constant_truth, is_main_test, live_statements
from pypto_op_lint.nodes import FIELDS, IS_NODE, named_children
from pypto_op_lint.sites import Binding, Function, Parameter, Scope, Site

_SCOPE_NODES = frozenset({cst.FunctionDef, cst.Lambda, cst.ClassDef, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp})
_SPECIAL = _SCOPE_NODES | {cst.If, cst.IndentedBlock, cst.While}
_MOST_SITES = 250_000
"""So many sites are kept for statements of no living tree; one takes about 300 bytes."""

_Pending = tuple[cst.CSTNode, Site | None, str, Scope, bool]
"""A node that is still to be visited, with its parent, role, scope and whether it is under the main block."""


class Subtree:
    """The sites of one statement of a module.

    Nothing in it depends on the rest of the file but the module's scope and the places in source order; `attach` sets both.

    Attributes:
        root: the statement.
        sites: every site, in source order.
        by_type: the same by type of node.
        by_id: the same by id of node.
        module_sites: those outside of functions.
        functions: every function and lambda, in source order.
        scopes: every scope that the statement opens.
        module_bindings: what it binds in the module's scope, in source order; None until somebody asked.
        in_use: it belongs to a living tree.
    """

    def __init__(self, root: cst.CSTNode, module: Scope) -> None:
        self.root = root
        self.sites: list[Site] = []
        self.by_type: dict[type, list[Site]] = {}
        self.by_id: dict[int, Site] = {}
        self.module_sites: list[Site] = []
        self.functions: list[Function] = []
        self.scopes: list[Scope] = []
        self.module_bindings: list[tuple[str, Binding]] | None = None
        self.in_use = True
        self._walk(module)
        self._outer = [site for site in self.sites if site.scope is module]
        self._tops = [scope for scope in self.scopes if scope.parent is module]

    def attach(self, module: Scope, first: int) -> None:
        """Make it part of a file: `module` is the file's scope, `first` the place of its first site in source order."""
        self.in_use = True
        for site in self._outer:
            site.scope = module
        for scope in self._tops:
            scope.parent = module
        for order, site in enumerate(self.sites, first):
            site.order = order

    def dispose(self) -> None:
        """Cut the circles between sites, scopes and functions, so that their memory returns without a collection."""
        for function in self.functions:
            function.dispose()
        for scope in self.scopes:
            scope.bindings.clear()
            scope.function = scope.inside = scope.site = scope.parent = None
        self.by_type.clear()
        self.by_id.clear()
        for kept in (self.sites, self.module_sites, self._outer, self._tops):
            kept.clear()

    # -- the pass -------------------------------------------------------------------------------------------

    def _walk(self, module: Scope) -> None:
        stack: list[_Pending] = [(self.root, None, "body", module, False)]
        by_type, by_id, sites = self.by_type, self.by_id, self.sites
        while stack:
            node, parent, role, scope, in_main = stack.pop()
            kind = node.__class__
            site = Site(node, parent, role, scope, len(sites), in_main)
            by_id[id(node)] = site
            sites.append(site)
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


class SubtreeCache:
    """Subtrees by their statement, least recently used dropped first.

    A statement whose text did not change is the same object in the next parse (`pieces`), and so are its sites. Two living
    trees never share a subtree.
    """

    def __init__(self, most_sites: int = _MOST_SITES) -> None:
        """Keep subtrees with up to `most_sites` sites altogether."""
        self._limit = most_sites
        self._kept: OrderedDict[int, Subtree] = OrderedDict()
        self._sites = 0

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, root: cst.CSTNode, module: Scope, first: int) -> Subtree:
        """Return the subtree of `root`, in the scope `module`, its sites numbered from `first`."""
        kept = self._kept.get(id(root))
        if kept is not None and not kept.in_use:
            self._kept.move_to_end(id(root))
            kept.attach(module, first)
            return kept
        made = Subtree(root, module)
        made.attach(module, first)
        if kept is None:
            self._kept[id(root)] = made
            self._sites += len(made.sites)
        return made

    def give_back(self, subtree: Subtree) -> None:
        """Say that the tree which took `subtree` is gone."""
        subtree.in_use = False
        if self._kept.get(id(subtree.root)) is not subtree:
            subtree.dispose()
        while self._sites > self._limit and self._kept:
            key, oldest = next(iter(self._kept.items()))
            if oldest.in_use:
                return
            del self._kept[key]
            self._sites -= len(oldest.sites)
            oldest.dispose()

    def clear(self) -> None:
        """Forget what no living tree uses."""
        for key, kept in list(self._kept.items()):
            if not kept.in_use:
                del self._kept[key]
                self._sites -= len(kept.sites)
                kept.dispose()


SUBTREES = SubtreeCache()
"""One cache for the process."""


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
