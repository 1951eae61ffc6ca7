"""PX10: the impl leaves the interpreter's and the judge's objects alone."""

from collections.abc import Iterable

import libcst as cst

from pypto_op import back_doors
from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import WRAPPER, impl, with_host_line
from pypto_op_lint.facts.values import Func, Path
from pypto_op_lint.imports import components, imported
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site

_CALLS = back_doors.FINDS_OBJECTS | back_doors.WATCHES | {back_doors.FRAME_OF_CALLER, back_doors.HANDLES_SIGNAL}
_RUNS_TEXT = frozenset({"builtins.exec", "builtins.eval", "builtins.compile"})
_SHARED = frozenset({"torch", "torch_npu", "numpy", "pypto", "builtins"})
_NO_HANDLER = frozenset({"signal.SIG_IGN", "signal.SIG_DFL"})
_PUT_TOGETHER = (cst.BinaryOperation, cst.FormattedString, cst.Call)


class NoBackDoors(Rule):
    """The impl names a way into the interpreter's own objects, or starts what runs beside the kernel.

    What it does:
        Reports the names that the judge refuses before it runs a file (`__closure__`, `__globals__`, `__wrapped__`, `__code__`,
        `__subclasses__`, `__builtins__`, `cell_contents`, `f_back` and its kin), as an attribute, a name or a string, also put
        together from constants and in code that never runs; imports of `pypto_op`, `gc`, `inspect` and `ctypes`, however
        they are written; calls such as `sys._getframe` and `sys.settrace`; `exec`, `eval` and `compile`, whose code no rule
        reads; a function of torch, numpy, pypto or the builtins that is replaced; and what runs beside the launch: threads,
        timers, pools, processes, signal handlers (a self-test may start a profiler).

    Why:
        The kernel under judgement shares an interpreter with what measures it, and what runs beside a launch can write its
        outputs. The judge answers such a file with the verdict "forbidden", whatever its numbers are.

    Example:
        build = _build.__wrapped__
        caller = sys._getframe(1).f_back

    Use instead:
        build = functools.lru_cache(maxsize=None)(_build)

        and pass what a function needs as an argument.

    Known limits:
        A name that is put together from values that the file does not show is seen by the judge's process alone.
    """

    id = "PX10"
    name = "no-back-doors"
    severity = Severity.S0
    artifacts = IMPLS
    needs = frozenset({"foreign_calls", "calls", "host_sites"})
    MESSAGE = "the impl reaches into the interpreter"
    FIX_HINT = (
        "remove it: a kernel needs no frames, closures, code objects, threads, processes or modules of the tools; "
        "the judge refuses the file"
    )

    VALID = [
        Valid(impl()),
        Valid(impl(before='"""The judge refuses __closure__ and inspect."""\n# import gc; f.__globals__\n')),
        Valid(impl(before="import functools\nimport math\nimport sys\n\nLIMIT = sys.maxsize\nNAME = __name__\n")),
        Valid(impl(before="torch.backends.mkldnn.enabled = False\n")),
        Valid(impl(before="import signal\nimport threading\n\nLOCK = threading.Lock()\nsignal.signal(2, signal.SIG_IGN)\n")),
        Valid(
            impl(before="class Shape:\n    def __init__(self, rows):\n        self.rows = rows\n\n    __slots__ = ('rows',)\n")
        ),
    ]
    INVALID = [
        Invalid(with_host_line("build = demo_kernel.__wrapped__")),
        Invalid(with_host_line("cells = [c.cell_contents for c in demo_kernel.fn.hook]")),
        Invalid(with_host_line('inner = getattr(demo_kernel, "__globals__")')),
        Invalid(with_host_line('inner = getattr(demo_kernel, "__glo" + "bals__")')),
        Invalid(with_host_line('word = "code"\n    inner = getattr(demo_kernel, f"__{word}__")')),
        Invalid(with_host_line("if False:\n        demo_kernel.__closure__")),
        Invalid(with_host_line("kinds = object.__subclasses__()")),
        Invalid(impl(before="import gc\n\ngc.disable()\n")),
        Invalid(impl(before="from inspect import signature\n")),
        Invalid(impl(before="import ctypes.util as util\n")),
        Invalid(impl(before="def _late():\n    from pypto_op.backends import base\n    return base\n")),
        Invalid(impl(before='import importlib\n\nTOOLS = importlib.import_module("pypto_op.judge")\n')),
        Invalid(impl(before='import sys\n\nCOLLECTOR = sys.modules["gc"]\n')),
        Invalid(impl(before="import sys\n\nCALLER = sys._getframe(1)\n")),
        Invalid(impl(before="from sys import settrace\n\nsettrace(None)\n")),
        Invalid(impl(before="import signal\n\nsignal.signal(signal.SIGALRM, print)\n")),
        Invalid(impl(before="from concurrent.futures import ThreadPoolExecutor as Pool\n\nPOOL = Pool(1)\n")),
        Invalid(impl(before="import threading\n\n\nclass Late(threading.Thread):\n    pass\n")),
        Invalid(with_host_line("getattr(os, 'fork')()", before="import os\n")),
        Invalid(with_host_line("exec('import ' + 'g' + 'c')")),
        Invalid(impl(wrapper=WRAPPER + "\n\ntorch.allclose = lambda *a, **k: True\n")),
        Invalid(impl(wrapper=WRAPPER + "\n\nsetattr(torch, 'equal', demo_wrapper)\n")),
    ]

    def check_file(self) -> None:
        """Look for the names, the imports and the calls."""
        told = self._names()
        for site in self.facts.tree.sites(*_PUT_TOGETHER):
            self._put_together(site, told)
        for site, name in imported(self.facts):
            if components(name)[0] in back_doors.MODULES:
                self.report(site, f"`{self.code(site.node)}` brings in `{components(name)[0]}`, which the judge refuses")
        for site, node, names in self.facts.foreign_calls:
            for name in sorted(names & _CALLS):
                if name != back_doors.HANDLES_SIGNAL or not any(self.facts.ev.paths(a.value) & _NO_HANDLER for a in node.args):
                    self.report(site, f"`{self.code(node, 40)}` calls `{name}`, which the judge refuses")
            if names & _RUNS_TEXT:
                self.report(site, f"`{self.code(node, 40)}` runs code that stands in a string, which no rule reads")
            if "builtins.setattr" in names and len(node.args) == 3:
                self._replaced(site, node.args[0].value, node.args[2].value)
            self._beside(site, names)
        for site in self.facts.tree.sites(cst.Assign):
            for target in site.node.targets:  # type: ignore[attr-defined]
                if isinstance(target.target, cst.Attribute):
                    self._replaced(site, target.target.value, site.node.value)  # type: ignore[attr-defined]
        for site in self.facts.tree.sites(cst.ClassDef):
            self._beside(site, {name for base in site.node.bases for name in self.facts.ev.paths(base.value)})  # type: ignore[attr-defined]

    def _beside(self, site: Site, names: Iterable[str]) -> None:
        for name in sorted(back_doors.RUNS_BESIDE.intersection(names)):
            if self.facts.in_product(site):
                self.report(site, f"`{name}` runs code beside the kernel, where it can write the outputs")

    def _replaced(self, site: Site, owner: cst.BaseExpression, value: cst.BaseExpression) -> None:
        """`torch.allclose = lambda *a, **k: True`: whoever compares in this process gets that function."""
        roots = {components(path)[0] for path in self.facts.ev.paths(owner)} & _SHARED
        if roots and any(isinstance(v, (Func, Path)) for v in self.facts.ev.values(value)):
            self.report(site, f"`{self.code(site.node, 40)}` replaces what everyone in the process takes from {roots.pop()}")

    def _names(self) -> set[int]:
        """Report the names that stand in the text; return their lines."""
        if not back_doors.may_name(self.unit.text):
            return set()
        found = sorted(set(back_doors.named(self.unit.text)))
        for line, _, name in found:
            self.report(line, f"`{name}` leads into the interpreter's own objects, which the judge refuses")
        return {line for line, _, _ in found}

    def _put_together(self, site: Site, told: set[int]) -> None:
        if isinstance(site.node, cst.Call) and not isinstance(site.node.func, cst.Attribute):
            return  # only a method of a string makes a name: `"_".join(...)`, `"__{}__".format(...)`
        found = self.facts.ev.constant(site.node)
        if found is not None and found.value in back_doors.NAMES and self.facts.tree.position(site.node)[0] not in told:
            self.report(site, f"`{self.code(site.node, 40)}` is {found.value!r}, which the judge refuses")
