"""OL50: the wrapper takes the contract's inputs, in the contract's order."""

from typing import Any

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.documents import mapping, mappings
from pypto_op_lint.examples import WRAPPER, impl
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid

_YAML = """\
schema_version: 1
op: demo
primary_inputs:
  - {name: x, shape: [T, 128], dtype: float32}
  - {name: scale, shape: [128], dtype: float32}
modules:
  - id: 1
    name: first
    inputs: [{name: x, source: primary}]
    outputs: [{name: y, shape: [T, 128], dtype: float32}]
  - id: 2
    name: second
    inputs: [{name: y, source: module_1}, {name: scale, source: primary}]
    outputs: [{name: z, shape: [T, 128], dtype: float32}]
final_outputs: [{name: z, source: module_2}]
"""
_FILES = {"eval/module_interfaces.yaml": _YAML}


def _wrapper(parameters: str, name: str = "demo_wrapper") -> str:
    return impl(wrapper=WRAPPER.replace("def demo_wrapper(x)", f"def {name}({parameters})"))


class WrapperSignature(Rule):
    """The wrapper's parameters are not the primary inputs of module_interfaces.yaml, in their order.

    What it does:
        Compares names and order; a wrapper of another name is none. A staged file's wrapper may take all
        primary inputs, or those that its modules 1..k use.
        Options such as `runtime_options` do not belong into the signature.

    Why:
        Judge and test hand the inputs over by position.

    Example:
        def softmax_wrapper(x, block_size, debug_options=None): ...

    Use instead:
        def softmax_wrapper(x): ...

    Known limits:
        `*args` and `**kwargs` are not compared. Without module_interfaces.yaml it is silent.
    """

    id = "OL50"
    name = "wrapper-signature"
    severity = Severity.S1
    artifacts = IMPLS
    needs = frozenset({"wrappers_named", "siblings"})
    MESSAGE = "the wrapper's parameters are not the contract's primary inputs"
    FIX_HINT = "name the wrapper's parameters as primary_inputs in eval/module_interfaces.yaml does, in that order"

    VALID = [
        Valid(_wrapper("x, scale"), files=_FILES),
        Valid(_wrapper("x, scale, **kwargs"), files=_FILES),
        Valid(_wrapper("x"), files={}),
        Valid(_wrapper("x", "demo_module1_wrapper"), artifact=Artifact.MODULE_IMPL, phase=1, files=_FILES),
        Valid(_wrapper("x, scale", "demo_module1_wrapper"), artifact=Artifact.MODULE_IMPL, phase=1, files=_FILES),
    ]
    INVALID = [
        Invalid(_wrapper("scale, x"), files=_FILES),
        Invalid(_wrapper("x"), files=_FILES),
        Invalid(_wrapper("x, scale", "demo_module1_wrapper"), artifact=Artifact.MODULE_IMPL, phase=2, files=_FILES),
        Invalid(_wrapper("x, scale, debug_options=None"), files=_FILES),
        Invalid(_wrapper("x, scale, *, block=64"), files=_FILES),
        Invalid(_wrapper("x", "demo_module12_wrapper"), artifact=Artifact.MODULE_IMPL, phase=2, files=_FILES),
        Invalid(_wrapper("scale", "demo_module1_wrapper"), artifact=Artifact.MODULE_IMPL, phase=1, files=_FILES),
    ]

    def check_file(self) -> None:
        """Compare the signature with the contract."""
        data = mapping(self.files.existing(self.files.ws.interfaces))
        phase = self.unit.phase if self.unit.artifact is Artifact.MODULE_IMPL else None
        if data is None:
            return
        if self.unit.artifact is Artifact.MODULE_IMPL and phase is None:
            self.report(
                None,
                "the number in the file's name is not 1..k written one after another: 1, 12, 123",
                hint="a staged file holds modules 1..k: `modules/<op>_module12_impl.py` is phase M2",
            )
            return
        name = self.files.ws.wrapper_name(phase)
        functions = self.facts.wrappers_named(name)
        wanted = _accepted(data, phase)
        if not wanted[0]:
            return
        if not functions:
            self.report(None, f"no `{name}` takes the contract's ({', '.join(wanted[0])})")
            return
        named = [f for f in functions if all(p.kind != "args" for p in f.parameters)]  # a decorator's `*args` passes all on
        wrapper = (named or functions)[-1]  # of several definitions the last one counts
        given = [p.name for p in wrapper.parameters if p.kind == "positional"]
        by_keyword = [f"*, {p.name}" for p in wrapper.parameters if p.kind == "keyword"]
        if given not in wanted or by_keyword:
            self.report(
                wrapper.site,
                f"`{name}` takes ({', '.join([*given, *by_keyword])}), the contract says ({', '.join(wanted[0])})",
            )


def _accepted(data: dict[str, Any], phase: int | None) -> list[list[str]]:
    """Return the signatures that the contract allows, the plain one first."""
    primary = [str(p.get("name")) for p in mappings(data.get("primary_inputs"))]
    if phase is None:
        return [primary]
    used = {
        str(i.get("name"))
        for module in mappings(data.get("modules"))
        if isinstance(module.get("id"), int) and module["id"] <= phase
        for i in mappings(module.get("inputs"))
        if i.get("source") == "primary"
    }
    return [primary, [name for name in primary if name in used]]
