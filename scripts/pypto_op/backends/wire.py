"""How values travel between judge and worker: one JSON document for the structure, one safetensors file for bytes.

A tensor is written with its sizes and strides, so a non-contiguous input arrives non-contiguous. Every tensor gets
memory of its own on the other side, so inputs that share memory here do not share it there.
"""

from __future__ import annotations

import contextlib
import json
import math
import mmap
import os
import stat
from collections.abc import Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from pypto_op.backends.base import Value

_STRUCTURE = ".json"
_BYTES = ".safetensors"
_DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "C64": "complex64", "BOOL": "bool",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
    "F8_E4M3": "float8_e4m3fn", "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2": "float8_e5m2", "F8_E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip
"""Word of the safetensors format -> name in torch."""
_LONGEST_DOCUMENT = 16 * 1024 * 1024


def write_values(stem: Path, values: Sequence[Value], **extra: Any) -> None:
    """Write `values` as `<stem>.json` and `<stem>.safetensors`; the JSON appears last, whole or not at all.

    Raises:
        TypeError: a value of another type, or a tensor of a layout or dtype that cannot be stored.
    """
    tensors: dict[str, torch.Tensor] = {}
    places: set[int] = set()
    items = [_encode(value, tensors, places) for value in values]
    if values:  # torch is not imported to say that there are none
        from safetensors.torch import save_file

        save_file(tensors, str(stem) + _BYTES)
    draft = Path(str(stem) + ".draft")
    draft.write_text(json.dumps({"values": items, **extra}), encoding="utf-8")
    draft.rename(str(stem) + _STRUCTURE)


def read_values(stem: Path, *, mapped: bool = False) -> tuple[list[Value], dict[str, Any]]:
    """Read what `write_values` wrote; return the values and the whole JSON document.

    Args:
        stem: path of the two files, without their suffixes.
        mapped: tensors lie in the pages of the file, copied where they are written to: for a writer that changes it no more.

    Raises:
        ValueError, OSError: a file is missing or damaged.
    """
    document = json.loads(_read_own(Path(str(stem) + _STRUCTURE), _LONGEST_DOCUMENT))
    if not isinstance(document, dict) or not isinstance(document.get("values"), list):
        raise ValueError("not a list of values")
    if not document["values"]:
        return [], document
    try:
        tensors = _read_tensors(Path(str(stem) + _BYTES), mapped)
        return [_decode(item, tensors) for item in document["values"]], document
    except (KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise ValueError(f"damaged values: {error}") from error


def remove_values(stem: Path) -> None:
    """Remove the two files of `stem`, if they are there."""
    for suffix in (_STRUCTURE, _BYTES):
        Path(str(stem) + suffix).unlink(missing_ok=True)


def _read_own(path: Path, limit: int) -> bytes:
    """Return what a regular file of one name holds."""
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise ValueError(f"{size} bytes are too many")
        return file.read()


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file of one name.

    A candidate can put a link in the place of its answer. A link into another session's folder would hand the
    judge its own reference back.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise ValueError("not a file of its own")
        yield file


def _read_tensors(path: Path, mapped: bool) -> dict[str, torch.Tensor]:
    """Return a safetensors file's tensors, flat, each in memory of its own, or in the file's pages: the library copies twice."""
    import torch

    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if length > min(size, _LONGEST_DOCUMENT):
            raise ValueError("a damaged head")
        entries = json.loads(file.read(length))
        entries.pop("__metadata__", None)
        begin, found = 8 + length, dict[str, torch.Tensor]()
        pages = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY) if mapped else None
        at = begin
        for name, entry in sorted(entries.items(), key=lambda one: one[1]["data_offsets"]):
            first, last = entry["data_offsets"]
            if not 0 <= first <= last <= size or at != begin + first:
                raise ValueError("tensors that overlap, or gaps between them")
            at, dtype = begin + last, getattr(torch, _DTYPES[entry["dtype"]])
            if pages is not None and last > first:
                found[name] = torch.frombuffer(pages, dtype=dtype, count=(last - first) // dtype.itemsize, offset=begin + first)
                continue
            # Not by torch.empty: a worker's judge stands in front of that.
            flat = torch.tensor([], dtype=dtype).set_(torch.UntypedStorage(last - first))  # type: ignore[no-untyped-call]
            if last > first and file.readinto(flat.view(torch.uint8).numpy().data) != last - first:
                raise ValueError("the file is too short")
            found[name] = flat
        return found


def _encode(value: Value, tensors: dict[str, torch.Tensor], places: set[int]) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_encode(item, tensors, places) for item in value]}
    import torch

    if isinstance(value, torch.Tensor):
        return _encode_tensor(value, tensors, places)
    raise TypeError(f"{type(value).__name__} is no tensor, number, None, list or tuple")


def _encode_tensor(value: torch.Tensor, tensors: dict[str, torch.Tensor], places: set[int]) -> Any:
    """Add a tensor to `tensors`; `places` is the memory of those that are no copies; a trace has thousands."""
    import torch

    if value.layout is not torch.strided or value.is_quantized or value.is_complex():
        raise TypeError(f"a tensor of layout {value.layout} and dtype {value.dtype} cannot be handed over")
    name = f"t{len(tensors)}"
    plain = value.detach().cpu()
    if plain.is_contiguous() or plain.numel() == 0:
        flat = plain.contiguous().reshape(-1)
        place = flat.untyped_storage().data_ptr()
        tensors[name] = flat.clone() if place in places else flat  # safetensors refuses memory that it has seen
        places.add(place)
        return {"tensor": name, "size": list(plain.shape)}
    # The stretch of memory between the first and the last element, gaps included.
    span = 1 + sum((size - 1) * stride for size, stride in zip(plain.shape, plain.stride(), strict=True))
    tensors[name] = torch.as_strided(plain, (span,), (1,)).clone()
    return {"tensor": name, "size": list(plain.shape), "stride": list(plain.stride())}


def _decode(item: Any, tensors: dict[str, torch.Tensor]) -> Value:
    import torch

    if item is None or isinstance(item, (bool, int)):
        return item
    if "float" in item:
        return float.fromhex(item["float"])
    if "list" in item:
        return [_decode(part, tensors) for part in item["list"]]
    if "tuple" in item:
        return tuple(_decode(part, tensors) for part in item["tuple"])
    flat, size = tensors.pop(item["tensor"]), tuple(item["size"])  # a tensor of the file is one value's only
    if "stride" in item:
        return torch.as_strided(flat, size, tuple(item["stride"]))
    if math.prod(size) != flat.numel():
        raise ValueError(f"{flat.numel()} elements for a tensor of {size}")
    return flat.reshape(size)
