"""The documents that a verdict rests on, read once: SPEC.md, the interfaces, the suite, and the tolerance they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto_op import python_text
from pypto_op.documents import constraints, knobs, legal, p0_shapes, ranges, rows, special_values, together
from pypto_op.documents import interfaces as interfaces_document
from pypto_op.documents import spec as spec_document
from pypto_op.documents import suite as suite_document
from pypto_op.documents.interfaces import Interfaces
from pypto_op.documents.policy import Policy, dtype_word, get_policy
from pypto_op.documents.reading import read_text
from pypto_op.documents.suite import Suite
from pypto_op.documents.way import need
from pypto_op.errors import ContractError
from pypto_op.judge.cases.inputs import checks_precision
from pypto_op.workspace import OpWorkspace

if TYPE_CHECKING:
    from pypto_op.backends.base import Value

_FLOATS = frozenset({"float32", "float16", "bfloat16"})


class MisfitInputs(ContractError):
    """`make_inputs` made other inputs than the contract names; its words hold no value of them."""


@dataclass(frozen=True)
class Contract:
    """What an operator promises."""

    workspace: OpWorkspace  # the operator
    interfaces: Interfaces  # inputs, modules and outputs
    suite: Suite  # the cases
    policy: Policy  # the tolerance of the whole operator
    policy_given: bool  # the caller named the policy, so it also overrules the cases' own tolerances
    other_tolerance: bool = False  # the caller's policy is not the one of SPEC.md
    said: Sequence[str] = ()
    """SPEC.md's `shape_constraints`, with what `input_ranges` says of values."""
    rows: Mapping[str, rows.Rows] = field(default_factory=dict)
    """What SPEC.md's `input_ranges` says of the rows of inputs."""
    fixed_inputs: frozenset[str] = frozenset()
    """Inputs that are tables, the same for every seed."""
    nan_is_legal: bool = False
    """SPEC.md speaks of NaN and does not rule it out."""
    untried: Sequence[str] = ()
    """Dtypes and P0 shapes that SPEC.md supports and no case has."""

    @property
    def total_modules(self) -> int:
        """N."""
        return len(self.interfaces.modules)

    @property
    def cases(self) -> Sequence[Mapping[str, Any]]:
        """Every case of the suite."""
        return self.suite.cases

    @property
    def input_names(self) -> list[str]:
        """Names of the primary inputs, in order."""
        return [tensor.name for tensor in self.interfaces.primary_inputs]

    def leaf_names(self, phase: int | None) -> list[str]:
        """Return the names of the outputs at boundary M_k, or of the whole operator."""
        return list(self.producers(phase))

    def producers(self, phase: int | None) -> dict[str, int]:
        """Return, for each output at the boundary and in its order, the id of the module that makes it."""
        outputs = self.interfaces.final_outputs if phase is None else self.interfaces.live_out(phase)
        names = [output.name for output in outputs]
        # Two modules may give their outputs the same name.
        return {
            output.name if names.count(output.name) == 1 else f"{output.source}.{output.name}": output.module or 0
            for output in outputs
        }

    def select(self, levels: Sequence[str] | None, case: str | None) -> list[Mapping[str, Any]]:
        """Return the cases that were asked for.

        Raises:
            ContractError: none is left; an empty run must never look like a PASS.
        """
        chosen: list[Mapping[str, Any]] = list(self.suite.select(levels=levels, case=case))
        if not chosen:
            wanted = f"case {case!r}" if case is not None else f"level {', '.join(levels or ())}"
            raise ContractError(f"the suite has no case for {wanted}", file=self.workspace.suite, remedy="name one that it has")
        return chosen

    def check_inputs(self, case: Mapping[str, Any], made: Sequence[tuple[str, Value]]) -> None:
        """Refuse inputs that are not those of the contract: other names, shapes than the case says, other dtypes.

        A floating tensor has the case's dtype or the contract's own; where all tensors are floating, some have the case's.

        Raises:
            MisfitInputs: in words that hold no value of the inputs.
        """
        file, where = self.workspace.test_inputs, f"case {case['id']}"
        names = [name for name, _ in made]
        if names != self.input_names:
            raise MisfitInputs(
                f"PRIMARY_INPUT_ORDER is {', '.join(names)}, the contract has {', '.join(self.input_names)}",
                file=file,
                remedy="mirror module_interfaces.yaml",
            )
        shapes = self.interfaces.resolve_shapes(self.interfaces.sizes_of(case))
        for port, (name, value) in zip(self.interfaces.primary_inputs, made, strict=True):
            shape, wanted = tuple(getattr(value, "shape", ())), shapes[port.source, port.name]
            if shape != wanted:
                raise MisfitInputs(
                    f"{name} has the shape {list(shape)}, the contract says {list(wanted)}", file=file, where=where
                )
        self._check_dtypes(case, made)
        self._check_values(case, made)

    def whole_ends(self, case: Mapping[str, Any], name: str) -> tuple[int | None, int | None] | None:
        """Return least and greatest value that SPEC.md allows a whole-number input; None for an end that it does not tell.

        Returns:
            None instead of both where SPEC.md compares the input with more than sizes: nobody can say what is legal then.
        """
        sizes = {symbol: size for symbol, size in case["shape"].items() if isinstance(size, int)}
        return constraints.whole_ends(self.said, name, sizes)

    @property
    def masks(self) -> frozenset[str]:
        """The floating inputs that are one of few numbers."""
        return frozenset(rows.of_few_numbers(self.rows))

    def single_valued(self, case: Mapping[str, Any]) -> frozenset[str]:
        """Return the inputs of which SPEC.md's ranges allow one value at the sizes of a case, and more at others."""
        sizes = {symbol: size for symbol, size in case["shape"].items() if isinstance(size, int)}
        kept = {name: ranges.of(self.said, name, sizes) for name in self.input_names}
        met = (name for name, one in kept.items() if one.low == one.high)
        return frozenset(name for name in met if (plain := ranges.of(self.said, name)).low != plain.high)

    def _check_values(self, case: Mapping[str, Any], made: Sequence[tuple[str, Value]]) -> None:
        """Refuse values and rows outside SPEC.md's ranges (`legal`)."""
        broken = legal.misfit(self.said, self.rows, case, made)
        if broken:
            raise MisfitInputs(broken, file=self.workspace.test_inputs, where=f"case {case['id']}")

    def _check_dtypes(self, case: Mapping[str, Any], made: Sequence[tuple[str, Value]]) -> None:
        file, where = self.workspace.test_inputs, f"case {case['id']}"
        words = case.get("dtype") or {}
        words = words if isinstance(words, Mapping) else {"default": words}
        floating: set[str] = set()
        for port, (name, value) in zip(self.interfaces.primary_inputs, made, strict=True):
            dtype = str(getattr(value, "dtype", "")).removeprefix("torch.")
            if dtype not in _FLOATS or not getattr(value, "shape", ()):
                continue
            floating.add(dtype)
            allowed = (
                {dtype_word(words[name])} if name in words else {dtype_word(port.dtype), dtype_word(words.get("default", dtype))}
            )
            if dtype not in allowed:
                raise MisfitInputs(f"{name} is {dtype}, the case says {' or '.join(sorted(allowed))}", file=file, where=where)
        default = dtype_word(words.get("default", ""))
        plain = all(getattr(value, "is_floating_point", bool)() for _, value in made if getattr(value, "shape", ()))
        if plain and floating and default in _FLOATS and default not in floating:  # beside integers it may be the output's
            raise MisfitInputs(
                f"no input is {default}, as the case says; they are {', '.join(sorted(floating))}", file=file, where=where
            )

    def policy_for(self, case: Mapping[str, Any]) -> Policy:
        """Return the tolerance of a case (`policy_of_case`), unless the caller named one for all."""
        return self.policy if self.policy_given else policy_of_case(self.policy, case)

    def natural_policy_for(self, case: Mapping[str, Any]) -> Policy | None:
        """Return the twin policy that a case must satisfy beside its tolerance, None when it names none.

        Raises:
            ContractError: there is no such policy.
        """
        return get_policy(case["twin"]) if case.get("twin") and checks_precision(case) else None

    def tolerance_behind(self, case: Mapping[str, Any]) -> Policy | None:
        """Return the tolerance that a policy named in a case stands in the place of; None when it names none.

        The judge measures whether honest rounding needs that (`verdict.Expectation`); where not, the tolerance holds too.
        """
        if self.policy_given or not case.get("policy"):
            return None
        return policy_of_case(self.policy, {key: value for key, value in case.items() if key != "policy"})

    def policy_label(self, case: Mapping[str, Any]) -> str:
        """Return the case's policy in a few words."""
        policy, natural = self.policy_for(case), self.natural_policy_for(case)
        also = f" + {natural.id}" if natural is not None else ""
        if policy == self.policy or policy.needs_twins:
            return f"{policy.id}{also}"
        return f"{policy.id} atol={case['atol']:g} rtol={case['rtol']:g}{also}"


def policy_of_case(policy: Policy, case: Mapping[str, Any]) -> Policy:
    """Return the tolerance of a case: its own policy, or atol and rtol where the operator's knows such, else the operator's.

    The case's atol and rtol are about its own dtype; an output of another one (a float32 sum of 16-bit inputs) keeps the
    operator's.

    Raises:
        ContractError: there is no such policy.
    """
    if case.get("policy"):
        return get_policy(case["policy"])
    if policy.name != "allclose" or not {"atol", "rtol"} <= set(case):
        return policy
    rows = policy.as_dict()["per_dtype"]
    own = own_dtypes(case)
    pair = {"atol": case["atol"], "rtol": case["rtol"]}
    return get_policy(
        {**policy.as_dict(), "per_dtype": {word: pair if own is None or word in own else rows[word] for word in rows}}
    )


def own_dtypes(case: Mapping[str, Any]) -> set[str] | None:
    """Return the dtype that a case is about, all that it names where none is the default; None: whatever its mode makes."""
    words = case.get("dtype")
    if isinstance(words, Mapping):
        words = words.get("default", list(words.values()))
    return None if words is None else {dtype_word(word) for word in ([words] if isinstance(words, str) else words)}


def load_contract(
    workspace: OpWorkspace, policy: str | Mapping[str, Any] | None = None, *, suite: Path | None = None
) -> Contract:
    """Read and check the documents of an operator.

    Args:
        policy: a tolerance policy that overrules SPEC.md and the suite.
        suite: a file in the place of eval/adversarial_suite.json.

    Raises:
        ContractError: a document is missing or malformed, or two of them contradict one another.
    """
    need(workspace, workspace.spec, workspace.interfaces, *([workspace.suite] if suite is None else []))
    together.check_whole(workspace.eval_dir)
    spec = spec_document.load(workspace.spec)
    interfaces = interfaces_document.load(workspace.interfaces).with_scalars(spec.default_params)
    rows.check_named(spec.input_ranges, spec.default_params, interfaces.primary_inputs, workspace.spec)
    cases = suite_document.load(suite or workspace.suite)
    if workspace.test_inputs.is_file():
        python_text.parse(source := read_text(workspace.test_inputs), workspace.test_inputs)
        names = [port.name for port in interfaces.primary_inputs]
        knobs.check_known(cases.cases, names, workspace.test_inputs, source)
    if not cases.cases:
        raise ContractError("the suite has no cases", file=workspace.suite, remedy="add cases of levels L1 to L5")
    own = spec.policy()
    used = get_policy(policy) if policy is not None else own
    return Contract(
        workspace=workspace,
        interfaces=interfaces,
        suite=cases,
        policy=used,
        policy_given=policy is not None,
        other_tolerance=used != own,
        said=spec.shape_constraints,
        rows=spec.rows,
        fixed_inputs=frozenset(spec.fixed_inputs),
        nan_is_legal=special_values.says_nan(read_text(workspace.spec)),
        untried=p0_shapes.untried(cases, spec, interfaces),
    )
