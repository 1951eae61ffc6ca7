"""OL15: the golden is plain torch."""

import re

import libcst as cst

from pypto_op import self_contained
from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.examples import GOLDEN
from pypto_op_lint.facts.values import Cls, Const, Instance, Path, Table
from pypto_op_lint.imports import components, imported
from pypto_op_lint.rule import GOLDENS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site

_IMPL = re.compile(r"\w+_impl\Z")
_NO_TENSOR = re.compile(r"(?:self|cls|cfg|conf|config|args|opts?|options|params?|dims?|shapes?|sizes?|meta|case|spec)\Z")
_ATTRIBUTES = frozenset({"T", "mT", "H", "mH"})
_METHODS = frozenset({"t", "t_", "adjoint"})


class GoldenPureTorch(Rule):
    """The golden uses pypto, `.T` or `.t()`, or a module golden does not stand alone.

    What it does:
        Reports every import of pypto or of an implementation, functions and importlib included; the attributes `.T`, `.mT`,
        `.H` and `.mH` of a tensor; calls of `.t()`, `.t_()` and `.adjoint()` without arguments, `torch.t(x)` and
        `torch.adjoint(x)`. What says its axes (`transpose`, `permute`, `swapaxes`) may stay. In a module golden also whatever
        leads to another file: imports of anything but torch, math and the computing parts of the standard library, `open`,
        `exec`, `torch.load`, `sys.modules`.

    Why:
        The golden is the truth that the kernel is measured with: it must not share code with it. `.T`, `.t()` and their
        like have no counterpart in pypto and hide a layout change from the inventory. A golden of M_1..M_k that calls the
        operator's golden makes composition compare a golden with itself.

    Example:
        def scores_golden(q, k):
            return q @ k.T

    Use instead:
        def scores_golden(q, k):
            return q @ torch.transpose(k, -1, -2)

    Known limits:
        `.T` of an object that is plainly no tensor (`self`, `cfg`, an instance of a class of the file) is let through by its
        name.
    """

    id = "OL15"
    name = "golden-pure-torch"
    severity = Severity.S1
    artifacts = GOLDENS
    needs = frozenset({"foreign_calls", "tensors"})
    MESSAGE = "the golden is not plain torch"
    FIX_HINT = "write the golden with torch alone, and transposes as torch.transpose(x, -1, -2)"

    VALID = [
        Valid(GOLDEN, artifact=Artifact.GOLDEN),
        Valid('"""Never `import pypto` here, nor x.T."""\n' + GOLDEN, artifact=Artifact.GOLDEN),
        Valid(GOLDEN + "\n\nclass Dims:\n    T = 64\n\n\nTOKENS = Dims.T\n", artifact=Artifact.GOLDEN),
        Valid(GOLDEN.replace("torch.exp(x)", "torch.transpose(x, 0, 1)"), artifact=Artifact.MODULE_GOLDEN, phase=1),
        Valid(GOLDEN.replace("(x):", "(x, sizes, p):").replace("torch.exp(x)", "torch.exp(x) * p.H"), artifact=Artifact.GOLDEN),
        Valid(GOLDEN.replace("torch.exp(x)", "x.swapaxes(-1, -2)"), artifact=Artifact.GOLDEN),
        Valid("from pypto_helpers_of_ours import scale\n" + GOLDEN, artifact=Artifact.GOLDEN),
        Valid("import functools\nimport math\n" + GOLDEN, artifact=Artifact.MODULE_GOLDEN, phase=1),
    ]
    INVALID = [
        Invalid("import pypto\n" + GOLDEN, artifact=Artifact.GOLDEN, lines=(1,)),
        Invalid("from pypto.frontend import jit\n" + GOLDEN, artifact=Artifact.GOLDEN),
        Invalid(GOLDEN.replace("    return", "    import pypto\n    return"), artifact=Artifact.GOLDEN),
        Invalid('import importlib\nP = importlib.import_module("pypto")\n' + GOLDEN, artifact=Artifact.GOLDEN),
        Invalid(GOLDEN.replace("torch.exp(x)", "x.T"), artifact=Artifact.GOLDEN),
        Invalid(GOLDEN.replace("torch.exp(x)", "torch.exp(x).t()"), artifact=Artifact.MODULE_GOLDEN, phase=1),
        Invalid(GOLDEN.replace("torch.exp(x)", "torch.t(x)"), artifact=Artifact.GOLDEN),
        Invalid(GOLDEN.replace("torch.exp(x)", "x.mT @ x"), artifact=Artifact.GOLDEN),
        Invalid(GOLDEN.replace("torch.exp(x)", "torch.exp(x).H"), artifact=Artifact.GOLDEN),
        Invalid(GOLDEN.replace("torch.exp(x)", "x.adjoint()"), artifact=Artifact.GOLDEN),
        Invalid(GOLDEN.replace("torch.exp(x)", 'getattr(x, "mT")'), artifact=Artifact.GOLDEN),
        Invalid("from demo_golden import demo_golden\n" + GOLDEN, artifact=Artifact.MODULE_GOLDEN, phase=1, lines=(1,)),
        Invalid("from demo_module1_golden import other\n" + GOLDEN, artifact=Artifact.MODULE_GOLDEN, phase=2),
        Invalid(GOLDEN.replace("torch.exp(x)", 'torch.load("x.pt")'), artifact=Artifact.MODULE_GOLDEN, phase=1),
        Invalid(GOLDEN.replace("    return", "    exec(SOURCE)\n    return"), artifact=Artifact.MODULE_GOLDEN, phase=1),
    ]

    def visit_Attribute(self, site: Site) -> None:
        """`x.T`, `x.mT`, `x.mH`, `x.H`."""
        node: cst.Attribute = site.node  # type: ignore[assignment]
        word = node.attr.value
        if word not in _ATTRIBUTES or (isinstance(node.value, cst.Name) and _NO_TENSOR.match(node.value.value)):
            return
        values = self.facts.ev.values(node.value)
        known = any(isinstance(v, (Instance, Cls, Const, Table)) or _is_module(v) for v in values)
        # `H` is also what a size is called.
        if not known and (word != "H" or self.facts.tensors.on_host(node.value)):
            self._tell(site)

    def visit_Call(self, site: Site) -> None:
        """`x.t()`, `x.adjoint()`, `torch.t(x)`, and names in strings: `getattr(x, "T")`, `operator.attrgetter("T")`."""
        node: cst.Call = site.node  # type: ignore[assignment]
        names = self.facts.callee_names(node)
        method = isinstance(node.func, cst.Attribute) and node.func.attr.value in _METHODS and not node.args
        if method or any(n.startswith("torch.") and n.rpartition(".")[2] in _METHODS for n in names):
            self._tell(site)
            return
        by_name = [arg.value for arg in node.args[1:2]] if "builtins.getattr" in names else []
        if names & {"operator.attrgetter", "operator.methodcaller"}:
            by_name = [arg.value for arg in node.args[:1]]
        for wanted in map(self.facts.ev.constant, by_name):
            if wanted is not None and str(wanted.value) in _ATTRIBUTES | _METHODS:
                self._tell(site)

    def _tell(self, site: Site) -> None:
        self.report(site, f"`{self.code(site.node)}` transposes in a way that pypto does not have")

    def check_file(self) -> None:
        """Imports, and what else leads out of a module golden."""
        if self.unit.artifact is Artifact.MODULE_GOLDEN:
            for line, what in sorted(set(self_contained.reaches_out(self.unit.text))):
                self.report(line, f"a module golden stands alone; it {what}", hint=self_contained.REMEDY)
            return
        for site, name in imported(self.facts):
            if components(name)[0] == "pypto":
                self.report(site, "the golden imports pypto")
            elif any(_IMPL.match(part) for part in components(name)):
                self.report(site, "the golden imports an implementation", hint="compute the reference with torch alone")


def _is_module(value: object) -> bool:
    return isinstance(value, Path) and not value.name.startswith(("torch.", "builtins."))
