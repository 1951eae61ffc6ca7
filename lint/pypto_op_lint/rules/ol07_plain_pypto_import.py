"""OL07: pypto comes in by `import pypto` and nothing else."""

import re

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import HEAD, impl
from pypto_op_lint.import_statements import dotted
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site

_IMPORT = re.compile(r"\b(?:import|from)\s+pypto\b")


class PlainPyptoImport(Rule):
    """pypto is not imported by a plain `import pypto`, or also in another way.

    What it does:
        Wants `import pypto` at module level, and refuses `import pypto as x` (also as `pypto`), `import pypto.x`,
        `from pypto ... import x`, `importlib.import_module("pypto")`, `__import__("pypto")`, `sys.modules["pypto"]` and
        text handed to `exec` that imports it, anywhere in live code, functions included.

    Why:
        Every other tool of the workflow finds pypto's calls by the name `pypto`; a second name hides calls from readers
        and from the search for API documentation.

    Example:
        from pypto import view, assemble

    Use instead:
        import pypto

        tile = pypto.view(x, [64, 128], [0, 0])

    Known limits:
        A name bound to the module afterwards (`p = pypto`) is not reported here; the other rules see through it.
    """

    id = "OL07"
    name = "plain-pypto-import"
    severity = Severity.S0
    artifacts = IMPLS
    needs = frozenset({"foreign_calls"})
    MESSAGE = "the file has no `import pypto` at module level"
    FIX_HINT = "import pypto by one line `import pypto` and write `pypto.` in front of each of its names"

    VALID = [
        Valid(impl()),
        Valid(impl(head=HEAD.replace("import pypto\n", "import pypto, math\n"))),
        Valid(impl(head=HEAD + "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from pypto import Tensor\n")),
        Valid(impl(before='"""from pypto import view"""\nimport pypto_helpers_of_ours as helpers\n')),
    ]
    INVALID = [
        Invalid(impl(head=HEAD.replace("import pypto\n", ""))),
        Invalid(impl(head=HEAD + "import pypto as pt\n"), lines=(8,)),
        Invalid(impl(head=HEAD.replace("import pypto\n", "import pypto as pypto\n")), lines=(3,)),
        Invalid(impl(head=HEAD + "import pypto.frontend\n"), lines=(8,)),
        Invalid(impl(head=HEAD + "from pypto.experimental import nop\n"), lines=(8,)),
        Invalid(impl(head=HEAD + "from pypto import *\n"), lines=(8,)),
        Invalid(impl(before="def _view():\n    from pypto import view\n    return view\n")),
        Invalid(impl(head=HEAD + "try:\n    import pypto.op as op\nexcept ImportError:\n    op = None\n"), lines=(9,)),
        Invalid(impl(before='import importlib\n\npt = importlib.import_module("pypto")\n')),
        Invalid(impl(before='F = __import__("pypto.frontend")\n')),
        Invalid(impl(before='import sys\n\npt = sys.modules["pypto"]\n')),
        Invalid(impl(before='exec("from pypto import view")\n')),
        Invalid(impl(head=HEAD.replace("import pypto\n", ""), before="def _late():\n    import pypto\n    return pypto\n")),
    ]

    def visit_Import(self, site: Site) -> None:
        """`import pypto as x`, `import pypto.x`."""
        assert isinstance(site.node, cst.Import)
        for alias in site.node.names:
            path = dotted(alias.name)
            asname = alias.asname.name if alias.asname is not None else None
            if path.split(".")[0] != "pypto":
                continue
            if isinstance(asname, cst.Name):
                second = f"gives {path} a second name" if asname.value != path else "is not the plain import"
                self.report(alias, f"`import {path} as {asname.value}` {second}")
            elif path != "pypto":
                self.report(alias, f"`import {path}` imports a part of pypto")

    def visit_ImportFrom(self, site: Site) -> None:
        """`from pypto import x`."""
        assert isinstance(site.node, cst.ImportFrom)
        path = dotted(site.node.module)
        if not site.node.relative and path.split(".")[0] == "pypto":
            self.report(site, f"`from {path} import ...` takes names out of pypto")

    def check_file(self) -> None:
        """Dynamic imports, and whether the plain import is there at all."""
        for _, node, names in self.facts.foreign_calls:
            if names & {"importlib.import_module", "builtins.__import__"} and node.args:
                wanted = self.facts.ev.constant(node.args[0].value)
                if wanted is not None and str(wanted.value).split(".")[0] == "pypto":
                    self.report(node, f"`{self.code(node)}` imports pypto dynamically")
            elif names & {"builtins.exec", "builtins.eval"} and node.args and self._imports_pypto(node.args[0].value):
                self.report(node, f"`{self.code(node)}` runs text that imports pypto")
        for site, name in self.facts.from_module_table:
            if name.split(".")[0] == "pypto":
                self.report(site, f"`{self.code(site.node)}` fetches pypto from Python's table of modules")
        bindings = self.facts.tree.module.bindings.get("pypto", [])
        if not any(b.kind == "import" and b.target == "pypto" for b in bindings):
            self.report(None)

    def _imports_pypto(self, node: cst.BaseExpression) -> bool:
        text = self.facts.ev.constant(node)
        return text is not None and isinstance(text.value, str) and bool(_IMPORT.search(text.value))
