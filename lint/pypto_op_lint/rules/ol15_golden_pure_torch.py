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


class GoldenPureTorch(Rule):
    """The golden uses pypto, `.T` or `.t()`, or a module golden does not stand alone.

    What it does:
        Reports every import of pypto or of an implementation, functions and importlib included, the attribute `.T` of a
        tensor, and calls of `.t()` without arguments or `torch.t(x)`. In a module golden also whatever leads to another
        file: imports of anything but torch, math and the computing parts of the standard library, `open`, `exec`,
        `torch.load`, `sys.modules`.

    Why:
        The golden is the truth that the kernel is measured with: it must not share code with it. `.T` and `.t()` have no
        counterpart in pypto and hide a layout change from the inventory. A golden of M_1..M_k that calls the operator's
        golden makes composition compare a golden with itself.

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
    needs = frozenset({"foreign_calls"})
    MESSAGE = "the golden is not plain torch"
    FIX_HINT = "write the golden with torch alone, and transposes as torch.transpose(x, -1, -2)"

    VALID = [
        Valid(GOLDEN, artifact=Artifact.GOLDEN),
        Valid('"""Never `import pypto` here, nor x.T."""\n' + GOLDEN, artifact=Artifact.GOLDEN),
        Valid(GOLDEN + "\n\nclass Dims:\n    T = 64\n\n\nTOKENS = Dims.T\n", artifact=Artifact.GOLDEN),
        Valid(GOLDEN.replace("torch.exp(x)", "torch.transpose(x, 0, 1)"), artifact=Artifact.MODULE_GOLDEN, phase=1),
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
        Invalid("from demo_golden import demo_golden\n" + GOLDEN, artifact=Artifact.MODULE_GOLDEN, phase=1, lines=(1,)),
        Invalid("from demo_module1_golden import other\n" + GOLDEN, artifact=Artifact.MODULE_GOLDEN, phase=2),
        Invalid(GOLDEN.replace("torch.exp(x)", 'torch.load("x.pt")'), artifact=Artifact.MODULE_GOLDEN, phase=1),
        Invalid(GOLDEN.replace("    return", "    exec(SOURCE)\n    return"), artifact=Artifact.MODULE_GOLDEN, phase=1),
    ]

    def visit_Attribute(self, site: Site) -> None:
        """`x.T`."""
        node: cst.Attribute = site.node  # type: ignore[assignment]
        if node.attr.value != "T" or (isinstance(node.value, cst.Name) and _NO_TENSOR.match(node.value.value)):
            return
        values = self.facts.ev.values(node.value)
        if not any(isinstance(v, (Instance, Cls, Const, Table)) or _is_module(v) for v in values):
            self.report(site, f"`{self.code(node)}` transposes in a way that pypto does not have")

    def visit_Call(self, site: Site) -> None:
        """`x.t()` and `torch.t(x)`."""
        node: cst.Call = site.node  # type: ignore[assignment]
        method = isinstance(node.func, cst.Attribute) and node.func.attr.value == "t" and not node.args
        if method or "torch.t" in self.facts.callee_names(node):
            self.report(site, f"`{self.code(node)}` transposes in a way that pypto does not have")
        elif "builtins.getattr" in self.facts.callee_names(node) and len(node.args) > 1:
            name = self.facts.ev.constant(node.args[1].value)
            if name is not None and name.value in ("T", "t"):
                self.report(site, f"`{self.code(node)}` transposes in a way that pypto does not have")

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
