"""What task and candidate have in common inside their processes: building a model, moving values, calling forward."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from pypto_op.backends.wire import read_values
from pypto_op.backends.worker.doubling import Doubled
from pypto_op.backends.worker.loading import Failure, failure_of
from pypto_op.triton.run.inputs.draws import seed_all
from pypto_op.triton.run.inputs.packing import Unpackable, dense, map_tensors, on_device, pack, tensors_of, unpack
from pypto_op.triton.run.processes import compiler, tf32
from pypto_op.triton.run.watching.memory import content
from pypto_op.vocabulary import Outcome

_space = torch.nn.Module.__dict__["__dict__"].__get__
"""A module's attributes, whatever its class says of them: between two calls of forward nobody watches what it runs."""
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_OF_TORCH = frozenset(vars(torch.nn.Module()))
"""Attributes that every module has."""
_DEEPEST = 60
_COUNT = "num_batches_tracked"
"""A norm counts its calls in it, which nothing uses."""


def prepare(document: dict[str, Any]) -> torch.device:
    """Set this process up for its target and return the device."""
    target = document["device"]["target"]
    tf32.off(Path(document["file"]))
    if target == "interpret":
        from pypto_op.backends import hostshim
        from pypto_op.triton.run.interpreter import hostdevice

        hostshim.install()
        hostdevice.install()
        return torch.device("cpu")
    cache = Path(document["enclosure"]["scratch"]) / "triton"
    os.environ["TRITON_CACHE_DIR"] = str(cache)
    compiler.install(cache)
    if target == "npu":
        import torch_npu  # noqa: F401
    return torch.device(target)


def read(message: dict[str, Any]) -> Any:
    """Return what came with a message."""
    values, _ = read_values(Path(message["inputs"]))
    return unpack([value for value in values if isinstance(value, torch.Tensor)]) if values else None


def packed(value: Any, what: str) -> list[torch.Tensor]:
    """Return `value` as byte tensors; raise Failure when it cannot be handed over."""
    try:
        return pack(dense(value, "a value"))
    except Unpackable as error:
        raise Failure(Outcome.BAD_OUTPUT, f"{what}: {error}") from None


def checked(value: Any, what: str) -> Any:
    """Return what forward took or returned; raise Failure when a tensor in it is sparse, quantised or nested."""
    try:
        return dense(value, what)
    except Unpackable as error:
        raise Failure(Outcome.BAD_OUTPUT, str(error)) from None


def placed(value: Any, device: torch.device) -> Any:
    """Return a structure with every tensor on the device, nested ones included."""
    return map_tensors(value, lambda tensor: on_device(tensor, device))


def numbers_of(value: Any, depth: int = 6) -> list[Any]:
    """Return every plain number in a structure of dicts, lists and tuples, and the shapes of its tensors."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [number for item in value for number in numbers_of(item, depth - 1)] if depth else []
    if isinstance(value, torch.Tensor):
        return [tuple(value.shape), value.stride()]
    return [value] if isinstance(value, (bool, int, float, complex)) else []


def synchronize(device: torch.device) -> None:
    """Wait for the whole device, every stream."""
    if device.type != "cpu":
        getattr(torch, device.type).synchronize()


class DeviceLost(BaseException):
    """The device answers this process no more; whoever goes on after exceptions does not after this one."""


def check_device(device: torch.device) -> None:
    """Raise DeviceLost where a device refuses whatever this process asks of it, as it does after an index beyond a table."""
    try:
        synchronize(device)
    except Exception as error:
        raise DeviceLost(str(error).partition("\n")[0]) from None


def build(kind: Callable[..., Any], init: Sequence[Any], seed: int, device: torch.device, path: Path) -> Any:
    """Construct a model after seeding; raise Failure when its constructor does not return.

    Args:
        init: its positional arguments and its keyword arguments.
        path: the file that is blamed.
    """
    seed_all(seed)
    positional, keywords = init
    try:
        model = kind(*positional, **keywords)
        return model.to(device) if isinstance(model, torch.nn.Module) else model
    except BaseException as error:
        raise failure_of(error, path, Outcome.EXCEPTION, " in the constructor") from None


def weights_of(model: Any) -> dict[str, torch.Tensor]:
    """Return a model's parameters and buffers by name."""
    return {name: tensor for name, tensor in _weights(model, "", 0) if type(tensor) in _PLAIN}


def states_of(model: Any) -> dict[str, torch.Tensor]:
    """Return what a model keeps beside parameters: running statistics, tables."""
    held = dict(model.named_buffers()) if isinstance(model, torch.nn.Module) else {}
    return {name: value for name, value in held.items() if name.rpartition(".")[2] != _COUNT}


def kept_by(model: Any) -> list[Any]:
    """Return what a model keeps beside buffers from call to call: numbers among its plain attributes, and marks of tensors."""
    modules = model.modules() if isinstance(model, torch.nn.Module) else [model]
    plain = [vars(module)[name] for module in modules for name in sorted({*vars(module)} - _OF_TORCH)]
    plain = [list(value) if isinstance(value, (deque, set)) else value for value in plain]
    return [numbers_of(plain), marks([*_inside(plain, 6)])]


def held_by(model: Any) -> list[torch.Tensor]:
    """Return every tensor that a model has: weights, buffers that are not saved, plain attributes, lists of such."""
    seen: dict[int, Any] = {}
    waiting = [model]
    while waiting:
        module = waiting.pop()
        if issubclass(type(module), torch.nn.Module) and id(module) not in seen:
            seen[id(module)] = module
            waiting += dict.values(dict.get(_space(module), "_modules", {}))
    return [tensor for module in seen.values() for tensor in _inside(_space(module), 6) if type(tensor) in _PLAIN]


def _weights(module: Any, prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield a module's parameters and the buffers that are saved, as its `state_dict` does; no method of its class is called."""
    if not issubclass(type(module), torch.nn.Module) or depth > _DEEPEST:
        return
    held, kept = _space(module), dict.get(_space(module), "_non_persistent_buffers_set", ())
    for table in ("_parameters", "_buffers"):
        for name, tensor in dict.items(dict.get(held, table, {})):
            if tensor is not None and (table == "_parameters" or name not in kept):
                yield prefix + name, tensor
    for name, inner in dict.items(dict.get(held, "_modules", {})):
        yield from _weights(inner, f"{prefix}{name}.", depth + 1)


def _inside(value: Any, depth: int) -> Iterator[Any]:
    """Yield every tensor in containers, asking Python's own methods for what they hold."""
    kind = type(value)
    if issubclass(kind, torch.Tensor):
        yield value
    elif depth:
        base = next((base for base in (dict, list, tuple) if issubclass(kind, base)), None)
        items = () if base is None else dict.values(value) if base is dict else base.__iter__(value)
        for item in items:
            yield from _inside(item, depth - 1)


def derived(model: Any) -> int:
    """Return how many float tensors a model holds beside its weights: a constructor may have made them of weights."""
    weights = {tensor.data_ptr() for tensor in weights_of(model).values()}
    return sum(tensor.is_floating_point() and tensor.data_ptr() not in weights for tensor in held_by(model))


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor in float64 if it holds floats."""
    return tensor.double() if tensor.is_floating_point() else tensor


def single(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor in float32 if it holds floats of 16 bits."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def widen(model: Any) -> None:
    """Turn a model to float64, tensors that are plain attributes included."""
    if not isinstance(model, torch.nn.Module):
        return
    model.double()
    for module in model.modules():
        plain = {name: value for name, value in vars(module).items() if isinstance(value, torch.Tensor)}
        vars(module).update({name: wide(value) for name, value in plain.items()})


@contextlib.contextmanager
def computing_wide() -> Iterator[None]:
    """Compute in float64 meanwhile: without a dtype (`torch.empty(4, 6)`) and where float32 is asked for (`x.float()`).

    A rounding to 16 bits stays: it may be part of what the task means.
    """
    with default_wide(), Doubled(narrow=frozenset({torch.float32})):
        yield


@contextlib.contextmanager
def default_wide() -> Iterator[None]:
    """Let what is made without a dtype be float64 meanwhile."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(usual)


def load_weights(model: Any, weights: dict[str, torch.Tensor]) -> tuple[str, list[str]]:
    """Copy the reference's weights into a model by name where name, shape and dtype fit.

    Returns:
        `none` (there are none), `by name` (all), `in order` (all shapes fit, no name does), `by name, the rest in order`,
        `some by name`, or `seed order` (nothing fits; both constructors were seeded alike). And the names of the reference's
        weights that were not copied.
    """
    own = weights_of(model)
    if not own or not weights:
        return "none", list(weights)
    named = {name for name, value in weights.items() if name in own and _fits(own[name], value)}
    mine, theirs = ([value for name, value in held.items() if name not in named] for held in (own, weights))
    pairs = [(own[name], weights[name]) for name in named]
    word = "by name" if not mine else "some by name" if named else "seed order"
    if mine and len(mine) == len(theirs) and all(map(_fits, mine, theirs)):
        pairs += zip(mine, theirs, strict=True)
        word = "by name, the rest in order" if named else "in order"
    with torch.no_grad():
        for target, value in pairs:
            target.copy_(value)
    taken = {id(value) for _, value in pairs}
    return word, [name for name, value in weights.items() if id(value) not in taken]


def _fits(mine: torch.Tensor, value: torch.Tensor) -> bool:
    return mine.shape == value.shape and mine.dtype == value.dtype


def marks(value: Any) -> list[str]:
    """Return a hash of each tensor's elements."""
    return [content(tensor.resolve_conj()) for tensor in tensors_of(value)]


def changed(value: Any, before: list[str]) -> dict[int, torch.Tensor]:
    """Return the tensors of a structure whose elements are no longer what `marks` said, by their position."""
    return {position: tensor for position, tensor in enumerate(tensors_of(value)) if marks(tensor) != [before[position]]}
