"""Whether one run of the implementation is right: structure, numbers, and that a kernel made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from pypto_op.backends.base import RunResult
from pypto_op.compare import compare_leaves
from pypto_op.documents.policy import Policy
from pypto_op.triton.run.inputs.packing import elements_of, map_tensors, tensors_of
from pypto_op.triton.run.judging import natural
from pypto_op.triton.run.judging.other_answers import Otherwise
from pypto_op.triton.run.setup.request import policy_of
from pypto_op.twins.ties import nearest


@dataclass
class Judgement:
    """What was found: nothing, or the first thing that is wrong.

    Attributes:
        error_type: "" when everything is right.
        message: one to a few lines, no values of the golden.
        metrics: per output: what the policy measured.
    """

    error_type: str = ""
    message: str = ""
    metrics: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.error_type


def judge(
    case: dict[str, Any], reference: dict[str, Any], answer: dict[str, Any], run: RunResult, facts: dict[str, Any], policy: Policy
) -> Judgement:
    """Judge one run.

    Args:
        case: golden `outputs` and `mutated` inputs.
        reference: facts about the reference's run.
        answer: the candidate's `outputs` and `mutated` inputs.
        run: what its process reported.
        facts: further facts.
        policy: the tolerance.
    """
    wrong = _origin(case, reference, answer, run, facts)
    numbers = compare(case["outputs"], answer["outputs"], policy)
    if numbers.error_type == "StructureMismatch" or wrong is None:
        wrong = numbers if not numbers.ok else wrong
    if wrong is None and case["mutated"]:
        wrong = _mutated(case["mutated"], answer["mutated"], policy)
    judgement = wrong or Judgement()
    judgement.metrics = numbers.metrics
    return judgement


def _mutated(expected: dict[int, Any], actual: dict[int, Any], policy: Policy) -> Judgement:
    """Return the verdict on inputs that the reference changes in place."""
    names = sorted(expected)
    if left := [i for i in names if i not in actual]:
        return Judgement("StructureMismatch", f"the reference changes its input {_numbers(left)} in place, and forward leaves it")
    return compare([expected[i] for i in names], [actual[i] for i in names], policy)


def second_look(found: Judgement, expected: Any, actual: Any, otherwise: Otherwise) -> Judgement:
    """Return the verdict on outputs that the default rule refused, after a look at the reference in float64 (`natural`).

    Args:
        found: the verdict of the rule.
        expected: what the reference returned.
        actual: what the implementation returned.
        otherwise: what the reference returns when it computes otherwise; each is asked where it decides.
    """
    truth = otherwise.truth()
    if truth is None:
        found.message += "\nno second look: the reference does not run in float64"
        return found
    floats = _floats(expected, actual, truth)
    if floats and natural.is_natural(floats):
        judged = {"judged_by": f"float64: within {natural.FACTOR:g} times the reference's own error"}
    elif floats and natural.of_16_bits(tensors_of(expected)) and _is_of_products(floats, otherwise.rounded()):
        judged = {"judged_by": "float64: within the error of products whose operands have 16 bits"}
    elif floats and natural.is_near(floats) and _is_of_orders(floats, otherwise.orders()):
        judged = {"judged_by": f"float64: within {natural.ORDERS_FACTOR:g} times the error of other orders of additions"}
    elif (nearer := _nearer(expected, actual, otherwise.ties())) is not None:
        judged = {"judged_by": "float64: values near ties of a rounding, an order or a comparison fall on either side"}
        right, true = nearer
        again = compare(right, actual, policy_of(None))
        if not again.ok and not second_look(again, right, actual, replace(otherwise, truth=lambda: true, ties=lambda: None)).ok:
            found.message += "\nsecond look: wrong beside what lies near ties of a rounding, an order or a comparison, too"
            return found
    else:
        found.message += f"\nsecond look: more than {natural.FACTOR:g} times as far from float64 as the reference is"
        return found
    return Judgement(metrics={name: numbers | judged for name, numbers in found.metrics.items()})


def is_of_larger(expected: Any, actual: Any, truth: Any, larger: Sequence[torch.Tensor]) -> bool:
    """Whether all is right that small inputs give, but for a few roundings of what larger ones give (`natural.is_of_larger`)."""
    floats = _floats(expected, actual, truth) if truth is not None else []
    return natural.is_of_larger(floats, [sample for sample in larger if sample.is_floating_point()])


def _nearer(expected: Any, actual: Any, ways: Any) -> tuple[Any, Any] | None:
    """Return of the right answers those that lie nearest to the implementation's, and their float64; None where no way is nearer.

    Args:
        expected: what the reference returned.
        actual: what the implementation returned.
        ways: what the reference returns in float64, as it is and with values near ties on other sides of them.
    """
    leaves, told = tensors_of(expected), [tensors_of(way) for way in ways or ()]
    found = tensors_of(actual)
    shapes = [leaf.shape for leaf in leaves]
    if not told or any([leaf.shape for leaf in some] != shapes for some in (found, *told)):
        return None
    rights, truths = [], []
    for leaf, mine, *answers in zip(leaves, found, *told, strict=True):
        answers = [answer.to(leaf.device) for answer in answers]
        rights.append(nearest(mine, [leaf, *answers]))
        truths.append(nearest(mine, answers) if leaf.is_floating_point() else leaf)
    if all(right is leaf for right, leaf in zip(rights, leaves, strict=True)):
        return None
    right, true = iter(rights), iter(truths)
    return map_tensors(expected, lambda _: next(right)), map_tensors(expected, lambda _: next(true))


def _floats(expected: Any, actual: Any, truth: Any) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Return, of every float tensor, the reference, the answer and the truth; none where anything else is wrong."""
    (problem, pairs), (no_truth, rights) = _paired(expected, actual), _paired(expected, truth)
    if problem or no_truth:
        return []
    rows = [(want, got, right) for (_, want, got), (_, _, right) in zip(pairs, rights, strict=True)]
    tensors = [row for row in rows if isinstance(row[0], torch.Tensor) and row[0].is_floating_point()]
    others = [(want, got) for want, got, _ in rows if not isinstance(want, torch.Tensor) or not want.is_floating_point()]
    if others and not compare([want for want, _ in others], [got for _, got in others], policy_of(None)).ok:
        return []
    return [(want, got, right.to(want.device)) for want, got, right in tensors]


def _is_of_products(floats: Sequence[tuple[torch.Tensor, torch.Tensor, torch.Tensor]], rounded: Any) -> bool:
    products = [tensor for tensor in tensors_of(rounded) if tensor.is_floating_point()]
    return len(products) == len(floats) and natural.is_of_products(floats, products)


def _is_of_orders(floats: Sequence[tuple[torch.Tensor, torch.Tensor, torch.Tensor]], orders: Any) -> bool:
    found = [[tensor for tensor in tensors_of(order) if tensor.is_floating_point()] for order in orders or ()]
    shapes = [want.shape for want, _, _ in floats]
    return bool(found) and all([one.shape for one in order] == shapes for order in found) and natural.is_natural(floats, found)


def _origin(
    case: dict[str, Any], reference: dict[str, Any], answer: dict[str, Any], run: RunResult, facts: dict[str, Any]
) -> Judgement | None:
    """Return what is wrong with where the outputs came from; None when nothing is."""
    elements = elements_of([case["outputs"], case["mutated"]])
    extra = sorted(set(run.mutated_inputs) - set(case["mutated"]))
    if extra:
        return Judgement("InputMutated", f"forward changed its input {_numbers(extra)}, which the reference leaves as it is")
    aliased = sorted(set(run.aliased_inputs) - set(reference.get("aliased_inputs", ())))
    if aliased:
        return Judgement(
            "OutputAliasesInput", f"an output shares the memory of input {_numbers(aliased)}; the reference's does not"
        )
    if same := sorted(set(facts.get("repeated", ())) - set(reference.get("repeated", ()))):
        return Judgement(
            "OutputsShareMemory", f"output {_numbers(same)} lies in the memory of an earlier one; the reference's does not"
        )
    if elements and not run.launches and _is_of_nothing(case, answer):
        return None
    if elements and not run.launches:
        return Judgement("NoKernelLaunch", "forward launched no Triton kernel of the implementation")
    if elements and not run.outputs_from_kernel:
        return Judgement(
            "NotFromKernel", "an output does not lie in memory that a launched kernel got, or was changed afterwards"
        )
    if facts.get("overwritten") and not reference.get("overwritten"):
        return Judgement(
            "OutputOverwritten", "an output changes when forward is called again: it lies in memory that the implementation keeps"
        )
    if any(facts.get("sentinel_left", ())):
        return Judgement("UnwrittenOutput", f"{sum(facts['sentinel_left'])} element(s) of the output were never written")
    return None


def _is_of_nothing(case: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Whether an input holds no element and each output one value: the sum of nothing is zero, and no kernel need say so."""
    outputs = [tensor.reshape(-1) for tensor in tensors_of([answer["outputs"], answer["mutated"]]) if tensor.numel()]
    empty = any(not tensor.numel() for tensor in tensors_of(case["inputs"]))
    return empty and all(bool(((one == one[0]) | (one.isnan() & one[0].isnan())).all()) for one in outputs)


def compare(expected: Any, actual: Any, policy: Policy) -> Judgement:
    """Compare two returned structures: same nesting, shapes and dtypes, numbers by the policy."""
    problem, pairs = _paired(expected, actual)
    if problem:
        return Judgement("StructureMismatch", problem)
    compared: list[tuple[str, torch.Tensor, torch.Tensor]] = []
    for name, want, got in pairs:
        if isinstance(want, torch.Tensor):
            if want.is_floating_point() and want.numel() and not bool(torch.isfinite(want.to(torch.float64)).any()):
                return Judgement("ReferenceDoubtful", f"{name} of the reference has no finite element, so nothing can be judged")
            compared.append((name, want, got))
        elif type(want) is not type(got) or (want != got and not isinstance(want, (float, complex))):
            return Judgement("ValueMismatch", f"{name} is another {type(want).__name__} than the reference's")
        elif isinstance(want, (float, complex)):
            compared.append((name, torch.tensor(want), torch.tensor(got)))
    if not compared:
        return Judgement() if pairs else Judgement("StructureMismatch", "the reference returns nothing that can be compared")
    names, left, right = ([row[i] for row in compared] for i in range(3))
    found = compare_leaves(right, left, names=names, policy=policy)  # type: ignore[arg-type]
    metrics = {tensor.name: _metrics(tensor.as_dict()) for tensor in found.per_tensor}
    if found.all_close:
        return Judgement(metrics=metrics)
    structural = str(found.category) == "structural"
    return Judgement("StructureMismatch" if structural else "PrecisionError", found.message, metrics)


def _paired(expected: Any, actual: Any) -> tuple[str | None, list[tuple[str, Any, Any]]]:
    """Return what is wrong with the structure, or None, and the leaves by name; a tensor may stand for a list of one."""
    if isinstance(expected, torch.Tensor) != isinstance(actual, torch.Tensor):
        expected, actual = _unwrapped(expected), _unwrapped(actual)
    pairs: list[tuple[str, Any, Any]] = []
    return _pair("output", expected, actual, pairs), pairs


def _pair(name: str, expected: Any, actual: Any, into: list[tuple[str, Any, Any]]) -> str | None:
    if isinstance(expected, (list, tuple)):
        if not isinstance(actual, (list, tuple)) or len(actual) != len(expected):
            return f"{name}: {_kind(actual)} instead of {_kind(expected)}"
        parts = ((f"{name}[{i}]", want, got) for i, (want, got) in enumerate(zip(expected, actual, strict=True)))
        return next(filter(None, (_pair(*part, into) for part in parts)), None)
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or set(actual) != set(expected):
            return f"{name}: {_kind(actual)} instead of {_kind(expected)}, or with other keys"
        return next(filter(None, (_pair(f"{name}[{key!r}]", expected[key], actual[key], into) for key in expected)), None)
    if isinstance(expected, torch.Tensor) != isinstance(actual, torch.Tensor) or (expected is None) != (actual is None):
        return f"{name}: {_kind(actual)} instead of {_kind(expected)}"
    into.append((name, expected, actual))
    return None


def _unwrapped(value: Any) -> Any:
    return value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value


def _kind(value: Any) -> str:
    if isinstance(value, (list, tuple, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    return "a tensor" if isinstance(value, torch.Tensor) else f"a {type(value).__name__}"


def _metrics(data: dict[str, Any]) -> dict[str, Any]:
    kept = ("dtype", "shape", "max_abs_diff", "max_rel_diff", "fail_fraction", "ulp_max")
    numbers: dict[str, Any] = {key: data[key] for key in kept}
    for condition in data["conditions"]:
        numbers[condition["name"]] = condition["value"]
    return numbers


def _numbers(positions: list[int]) -> str:
    return ", ".join(map(str, positions))
