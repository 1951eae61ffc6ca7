"""PX03: annotations must be objects, not strings."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.findings import Edit
from pypto_op_lint.import_statements import dotted
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site

_LINE = "from __future__ import annotations\n"


class NoFutureAnnotations(Rule):
    """The impl imports `annotations` from `__future__`.

    What it does:
        Reports the import. `--fix` removes it when it stands alone on its line.

    Why:
        pypto reads the kernel's annotations as objects. With this import they are strings, no parameter is a tensor
        any more, and the launch fails with "Non-tensor parameter must not be a torch.Tensor".

    Example:
        from __future__ import annotations
        import pypto

    Use instead:
        import pypto

    Known limits:
        None known.
    """

    id = "PX03"
    name = "no-future-annotations"
    severity = Severity.S1
    artifacts = IMPLS
    MESSAGE = "`from __future__ import annotations` turns the kernel's tensor annotations into strings that pypto cannot read"
    FIX_HINT = "remove the line; quote single annotations where a name is not yet defined"

    VALID = [
        Valid(impl()),
        Valid('"""from __future__ import annotations"""\n' + impl()),
        Valid("from __future__ import division\n" + impl()),
    ]
    INVALID = [
        Invalid(_LINE + impl(), lines=(1,), replacement=impl()),
        Invalid('"""An operator."""\n' + _LINE + impl(), lines=(2,), replacement='"""An operator."""\n' + impl()),
        Invalid("from __future__ import division, annotations\n" + impl(), lines=(1,)),
    ]

    def visit_ImportFrom(self, site: Site) -> None:
        """Look for the import."""
        node = site.node
        assert isinstance(node, cst.ImportFrom)
        if dotted(node.module) == "__future__" and not isinstance(node.names, cst.ImportStar):
            names = [dotted(alias.name) for alias in node.names]
            if "annotations" in names:
                self.report(site, edit=self._removal(site) if names == ["annotations"] else None)

    def _removal(self, site: Site) -> Edit | None:
        line = site.parent.node if site.parent is not None else None
        alone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
        tree = self.unit.tree
        if not alone or tree is None:
            return None
        first, _, last, _ = tree.position(site.node)
        return Edit(first, 0, last + 1, 0, "")
