"""Whether a suite's inputs can tell a right kernel from a wrong one: they must vary, and with the seed.

A kernel that returns a table, or ignores an input, passes on inputs that are zero, constant or the same for every seed.
The judge sees the inputs of both seeds of each precision case; from what differs between them it decides here. Every rule
is about the inputs alone, so a suite is refused before any kernel exists (`--self-test`), and again at each verdict.

- In a case without a knob that names its values (`draw_zone`, `weight`, ...) every floating or 8-bit tensor varies, everywhere.
  A knob's word (`"draw_zone": "zeros"`, `"h0_mode": "zero"`) may hold it still.
- Over a whole suite each of them varies in half of the cases, and in a third of those of each level that has three or more.
- Over a whole suite each floating output of the golden differs between the seeds, by more than the tolerance, in a third
  of the cases, and in one of each level: a table that is only scaled anew would not change what a norm returns.
- Over a whole suite every other tensor (indices, lengths, masks) changes with the seed, or between two cases of one shape,
  or as the cases choose by a knob of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pypto_op.compare import compare_leaves
from pypto_op.documents.knobs import JUDGED_BY
from pypto_op.errors import ContractError
from pypto_op.judge.cases.inputs import digest, tensors_in

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import Value
    from pypto_op.documents.policy import Policy

_PLAIN_WORDS = frozenset({"", "normal", "random", "default"})
"""Values of a knob that name nothing out of the ordinary."""

NO_KNOB = JUDGED_BY | {"shape", "dtype", "seed", "purpose", "note", "description"}
"""Keys of a case that choose no values."""

LEAST_SHARE, LEAST_OF_LEVEL = 1 / 2, 1 / 3
"""The share of the precision cases, of the suite and of each level, in which an input must vary."""

LEAST_TOLD = 1 / 3
"""The share of the precision cases in which the seeds must give answers that the tolerance tells apart."""

LEAST_CHANGED = 0.15
"""The share of a tensor's elements that must change with the seed; of a mask with one in ten set, 0.18 do."""

LEAST_SPREAD = 1e-3
"""How much values must differ, over their size: less drowns in the tolerances of 16-bit dtypes."""

_A_FEW = 3
_FEW = 8
_BLOCK = 128
_FILE = "eval/test_inputs.py"
_KEEP = "make it without the seed, or take it out of SPEC.md's fixed_inputs"
_DRAW = 'draw it anew for each seed; a case that wants constant values says so in a knob, such as "draw_zone": "zeros"'


@dataclass(frozen=True)
class Sight:
    """What the two seeds of a case show of one tensor."""

    data: bool  # it holds values that are computed with (floating, 8-bit); otherwise indices, lengths or a mask
    moved: bool  # some element differs between the seeds
    fault: str  # how it fails to vary, in words; "" when it varies
    contents: frozenset[str]  # hash of each seed's bytes
    single: bool  # it has one element, like a scalar


@dataclass
class Variety:
    """The inputs of one case, seed by seed; tensors are kept only until the second seed's are there."""

    sights: dict[str, Sight] = field(default_factory=dict)
    blind: dict[str, bool] = field(default_factory=dict)
    """For each floating output of the golden: whether one seed's answer would pass for the other's."""
    _first: dict[str, torch.Tensor] | None = None
    _answer: Sequence[torch.Tensor] | None = None

    def add(self, names: Sequence[str], inputs: Sequence[Value]) -> None:
        """Look at the inputs of one more seed.

        Args:
            names: of the primary inputs, in order.
            inputs: their values; a list of tensors is looked at tensor by tensor.
        """
        tensors = dict(_named_tensors(names, inputs))
        if self._first is None:
            self._first = tensors
        elif not self.sights:
            for name, one in self._first.items():
                other = tensors.get(name)
                if one.numel() and other is not None:
                    self.sights[name] = _sight(one, other)
            self._first = {}

    def add_answer(self, names: Sequence[str], outputs: Sequence[torch.Tensor], policy: Policy) -> None:
        """Look at the golden's answer on the inputs of one more seed.

        Args:
            names: of the outputs, in order.
            policy: the tolerance of the case; where it is made of twins, which this one answer lacks, nothing is looked at.
        """
        if self._answer is None:
            self._answer = outputs
        elif self._answer and not policy.needs_twins and len(outputs) == len(self._answer) == len(names):
            found = compare_leaves(self._answer, outputs, names=list(names), policy=policy).per_tensor
            self.blind = {leaf.name: leaf.all_close for leaf, out in zip(found, outputs, strict=True) if out.is_floating_point()}
            self._answer = ()


def check(
    seen: Iterable[tuple[Mapping[str, Any], Variety]],
    *,
    whole: bool,
    fixed: Collection[str] = frozenset(),
    single: Callable[[Mapping[str, Any]], Collection[str]] = lambda case: (),
    masks: Collection[str] = (),
) -> None:
    """Refuse inputs that cannot tell a right kernel from a wrong one.

    Args:
        seen: each precision case with what its two seeds show; cases of which one seed was seen count for nothing.
        whole: these are all precision cases of the suite, so the rules over a whole suite hold as well.
        fixed: inputs that SPEC.md declares tables (`fixed_inputs`), which may not vary; the golden's answers must all the same.
        single: gives the inputs of which SPEC.md allows one value at the sizes of a case (`0 <= at <= T - 1` where T is 1).
        masks: floating inputs that are `one_of` few numbers, which choose as flags do: a few of them may well be alike.

    Raises:
        ContractError: names eval/test_inputs.py, a case and the input.
    """
    seen = list(seen)
    for case, variety in seen:
        for name in sorted(fixed):
            if name in variety.sights and variety.sights[name].moved:
                problem = f"input {name} changes with the seed, and SPEC.md declares it fixed"
                raise ContractError(problem, file=_FILE, where=f"case {case['id']}", remedy=_KEEP)
    told = [(case, _looked_at(v.sights, {*fixed, *single(case)}, masks)) for case, v in seen]
    rows = [(case, sights) for case, sights in told if sights]
    _check_cases(rows)
    if whole:
        for name in dict.fromkeys(name for _, sights in rows for name in sights):
            _check_input(name, [(case, sights[name]) for case, sights in rows if name in sights])
        answers = [(case, variety.blind) for case, variety in seen if variety.blind]
        for name in dict.fromkeys(name for _, blind in answers for name in blind):
            _check_output(name, [(case, blind[name]) for case, blind in answers if name in blind])


def _looked_at(sights: Mapping[str, Sight], left: Collection[str], masks: Collection[str]) -> dict[str, Sight]:
    """Return the sights but for inputs that may be still; those of masks are no data."""
    return {name: replace(one, data=one.data and name not in masks) for name, one in sights.items() if name not in left}


_Rows = Sequence[tuple[Mapping[str, Any], Mapping[str, Sight]]]


def _check_cases(rows: _Rows) -> None:
    for case, sights in rows:
        data = {name: sight for name, sight in sights.items() if sight.data}
        if _is_named(case):
            continue
        for name, sight in data.items():
            if sight.fault and not sight.single:
                alike = sum(bool(s.get(name) and s[name].fault) for _, s in rows) - 1
                raise _refusal(case, f"input {name} {sight.fault}" + (f" ({alike} more cases alike)" if alike else ""))


def _check_input(name: str, rows: Sequence[tuple[Mapping[str, Any], Sight]]) -> None:
    """Apply the rules over a whole suite to one input."""
    case, first = rows[0]
    if first.data and not first.single:
        _check_share(name, rows, LEAST_SHARE, "precision cases")
        for level in dict.fromkeys(str(case["level"]) for case, _ in rows):
            own = [(case, sight) for case, sight in rows if str(case["level"]) == level]
            if len(own) < _A_FEW:
                continue  # one or two cases of a level may well be about still inputs
            _check_share(name, own, LEAST_OF_LEVEL, f"precision cases of {level}")
    elif not any(sight.moved for _, sight in rows) and not _differs_at_one_shape(rows) and not _is_chosen(name, rows):
        raise _refusal(
            case, f"input {name} is the same for every seed, in all {len(rows)} precision cases, and for every case of a shape"
        )


def _check_output(name: str, rows: Sequence[tuple[Mapping[str, Any], bool]]) -> None:
    groups = {"precision cases": (rows, LEAST_TOLD)}
    for level in dict.fromkeys(str(case["level"]) for case, _ in rows):
        groups[f"precision cases of {level}"] = ([row for row in rows if str(row[0]["level"]) == level], 0.0)
    for what, (own, least) in groups.items():
        blind = [case for case, is_blind in own if is_blind]
        told = len(own) - len(blind)
        if len(own) > 1 and (told == 0 or told < least * len(own)):
            raise _refusal(
                blind[0],
                f"the golden's {name} is the same for every seed, within the tolerance, in {len(blind)} of {len(own)} {what}",
            )


def _check_share(name: str, rows: Sequence[tuple[Mapping[str, Any], Sight]], least: float, what: str) -> None:
    still = [(case, sight) for case, sight in rows if sight.fault]
    if len(rows) - len(still) < least * len(rows):
        case, sight = still[0]
        raise _refusal(case, f"input {name} {sight.fault}; it does not vary in {len(still)} of {len(rows)} {what}")


def _differs_at_one_shape(rows: Sequence[tuple[Mapping[str, Any], Sight]]) -> bool:
    by_shape: dict[str, set[str]] = {}
    for case, sight in rows:
        by_shape.setdefault(repr(sorted(dict(case["shape"]).items())), set()).update(sight.contents)
    return any(len(contents) > 1 for contents in by_shape.values())


def _is_chosen(name: str, rows: Sequence[tuple[Mapping[str, Any], Sight]]) -> bool:
    """Whether the cases choose the values themselves, by a knob of the input's name, and not as a function of the sizes."""
    shares = set()
    for case, _ in rows:
        chosen = case.get(name)
        values = chosen if isinstance(chosen, (list, tuple)) else [chosen]
        numbers = [value for value in values if isinstance(value, (int, float))]
        if len(numbers) < len(values):
            return False
        largest = max((size for size in dict(case["shape"]).values() if isinstance(size, int)), default=1)
        shares.add(tuple(sorted({number / largest for number in numbers})))
    return len(shares) > 1


def _refusal(case: Mapping[str, Any], problem: str) -> ContractError:
    return ContractError(problem, file=_FILE, where=f"case {case['id']}", remedy=_DRAW)


def _knobs(case: Mapping[str, Any]) -> list[str]:
    """Return every word that the knobs of a case say, whatever input they are about."""
    words: list[str] = []
    for key, value in case.items():
        if key not in NO_KNOB and not key.startswith("x_"):
            words += _words_of(value)
    return words


def _words_of(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value.strip().lower()]
    if isinstance(value, Mapping):
        return [word for item in value.values() for word in _words_of(item)]
    if isinstance(value, (list, tuple)):
        return [word for item in value for word in _words_of(item)]
    return []


def _is_named(case: Mapping[str, Any]) -> bool:
    """Whether a knob names the values of a case, so that some input may be still."""
    return any(word not in _PLAIN_WORDS for word in _knobs(case))


# -- one tensor, two seeds --------------------------------------------------------------------------------------------


def _named_tensors(names: Sequence[str], inputs: Sequence[Value]) -> Iterable[tuple[str, torch.Tensor]]:
    for i, value in enumerate(inputs):
        name = names[i] if i < len(names) else f"#{i}"
        found = tensors_in([value])
        nested = isinstance(value, (list, tuple))
        for position, tensor in enumerate(found):
            yield (f"{name}[{position}]" if nested else name), tensor


def _sight(one: torch.Tensor, other: torch.Tensor) -> Sight:
    import torch

    data = one.is_floating_point() or one.is_complex() or one.dtype in (torch.int8, torch.uint8)
    contents = frozenset({digest([one]), digest([other])})
    moved = len(contents) > 1
    fault = _fault(one, other, moved) if one.shape == other.shape else ""
    return Sight(data, moved, fault, contents, one.numel() == 1)


def _fault(one: torch.Tensor, other: torch.Tensor, moved: bool) -> str:
    """Return how a tensor fails to vary, "" when it does not."""
    import torch

    looks = [_plain(one), _plain(other)]
    if not any(bool(look.any()) for look in looks):
        return "is all zero"
    if not moved:
        return "is the same for every seed"
    if one.numel() < _FEW:
        return ""
    sizes = [float(look.square().mean().sqrt()) for look in looks]
    centred = [look - look.median() for look in looks]
    if min(_rms(c) / (size or 1.0) for c, size in zip(centred, sizes, strict=True)) < LEAST_SPREAD:
        return "is constant, or nearly so"
    if _rms(looks[0] - looks[1]) < LEAST_SPREAD * max(sizes):
        return "hardly changes with the seed"
    for axis, size in enumerate(one.shape):
        if size > 1 and any(_same_along(look, axis, LEAST_SPREAD * rms) for look, rms in zip(looks, sizes, strict=True)):
            return f"is the same along its axis {axis}"
    changed = (centred[0] != centred[1]) & (looks[0] != looks[1])
    share = float(changed.to(torch.float64).mean())
    if share < LEAST_CHANGED or _untouched_block(changed):
        return f"changes with the seed in a part only ({int(changed.sum())} of {changed.numel()} elements)"
    return ""


def _rms(values: torch.Tensor) -> float:
    return float(values.square().mean().sqrt())


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return finite float64 values; NaN and infinities, which masks and zones hold, become values of their own."""
    import torch

    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    values = tensor.detach().to(torch.float64)
    finite = values[values.isfinite()]
    most = float(finite.abs().max()) + 1.0 if finite.numel() else 1.0
    return torch.nan_to_num(values, nan=0.0, posinf=most, neginf=-most).contiguous()


def _same_along(values: torch.Tensor, axis: int, least: float) -> bool:
    return float((values - values.select(axis, 0).unsqueeze(axis)).abs().max()) <= least


def _untouched_block(changed: torch.Tensor) -> bool:
    """Whether a run of slices along some axis, of `_BLOCK` elements at least, holds no changed element.

    Blocks end where the axis ends, since it is the tail that a kernel loses.
    """
    total = changed.numel()
    for axis, size in enumerate(changed.shape):
        each = total // size
        length = -(-_BLOCK // each)
        others = [other for other in range(changed.dim()) if other != axis]
        counts = changed.sum(dim=others) if others else changed.to(dtype=_int64())
        tail = counts[size % length :]
        if size >= length and bool((tail.reshape(-1, length).sum(dim=1) == 0).any()):
            return True
    return False


def _int64() -> torch.dtype:
    import torch

    return torch.int64
