"""Any structure of arguments or outputs as plain byte tensors, since every dtype must cross the process boundary.

The first tensor is a JSON skeleton, the others are the leaves' memory. Sizes, strides and the place in that memory are kept, so
a slice arrives as a slice. `backends.wire` gives every leaf memory of its own on the other side.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import torch

_DEEPEST = 12
_MOST_BEFORE, _FEW = 16, 64
"""The memory before a slice is kept where it has at most so many times as many elements, or as few elements would have."""
_KEYS = (str, int, float, bool, bytes, type(None), tuple)


class Named(dict[str, Any]):
    """What a call is given by keyword only: the last of its arguments."""


class Unpackable(TypeError):
    """A value that cannot be handed over; the message says what and where."""


def pack(value: Any) -> list[torch.Tensor]:
    """Return byte tensors that `unpack` makes `value` of again; on a CPU they are the memory of `value`, where that has no gaps.

    Raises:
        Unpackable: something is no tensor, number, string, None, dtype, device, list, tuple or dict of such.
    """
    leaves: list[torch.Tensor] = []
    skeleton = json.dumps(_encode(value, leaves, 0)).encode()
    return [torch.frombuffer(bytearray(skeleton), dtype=torch.uint8), *leaves]


def unpack(parts: Sequence[torch.Tensor]) -> Any:
    """Return what was packed; raise ValueError for anything that `pack` did not make."""
    try:
        skeleton = json.loads(bytes(parts[0].numpy().tobytes()))
        return _decode(skeleton, parts[1:])
    except (IndexError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise ValueError(f"damaged values: {error}") from error


def tensors_of(value: Any) -> list[torch.Tensor]:
    """Return the tensors of a structure, left to right."""
    found: list[torch.Tensor] = []
    map_tensors(value, found.append)
    return found


def address(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's storage; 0 for a sparse one, which has none of its own."""
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0


def holds_integers(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds whole numbers; a mask does not."""
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool)


def elements_of(value: Any) -> int:
    """Return how many elements the tensors of a structure have."""
    return sum(tensor.numel() for tensor in tensors_of(value))


def map_tensors(value: Any, function: Callable[[torch.Tensor], Any]) -> Any:
    """Return the structure with `function(tensor)` in each tensor's place."""
    return map_leaves(value, lambda _, leaf: function(leaf) if isinstance(leaf, torch.Tensor) else leaf)


def map_leaves(value: Any, function: Callable[[str, Any], Any], at: str = "") -> Any:
    """Return the structure with `function(path, leaf)` in the place of each leaf; `1/limit` is a path."""
    if isinstance(value, dict):
        mapped = {key: map_leaves(item, function, f"{at}/{key}" if at else str(key)) for key, item in value.items()}
        return Named(mapped) if type(value) is Named else mapped
    if isinstance(value, (list, tuple)):
        items = [map_leaves(item, function, f"{at}/{turn}" if at else str(turn)) for turn, item in enumerate(value)]
        if isinstance(value, tuple):
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        return items
    return function(at, value)


def settled(value: Any) -> Any:
    """Return a structure in plain lists, tuples and dicts; no method of another class is called for what it holds.

    Raises:
        Unpackable: a tensor or a key is of a class of its own.
    """
    kind = type(value)
    if issubclass(kind, torch.Tensor):
        if kind not in (torch.Tensor, torch.nn.Parameter):
            raise Unpackable(f"a tensor of class {kind.__name__} may compute whenever it is looked at")
        return value
    if issubclass(kind, dict):
        if not all(type(key) in _KEYS for key in dict.keys(value)):
            raise Unpackable("a dict has keys of a class of its own")
        return {key: settled(item) for key, item in dict.items(value)}
    if issubclass(kind, list):
        return [settled(item) for item in list.__iter__(value)]
    return tuple(settled(item) for item in tuple.__iter__(value)) if issubclass(kind, tuple) else value


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor without its graph, and with the numbers that a lazy view (`conj`, `imag` of one) only promises.

    A kernel reads memory, where these numbers are not, and nobody can look at the bytes of such a view.
    """
    return tensor.detach().resolve_conj().resolve_neg()


def same_layout(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy with the same strides, those of an expanded tensor (0) included, at the same place of its memory."""
    if not tensor.numel():
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    seen = plain(tensor)
    memory, before = memory_and_before(seen)
    return memory.clone().as_strided(seen.size(), seen.stride(), before)


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """Return a float of 8 bits as float32, of the same layout: PyTorch neither compares nor adds such. Others stay."""
    if not tensor.is_floating_point() or tensor.element_size() > 1 or not tensor.numel():
        return tensor
    memory, before = memory_and_before(tensor)
    return memory.float().as_strided(tensor.size(), tensor.stride(), before)


def as_given(found: Any, inputs: Any) -> Any:
    """Return inputs that were made of widened ones in the dtypes of the given ones."""
    dtypes = iter([tensor.dtype for tensor in tensors_of(inputs)])
    return map_tensors(found, lambda tensor: _narrowed(tensor, next(dtypes)))


def _narrowed(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return what was widened in its own dtype; what is beyond its range comes to its end."""
    if tensor.dtype is dtype or not tensor.numel():
        return tensor.to(dtype)
    end = torch.finfo(dtype).max
    memory, before = memory_and_before(tensor)
    return memory.clamp(-end, end).to(dtype).as_strided(tensor.size(), tensor.stride(), before)


def on_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return a tensor on the device, a copy with the same layout where it lies on another one: `to` would close gaps."""
    if tensor.device.type == device.type or not tensor.numel():
        return tensor.to(device)
    memory, before = memory_and_before(tensor)
    return memory.to(device).as_strided(tensor.size(), tensor.stride(), before)


def changed_copy(value: Any, change: Callable[[torch.Tensor, torch.Tensor], bool]) -> Any | None:
    """Return the structure with copies of its tensors, of the same layout; None where nothing changes.

    Args:
        value: stays as it is.
        change: is given each copy and its tensor, in order; writes into the copy, and returns whether it meant to.
    """
    changed = False

    def one(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal changed
        copy = same_layout(tensor)
        changed = change(copy, tensor) or changed
        return copy

    found = map_tensors(value, one)
    return found if changed else None


def memory_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return the memory from a tensor's first element to its last, as a vector; gaps between elements are part of it."""
    return tensor.as_strided((_span(tensor),), (1,))


def memory_and_before(tensor: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Return the memory of a slice with what lies before it, and how much that is: a host may count places from there."""
    before, span = int(tensor.storage_offset()), _span(tensor)
    before = before if before <= _MOST_BEFORE * max(span, _FEW) else 0
    return tensor.as_strided((before + span,), (1,), int(tensor.storage_offset()) - before), before


def once(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view that meets each element of memory once: an expanded axis (stride 0) keeps its first entry."""
    for axis, stride in enumerate(tensor.stride()):
        tensor = tensor.narrow(axis, 0, min(1, tensor.shape[axis])) if stride == 0 else tensor
    return tensor


def dense(value: Any, what: str) -> Any:
    """Return `value`; raise Unpackable when a tensor in it has no memory of the usual kind."""
    for tensor in tensors_of(value):
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta or tensor.is_nested:
            raise Unpackable(f"{what}: a tensor of layout {tensor.layout} and dtype {tensor.dtype} is no plain dense tensor")
    return value


def _span(tensor: torch.Tensor) -> int:
    """Return how many elements of memory lie from a tensor's first to its last."""
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _encode(value: Any, leaves: list[torch.Tensor], depth: int) -> Any:
    if depth > _DEEPEST:
        raise Unpackable("it is nested too deeply")
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return {"int": str(value)}
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, complex):
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_encode(item, leaves, depth + 1) for item in value]}
    if isinstance(value, dict):
        pairs = [[_encode(k, leaves, depth + 1), _encode(v, leaves, depth + 1)] for k, v in value.items()]
        return {"named" if type(value) is Named else "dict": pairs}
    if isinstance(value, torch.Tensor):
        return _encode_tensor(value, leaves)
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": value.type}
    raise Unpackable(f"a {type(value).__name__} cannot be handed over")


def _encode_tensor(value: torch.Tensor, leaves: list[torch.Tensor]) -> Any:
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        raise Unpackable(f"a {type(value).__name__} is no plain tensor")
    seen = plain(value)
    dtype = str(seen.dtype).removeprefix("torch.")
    entry: dict[str, Any] = {"tensor": len(leaves), "dtype": dtype, "size": list(seen.shape)}
    if seen.numel() and (seen.storage_offset() or not seen.is_contiguous()):
        strides = list(seen.stride())
        seen, before = memory_and_before(seen)
        entry |= {"stride": strides, "before": before}
    flat = seen.cpu().contiguous().reshape(-1).as_strided((seen.numel(),), (1,))  # of one element, the stride may be anything
    if not flat.numel():
        flat = torch.empty(0, dtype=torch.uint8)
    leaves.append(flat.view(torch.uint8))
    return entry


def _decode(item: Any, leaves: Sequence[torch.Tensor]) -> Any:
    if item is None or isinstance(item, (bool, str)):
        return item
    kind, content = next(iter(item.items()))
    if kind == "int":
        return int(content)
    if kind == "float":
        return float.fromhex(content)
    if kind == "complex":
        return complex(*map(float.fromhex, content))
    if kind in ("list", "tuple"):
        items = [_decode(part, leaves) for part in content]
        return items if kind == "list" else tuple(items)
    if kind in ("dict", "named"):
        decoded = {_decode(key, leaves): _decode(part, leaves) for key, part in content}
        return Named(decoded) if kind == "named" else decoded
    if kind == "dtype":
        return getattr(torch, content)
    if kind == "device":
        return torch.device(content)
    return _decode_tensor(item, leaves)


def _decode_tensor(item: Any, leaves: Sequence[torch.Tensor]) -> torch.Tensor:
    dtype = getattr(torch, item["dtype"])
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"{item['dtype']} is no dtype")
    flat = leaves[item["tensor"]]
    flat = flat.view(dtype) if flat.numel() else torch.empty(0, dtype=dtype)
    if "stride" in item:
        return torch.as_strided(flat, tuple(item["size"]), tuple(item["stride"]), item["before"])
    return flat.reshape(tuple(item["size"]))
