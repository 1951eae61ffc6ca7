"""Makes the installed pypto compute real numbers on a CPU, without changing the kernel's file.

What is patched, all of it in `pypto.frontend.parser.entry.JitCallableWrapper`:

- `_set_run_mode`: a kernel that says RunMode.NPU runs in SIM;
- `_set_config_option`: the tensor graph is evaluated by the calculator, and only that (the filter `no_verify`
  leaves out the comparison after each pass, which has no part in the result); without a calculator, compilation
  stops after the last pass, before the step that needs a C++ compiler;
- `_setup_verify_data`: host tensors are handed to the calculator as they are;
- `__call__`: arguments are checked against the declared shapes and dtypes by pypto's own check, which is off by
  default; an argument of another dtype would be read as if it had the declared one.

pypto writes device code with one thread instead of 128, all of which it starts anew in each compilation.

And `pypto.cond` is told where it stands, by the arguments that it has for that: to find out by itself, it describes every
frame of the stack, which is a third of a call of a kernel with two conditions.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pypto_op.backends.worker import askers, kernel_lines

NO_PASS = ["no_verify"]
"""pypto's filter of passes to compare, with a name that no pass has."""


def load_before_pypto(cost_model_switch: Path | None) -> None:
    """Load the switch of the cost model; it must stand before pypto in the order of loading."""
    if cost_model_switch is not None:
        ctypes.CDLL(str(cost_model_switch), mode=ctypes.RTLD_GLOBAL)


def load_calculator(library: Path) -> None:
    """Load the calculator into this process, as pypto would after building it."""
    import torch  # noqa: F401  (the library's symbols come from torch)
    from pypto._utils import BuildOnlineManager

    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    BuildOnlineManager().calculator_loaded = True


def switch_cost_model(switch: Path | None, on: bool) -> None:
    """Run the cost model from now on, or leave it out; without the switch it always runs."""
    if switch is None:
        return
    import pypto

    library = Path(pypto.__file__).parent / "lib" / "libtile_fwk_simulation.so"
    call = ctypes.CDLL(str(switch)).pypto_op_switch_cost_model
    call.argtypes = [ctypes.c_char_p]
    if call(str(library).encode() if on else None) != 0:
        raise RuntimeError("pypto has not loaded its simulation library")


def _switch(name: str, on: bool) -> None:
    """Set a switch of the native library (`backends.native`), where this process has loaded it."""
    if (switch := getattr(ctypes.CDLL(None), name, None)) is not None:
        switch(int(on))


def simulate(*, numeric: bool, further: Callable[[], None] | None = None, lenient: bool = False) -> None:
    """Make every kernel of this process run in SIM, with numbers or for its structure only.

    Args:
        numeric: evaluate the tensor graph.
        further: sets more of pypto's options, after ours, before each compilation.
        lenient: an argument with other axes than declared, or with gaps in its memory, is told of and not refused, for scripts;
            so is a tensor that is moved into an output of other axes.
    """
    import pypto
    from pypto.frontend.parser import entry

    wrapper: Any = entry.JitCallableWrapper
    _switch("pypto_op_follow_program", lenient)
    wrapper._set_run_mode = _run_in_sim
    wrapper._set_config_option = _then_our_options(wrapper._set_config_option, numeric, further)
    wrapper._setup_verify_data = staticmethod(_hand_over)
    wrapper.__call__ = _checked(wrapper.__call__, lenient)
    pypto.cond = _placed(pypto.cond)
    pypto.set_global_config("codegen.parallel_compile", 1)
    kernel_lines.follow()


def _run_in_sim(kernel: Any) -> None:
    """Let a kernel that asks for a device run in the simulator."""
    import pypto

    kernel._runtime_options = {**(kernel._runtime_options or {}), "run_mode": int(pypto.RunMode.SIM)}


def _then_our_options(set_options: Callable[[Any], None], numeric: bool, further: Callable[[], None] | None) -> Any:
    """Return what sets a kernel's own options and then ours; see `simulate`."""
    import pypto

    def set_options_then_ours(self: Any) -> None:
        set_options(self)
        if numeric:
            pypto.set_verify_options(enable_pass_verify=True, pass_verify_pass_filter=NO_PASS)
        else:
            pypto.set_verify_options(enable_pass_verify=False)
            pypto.set_host_options(compile_stage=pypto.CompStage.EXECUTE_GRAPH)
        if further is not None:
            further()
        chosen = pypto.get_verify_options()
        kept = chosen.get("pass_verify_pass_filter") != NO_PASS or bool(chosen.get("pass_verify_save_tensor"))
        _switch("pypto_op_keep_turns", kept)

    return set_options_then_ours


def _hand_over(tensors: Any) -> None:
    """Hand host tensors to the calculator as they are."""
    import pypto
    from pypto import pypto_impl
    from pypto.frontend.parser import entry

    if pypto.get_verify_options().get("enable_pass_verify"):
        data = entry._pto_to_tensor_data(tensors)
        pypto_impl.SetVerifyData(data, [], entry._pto_verify_datas.get_data())


def _checked(call: Callable[..., Any], lenient: bool) -> Any:
    """Return a call of a kernel that looks at its arguments' shapes and dtypes first; see `simulate`."""

    def checked_call(self: Any, *args: Any, **kwargs: Any) -> Any:
        tensors, _, declared = self._parse_call_args(args, kwargs)
        try:
            self._check_input_defs_match_tensors(tensors, [_without_ellipsis(one) for one in declared])
        except ValueError as error:
            if not lenient or "number of dimensions" not in str(error):
                raise
            print(f"pypto-op: {' '.join(str(error).split())} A device does not look, so the run goes on.", file=sys.stderr)
        return _in_order(call, self, args, kwargs) if lenient else call(self, *args, **kwargs)

    return checked_call


def _without_ellipsis(declared: Any) -> Any:
    """Return a declared tensor for pypto's check; `[DYNAMIC, ...]` without its dots, which that check takes for an axis."""
    if not declared.status_shape or declared.status_shape[-1] is not ...:
        return declared
    names = ("dtype", "status_dtype", "format")
    kept = {name: getattr(declared, name) for name in names}
    return SimpleNamespace(shape=declared.status_shape[:-1], status_shape=declared.status_shape[:-1], **kept)


def _in_order(call: Callable[..., Any], kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a kernel with tensors that lie in memory in the order of their elements; what it wrote is copied back."""
    import torch

    def is_apart(value: Any) -> bool:
        return isinstance(value, torch.Tensor) and not value.is_contiguous()

    apart = {place: value for place, value in enumerate(args) if is_apart(value)}
    if not apart:
        return call(kernel, *args, **kwargs)
    for place in apart:
        print(
            f"pypto-op: argument {place + 1} is not contiguous; the kernel gets its values in order, a device reads its memory",
            file=sys.stderr,
        )
    handed = [value.contiguous() if place in apart else value for place, value in enumerate(args)]
    result = call(kernel, *handed, **kwargs)
    for place, value in apart.items():
        value.copy_(handed[place])
    return result


def leave_program_file_out() -> None:
    """Let pypto write no `program.json` from now on: it takes as long as all passes."""
    _switch("pypto_op_write_program", False)


def leave_passes_out() -> None:
    """Let compilation stop at the tensor graph, for kernels that shall compute nothing: a third of the time with all passes."""
    import pypto

    pypto.set_host_options(compile_stage=pypto.CompStage.TENSOR_GRAPH)


def _placed(cond: Callable[..., Any]) -> Callable[..., Any]:
    """Return `pypto.cond` with the place of its caller in the place of none: file and line, as it would find them itself."""

    @functools.wraps(cond)
    def placed(scalar: Any, file: str | None = None, lineno: int | None = None) -> Any:
        if file is None and lineno is None:
            file, lineno = askers.place_of_caller()
        return cond(scalar, file, lineno)

    return placed


def record_launches(around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put `around` around every launch of a kernel in this process."""
    from pypto.frontend.parser import entry

    wrapper: Any = entry.JitCallableWrapper
    wrapper.__call__ = around(wrapper.__call__)
