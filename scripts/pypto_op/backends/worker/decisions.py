"""Finds a golden's decisions: where it rounds to 16 bits or whole numbers, sorts, or compares.

Such a step is part of what the request demands, so the float64 truth takes it too. It is also where two honest kernels may
part: a value that lies within rounding of a tie goes one way in one of them and the other way in the other (`near_ties`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

CASTS = frozenset(
    {"to", "type", "type_as", "half", "bfloat16", "float", "double", "int", "long", "short", "char", "byte", "bool", "tensor"}
)
WRITES = frozenset({"copy_", "__setitem__"})
"""Functions that round what they write to the dtype of what they write into."""
ROUNDS = frozenset({"round", "floor", "ceil", "trunc", "fix", "frac", "floor_divide", "floordiv", "div", "divide", "true_divide"})
ORDERS = frozenset({"topk", "sort", "argsort", "argmax", "argmin", "kthvalue", "median", "mode", "max", "min", "msort"})
COMPARES = frozenset({"gt", "ge", "lt", "le", "eq", "ne", "greater", "less", "greater_equal", "less_equal", "not_equal"})
_BINS = frozenset({"bucketize", "searchsorted", "histc", "histogram", "sign", "signbit", "remainder", "fmod", "mod"})
_QUOTIENTS = frozenset({"div", "divide", "true_divide"})
_FACTS = frozenset({"__get__", "size", "dim", "numel", "stride", "is_floating_point", "element_size", "detach"})
"""Calls that read a tensor's form, not its values."""
KNOWN = CASTS | WRITES | ROUNDS | ORDERS | COMPARES | _BINS
"""Every function that may be a step."""

_WIDE_BITS = 32


@dataclass
class Step:
    """One call of the native golden that may decide."""

    name: str  # of the function
    narrowed: torch.dtype | None  # the dtype below 32 bits that a wider float was rounded to; None for every other step
    decides: bool  # the result is no rounding of a float: a whole number, an order, a comparison
    # the floats that were rounded, ordered or compared, by their place among the arguments
    operands: Mapping[int, torch.Tensor] = field(default_factory=dict)
    used: bool = False  # something was made from what was rounded; an output's last rounding is not used

    @property
    def whole(self) -> bool:
        """Whether whole numbers come out of a rounding, whose ties lie a step apart."""
        return self.name in ROUNDS or (self.name in CASTS | WRITES and self.decides)

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
        held = {at: args[at].detach().clone() for at in operand_places(name, args) if _is_float(args[at])}
        result = func(*args, **(kwargs or {}))
        step = _step(name, args, kwargs or {}, held, result)
        self.steps.append(step)
        if step.narrowed is not None:
            target = args[0] if name in WRITES else result
            self._kept.append(target)
            self._rounded.setdefault(_storage(target), []).append(step)
        return result

    def _note_use(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Mark the roundings whose result is read here; what is only written into is not read."""
        if not self._rounded or name in _FACTS:
            return
        read = args[1:] if name in WRITES else args
        for value in _tensors((read, tuple(kwargs.values()))):
            for step in self._rounded.get(_storage(value), ()):
                step.used = True


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)


def operand_places(name: str, args: Sequence[Any]) -> tuple[int, ...]:
    """Return which arguments a step rounds, orders or compares: the value that is written, both sides of a comparison."""
    if name in WRITES:
        return (len(args) - 1,) if len(args) > 1 else ()
    if name in COMPARES or name == "searchsorted" or name in ROUNDS & {"floor_divide", "floordiv"} or name in _QUOTIENTS:
        return tuple(range(min(len(args), 2)))
    return (0,) if args else ()


def with_operand(args: tuple[Any, ...], at: int, value: Any) -> tuple[Any, ...]:
    """Return the arguments of a step with another operand."""
    return (*args[:at], value, *args[at + 1 :])


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _step(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], held: Mapping[int, torch.Tensor], result: Any) -> Step:
    if not held or (name in _QUOTIENTS and kwargs.get("rounding_mode") is None):
        return Step(name, None, False)
    if name in WRITES:
        source, target = next(iter(held.values())).dtype, args[0].dtype
        return Step(name, target if _narrows(source, target) else None, not target.is_floating_point, held)
    if name in ORDERS:
        return Step(name, None, not isinstance(result, torch.Tensor) or not result.is_floating_point(), held)
    if name not in CASTS:
        return Step(name, None, True, held)
    source = next(iter(held.values())).dtype
    dtype = result.dtype if isinstance(result, torch.Tensor) else source
    return Step(name, dtype if _narrows(source, dtype) else None, not dtype.is_floating_point, held)


def _narrows(source: torch.dtype, target: torch.dtype) -> bool:
    return is_narrow(target) and source.is_floating_point and torch.finfo(source).bits > torch.finfo(target).bits
