"""OL16: the impl does not know the golden."""

import re
from collections.abc import Iterator

import libcst as cst

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import impl
from pypto_op_lint.imports import components, imported
from pypto_op_lint.nodes import text_of
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site

_GOLDEN = re.compile(r"(?:\w+_)?golden\Z")
_GOLDEN_FILE = re.compile(r"(?:^|[/\s.])(?:[\w*?]*_|\*)golden\*?(?:\.\w+|\.?\*)?\Z")
_PUT_TOGETHER = (cst.BinaryOperation, cst.FormattedString, cst.ConcatenatedString, cst.Call, cst.Name)
_FALLBACK = "    try:\n        demo_kernel(x, out)\n    except RuntimeError:\n        from demo_golden import demo_golden\n"


class NoGoldenInImpl(Rule):
    """The impl imports a golden, or opens its file.

    What it does:
        Reports imports of any module called `*_golden`, wherever they stand and however they are written (package paths,
        relative imports, importlib, a function's body), and strings that name such a module or file in a call or an index,
        also where they are put together from constants.

    Why:
        An impl that can call its golden passes every comparison, and a broken kernel ships.

    Example:
        def softmax_wrapper(x):
            from softmax_golden import softmax_golden
            return softmax_golden(x)

    Use instead:
        def softmax_wrapper(x):
            out = torch.empty_like(x)
            softmax_kernel(x, out)
            return out

    Known limits:
        A name that is put together at run time is not seen; the judge's process cannot open the golden either way.
    """

    id = "OL16"
    name = "no-golden-in-impl"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"foreign_calls"})
    MESSAGE = "the impl reaches for a golden"
    FIX_HINT = "remove the golden from the impl; the test compares the two"

    VALID = [
        Valid(impl()),
        Valid(impl(before='"""Compared with demo_golden in the test."""\n# from demo_golden import demo_golden\n')),
        Valid(impl(before="GOLDEN_RATIO = 1.618\n")),
    ]
    INVALID = [
        Invalid(impl(before="from demo_golden import demo_golden\n")),
        Invalid(impl(before="import demo_golden as reference\n")),
        Invalid(impl(before="from custom.demo.demo_golden import demo_golden\n")),
        Invalid(impl(before="from .demo_golden import demo_golden\n")),
        Invalid(impl(before="from . import demo_golden\n")),
        Invalid(impl(before="from demo_module1_golden import demo_module1_golden\n")),
        Invalid(impl().replace("    demo_kernel(x, out)\n", _FALLBACK)),
        Invalid(impl(before='import importlib\nREF = importlib.import_module("demo_golden")\n')),
        Invalid(impl(before='import sys\nREF = sys.modules["demo_golden"]\n')),
        Invalid(impl(before='SOURCE = open("custom/demo/demo_golden.py").read()\n')),
        Invalid(impl(before='import glob\nSOURCE = glob.glob("custom/demo/*_golden.py")\n')),
        Invalid(impl(before='import importlib\nOP = "demo"\nREF = importlib.import_module(OP + "_golden")\n')),
        Invalid(impl(before='import importlib\nOP = "demo"\nREF = importlib.import_module(f"custom.{OP}.{OP}_golden")\n')),
    ]

    def visit_SimpleString(self, site: Site) -> None:
        """A golden's module or file, named in a call or an index."""
        node: cst.SimpleString = site.node  # type: ignore[assignment]
        text = text_of(node.value)
        if not isinstance(text, str) or not _GOLDEN_FILE.search(text):
            return
        around = [type(s.node) for s in site.ancestors()]
        loaders = (cst.Import, cst.ImportFrom)
        if any(kind in (cst.Call, cst.SubscriptElement, cst.Subscript) for kind in around[:5]) and not any(
            kind in loaders for kind in around
        ):
            self.report(site, f"{node.value} names a golden")

    def check_file(self) -> None:
        """Imports; those that a string names are told by `visit_SimpleString`."""
        for site, name in imported(self.facts):
            is_statement = isinstance(site.node, (cst.Import, cst.ImportFrom))
            if is_statement and any(_GOLDEN.match(part) for part in components(name)):
                self.report(site, f"`{self.code(site.node)}` imports a golden")
        for value in self._handed_on():
            found = self.facts.ev.constant(value)
            if found is not None and isinstance(found.value, str) and _GOLDEN_FILE.search(found.value):
                self.report(value, f"`{self.code(value)}` is {found.value!r}, which names a golden")

    def _handed_on(self) -> Iterator[cst.BaseExpression]:
        """Yield what is an argument, an index or a part of a path (`folder / name`) and may be a text put together."""
        for site in self.facts.tree.sites(cst.Arg, cst.Index):
            if site.node.value.__class__ in _PUT_TOGETHER:  # type: ignore[attr-defined]
                yield site.node.value  # type: ignore[attr-defined]
        for site in self.facts.tree.sites(cst.BinaryOperation):
            node: cst.BinaryOperation = site.node  # type: ignore[assignment]
            if isinstance(node.operator, cst.Divide):
                yield from (side for side in (node.left, node.right) if side.__class__ in _PUT_TOGETHER)
