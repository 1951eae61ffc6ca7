"""Numbers of the host that a file puts into a tensor to reckon with them: `torch.prod(torch.tensor(x.shape[:-1])).item()`.

Python could do the same (`math.prod`); no tensor's data is among them. Public wrappers flatten shapes so.
"""

from __future__ import annotations

from pypto_op.triton.static import emptiness
from pypto_op.triton.static.machine import NO, Machine
from pypto_op.triton.static.values import Host, Tensor, Value, holds_data, options

_MAKES = ("torch.tensor", "torch.as_tensor")
"""What makes a tensor of a list of numbers."""
_REDUCTIONS = frozenset({"prod", "sum", "max", "min"})
_TAKES = frozenset({"item", "tolist", "__int__", "__float__"})
_NUMBERS = {"builtins.int": "__int__", "builtins.float": "__float__"}


def made(machine: Machine, name: str, given: list[Value]) -> Tensor | None:
    """Return the tensor that `torch.tensor(numbers)` makes; None where some of them were read out of a tensor."""
    if name not in _MAKES or any(map(holds_data, given)):
        return None
    tensor = machine.fresh()
    machine.numbers |= tensor.buffers
    return tensor


def called(machine: Machine, name: str, given: list[Value]) -> Value | None:
    """Return what a function makes of such a tensor (`torch.prod(t)`, `int(t)`), or says of a tensor's size; None for another."""
    method = name[6:] if name.startswith("torch.") else _NUMBERS.get(name)
    known = reckoned(machine, method, given) if method is not None else None
    return known or emptiness.counted(method or name, given)


def reckoned(machine: Machine, name: str, given: list[Value]) -> Value | None:
    """Return what a reduction of such a tensor, or its way to a number, gives; None for anything else.

    Args:
        name: of the method, or of the function of PyTorch's.
        given: the tensor, and what else the call gets.
    """
    name, first = name.removeprefix("torch."), given[0] if given else Host()
    if name not in _REDUCTIONS | _TAKES or any(map(holds_data, given[1:])) or not _is_of_numbers(machine, first):
        return None
    return Host() if name in _TAKES else first


def _is_of_numbers(machine: Machine, value: Value) -> bool:
    """Whether a value is a tensor that holds what the host put into it, and nothing has been stored there since."""
    return all(
        isinstance(option, Tensor)
        and option.buffers <= machine.numbers
        and machine.written(option) == NO
        and not option.buffers & machine.addressed
        and all(buffer.constant for buffer in option.buffers)
        for option in options(value)
    )
