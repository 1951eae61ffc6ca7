"""Where a golden decides: what it rounds to 16 bits or to whole numbers, orders, or compares on the way to its outputs.

Such a step is part of what the request demands, so the float64 truth takes it too. It is also where two honest kernels may
part: a value that lies within rounding of a tie goes one way in one of them and the other way in the other. `Ties` runs the
golden with each such value moved to the other side, so that a judge knows both answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_CASTS = frozenset(
    {"to", "type", "type_as", "half", "bfloat16", "float", "double", "int", "long", "short", "char", "byte", "bool"}
)
WRITES = frozenset({"copy_", "__setitem__"})
"""Functions that round what they write to the dtype of what they write into."""
_STEPS = frozenset({"round", "floor", "ceil", "trunc", "fix", "frac", "sign", "floor_divide", "floordiv", "bucketize"})
_ORDERS = frozenset({"topk", "sort", "argsort", "argmax", "argmin", "kthvalue", "median", "mode", "max", "min", "msort"})
_COMPARES = frozenset({"gt", "ge", "lt", "le", "eq", "ne", "greater", "less", "greater_equal", "less_equal"})
_FACTS = frozenset({"__get__", "size", "dim", "numel", "stride", "is_floating_point", "element_size", "detach"})
"""Calls that read a tensor's form, not its values."""
KNOWN = _CASTS | WRITES | _STEPS | _ORDERS | _COMPARES
"""Every function that may be a step."""

_WIDE_BITS = 32
_RELATIVE = 2.0**-18
"""How far a value that carries rounding may move, beside itself: some 64 roundings of float32."""
_BEYOND_SEEN = 4.0
"""How far it may move as a multiple of the rounding that most elements of its tensor were seen to carry."""
_USUAL = 0.9
_COMPUTED = 1 / 64
"""Share of elements that carry rounding from which on a whole tensor counts as computed."""
_MOST_SAMPLED = 1 << 20


@dataclass
class Step:
    """One call of the native golden that may decide.

    Attributes:
        name: of the function.
        narrowed: the dtype below 32 bits that a wider float was rounded to; None for every other step.
        decides: the result is no rounding of a float: a whole number, an order, a comparison.
        operand: the values that were rounded, ordered or compared; None where none were floats.
        used: something was made from what was rounded; an output's last rounding is not used.
    """

    name: str
    narrowed: torch.dtype | None
    decides: bool
    operand: torch.Tensor | None
    used: bool = False

    @property
    def counts(self) -> bool:
        """Whether the step is part of what the golden means."""
        return self.decides or (self.narrowed is not None and self.used)


def name_of(func: Callable[..., Any]) -> str:
    """Return the plain name of a torch function: `round` for torch.round, Tensor.round and Tensor.round_, `gt` for `>`."""
    name = getattr(func, "__name__", "")
    if name in WRITES:
        return name
    plain = name.strip("_") if name.startswith("__") else name.removesuffix("_")
    return plain if plain in KNOWN else name


def is_narrow(dtype: torch.dtype) -> bool:
    """Whether a floating dtype has fewer bits than float32."""
    return dtype.is_floating_point and torch.finfo(dtype).bits < _WIDE_BITS


class Recorder(TorchFunctionMode):
    """Watches the golden run as it stands and remembers its steps, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self._rounded: dict[int, list[Step]] = {}
        self._kept: list[torch.Tensor] = []  # so that no other tensor gets their addresses

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call `func`; note it when it is a step."""
        name = name_of(func)
        self._note_use(name, args, kwargs or {})
        if name not in KNOWN:
            return func(*args, **(kwargs or {}))
        value = moved_operand(name, args)
        held = value.detach().clone() if isinstance(value, torch.Tensor) and value.is_floating_point() else None
        result = func(*args, **(kwargs or {}))
        step = _step(name, args, held, result)
        self.steps.append(step)
        if step.narrowed is not None:
            target = args[0] if name in WRITES else result
            self._kept.append(target)
            self._rounded.setdefault(_storage(target), []).append(step)
        return result

    def _note_use(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Mark the roundings whose result is read here; what is only written into is not read."""
        read = args[1:] if name in WRITES else args
        for value in _tensors((read, tuple(kwargs.values()))):
            for step in self._rounded.get(_storage(value), ()) if name not in _FACTS else ():
                step.used = True


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)


def moved_operand(name: str, args: Sequence[Any]) -> Any:
    """Return what a step rounds, orders or compares: the value that is written, else the first argument."""
    at = _operand_at(name, args)
    return args[at] if at is not None else None


def with_operand(name: str, args: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    """Return the arguments of a step with another operand."""
    at = _operand_at(name, args)
    return args if at is None else (*args[:at], value, *args[at + 1 :])


def _operand_at(name: str, args: Sequence[Any]) -> int | None:
    if name in WRITES:
        return len(args) - 1 if len(args) > 1 else None
    return 0 if args else None


def _step(name: str, args: Sequence[Any], held: torch.Tensor | None, result: Any) -> Step:
    if held is None:
        return Step(name, None, False, None)
    if name in WRITES:
        target = args[0].dtype
        return Step(name, target if _narrows(held.dtype, target) else None, not target.is_floating_point, held)
    if name in _ORDERS:
        return Step(name, None, not isinstance(result, torch.Tensor) or not result.is_floating_point(), held)
    if name not in _CASTS:
        return Step(name, None, True, held)
    dtype = result.dtype if isinstance(result, torch.Tensor) else held.dtype
    return Step(name, dtype if _narrows(held.dtype, dtype) else None, not dtype.is_floating_point, held)


def _narrows(source: torch.dtype, target: torch.dtype) -> bool:
    return is_narrow(target) and source.is_floating_point and torch.finfo(source).bits > torch.finfo(target).bits


def moved(wide: torch.Tensor, native: torch.Tensor, direction: int, number: int) -> tuple[torch.Tensor, bool]:
    """Return the values with each that carries rounding moved a little, and whether there was one.

    Exact values stay, since a comparison of exact numbers has one right answer: whole numbers, and tensors of which hardly an
    element carries rounding (a single element may be exact by luck: half of a row's maximum). What honest code knows to a
    few roundings only moves by more than those, up or down by a draw that depends on `number` alone; the other
    `direction` takes each to the other side.

    Args:
        wide: the values in float64.
        native: the same values as the golden as it stands has them, which shows how much rounding they carry.
        direction: 1 or -1.
        number: of the step.
    """
    mine = native.to(torch.float64)
    if mine.shape != wide.shape or not wide.numel():
        return wide, False
    whole = (wide == wide.round()) & (mine == mine.round())
    finite = torch.isfinite(wide) & torch.isfinite(mine)
    differs = (mine != wide) & finite
    computed = int(differs.sum()) >= _COMPUTED * wide.numel()
    rough = ((finite & computed) | differs) & ~whole
    if not bool(rough.any()):
        return wide, False
    error = (mine - wide).abs()[differs]
    usual = torch.quantile(error[:_MOST_SAMPLED], _USUAL)
    draw = torch.Generator().manual_seed(number)
    amount = 0.5 + 0.5 * torch.rand(wide.shape, generator=draw, dtype=torch.float64)
    sign = 1.0 - 2.0 * torch.randint(0, 2, wide.shape, generator=draw).to(torch.float64)
    reach = _RELATIVE * wide.abs() + _BEYOND_SEEN * usual
    return torch.where(rough, wide + direction * sign * amount * reach, wide), True
