"""PX09: the impl registers the NPU with torch."""

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import HEAD, impl
from pypto_op_lint.import_statements import dotted
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid


class NpuImport(Rule):
    """The impl does not import torch_npu beside pypto.

    What it does:
        Wants `import torch_npu` (any form) at module level of a file that imports pypto.

    Why:
        Without it torch knows no device called npu, and the first allocation on it fails.

    Example:
        import pypto
        import torch

    Use instead:
        import pypto
        import torch
        import torch_npu

    Known limits:
        Warns only: another module may have imported it.
    """

    id = "PX09"
    name = "npu-import"
    severity = Severity.S2
    artifacts = IMPLS
    MESSAGE = "the module does not import torch_npu"
    FIX_HINT = "write `import torch_npu` beside `import pypto`"

    VALID = [
        Valid(impl()),
        Valid(
            impl(head=HEAD.replace("import torch_npu", "try:\n    import torch_npu\nexcept ImportError:\n    torch_npu = None"))
        ),
    ]
    INVALID = [
        Invalid(impl(head=HEAD.replace("import torch_npu\n", ""))),
        Invalid(impl(head=HEAD.replace("import torch_npu\n", "# import torch_npu\n"))),
    ]

    def check_file(self) -> None:
        """Look for the import."""
        for site in self.facts.tree.sites(cst.Import, cst.ImportFrom):
            node = site.node
            names = [dotted(a.name) for a in node.names] if isinstance(node, cst.Import) else [dotted(node.module)]  # type: ignore[attr-defined]
            if site.function is None and any(name.split(".")[0] == "torch_npu" for name in names):
                return
        self.report(None)
