"""OL55: every name written after `pypto.` must exist in pypto."""

import difflib

import libcst as cst

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.examples import BODY, HEAD, impl
from pypto_op_lint.facts import Facts
from pypto_op_lint.facts.values import Path
from pypto_op_lint.pypto_names import names
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid


def _design(code: str, fence: str = "```python") -> str:
    return f"# Design\n\n{fence}\n{code}\n{fence[:3]}\n"


class KnownPyptoName(Rule):
    """A name under `pypto`, or a method of a pypto tensor, does not exist.

    What it does:
        Looks up every attribute of pypto at any depth (`pypto.frontend.jitt`, `pypto.RunMode.CPU`), through aliases, imports
        and `getattr`, and every method called on what surely is a pypto tensor, in impls and in the Python blocks of
        DESIGN.md. Names that pypto only happens to import from elsewhere (`pypto.torch`, `pypto.List`) do not count.

    Why:
        The mistake would otherwise show when the kernel is traced, after the design and the code are built on it.

    Example:
        y = pypto.silu(x)

    Use instead:
        y = pypto.mul(x, pypto.sigmoid(x))

    Known limits:
        Methods are checked where the file shows that the object is a tensor: a kernel parameter, or the result of an
        operation. The names are those of the pypto release that is installed.
    """

    id = "OL55"
    name = "known-pypto-name"
    severity = Severity.S0
    artifacts = IMPLS | {Artifact.DESIGN}
    needs = frozenset({"foreign_calls", "graph_sites", "tensors"})
    MESSAGE = "pypto has no such name"
    FIX_HINT = "use a name that exists: `pypto-op api --search WORD` finds it, `pypto-op api NAME` shows how to call it"

    VALID = [
        Valid(impl()),
        Valid(impl(BODY + "pypto.frontend\npypto.CastMode.CAST_RINT\npypto.DT_FP32.name\npypto.experimental.nop\n")),
        Valid(impl(BODY.replace("pypto.exp(tile)", "tile.exp().mul(tile)"))),
        Valid(impl(before="class Mine:\n    pypto = None\n\n    def nothing(self):\n        return self.pypto.nothing\n")),
        Valid(_design("x = pypto.exp(y)\n...\nfor i in pypto.loop(n):"), artifact=Artifact.DESIGN),
        Valid("# Design\n\nThere is no `pypto.silu` in the release.\n", artifact=Artifact.DESIGN),
        Valid(_design("pypto.silu(x)", "```text"), artifact=Artifact.DESIGN),
    ]
    INVALID = [
        Invalid(impl(BODY.replace("pypto.exp(tile)", "pypto.silu(tile)"))),
        Invalid(impl(BODY.replace("pypto.exp(tile)", "pypto.torch.exp(tile)"))),
        Invalid(impl(decorator="@pypto.frontend.jitt")),
        Invalid(impl(BODY.replace("pypto.exp(tile)", 'getattr(pypto, "silu")(tile)'))),
        Invalid(impl(BODY.replace("pypto.exp(tile)", 'vars(pypto)["silu"](tile)'))),
        Invalid(impl(BODY.replace("pypto.exp(tile)", "p.silu(tile)"), before="p = pypto\n")),
        Invalid(impl(BODY.replace("pypto.exp(tile)", "tile.silu()"))),
        Invalid(
            impl(
                BODY.replace("pypto.DT", "pypto.float"),
                parameters="x: pypto.Tensor([8], pypto.float32),\nout: pypto.Tensor([8], pypto.DT_FP32),\n",
            )
        ),
        Invalid(impl(head=HEAD + "from pypto.frontend import jitt\n")),
        Invalid(impl(decorator='@pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.CPU})')),
        Invalid(impl(before="def _sizes(n) -> pypto.List:\n    return [n]\n")),
        Invalid(impl("pypto.set_vec_tile_shapes(64, 128)\n_act(x, out)\n", before="def _act(x, out):\n    out[:] = x.silu()\n")),
        Invalid(_design("x = 1\ny = pypto.silu(x)"), artifact=Artifact.DESIGN, lines=(5,)),
        Invalid(_design("y = pypto.silu(x)", "~~~py3"), artifact=Artifact.DESIGN, lines=(4,)),
        Invalid(_design(">>> y = pypto.silu(x)", "```pycon"), artifact=Artifact.DESIGN, lines=(4,)),
        Invalid(_design("for i in <rows>:\n    y = pypto.silu(x)"), artifact=Artifact.DESIGN, lines=(5,)),
        Invalid("# Design\n\n    y = pypto.silu(x)\n", artifact=Artifact.DESIGN, lines=(3,)),
    ]

    def check_file(self) -> None:
        """Look up every name of the file, or of the document's code blocks."""
        if self.unit.is_python:
            self._look_up(self.facts)
            self._methods(self.facts)
        for snippet in self.unit.snippets:
            self.in_snippet(snippet)
            self._look_up(snippet.facts)

    def _look_up(self, facts: Facts) -> None:
        _ = facts.calls
        named = [*facts.tree.sites(cst.Attribute)]
        named += [site for site, _, called in facts.foreign_calls if "builtins.getattr" in called]
        for site in facts.tree.sites(cst.Subscript):
            if any(path.endswith(".__dict__") for path in facts.ev.paths(site.node.value)):  # type: ignore[attr-defined]
                named.append(site)
        for site in named:
            for value in facts.ev.values(site.node):
                if isinstance(value, Path) and self._is_first_unknown(value.name):
                    self._unknown(site.node, value.name)
        for scope in facts.tree.scopes:
            for bindings in scope.bindings.values():
                for binding in bindings:
                    if binding.kind == "import" and self._is_first_unknown(binding.target):
                        self._unknown(binding.site.node, binding.target)

    def _is_first_unknown(self, path: str) -> bool:
        return path.startswith("pypto.") and names().first_unknown(path) == path

    def _unknown(self, node: cst.CSTNode, path: str) -> None:
        owner, _, name = path.rpartition(".")
        self._tell(node, f"`{path}` does not exist in pypto {names().version}", owner, name)

    def _methods(self, facts: Facts) -> None:
        members = names().members["pypto.Tensor"]
        for site in facts.graph_sites(cst.Attribute):
            node: cst.Attribute = site.node  # type: ignore[assignment]
            if node.attr.value in members:
                continue
            if not node.attr.value.startswith("__") and facts.tensors.in_graph(node.value):
                name = node.attr.value
                message = f"a pypto tensor has no `{name}` (pypto {names().version})"
                self._tell(node, message, "pypto.Tensor", name)

    def _tell(self, node: cst.CSTNode, message: str, owner: str, name: str) -> None:
        public = names().members.get(owner, frozenset())
        close = difflib.get_close_matches(name, public, n=2, cutoff=0.75)
        hint = f"did you mean {' or '.join(f'`{owner}.{c}`' for c in close)}? " if close else ""
        self.report(node, message, hint=hint + self.FIX_HINT)
