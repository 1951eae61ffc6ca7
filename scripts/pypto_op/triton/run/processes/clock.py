"""Times calls of a model: the same method for the task and for the candidate, fresh values for every call, cold L2.

Everything that measures is taken hold of before the candidate's file is loaded.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from pypto_op.triton.run.inputs import arguments
from pypto_op.triton.run.inputs.packing import map_tensors, same_layout, tensors_of
from pypto_op.triton.run.inputs.refresh import refresh, ways_of
from pypto_op.triton.run.processes import tf32

_FLUSH_BYTES = 256 * 1024 * 1024
_KEPT_BYTES = 2 * 1024**3
_MB = 1024 * 1024
_MOST_FILLS, _MEASURED_FILLS, _REMEMBERED = 40, 8, 15
_PROFILED = 3
_MOST_OPERATORS = 50


@dataclass
class Timing:
    """Times of calls in order, in milliseconds, and the outputs of those that are to be checked."""

    milliseconds: list[float]
    peak_memory_mb: float
    kept: dict[int, Any] = field(default_factory=dict)
    do_bench: float | None = None
    operators: dict[str, float] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """Return what goes into an answer; the outputs go beside it."""
        others = {"do_bench": self.do_bench, "operators": self.operators}
        return {"milliseconds": self.milliseconds, "peak_memory_mb": self.peak_memory_mb, **others}


class Clock:
    """Times on one device: events on a GPU or NPU, the wall clock for the interpreter."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._now = time.perf_counter
        self._backend = None if device.type == "cpu" else getattr(torch, device.type)
        self._event = None if self._backend is None else self._backend.Event
        self._flush: torch.Tensor | None = None
        self._fill_ms = 1.0
        self._queueing: deque[float] = deque(maxlen=_REMEMBERED)  # what the host took for the last calls, in milliseconds
        self._own = self._identities()

    def replaced(self) -> str | None:
        """Return what was put in the place of something that measures; None when nothing was."""
        for name, before in self._own.items():
            if self._identities().get(name) is not before:
                return name
        return None

    def time(self, model: Any, base: Any, message: dict[str, Any], watched: Callable[[Any], Any] | None = None) -> Timing:
        """Time `len(message["shifts"])` calls of `model`, each on other values in the same memory.

        Args:
            base: its arguments; they are not changed.
            message: `shifts` (how far the values are rolled for each call), `warmup` (calls before that), `keep` (which
                calls' outputs are wanted), `watch` (before which call `watched` is called, untimed), `do_bench` (also ask
                Triton's own do_bench), `operators` (also ask torch's profiler).
            watched: calls the model with the arguments it gets, under watch.
        """
        working = map_tensors(base, same_layout)
        fresh = partial(refresh, working, base, ways=ways_of(base))
        self._reset_memory()
        with torch.no_grad(), tf32.usual():
            for number, events in enumerate(self._events(message["warmup"])):
                fresh(number)
                self._cold()
                self._one(model, working, events)
            self._wait()
            timing = self._calls(model, working, fresh, message, watched)
            if message.get("do_bench") and self._event is not None:
                timing.do_bench = self._ask_triton(model, working)
            if message.get("operators") and self._device.type == "cuda":
                timing.operators = self._profiled(model, working)
        return timing

    def _calls(
        self,
        model: Any,
        working: Any,
        fresh: Callable[[int], None],
        message: dict[str, Any],
        watched: Callable[[Any], Any] | None,
    ) -> Timing:
        shifts, keep = message["shifts"], set(message["keep"])
        spans: list[Any] = []
        kept: dict[int, Any] = {}
        room = _KEPT_BYTES
        events = self._events(len(shifts))
        for number, shift in enumerate(shifts):
            if watched is not None and number == message.get("watch"):
                fresh(shift + 1)
                watched(working)
            fresh(shift)
            self._cold()
            span, returned = self._one(model, working, events[number])
            spans.append(span)
            size = sum(tensor.nbytes for tensor in tensors_of(returned))
            if number in keep and (size <= room or not kept):
                room -= size
                kept[number] = map_tensors(returned, torch.clone)
            del returned
        self._wait()
        times = [span if isinstance(span, float) else span[0].elapsed_time(span[1]) for span in spans]
        return Timing(times, self._peak(), kept)

    def _events(self, count: int) -> list[Any]:
        """Return pairs of events, made beforehand: small kernels must not wait for the host."""
        if self._event is None:
            return [None] * count
        return [(self._event(enable_timing=True), self._event(enable_timing=True)) for _ in range(count)]

    def _one(self, model: Any, working: Any, events: Any) -> tuple[Any, Any]:
        if events is None:
            begin = self._now()
            returned = arguments.call(model, working)
            return (self._now() - begin) * 1e3, returned
        start, end = events
        begin = self._now()
        start.record()
        returned = arguments.call(model, working)
        end.record()
        self._queueing.append((self._now() - begin) * 1e3)
        return events, returned

    def _ask_triton(self, model: Any, working: Any) -> float:
        from triton.testing import do_bench

        return float(do_bench(lambda: arguments.call(model, working), warmup=25, rep=200, return_mode="median"))

    def _profiled(self, model: Any, working: Any) -> dict[str, float]:
        """Return the microseconds of the device in one call, by kernel: the mean of three calls under torch's profiler."""
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            for _ in range(_PROFILED):
                arguments.call(model, working)
            self._wait()
        found = {row.key: row.self_device_time_total / _PROFILED for row in seen.key_averages() if row.self_device_time_total}
        return dict(sorted(found.items(), key=lambda pair: -pair[1])[:_MOST_OPERATORS])

    def _cold(self) -> None:
        """Fill the second-level cache with something else, at least twice, and as often as keeps the device busy.

        The host queues the events and the launch meanwhile. A device that has nothing left to do waits between the first event
        and the launch, and a small kernel would be timed together with the host's own work: a softmax of 7 us was once
        measured at 57 us where the host was slow. So the fills take twice as long as the host took of late.
        """
        if self._backend is None:
            return
        if self._flush is None:
            self._flush = torch.empty(_FLUSH_BYTES // 4, dtype=torch.int32, device=self._device)
            self._fill_ms = self._time_of_a_fill()
        host = statistics.median(self._queueing) if self._queueing else 0.0
        for _ in range(max(2, min(_MOST_FILLS, math.ceil(2 * host / self._fill_ms)))):
            self._flush.zero_()

    def _time_of_a_fill(self) -> float:
        """Return the milliseconds that the device takes for one."""
        assert self._flush is not None
        ((start, end),) = self._events(1)
        self._flush.zero_()
        self._wait()
        start.record()
        for _ in range(_MEASURED_FILLS):
            self._flush.zero_()
        end.record()
        self._wait()
        return max(1e-3, float(start.elapsed_time(end)) / _MEASURED_FILLS)

    def _wait(self) -> None:
        if self._backend is not None:
            self._backend.synchronize()

    def _reset_memory(self) -> None:
        if self._backend is not None:
            self._backend.reset_peak_memory_stats()

    def _peak(self) -> float:
        if self._backend is None:
            return 0.0
        flush = 0 if self._flush is None else self._flush.nbytes
        return max(0.0, float(self._backend.max_memory_allocated() - flush) / _MB)

    def _identities(self) -> dict[str, Any]:
        found: dict[str, Any] = {"time.perf_counter": time.perf_counter}
        if self._backend is not None:
            event = self._backend.Event
            found |= {f"{self._device.type}.Event": event, f"{self._device.type}.synchronize": self._backend.synchronize}
            found |= {f"Event.{name}": vars(event).get(name) for name in ("record", "elapsed_time", "synchronize", "__new__")}
        return found
