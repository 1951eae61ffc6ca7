"""What `x.untyped_storage()` hands to the candidate: its length and its address, and a note where anything else is asked for.

A storage has its tensor's values (`storage[0]`, `list(storage)`), and no mode of PyTorch's sees who reads them there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class Sized:
    """A storage that says how long it is.

    Args:
        storage: the tensor's.
        read: called with a method's name, and returning the storage, where it is asked for more than its length and address.
        asked: called where it is asked for its address.
    """

    __slots__ = ("_ask",)

    def __init__(
        self, storage: torch.UntypedStorage, read: Callable[[str], torch.UntypedStorage], asked: Callable[[], object]
    ) -> None:
        length, item, device = storage.nbytes(), storage.element_size(), storage.device

        def ask(name: str) -> Any:
            if name in ("size", "nbytes", "__len__"):
                return lambda: length
            if name == "element_size":
                return lambda: item
            if name == "device":
                return device
            if name == "data_ptr":
                asked()
                return storage.data_ptr
            return getattr(read(name), name)

        self._ask = ask

    def __getattr__(self, name: str) -> Any:
        return self._ask(name)

    def __len__(self) -> int:
        return int(self._ask("__len__")())

    def __getitem__(self, key: Any) -> Any:
        return self._ask("__getitem__")(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._ask("__setitem__")(key, value)

    def __iter__(self) -> Any:
        return self._ask("__iter__")()
