"""Counts and records the launches of Triton kernels, for the interpreter's functions and the compiled ones."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import torch

from pypto_op.triton.run.dispatch import Gate
from pypto_op.triton.run.memory import Memory

_Leaf = TypeVar("_Leaf", torch.Tensor, float)


class Launches:
    """Stands around `run` of every jitted function.

    Args:
        memory: keeps which memory a kernel got, and what was in it.
        gate: is opened for what Triton does around a launch, not for what the candidate's code does.
        own: files whose kernels count.

    Attributes:
        recording: False: count only (timing).
        foreign: names of kernels that are not the candidate's.
        count: launches since `begin`.
        names: names of the kernels that were launched.
    """

    def __init__(self, memory: Memory, gate: Gate, own: frozenset[str]) -> None:
        self._memory, self._gate, self._own = memory, gate, own
        self.recording = True
        self.foreign: list[str] = []
        self.names: list[str] = []
        self.count = 0
        self._tuning = 0
        self._turn = -1
        self._tuners: dict[int, Any] = {}
        self._kernels: dict[int, tuple[Any, str, bool]] = {}
        self._patched: list[tuple[Any, str, Any]] = []

    def begin(self, inputs: list[torch.Tensor], *, watch_scalars: bool = False) -> None:
        """Forget the last call; see `Memory.begin`."""
        self.count, self.foreign, self.names = 0, [], []
        self._turn += 1
        for tuner in self._tuners.values():
            tuner.cache.clear()
        if self.recording:
            self._memory.begin(inputs, watch_scalars=watch_scalars)

    def note_copy(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Remember that `target` now holds what a kernel computed, if `source` did."""
        if self.recording and self.count:
            self._memory.copied(source, target)

    def install(self, *, interpreted: bool) -> None:
        """Wrap Triton's classes in this process; `interpreted`: there is no device that could time configurations."""
        self._gate.on_copy = self.note_copy
        from triton.runtime import autotuner, interpreter, jit

        for kind in (jit.JITFunction, interpreter.InterpretedFunction):
            self._patch(kind, "run", self._around_run)
        self._patch(autotuner.Autotuner, "_bench", self._in_turn if interpreted else self._around_tuning)
        for name in ("_init_args_hst", "_restore_args_dev"):
            if hasattr(interpreter.GridExecutor, name):
                self._patch(interpreter.GridExecutor, name, self._opening)

    def replaced(self) -> str | None:
        """Return what the candidate put in the place of something that is recorded here; None when nothing."""
        for kind, name, function in self._patched:
            if vars(kind).get(name) is not function:
                return f"triton's {kind.__name__}.{name}"
        return None

    def _patch(self, kind: Any, name: str, around: Callable[[Any], Any]) -> None:
        function = around(getattr(kind, name))
        setattr(kind, name, function)
        self._patched.append((kind, name, function))

    def _around_run(self, original: Any) -> Any:
        @functools.wraps(original)
        def run(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("warmup") or self._tuning:
                return original(kernel, *args, **kwargs)
            self._note(kernel)
            tensors = _leaves([*args, *kwargs.values()], torch.Tensor) if self.recording else []
            grid = kwargs.get("grid")
            if callable(grid):
                kwargs["grid"] = self._guarded(grid, tensors)
            if not self.recording:
                self.count += 1
                return original(kernel, *args, **kwargs)
            with self._gate.opened():
                self._memory.before(tensors)
                self._memory.scalars(_leaves([*args, *kwargs.values()], float))
            result = original(kernel, *args, **kwargs)
            with self._gate.opened():
                self._memory.after(tensors)
            self.count += 1
            return result

        return run

    def _note(self, kernel: Any) -> None:
        """Note a kernel's name, and whether it is the candidate's; looked up once, since it is in the timed path."""
        known = self._kernels.get(id(kernel))
        if known is None or known[0] is not kernel:
            function = getattr(kernel, "fn", None)
            code = getattr(function, "__code__", None)
            name = str(getattr(function, "__name__", "a kernel"))
            own = code is not None and str(Path(code.co_filename).resolve()) in self._own
            known = self._kernels[id(kernel)] = (kernel, name, own)
        _, name, own = known
        self.names.append(name)
        if not own:
            self.foreign.append(name)
        elif getattr(kernel, "pre_run_hooks", None):
            self.foreign.append(f"the hooks of {name}")

    def _guarded(self, grid: Any, tensors: list[torch.Tensor]) -> Any:
        @functools.wraps(grid)
        def guarded(meta: Any) -> Any:
            with self._gate.closed():
                found = grid(meta)
            if tensors:
                with self._gate.opened():
                    self._memory.before(tensors)
            return found

        return guarded

    def _in_turn(self, original: Any) -> Any:
        """Without a device no configuration is faster than another: each call of forward takes the next one."""

        @functools.wraps(original)
        def ranked(tuner: Any, *args: Any, config: Any, **kwargs: Any) -> list[float]:
            self._tuners[id(tuner)] = tuner
            place = (tuner.configs.index(config) - self._turn) % len(tuner.configs)
            return [float(place)] * 3

        return ranked

    def _around_tuning(self, original: Any) -> Any:
        @functools.wraps(original)
        def tuned(*args: Any, **kwargs: Any) -> Any:
            with self._gate.opened(), self._tuned():
                return original(*args, **kwargs)

        return tuned

    def _opening(self, original: Any) -> Any:
        @functools.wraps(original)
        def opened(*args: Any, **kwargs: Any) -> Any:
            with self._gate.opened():
                return original(*args, **kwargs)

        return opened

    @contextlib.contextmanager
    def _tuned(self) -> Iterator[None]:
        self._tuning += 1
        try:
            yield
        finally:
            self._tuning -= 1


def _leaves(values: list[Any], kind: type[_Leaf], depth: int = 3) -> list[_Leaf]:
    """Return what is of a kind among a launch's arguments: plain, in tuples, or behind a descriptor or wrapper."""
    found: list[_Leaf] = []
    for value in values:
        if isinstance(value, kind):
            found.append(value)
        elif isinstance(value, (tuple, list)) and depth:
            found += _leaves(list(value), kind, depth - 1)
        elif isinstance(getattr(value, "base", None), kind):
            found.append(value.base)
    return found
