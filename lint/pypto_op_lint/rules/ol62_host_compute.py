"""OL62: the operator's arithmetic belongs into the kernel."""

import functools
from collections.abc import Callable, Iterable
from pathlib import Path

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint import host_words
from pypto_op_lint.examples import BODY, WRAPPER, impl, with_host_line
from pypto_op_lint.facts import Facts
from pypto_op_lint.facts.custom_ops import MAKES_OP
from pypto_op_lint.facts.flow import bindings_of
from pypto_op_lint.facts.foreign import method_called
from pypto_op_lint.facts.loops import LOOPS
from pypto_op_lint.facts.values import Member, Param, Result, Unknown
from pypto_op_lint.nodes import children
from pypto_op_lint.rule import IMPLS, Invalid, LintContext, Rule, Valid
from pypto_op_lint.tree import Site
from pypto_op_lint.units import Unit

_ARITHMETIC = (
    cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.FloorDivide, cst.Modulo, cst.Power, cst.MatrixMultiply,
    cst.BitAnd, cst.BitOr, cst.BitXor, cst.LeftShift, cst.RightShift,
)  # fmt: skip


_HOST = "host code"
_FOR_OTHERS = MAKES_OP | {"torch.compile", "torch.compiler.compile"}


class HostCompute(Rule):
    """Host code, or torch inside the kernel, computes what the kernel should compute.

    What it does:
        In everything that belongs to the product (the wrapper, what it calls here or in a module beside this one, module
        level, and the graph's code)
        it reports calls of torch, numpy and torch_npu that compute; computing methods, operators and comparisons on
        torch tensors; and Python's own `sum`, `max`, `operator.*` on them. Tensors built from constants alone (a
        mask, a table of angles), allocation, layout, copies, conversion and questions about tensors pass, and so do
        pypto's tensors, whose methods and operators look alike.

    Why:
        The operator's speed and its verdict are about the kernel. A wrapper that multiplies by the weights after the launch
        passes every comparison and is not the operator.

    Example:
        def softmax_wrapper(x):
            scores_kernel(x, out)
            return out / out.sum(-1, keepdim=True)

    Use instead:
        def softmax_wrapper(x):
            softmax_kernel(x, out)
            return out

    Known limits:
        Parameters count as tensors when their annotation, their use or the launch shows it. Self-tests that no
        product code calls (`_make_inputs`, `main`, the block under `if __name__ == "__main__"`) are left out, and
        functions for `torch.compile` or `torch.library.custom_op`, or with a loop of pypto, that nothing in the file names.
    """

    id = "OL62"
    name = "host-compute"
    severity = Severity.S0
    artifacts = IMPLS
    needs = frozenset({"host_sites", "graph_sites", "tensors", "foreign_calls", "calls", "launches", "data", "siblings"})
    MESSAGE = "host code computes what the kernel should compute"
    FIX_HINT = (
        "move the computation into the kernel as pypto operations; the wrapper only checks, allocates, reshapes and launches once"
    )

    VALID = [
        Valid(impl()),
        Valid(
            impl(
                wrapper="""
                def demo_wrapper(x: torch.Tensor):
                    if not torch.is_tensor(x) or x.dtype is torch.int8:
                        raise TypeError(torch.finfo(torch.float32).max)
                    rows = x.shape[0] * 2 - x.numel() // 4
                    flat = torch.clone(x).reshape(-1, 128).contiguous().to(torch.float32)
                    seen = set()
                    seen.add(max(rows, 4) + 1)
                    out = torch.empty((flat.shape[0], flat.size(1)), dtype=x.dtype, device=x.device)
                    demo_kernel(flat, out)
                    torch.npu.synchronize()
                    return out.view(x.shape)[: x.shape[0]]
                """
            )
        ),
        Valid(impl(BODY.replace("pypto.exp(tile)", "(tile * 2.0).exp().sum(-1, True) + tile.maximum(tile)"))),
        Valid(
            impl(
                after="""
                def _make_inputs():
                    return torch.randn(4, 128) * 2


                if __name__ == "__main__":
                    x = _make_inputs()
                    print((demo_wrapper(x) - torch.exp(x)).abs().max())
                """
            )
        ),
        Valid(
            with_host_line(
                "mask = torch.triu(torch.full((x.shape[0], 128), float('-inf'), device=x.device), 1)\n"
                "    angles = torch.cos(torch.arange(128) * 0.5)"
            )
        ),
        Valid(
            with_host_line("out = finish(out)", before="from demo_helpers import finish\n"),
            files={"demo_helpers.py": "import torch\n\n\ndef finish(t):\n    return t.contiguous()\n"},
        ),
        Valid(impl(wrapper=WRAPPER.replace("_like(x)", "_like(x, dtype=torch.float32, memory_format=torch.contiguous_format)"))),
        Valid(impl(after="@torch.compile\ndef _scaled(x):\n    return torch.exp(x) * 2\n")),
        Valid(
            impl(
                before="def _older(lengths, tile):\n    for i in pypto.loop(lengths.shape[0]):\n"
                "        left = (lengths[i] - i * tile).max(0).min(tile)\n        left.as_variable()\n"
            )
        ),
        Valid(
            impl(
                wrapper="""
                @torch.library.custom_op("demo::exp", mutates_args=())
                def demo_op(x: torch.Tensor) -> torch.Tensor:
                    out = torch.empty_like(x)
                    demo_kernel(x, out)
                    return out


                def demo_wrapper(x):
                    return torch.ops.demo.exp(x)
                """
            )
        ),
        Valid(impl(before="import math\n\nSCALE = 1.0 / math.sqrt(128.0)\nNAMES = ['a'] * 3\n")),
    ]
    INVALID = [
        Invalid(with_host_line(line, **parts))
        for line, parts in (
            ("out = torch.softmax(out, -1)", {}),
            ("out = out * 2", {}),
            ("out *= 2", {}),
            ("out = out ** 2", {}),
            ("out = -out", {}),
            ("out = out @ x", {}),
            ("out = torch.logsumexp(x, -1)", {}),
            ("out = x.sum(-1)", {}),
            ("out.add_(x)", {}),
            ("out = out.sort()[0]", {}),
            ("out = exp(x)", {"before": "from torch import exp\n"}),
            ("out = F.gelu(out)", {"before": "import torch.nn.functional as F\n"}),
            ('out = getattr(torch, "exp")(x)', {}),
            ("out = pypto.torch.exp(x)", {}),
            ("out = torch.from_numpy(np.exp(x.cpu().numpy()))", {"before": "import numpy as np\n"}),
            ("out = main(out)", {"before": "def main(x):\n    return torch.exp(x)\n"}),
            ("out = operator.mul(out, x)", {"before": "import operator\n"}),
            ("out = sum([out, x])", {}),
            ("out = torch_npu.npu_rms_norm(x, x)[0]", {}),
            ("mask = x > 0", {}),
            ("out = getattr(out, 'cl' + 'amp')(max=1.0)", {}),
            ("out = half(out)", {"before": "import functools\n\nhalf = functools.partial(torch.mul, other=0.5)\n"}),
            ("out = torch.nn.Linear(4, 4)(out)", {}),
            ("out = torch._C._nn.gelu(out)", {}),
            ("out = type(out).exp(out)", {}),
            ('out = operator.methodcaller("exp")(out)', {"before": "import operator\n"}),
            ("out = torch.vmap(torch.exp)(out)", {}),
            ("out = out.apply_(lambda v: v * 2)", {}),
            ("out = torch.from_numpy(np.asarray(x) * 2)", {"before": "import numpy as np\n"}),
        )
    ] + [
        Invalid(impl(BODY.replace("pypto.exp(tile)", "torch.exp(tile)"))),
        Invalid(
            with_host_line("out = helpers.finish(out)", before="import demo_helpers as helpers\n"),
            files={"demo_helpers.py": "import torch\n\n\ndef finish(t):\n    return torch.exp(t)\n"},
        ),
        Invalid(
            impl(
                before="def _post(fn):\n    def inner(x):\n        return fn(x) * 0.5\n\n    return inner\n",
                wrapper="\n@_post\n" + WRAPPER,
            )
        ),
        Invalid(
            impl(
                before='@torch.library.custom_op("demo::post", mutates_args=())\ndef _post(x: torch.Tensor) -> torch.Tensor:\n'
                "    return x * 2\n",
                wrapper=WRAPPER.replace("return out", "return torch.ops.demo.post(out)"),
            )
        ),
        Invalid(impl(before="def demo_reference(x):\n    return torch.softmax(x, -1)\n")),
    ]

    def __init__(self, context: LintContext, unit: Unit | None) -> None:
        super().__init__(context, unit)
        self._beside: dict[str, Path | None] = {}

    def check_file(self) -> None:
        """Look at the host's code, then for torch in the graph's code, then into modules beside this one."""
        facts = self.facts
        self._scan(facts.host_sites)
        for site in facts.graph_sites(cst.Call):
            self._foreign(site, site.node, "the kernel's graph")  # type: ignore[arg-type]
        product = {id(site) for site in (*facts.host_sites(cst.Call), *facts.graph_sites(cst.Call))}
        for site, node, names in facts.foreign_calls:
            if id(site) in product:
                self._elsewhere(site, node, names)

    def _idle(self, site: Site) -> bool:
        """Whether nothing in the file uses the function of `site`, which is for `torch.compile`, `torch.library` or a kernel."""
        function = site.function
        if function is None or not self.facts.is_unused(function):
            return False
        if any(self.facts.callee_names(call.node) & LOOPS for call in function.of(cst.Call)):  # type: ignore[arg-type]
            return True  # a helper that no kernel calls any more: loops of pypto run nowhere else
        made = [d.func if isinstance(d, cst.Call) else d for d in function.decorators]
        return any(self.facts.ev.paths(maker) & _FOR_OTHERS for maker in made)

    def _scan(self, sites: Callable[..., list[Site]]) -> None:
        """Judge host code; `sites` gives its sites by node type."""
        for site in sites(cst.Call):
            if not any(a.node.__class__ is cst.Annotation for a in site.ancestors()):
                self._call(site, site.node)  # type: ignore[arg-type]
        for site in sites(cst.BinaryOperation):
            self._operator(site, site.node)  # type: ignore[arg-type]
        for site in sites(cst.AugAssign):
            node: cst.AugAssign = site.node  # type: ignore[assignment]
            if self._data(node.target) or self._data(node.value):
                self._tell(site, f"`{self.code(node, 40)}` is arithmetic on a torch tensor")
        for site in sites(cst.Comparison, cst.UnaryOperation):
            if self._data(site.node):
                self._tell(site, f"`{self.code(site.node, 40)}` computes a torch tensor element by element")

    def _elsewhere(self, site: Site, node: cst.Call, names: Iterable[str]) -> None:
        """Follow a call into another module of the operator."""
        for name in names:
            target, word = self._module_beside(name)
            if target is None:
                continue
            there = HostCompute(self.context, target)
            there._scan(functools.partial(_sites_behind, target.facts, word))
            if there.findings:
                first = there.findings[0]
                self._tell(site, f"`{self.code(node, 40)}` computes in {first.file}, line {first.line}")
                return

    def _module_beside(self, name: str) -> tuple[Unit | None, str]:
        """Return the operator's own module that a dotted name leads into, and the name in it."""
        parts = name.lstrip(".").split(".")
        for place, word in enumerate(parts[:-1]):
            if word not in self._beside:
                folders = dict.fromkeys((self.unit.path.parent, self.files.ws.root)) if word.isidentifier() else ()
                paths = (folder / f"{word}.py" for folder in folders)
                self._beside[word] = next((p for p in paths if p != self.unit.path and p.is_file()), None)
            path = self._beside[word]
            if path is not None:
                unit = self.files.unit(path)
                return (unit if unit.tree is not None else None), parts[place + 1]
        return None, ""

    def _tensor(self, node: cst.CSTNode | None) -> bool:
        return self.facts.tensors.on_host(node)

    def _data(self, node: cst.CSTNode) -> bool:
        """Whether `node` is a torch tensor that holds something of the inputs or of what a kernel wrote."""
        return self.facts.tensors.on_host(node) and self.facts.data.carries(node)

    def _tell(self, site: Site, what: str) -> None:
        if not self._idle(site):
            self.report(site, f"{what}: the operator's arithmetic belongs into the kernel")

    def _operator(self, site: Site, node: cst.BinaryOperation) -> None:
        if not isinstance(node.operator, _ARITHMETIC):
            return
        is_data = self._data(node.left) or self._data(node.right)
        if isinstance(node.operator, cst.MatrixMultiply) or is_data or self._must_be_tensor(site):
            parent = site.parent.node if site.parent is not None else None
            if not isinstance(parent, cst.BinaryOperation):
                self._tell(site, f"`{self.code(node, 40)}` is arithmetic on a torch tensor")

    def _must_be_tensor(self, site: Site) -> bool:
        """Whether what an operator gives, from data, is handed to a function or kernel that takes a tensor there."""
        value = site
        while value.parent is not None and isinstance(value.parent.node, (cst.BinaryOperation, cst.IfExp, cst.NamedExpr)):
            value = value.parent
        around = value.parent
        if around is None or not self.facts.data.carries(site.node):
            return False
        if isinstance(around.node, cst.Arg):
            return self._fills_tensor(around)
        target = around.node.targets[0].target if isinstance(around.node, cst.Assign) else None
        if not isinstance(target, cst.Name) or site.function is None:
            return False
        own = [s for s in site.function.named(target.value) if s.order > site.order]
        uses = [s for s in own if s.parent is not None and isinstance(s.parent.node, cst.Arg)]
        return any(
            self._fills_tensor(s.parent)  # type: ignore[arg-type]
            for s in uses
            if any(b.value is value.node for b, _ in bindings_of(self.facts.tree, s.node))  # type: ignore[arg-type]
        )

    def _fills_tensor(self, argument: Site) -> bool:
        """Whether an argument of a call goes to a parameter that is a tensor."""
        call = argument.parent
        if call is None or not isinstance(argument.node, cst.Arg):
            return False
        tensors = self.facts.tensors
        for found in self.facts.calls.calls_at(call.node):
            for parameter in found.function.parameters:
                if found.argument(parameter) is argument.node.value:
                    if self.facts.is_kernel(found.function):
                        return tensors.is_tensor_parameter(parameter)
                    return tensors.host_parameter(found.function, parameter)
        return False

    def _call(self, site: Site, node: cst.Call) -> None:
        called = method_called(self.facts.ev, node)
        if self._foreign(site, node, _HOST) or called is None:
            return
        names = self.facts.callee_names(node)
        receiver, method = called
        own = any(c.kind == "call" for c in self.facts.calls.calls_at(node))  # not a function that it is handed
        if names or method in host_words.MOVES or own:
            return
        if self._tensor(receiver):
            if not self.facts.data.carries(node):
                return
            returns = self._tensor(node) or method.endswith("_")
            if returns and not method.startswith("is_"):
                self._tell(site, f"`.{method}()` computes on a torch tensor")
        elif method in host_words.COMPUTE_METHODS and self._may_be_tensor(receiver):
            self._tell(site, f"`.{method}()` computes on a tensor")

    def _may_be_tensor(self, node: cst.BaseExpression) -> bool:
        """Whether nothing shows that `node` is something else than a tensor."""
        kinds = (Member, Param, Unknown)
        return any(
            isinstance(v, kinds) or (isinstance(v, Result) and v.callee.startswith(("torch.", "builtins.type")))
            for v in self.facts.ev.values(node)
        )

    def _foreign(self, site: Site, node: cst.Call, where: str) -> bool:
        """Judge a call of foreign code; say whether it was reported."""
        if where == _HOST and self._hidden(site, node):
            return True
        for name in self.facts.callee_names(node):
            if self._computes(name, node) and (where != _HOST or self._from_data(name, node)):
                self._tell(site, f"`{name}` computes in {where}")
                return True
        return False

    def _hidden(self, site: Site, node: cst.Call) -> bool:
        """A computing function that is handed on (`map(torch.exp, ...)`), or a tensor made of numbers computed in Python."""
        for arg in node.args:
            for name in sorted(self.facts.ev.paths(arg.value)):
                others = [a.value for a in node.args if a is not arg]
                if name.startswith("torch.") and self._computes(name, node) and any(map(self.facts.data.carries, others)):
                    self._tell(site, f"`{name}` is handed to `{self.code(node.func, 30)}` with data")
                    return True
        if self.facts.callee_names(node) & host_words.MAKES_TENSOR and any(self._computes_in_python(a.value) for a in node.args):
            self._tell(site, f"`{self.code(node, 40)}` holds what Python computed from a tensor's values")
            return True
        return False

    def _computes_in_python(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.BinaryOperation) and self.facts.data.reads_values(node):
            return True
        if isinstance(node, cst.Name):
            found = bindings_of(self.facts.tree, node)
            return any(b.kind == "assign" and b.value is not None and self._computes_in_python(b.value) for b, _ in found)
        return any(self._computes_in_python(child) for child in children(node))

    def _from_data(self, name: str, node: cst.Call) -> bool:
        """Whether a call works on data. Masks and tables built from constants are no part of the computation."""
        return name.startswith("torch.nn.") or any(self.facts.data.carries(arg.value) for arg in node.args)

    def _computes(self, name: str, node: cst.Call) -> bool:
        if host_words.takes_data(name):
            return any(self._holds_tensor(arg.value) for arg in node.args)
        return host_words.computes(name)

    def _holds_tensor(self, node: cst.CSTNode) -> bool:
        if isinstance(node, (cst.List, cst.Tuple, cst.Set)):
            return any(self._holds_tensor(element.value) for element in node.elements)
        return self._tensor(node)


def _sites_behind(facts: Facts, word: str, *types: type[cst.CSTNode]) -> list[Site]:
    """Return the sites of the functions that calling a module's `word` runs."""
    wanted = {id(f) for f in facts.calls.reach(facts.wrappers_named(word))}
    return [site for site in facts.tree.sites(*types) if id(site.function) in wanted]
