"""Ends a test with exit code 1 where `detailed_tensor_compare` found a mismatch and nobody read its result.

A test that calls `detailed_tensor_compare` and drops the dict would pass whatever the kernel returns. So a
failing result is remembered until something reads it.
"""

from __future__ import annotations

import atexit
import itertools
import os
import sys
from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import Any

from pypto_op.comparison.result import TensorComparison

_unread: dict[int, str] = {}
_numbers = itertools.count()


class ComparisonDict(dict[str, Any]):
    """A comparison as a dict. Reading it in any way settles that its verdict was seen."""

    _number: int | None = None

    def watch(self, comparison: TensorComparison) -> None:
        """Remember a failing result until it is read."""
        if not comparison.all_close:
            self._number = next(_numbers)
            if not _unread:
                atexit.unregister(_complain)
                atexit.register(_complain)
            _unread[self._number] = comparison.name

    def _read(self) -> None:
        if self._number is not None:
            _unread.pop(self._number, None)

    def __getitem__(self, key: str) -> Any:
        self._read()
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Like dict.get."""
        self._read()
        return super().get(key, default)

    def __iter__(self) -> Iterator[str]:
        self._read()
        return super().__iter__()

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        """Like dict.keys."""
        self._read()
        return super().keys()

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        """Like dict.values."""
        self._read()
        return super().values()

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        """Like dict.items."""
        self._read()
        return super().items()

    def __repr__(self) -> str:
        self._read()
        return super().__repr__()

    def __eq__(self, other: object) -> bool:
        self._read()
        return super().__eq__(other)

    __hash__ = None


def _complain() -> None:
    """End the program with 1 if a failing comparison was dropped unread."""
    if not _unread:
        return
    names = sorted(set(_unread.values()))
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    print(
        f"detailed_tensor_compare: {len(_unread)} comparison(s) failed and nobody read the result ({shown}); "
        'exit code 1. Write `assert detailed_tensor_compare(...)["all_close"]`.',
        file=sys.stderr,
    )
    _unread.clear()
    # The exit code can no longer be changed from here, so do what is left to do and leave with ours.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)
