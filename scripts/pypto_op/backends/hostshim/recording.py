"""Runs scripts that use `pypto.function`, pypto's older interface: it records a function first and gets its data afterwards.

On a device the function is compiled when its record ends, and `pypto.runtime._device_run_once_data_from_host` runs what was
compiled. Pypto's calculator computes while it compiles, so here the record ends when the data are there. Scripts have this,
candidates do not: the judge takes kernels of `pypto.frontend.jit` alone.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import linecache
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

_RUN = "_device_run_once_data_from_host"
_waiting: list[tuple[Any, list[Any]]] = []
"""The record that has no data yet, with the tensors of pypto that it declares; there is one at most."""


def install() -> None:
    """Let `pypto.function` record for the simulator; pypto is imported already."""
    import pypto
    from pypto import _controller, pypto_impl, runtime

    # `from pypto import function` of a script finds ours, since no script ran before.
    pypto.function = _controller.function = contextlib.contextmanager(functools.partial(_function, pypto, _controller))
    setattr(runtime, _RUN, functools.partial(_run, pypto, pypto_impl, runtime))
    runtime._device_fini = _first_end(runtime._device_fini)
    atexit.register(_end_at_exit)


def _function(pypto: Any, controller: Any, name: str, *args: Any) -> Iterator[Any]:
    """Record what is inside, as `pypto.function` does; its end waits where the script is one that hands data over."""
    _end_waiting()
    tensors = [value for value in args if isinstance(value, pypto.Tensor)]
    controller.Controller.begin_function()
    pypto.set_options(runtime_options={"run_mode": int(pypto.RunMode.SIM)})
    controller.set_source_location(level=2)
    record = controller.pypto_impl.RecordFunc(name, [tensor.base() for tensor in tensors])
    controller.clear_source_location()
    waits = False
    try:
        yield record
        waits = _hands_data_over()
    finally:
        if waits:
            _waiting.append((record, tensors))
        else:
            record.EndFunction()
        controller.Controller.end_function()


def _run(pypto: Any, pypto_impl: Any, runtime: Any, *args: Any) -> None:
    """Compute the record that waits with these tensors.

    Raises:
        TypeError: an argument is no tensor of pypto.
        RuntimeError: no record waits: it ran already, or none was made.
    """
    for place, value in enumerate(args):
        if not isinstance(value, pypto.Tensor):
            raise TypeError(f"Expected a pypto.Tensor at inputs[{place}], but got {type(value).__name__}.")
    if not _waiting:
        raise RuntimeError(f"{_RUN}: no function waits for its data; in sim a recorded function runs once")
    data = [_as_declared(pypto_impl, *pair) for pair in zip(runtime._pto_to_tensor_data(args), args, _waiting[0][1], strict=True)]
    pypto.set_verify_options(enable_pass_verify=True, pass_verify_pass_filter=["no_verify"])
    pypto_impl.SetVerifyData(data, [], runtime._pto_verify_datas.get_data())
    _end_waiting()
    pypto_impl.CostModelRunOnceDataFromHost(data, [])


def _end_waiting() -> None:
    while _waiting:
        record, _kept = _waiting.pop()  # the tensors live until the end: pypto does not own them
        record.EndFunction()


def _as_declared(pypto_impl: Any, data: Any, given: Any, declared: Any) -> Any:
    """Return a tensor's data in the shape that the record declares: a device looks at the memory alone.

    Raises:
        RuntimeError: there are fewer or more elements than declared.
    """
    shape = list(declared.shape)
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        return data  # an axis that the data decide
    if math.prod(shape) != math.prod(given.ori_shape):
        raise RuntimeError(f"{_RUN}: a tensor of shape {list(given.ori_shape)} is given where {shape} is declared")
    return pypto_impl.DeviceTensorData(given.dtype, given.data_ptr, shape)


def _end_at_exit() -> None:
    """End a record that got no data; where that fails the script fails, which an exception at exit would not tell."""
    try:
        _end_waiting()
    except Exception:
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)


def _first_end(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that ends a record which got no data, so that it is compiled at least, before it does its own work."""

    @functools.wraps(call)
    def called(*args: Any, **kwargs: Any) -> Any:
        _end_waiting()
        return call(*args, **kwargs)

    return called


def _hands_data_over() -> bool:
    """Whether a file that stands in the stack names the call that hands data over: a record of any other ends at once."""
    frame = sys._getframe(1)
    while frame is not None:
        lines = linecache.getlines(frame.f_code.co_filename)
        if frame.f_globals.get("__name__") != __name__ and any(_RUN in line for line in lines):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
