"""OL58: the wrapper allocates its outputs with torch, not with pypto."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import WRAPPER, impl
from pypto_op_lint.facts.callsite import CallSite
from pypto_op_lint.facts.values import Const, Result
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site

_ALLOCATORS = {"pypto.zeros", "pypto.ones", "pypto.empty", "pypto.full", "pypto.arange"}
_SYMBOLS = {"pypto.tensor", "pypto.Tensor"}


def _wrapper(allocation: str, **parts: str) -> str:
    return impl(wrapper=WRAPPER.replace("torch.empty_like(x)", allocation), **parts)


class HostAllocation(Rule):
    """Host code makes a tensor with pypto, or hands the kernel an output that nothing allocated.

    What it does:
        Reports `pypto.zeros`, `ones`, `empty`, `full` and `arange` in host code, also through aliases and helpers;
        arguments of a launch that come from these or from `pypto.tensor`; None for a tensor; and names in a launch that
        nothing binds.

    Why:
        pypto's constructors make nodes of a graph. On the host there is no graph: the kernel would get no memory to write
        to, and the wrapper would return nothing real.

    Example:
        out = pypto.zeros([rows, 128], dtype=pypto.DT_FP32)
        softmax_kernel(x, out)

    Use instead:
        out = torch.empty_like(x)
        softmax_kernel(x, out)

    Known limits:
        `pypto.from_torch` wraps a torch tensor and is allowed. A helper that nothing in the file names is not looked at.
    """

    id = "OL58"
    name = "host-allocation"
    severity = Severity.S0
    artifacts = IMPLS
    needs = frozenset({"host_sites", "foreign_calls", "launches", "calls", "tensors"})
    MESSAGE = "host code makes a tensor with pypto"
    FIX_HINT = "allocate outputs in the wrapper with `torch.empty(..., device=x.device, dtype=...)` or `torch.empty_like`"

    VALID = [
        Valid(impl()),
        Valid(_wrapper("torch.empty(x.shape, dtype=x.dtype, device=x.device)")),
        Valid(_wrapper("_allocate(x)", before="def _allocate(like):\n    return torch.zeros_like(like)\n")),
        Valid(impl("acc = pypto.zeros([64, 128], dtype=pypto.DT_FP32)\npypto.set_vec_tile_shapes(64, 128)\nout[:] = acc + x\n")),
        Valid(
            impl(
                before="def _zero():\n    return pypto.full([64, 128], 0.0, pypto.DT_FP32)\n",
                body="pypto.set_vec_tile_shapes(64, 128)\nout[:] = _zero() + x\n",
            )
        ),
        Valid(impl(before="def _zero():\n    return pypto.full([64, 128], 0.0, pypto.DT_FP32)\n")),
        Valid(impl(wrapper=WRAPPER.replace("demo_kernel(x, out)", "demo_kernel(pypto.from_torch(x), pypto.from_torch(out))"))),
    ]
    INVALID = [
        Invalid(_wrapper("None")),
        Invalid(_wrapper("pypto.zeros([64, 128], dtype=pypto.DT_FP32)")),
        Invalid(_wrapper("pypto.full([64, 128], 0.0, pypto.DT_FP32)")),
        Invalid(_wrapper("make([64, 128])", before="make = pypto.ones\n")),
        Invalid(_wrapper("_allocate()", before="def _allocate():\n    return pypto.zeros([64, 128])\n")),
        Invalid(_wrapper('getattr(pypto, "zeros")([64, 128])')),
        Invalid(_wrapper("pypto.tensor([64, 128], pypto.DT_FP32)")),
        Invalid(impl(wrapper="def demo_wrapper(x):\n    demo_kernel(x, out)\n    return out\n")),
        Invalid(
            impl(
                wrapper="""
                def attention_wrapper(x):
                    buffers = (pypto.zeros([8, 8]), 1)
                    out, _ = buffers
                    demo_kernel(x, out)
                    return out
                """
            )
        ),
    ]

    def check_file(self) -> None:
        """Look at host calls and at what launches are given."""
        facts = self.facts
        seen: set[int] = set()
        hosted = {id(site) for site in facts.host_sites(cst.Call)}
        for site, _, names in facts.foreign_calls:
            if not names & _ALLOCATORS or id(site) not in hosted:
                continue
            if site.function is not None and facts.is_unused(site.function):
                continue
            if not any(isinstance(a.node, cst.Annotation) for a in site.ancestors()):
                seen.add(id(site.node))
                self.report(site, f"`{self.code(site.node, 50)}` makes a node of a graph, not memory of the host")
        hosts = {id(f) for f in facts.host_functions}
        for call in facts.launches.all:
            if call.caller is not None and facts.is_unused(call.caller):
                continue
            if call.kind == "call" and (call.caller is None or id(call.caller) in hosts):
                for arg in call.call.args:
                    self._argument(arg.value, call, seen)

    def _argument(self, node: cst.BaseExpression, call: CallSite, seen: set[int]) -> None:
        kernel = call.function
        for value in self.facts.ev.values(node):
            made = isinstance(value, Result) and value.callee in _ALLOCATORS | _SYMBOLS
            if made and id(value.call) not in seen:  # type: ignore[union-attr]
                seen.add(id(value.call))  # type: ignore[union-attr]
                self.report(
                    node,
                    f"the launch of `{kernel.name}` gets `{self.code(node, 30)}`, which `{value.callee}` made",  # type: ignore[union-attr]
                )
        if _is_none(self.facts.ev.constant(node)) and self._is_tensor(call, node):
            self.report(node, f"the launch of `{kernel.name}` gets None for a tensor")
        if isinstance(node, cst.Name) and self._unbound(node.value, call.site):
            self.report(node, f"the launch of `{kernel.name}` gets `{node.value}`, which nothing allocates")

    def _is_tensor(self, call: CallSite, node: cst.BaseExpression) -> bool:
        """Whether the kernel's parameter that gets `node` is annotated as a tensor."""
        taking = (p for p in call.function.parameters if call.argument(p) is node)
        return any(self.facts.tensors.is_tensor_parameter(p) for p in taking)

    def _unbound(self, name: str, launch: Site) -> bool:
        import builtins

        stars = self.facts.tree.module.bindings.get("*")
        return launch.scope.lookup(name) is None and not stars and not hasattr(builtins, name)


def _is_none(value: Const | None) -> bool:
    return value is not None and value.value is None
