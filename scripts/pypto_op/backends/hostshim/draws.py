"""Random numbers of the pretended NPU: they have a generator of their own, so that drawing them does not move the CPU's.

`torch.manual_seed` seeds both, `torch.npu.manual_seed` this one alone. Which numbers a device draws from a seed is not known
here; they are not the CPU's, so this generator starts from another number than the CPU's. What was made on an NPU or sent there
is known by its memory: its views and parameters are the device's too. What is computed from it is not followed, and dropout
draws from the CPU's generator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _device as default_device

ON_DEVICE = torch.device("cpu")
"""Stands for an NPU wherever torch wants a device. Its identity tells: any other `torch.device("cpu")` is the CPU itself."""

_TAG = "_pypto_op_on_npu"
_APART = 0x6E7075
"""Between the seed that is asked for and the one that is used: the same would give the CPU's numbers."""
_NAMES = {
    torch: "rand randn randint randperm rand_like randn_like randint_like normal bernoulli multinomial poisson binomial",
    torch.Tensor: "uniform_ normal_ random_ bernoulli bernoulli_ multinomial exponential_ cauchy_ log_normal_ geometric_",
    torch.nn.init: "uniform_ normal_ trunc_normal_ xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_ orthogonal_",
}
DRAWS = {getattr(space, name) for space, names in _NAMES.items() for name in names.split()}
"""What draws random numbers, and takes a generator."""

_generator = torch.Generator()
_generator.seed()


def of_the_device(args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of a draw, with the device's generator where the draw is the device's and names none itself."""
    if kwargs.get("generator") is None and _is_on_device((*args, *kwargs.values()), kwargs.get("device")):
        return {**kwargs, "generator": _generator}
    return dict(kwargs)


def put(value: Any) -> None:
    """Note that a tensor, or what a module holds, is on the device."""
    if isinstance(value, torch.nn.Module):
        for held in (*value.parameters(), *value.buffers()):
            put(held)
    elif isinstance(value, torch.Tensor) and (memory := _memory_of(value)) is not None:
        setattr(memory, _TAG, True)


def is_put(tensor: torch.Tensor) -> bool:
    """Whether a tensor's memory was made on the device or sent there."""
    return hasattr(_memory_of(tensor), _TAG)


def _memory_of(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # a sparse tensor, or one that functorch wraps
        return None


def _is_on_device(values: Iterable[Any], device: Any) -> bool:
    if device is not None:
        return device is ON_DEVICE
    given = next((value for value in values if isinstance(value, torch.Tensor)), None)
    return default_device.CURRENT_DEVICE is ON_DEVICE if given is None else is_put(given)


# -- as `torch.npu` offers it -----------------------------------------------------------------------------------------


def manual_seed(seed: int) -> None:
    """Seed the device's generator alone."""
    _generator.manual_seed(int(seed) ^ _APART)


def seed() -> None:
    """Seed the device's generator alone, with a number by chance."""
    _generator.seed()


def initial_seed() -> int:
    """Return what the device's generator was seeded with."""
    return _generator.initial_seed() ^ _APART


def get_rng_state(device: Any = "npu") -> torch.Tensor:
    """Return where the device's generator is."""
    return _generator.get_state()


def set_rng_state(new_state: torch.Tensor, device: Any = "npu") -> None:
    """Bring the device's generator to where it was."""
    _generator.set_state(new_state)


def functions() -> dict[str, Callable[..., Any]]:
    """Return the functions of `torch.npu` that are about random numbers; there is one device."""
    return {
        "manual_seed": manual_seed,
        "manual_seed_all": manual_seed,
        "seed": seed,
        "seed_all": seed,
        "initial_seed": initial_seed,
        "get_rng_state": get_rng_state,
        "set_rng_state": set_rng_state,
        "get_rng_state_all": lambda: [get_rng_state()],
        "set_rng_state_all": lambda new_states: set_rng_state(new_states[0]),
    }
