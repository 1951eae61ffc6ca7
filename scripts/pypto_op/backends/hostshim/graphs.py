"""`torch.npu.NPUGraph` on a machine without NPU: what runs during the capture is kept, and `replay` runs it again.

On a device a capture only writes down what is launched. Here it runs at once as well, so results are there before the first
replay; a script that forgets to replay is not found out. Scripts have this, candidates do not: no verdict speaks of graphs.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves

from pypto_op.dispatch_mode import DispatchMode

_capturing: list[NPUGraph] = []
_followed = False


class _Operators(DispatchMode):
    """Keeps every operator of torch that runs."""

    def __init__(self, graph: NPUGraph) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._graph = graph

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run an operator, and keep it with its arguments and results."""
        result = func(*args, **(kwargs or {}))
        self._graph.steps.append((func, args, kwargs or {}, result))
        return result


class NPUGraph:
    """A sequence of operators of torch and launches of kernels, on the tensors that they had when they were captured."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.steps: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], Any]] = []
        self._mode: _Operators | None = None

    def capture_begin(self, *args: Any, **kwargs: Any) -> None:
        """Keep what runs from now on.

        Raises:
            RuntimeError: a capture is going on.
        """
        if _capturing:
            raise RuntimeError("a graph is being captured already")
        _follow_launches()
        self.steps.clear()
        _capturing.append(self)
        self._mode = _Operators(self)
        self._mode.__enter__()  # type: ignore[no-untyped-call]

    def capture_end(self) -> None:
        """Keep nothing from now on."""
        if self._mode is not None:
            self._mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self._mode = None
            _capturing.remove(self)

    def replay(self) -> None:
        """Run everything again; results go where they went the first time."""
        for call, args, kwargs, result in self.steps:
            _refill(result, call(*args, **kwargs))

    def reset(self) -> None:
        """Forget what was captured."""
        self.steps.clear()

    def pool(self) -> tuple[int, int]:
        """Return the mark of a memory pool; the host has none."""
        return (0, 0)


@contextlib.contextmanager
def graph(npu_graph: NPUGraph, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Capture what runs inside."""
    npu_graph.capture_begin()
    try:
        yield
    finally:
        npu_graph.capture_end()


def install() -> None:
    """Give `torch.npu` its graphs."""
    names = {"NPUGraph": NPUGraph, "graph": graph, "is_current_stream_capturing": lambda: bool(_capturing)}
    for name, value in names.items():
        setattr(sys.modules["torch.npu"], name, value)


def _refill(kept: Any, fresh: Any) -> None:
    for old, new in zip(tree_leaves(kept), tree_leaves(fresh), strict=True):
        if isinstance(old, torch.Tensor) and old.untyped_storage().data_ptr() != new.untyped_storage().data_ptr():
            old.copy_(new)


def _follow_launches() -> None:
    """Have launches of pypto's kernels kept too; inside a launch no operator of torch is."""
    global _followed
    if _followed or "pypto" not in sys.modules:
        return
    from pypto_op.backends.worker import pypto_hooks

    def around(call: Callable[..., Any]) -> Callable[..., Any]:
        def launched(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            if not _capturing:
                return call(kernel, *args, **kwargs)
            with _disable_current_modes():
                result = call(kernel, *args, **kwargs)
            _capturing[0].steps.append((call, (kernel, *args), kwargs, result))
            return result

        return launched

    pypto_hooks.record_launches(around)
    _followed = True
