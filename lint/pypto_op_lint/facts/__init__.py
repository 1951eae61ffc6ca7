"""What rules share about one Python file, computed once and only when asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from pypto_op_lint.facts.bindings import bind_names
from pypto_op_lint.facts.callgraph import CallGraph
from pypto_op_lint.facts.callsite import CallSite
from pypto_op_lint.facts.data import DataFlow
from pypto_op_lint.facts.evaluator import Evaluator
from pypto_op_lint.facts.flow import lasting
from pypto_op_lint.facts.launches import Launches
from pypto_op_lint.facts.tensors import Tensors
from pypto_op_lint.facts.tiles import TileSetting, tile_settings
from pypto_op_lint.facts.unused import WRAPPER_NAME, unused_functions
from pypto_op_lint.facts.values import Func, Path
from pypto_op_lint.facts.writes import Writes
from pypto_op_lint.import_statements import dotted
from pypto_op_lint.tree import Function, Site, Tree

JIT = "pypto.frontend.jit"
INLINED = "pypto.frontend.function"
_SELF_TEST_NAME = re.compile(r"(?:_?validate\w*|_?make_inputs|_?main|_?self_test|_?demo|_?test\w*|test_\w+|_?bench\w*)\Z")


NO_GRAPH_WORK = frozenset({
    "pypto.loop", "pypto.loop_unroll", "pypto.min", "pypto.max", "pypto.ceildiv", "pypto.bytes_of", "pypto.Tensor",
    "pypto.tensor", "pypto.is_loop_begin", "pypto.is_loop_end", "pypto.set_vec_tile_shapes",
    "pypto.set_cube_tile_shapes", "pypto.Element", "pypto.element", "pypto.SymbolicScalar", "pypto.symbolic_scalar",
})  # fmt: skip
"""pypto calls that by themselves compute nothing on the device."""


_TABLE_READS = {f"sys.modules.{name}" for name in ("get", "pop", "setdefault", "__getitem__")}
_ADDING = (cst.Call, cst.BinaryOperation, cst.AssignTarget, cst.AugAssign)
"""Nodes that can add to the graph."""


@dataclass(eq=False)
class JitEntry:
    """One use of pypto's jit on a function of the file."""

    function: Function  # the kernel
    node: cst.BaseExpression  # the decorator expression, or the call `pypto.frontend.jit(f)`
    literal: bool  # it is a decorator and reads `@pypto.frontend.jit` or `@pypto.frontend.jit(...)`, or as pypto's alias of it
    arguments: tuple[cst.Arg, ...]  # the arguments of the decorator's call


class Facts:
    """Facts about one file; see each property.

    Rules name the properties they use in `Rule.needs`.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        bind_names(tree)
        self.ev = Evaluator(tree)
        self._builds: dict[int, bool] = {}
        self._graph_sites: dict[tuple[type[cst.CSTNode], ...], list[Site]] = {}
        self.dtypes: dict[tuple[int, int], set[str]] = {}
        """What `dtypes.dtypes_of` has found out, by node and depth."""
        self._callees: dict[int, frozenset[str]] = {}
        self.ev.open_functions = {id(f) for f in tree.functions if self._decorated_by(f, JIT)}
        self.ev.exported_functions = self._exported()

    def _exported(self) -> set[int]:
        """Functions that the module calls `*_wrapper`: by `def`, or by `x_wrapper = function`."""
        bindings = self.tree.module.bindings
        found: set[int] = set()
        for name in bindings:
            for binding in bindings[name] if name.endswith("_wrapper") else ():
                inner = bindings.get(binding.value.value, []) if isinstance(binding.value, cst.Name) else [binding]
                found |= {id(b.function) for b in inner if b.function is not None}
        return found

    @cached_property
    def calls(self) -> CallGraph:
        """The call graph. Arguments are known to the evaluator once it is built."""
        return CallGraph(self.tree, self.ev)

    # -- kernels --------------------------------------------------------------------------------------------

    @cached_property
    def jit_entries(self) -> list[JitEntry]:
        """Every jit entry, however it is spelled, in source order."""
        found: list[JitEntry] = []
        for function in self.tree.functions:
            for decorator in function.decorators:
                target = decorator.func if isinstance(decorator, cst.Call) else decorator
                literal = Path.of(dotted(target)).name == JIT
                if literal or JIT in self.ev.paths(target):
                    arguments = tuple(decorator.args) if isinstance(decorator, cst.Call) else ()
                    found.append(JitEntry(function, decorator, literal, arguments))
        for site in self.tree.sites(cst.Call):
            if site.role == "decorators" or (site.parent is not None and site.parent.role == "decorators"):
                continue
            node: cst.Call = site.node  # type: ignore[assignment]
            if JIT in self._callee_of_jit(node):
                functions = [f.function for arg in node.args for f in self.ev.functions(arg.value)]
                found.extend(JitEntry(f, node, False, ()) for f in functions)
        return sorted(found, key=lambda e: e.function.site.order)

    def _callee_of_jit(self, node: cst.Call) -> set[str]:
        """`jit(f)` and `jit(options)(f)`."""
        inner = node.func.func if isinstance(node.func, cst.Call) else node.func
        return self.ev.paths(inner)

    @cached_property
    def kernels(self) -> list[Function]:
        """The functions that are jit entries."""
        return list({id(e.function): e.function for e in self.jit_entries}.values())

    @cached_property
    def graph_functions(self) -> list[Function]:
        """The jit entries and every function of the file that they call: code that builds the graph."""
        return self.calls.reach(self.kernels)

    @cached_property
    def _kernel_ids(self) -> set[int]:
        return {id(f) for f in self.kernels}

    @cached_property
    def _graph_ids(self) -> set[int]:
        return {id(f) for f in self.graph_functions}

    def _decorated_by(self, function: Function, path: str) -> bool:
        targets = [d.func if isinstance(d, cst.Call) else d for d in function.decorators]
        return any(path in self.ev.paths(t) or dotted(t) == path for t in targets)

    def is_parsed(self, function: Function | None) -> bool:
        """Whether pypto's front end parses `function`: a jit entry, or one decorated with `pypto.frontend.function`.

        Every other function of the graph is run by Python.
        """
        return self.is_kernel(function) or (function is not None and self._decorated_by(function, INLINED))

    def is_kernel(self, function: Function | None) -> bool:
        """Whether `function` is a jit entry."""
        return id(function) in self._kernel_ids

    def in_graph(self, site: Site) -> bool:
        """Whether `site` lies in code that builds the graph."""
        function = site.function
        return function is not None and id(function) in self._graph_ids

    def graph_sites(self, *types: type[cst.CSTNode]) -> list[Site]:
        """Return the sites of these types in the graph's code, in source order."""
        kept = self._graph_sites.get(types)
        if kept is None:
            graph = self._graph_ids
            kept = [s for s in self.tree.sites(*types) if s.function is not None and id(s.function) in graph]
            self._graph_sites[types] = kept
        return kept

    def graph_work(self, root: Site) -> Site | None:
        """Return the first site in `root` that adds to the graph: a pypto operation or arithmetic on a pypto tensor."""
        candidates = self.tree.sites(*_ADDING)
        return next((s for s in candidates if s.within(root) and self._adds_to_graph(s, ())), None)

    def builds_graph(self, function: Function, seen: tuple[Function, ...] = ()) -> bool:
        """Whether calling `function` adds to the graph."""
        if any(function is f for f in seen):
            return False
        key = id(function)
        if key not in self._builds:
            adding = [s for s in self.tree.sites(*_ADDING) if s.function is function]
            self._builds[key] = any(self._adds_to_graph(s, (*seen, function)) for s in adding)
        return self._builds[key]

    def _adds_to_graph(self, site: Site, seen: tuple[Function, ...]) -> bool:
        node = site.node
        if isinstance(node, cst.Call):
            if any(n.startswith("pypto.") and n not in NO_GRAPH_WORK for n in self.callee_names(node)):
                return True
            if any(self.builds_graph(call.function, seen) for call in self.calls.calls_at(node)):
                return True
            return isinstance(node.func, cst.Attribute) and self.tensors.in_graph(node.func.value)
        if isinstance(node, cst.BinaryOperation):
            return self.tensors.in_graph(node)
        if isinstance(node, cst.AssignTarget):
            target = node.target
            return isinstance(target, cst.Subscript) and self.tensors.in_graph(target.value)
        if isinstance(node, cst.AugAssign):
            return self.tensors.in_graph(node.target) or self.tensors.in_graph(node.value)
        return False

    # -- calls of pypto and others --------------------------------------------------------------------------

    @cached_property
    def foreign_calls(self) -> list[tuple[Site, cst.Call, frozenset[str]]]:
        """Every call of foreign code with the dotted names that it may mean, in source order."""
        _ = self.calls
        found = []
        for site in self.tree.sites(cst.Call):
            node: cst.Call = site.node  # type: ignore[assignment]
            names = frozenset(foreign_name(v.name) for v in self.ev.values(node.func) if isinstance(v, Path))
            if names:
                found.append((site, node, names))
        return found

    def callee_names(self, node: cst.Call) -> frozenset[str]:
        """Return the foreign dotted names that `node` may call."""
        return self.foreign_names(node.func)

    def foreign_names(self, node: cst.BaseExpression) -> frozenset[str]:
        """Return the foreign dotted names that an expression may stand for."""
        kept = self._callees.get(id(node))
        if kept is None:
            _ = self.calls
            kept = self._callees[id(node)] = frozenset(foreign_name(name) for name in self.ev.paths(node))
        return kept

    @cached_property
    def names_read(self) -> frozenset[str]:
        """Every name that the file spells, without attributes behind a dot."""
        return frozenset(s.node.value for s in self.tree.sites(cst.Name) if s.role != "attr")  # type: ignore[attr-defined]

    @cached_property
    def from_module_table(self) -> list[tuple[Site, str]]:
        """(place, dotted name) of each module that is taken out of `sys.modules`: `sys.modules["a.b"]`, `.get("a.b")`."""
        found = []
        for site in self.tree.sites(cst.Subscript, cst.Call):
            node = site.node
            key: cst.CSTNode | None = None
            if node.__class__ is cst.Subscript:
                if "sys.modules" in self.ev.paths(node.value):
                    index = node.slice[0].slice
                    key = index.value if isinstance(index, cst.Index) else None
            elif node.args and self.ev.paths(node.func) & _TABLE_READS:  # type: ignore[attr-defined]
                key = node.args[0].value  # type: ignore[attr-defined]
            wanted = self.ev.constant(key) if key is not None else None
            if wanted is not None and isinstance(wanted.value, str):
                found.append((site, wanted.value))
        return found

    # -- host code ------------------------------------------------------------------------------------------

    @cached_property
    def wrappers(self) -> list[Function]:
        """Host functions that a caller of the operator uses: `*_wrapper`, `launch_*`, `run_*` of the module."""
        found: dict[int, Function] = {}
        for name, bindings in self.tree.module.bindings.items():
            if WRAPPER_NAME.match(name):
                for binding in lasting(bindings):
                    for value in self.ev.bound(binding, self.tree.module):
                        if isinstance(value, Func) and not self.is_kernel(value.function):
                            found[id(value.function)] = value.function
        return sorted(found.values(), key=lambda f: f.site.order)

    def wrappers_named(self, name: str) -> list[Function]:
        """Return the functions that the module's name `name` stands for."""
        _ = self.calls
        bindings = lasting(self.tree.module.bindings.get(name, []))
        values = [v for b in bindings for v in self.ev.bound(b, self.tree.module)]
        return [v.function for v in values if isinstance(v, Func)]

    @cached_property
    def host_functions(self) -> list[Function]:
        """Functions that are part of the product and run on the host.

        Left out: graph code, and self-tests (by name, or used under `if __name__ == "__main__"` only) unless product
        code calls them.
        """
        calls = self.calls
        main_calls = [c.function for c in calls.calls_in(s for s in self.tree.module_sites if s.in_main)]
        only_main = {id(f) for f in calls.reach(main_calls)}
        exempt = {
            id(f)
            for f in self.tree.functions
            if not WRAPPER_NAME.match(f.name)
            and (_SELF_TEST_NAME.match(f.name) or (id(f) in only_main and f.name.startswith("_")))
        }
        roots = [f for f in self.tree.functions if id(f) not in exempt and f.owner is None]
        live = [c.function for c in calls.calls_in(s for s in self.tree.module_sites if not s.in_main)]
        reached = calls.reach([*roots, *live, *self.wrappers], stop=self.kernels)
        return [f for f in reached if id(f) not in self._graph_ids]

    def is_unused(self, function: Function) -> bool:
        """Whether nothing in the file leads to a function of the module, or to the one that `function` is nested in.

        Names decide, not calls: whoever is named in code that runs, or in a string, counts as used.
        """
        while function.owner is not None:
            function = function.owner
        return id(function) in self._unused

    @cached_property
    def _unused(self) -> frozenset[int]:
        return unused_functions(self)

    @cached_property
    def _product_ids(self) -> set[int]:
        return {id(f) for f in self.host_functions} | self._graph_ids

    def in_product(self, site: Site) -> bool:
        """Whether `site` lies in the product: its module level, its host functions or the graph; not in a self-test."""
        return id(site.function) in self._product_ids if site.function is not None else not site.in_main

    def host_sites(self, *types: type[cst.CSTNode]) -> list[Site]:
        """Return the sites of these types in host code: module level (without the main block) and host functions."""
        hosts = {id(f) for f in self.host_functions}
        sites = self.tree.sites(*types)
        return [s for s in sites if (id(s.function) in hosts if s.function is not None else not s.in_main)]

    @cached_property
    def tile_settings(self) -> list[TileSetting]:
        """Every setting of vector or cube tiles in the graph's code, in source order."""
        return tile_settings(self)

    @cached_property
    def launches(self) -> Launches:
        """Which host code launches which kernel, and how often."""
        return Launches(self)

    @cached_property
    def writes(self) -> Writes:
        """What the graph writes back into which kernel parameter."""
        return Writes(self)

    @cached_property
    def data(self) -> DataFlow:
        """Which host values come from the operator's inputs or from a kernel."""
        return DataFlow(self)

    @cached_property
    def tensors(self) -> Tensors:
        """Which expressions are torch tensors on the host, and which are pypto tensors in the graph."""
        return Tensors(self)


def foreign_name(name: str) -> str:
    """Return the real dotted name behind a module that pypto leaks: `pypto.torch.exp` is `torch.exp`."""
    return name[len("pypto.") :] if name.startswith("pypto.torch.") else name


__all__ = ["CallSite", "Facts", "JitEntry", "foreign_name"]
