"""Counts and records the launches of Triton kernels, for the interpreter's functions and the compiled ones."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from pypto_op.triton.run.inputs.packing import address
from pypto_op.triton.run.interpreter.compiling import Compiling
from pypto_op.triton.run.watching.bounds import Bounds
from pypto_op.triton.run.watching.chosen import Chosen, digest_of
from pypto_op.triton.run.watching.configurations import Configurations
from pypto_op.triton.run.watching.dispatch import Gate
from pypto_op.triton.run.watching.handed import computes
from pypto_op.triton.run.watching.language import Language
from pypto_op.triton.run.watching.launch_arguments import Few, are_moved, leaves_of, name_of, spelled
from pypto_op.triton.run.watching.memory import COPIES, Memory
from pypto_op.triton.run.watching.orders import Orders, may_be_parted
from pypto_op.triton.run.watching.rewriting import Programs

_MOST_COPIES = 256
_NOT_GIVEN = "memory that it was not given"
"""The user of memory that a kernel reaches by an address, in the place of a parameter."""


class Launches:
    """Stands around `run` of every jitted function.

    Args:
        memory: keeps which memory a kernel got, and what was in it.
        chosen: notes which memory the host chose.
        gate: is opened for what Triton does around a launch, not for what the candidate's code does.
    """

    def __init__(self, memory: Memory, chosen: Chosen, gate: Gate, own: frozenset[str]) -> None:
        self._memory, self.chosen, self._gate, self._own = memory, chosen, gate, own
        self.recording = True  # False: count only (timing)
        self.foreign: list[str] = []  # names of kernels that are not the candidate's
        self.names: list[str] = []  # names of the kernels that were launched
        self.handed: list[str] = []  # arguments that bring code of their own into a kernel, as "kernel.parameter"
        self.count = 0  # launches since `begin`
        self.bounds = Bounds(self._reached)  # sees what a kernel reads or writes outside of all tensors, in the interpreter
        self.compiling = Compiling()  # made before anything is interpreted
        self.lent: list[str] = []  # what was written into memory that something outside PyTorch sees, in words
        self.programs = Programs()  # makes and keeps what the interpreter runs
        self.configurations = Configurations()  # knows those of autotuned kernels, and chooses among them
        self.backward = False  # the interpreter runs the programs of launches from the last to the first
        self.orders: Orders | None = None  # chooses the order of programs on a device; None: the device's own
        self._stdout = sys.stdout
        self.copies: Counter[str] = Counter()  # how often PyTorch copied something that was no constant, by operator
        # of each such copy the operator and some of the elements; where an output has the same, PyTorch did the task
        self.whole: list[tuple[str, Few]] = []
        self._scalars: dict[str, list[str | None]] = {}
        self._choices: list[set[str]] = []
        self._tuning = 0
        # A tuner of Triton's zeroes what its trials wrote to, on a device in the first call alone. A replay would excuse that,
        # but takes a process, and tells nothing where a task's inputs are the same in every pass.
        self._resetting = False
        self._kernels: dict[int, tuple[Any, str, bool]] = {}
        self._patched: list[tuple[Any, str, Any]] = []
        self._language: Language | None = None
        self._asked: dict[int, torch.Tensor] = {}
        self._inputs: dict[int, Few] = {}
        self._own_inputs: list[torch.Tensor] = []  # the same

    def begin(self, inputs: list[torch.Tensor], held: list[torch.Tensor], *, follows: bool = False, own: bool = False) -> None:
        """Forget the last call; the arguments are those of `Memory.begin`, and whether the inputs are the task's own."""
        self.count, self.foreign, self.names, self.copies, self.whole = 0, [], [], Counter(), []
        self._scalars, self.handed, self.lent, self._asked = {}, [], [], {}
        self._inputs = {address(tensor): Few.of(tensor) for tensor in inputs} if self.recording and own else {}
        self._own_inputs = [*inputs] if self._inputs else []
        if not follows:
            self.programs.ran.clear()
            self.programs.guard.denied.clear()
            self.programs.guard.computed.clear()
        self.configurations.begin()
        if self.recording:
            self._memory.begin(inputs, held, follows=follows)
            self.chosen.begin(inputs, held, follows=follows, alive=self._memory.alive())

    def scalars(self) -> dict[str, list[str | None]]:
        """Return "kernel.parameter" -> per launch a digest of the numbers and words it was given; and what `Chosen` noted."""
        return self._scalars | self.chosen.noted

    def computed(self) -> dict[str, str]:
        """Return a digest of what Python computed with in kernels, by place of their text."""
        return {place: digest_of(*words) for place, words in self.programs.guard.computed.items()}

    def asked(self, tensor: torch.Tensor) -> None:
        """Note that the host asked for an address, and what it wrote there: a kernel may get the address as a number."""
        if self.recording:
            with self._gate.opened():
                self._memory.use("memory whose address the host asked for", tensor)
                self.chosen.asked(tensor)
                self._asked.setdefault(address(tensor), tensor)

    def reading(self, source: torch.Tensor) -> None:
        """See `dispatch.Listener`."""
        if self.recording:
            self._memory.use(COPIES, source)

    def overwriting(self, target: torch.Tensor) -> None:
        """See `dispatch.Listener`."""
        if self.recording:
            self._memory.overwrite(COPIES, target)

    def copied(self, name: str, source: torch.Tensor, target: torch.Tensor) -> None:
        """See `dispatch.Listener`."""
        if self.recording:
            self._memory.copied(source, target)
            if self._memory.carries(source):
                if self._memory.lent(target):
                    self.lent.append(f"{name.strip('_')} into memory that something outside PyTorch sees")
                self.copies[name.strip("_")] += 1
                self.chosen.copy(name, source, target)
                if len(self.whole) < _MOST_COPIES:
                    self.whole.append((name.strip("_"), Few.of(target)))

    def holds_input(self, source: torch.Tensor, lost: torch.Tensor) -> bool:
        """See `dispatch.Listener`."""
        if not self._inputs or source.numel() < 2:
            return False
        if address(source) in self._inputs or any(map(Few.of(source).same, self._inputs.values())):
            return True
        return any(are_moved(source, lost, given) for given in self._own_inputs)

    def carries(self, source: torch.Tensor) -> bool:
        """See `dispatch.Listener`."""
        return self._memory.carries(source)

    def filled(self, target: torch.Tensor, number: Any) -> None:
        """See `dispatch.Listener`."""
        if self.recording:
            if self._memory.knows(target) and not self._resetting:
                self.chosen.fill(target, spelled(number) or "")
            self._memory.filled(target)

    def install(self, *, interpreted: bool, ordered: bool = False) -> None:
        """Wrap Triton's classes in this process.

        Args:
            interpreted: there is no device that could time configurations.
            ordered: calls may choose the order of programs (`orders`).
        """
        self._gate.listener = self
        if ordered:
            self.orders = Orders(self._gate.opened, "cpu" if interpreted else "cuda", warps=not interpreted)
            self.orders.install(self._patch)
        if interpreted:
            self.bounds.install()
            self._language = Language()
        from triton.runtime import autotuner, interpreter, jit

        for kind in (jit.JITFunction, interpreter.InterpretedFunction):
            self._patch(kind, "run", self._around_run)
        self._patch(interpreter.FunctionRewriter, "rewrite_ast", self.programs.instead_of_rewrite_ast)
        self._patch(interpreter.InterpretedFunction, "rewrite", self.programs.around_rewrite)
        self._patch(interpreter.ReduceScanOpInterface, "__init__", self.programs.around_combining)
        self._patch(autotuner.Autotuner, "run", self._around_choice)
        self._patch(autotuner.Autotuner, "_bench", self._around_trial if interpreted or ordered else self._around_tuning)
        for name in ("_init_args_hst", "_restore_args_dev"):
            if hasattr(interpreter.GridExecutor, name):
                self._patch(interpreter.GridExecutor, name, self._opening)

    def replaced(self) -> str | None:
        """Return what the candidate put in the place of something that is recorded here; None when nothing."""
        for kind, name, function in self._patched:
            if vars(kind).get(name) is not function:
                return f"triton's {kind.__name__}.{name}"
        return self._language.replaced() if self._language is not None else None

    def _patch(self, kind: Any, name: str, around: Callable[[Any], Any]) -> None:
        function = around(getattr(kind, name))
        setattr(kind, name, function)
        self._patched.append((kind, name, function))

    def _around_run(self, original: Any) -> Any:
        @functools.wraps(original)
        def run(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("warmup") or self._tuning:
                try:
                    return original(kernel, *args, **kwargs)
                finally:
                    self.programs.guard.leaves()
            self._note(kernel)
            given = self._given(kernel, args, kwargs) if self.recording else {}
            tensors = {name: found for name, value in given.items() if (found := leaves_of(value, torch.Tensor))}
            if self._asked and self.recording and self._language is None:  # on a device nothing tells what a kernel reaches
                tensors[f"{name_of(kernel)}.{_NOT_GIVEN}"] = [*self._asked.values()]
            grid = kwargs.get("grid")
            if callable(grid):
                kwargs["grid"] = self._guarded(kernel, grid, tensors)
            if not self.recording:
                self.count += 1
                return self._launch(kernel, original, args, kwargs)
            with self._gate.opened():
                self._watch(kernel, given, tensors)
                data = [tensor for found in tensors.values() for tensor in found if self._memory.is_data(tensor)]
                self.bounds.begin(name_of(kernel), tensors, data if self._language is not None else ())
                self.bounds.races.backward = self.backward and may_be_parted(kernel, kwargs)
            self.compiling.note(kernel, args, kwargs)
            self.programs.guard.taken.clear()
            self._check_language()
            result = self._alone(kernel, original, args, kwargs)
            self._check_language()  # a grid's function has run meanwhile
            reached = self.bounds.end()
            for name, value in self.programs.guard.taken.items():
                self._note_scalar(f"{name_of(kernel)}.{name}", value)
            with self._gate.opened():
                for parameter, found in tensors.items():
                    if any(self._memory.lent(tensor) and self._memory.changed(tensor) for tensor in found):
                        self.lent.append(f"{parameter}, which is memory that something outside PyTorch sees")
                given_and_reached = [*(tensor for found in tensors.values() for tensor in found), *reached]
                self._memory.launched(given_and_reached, self.bounds.stored)
            self.count += 1
            return result

        return run

    def _reached(self, kernel: str, tensor: torch.Tensor) -> None:
        """Note that a kernel is about to use memory that its launch was not given: its address stands in a table."""
        with self._gate.opened():
            self._memory.use(f"{kernel}.{_NOT_GIVEN}", tensor)

    def _check_language(self) -> None:
        changed = self._language.replaced() if self._language is not None else None
        if changed is not None:
            self.handed.append(f"{changed}, which was replaced")

    def _alone(self, kernel: Any, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Launch. What a kernel prints goes past the candidate; one that raised has computed nothing that forward may return."""
        kept, sys.stdout = sys.stdout, self._stdout
        try:
            return original(kernel, *args, **kwargs)
        except BaseException:
            self.handed.append(f"{name_of(kernel)}, which raised")
            raise
        finally:
            self.programs.guard.leaves()
            sys.stdout = kept

    def _launch(self, kernel: Any, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Launch where nothing is recorded, in the order of programs that was chosen."""
        if self.orders is not None:
            return self.orders.launch(kernel, original, args, kwargs)
        return original(kernel, *args, **kwargs)

    def _given(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return a launch's arguments, each under "kernel.parameter"."""
        names = [*kernel.arg_names, *(f"argument {i}" for i in range(len(kernel.arg_names), len(args)))]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        return {f"{name_of(kernel)}.{name}": value for name, value in given.items() if name not in ("warmup", "stream")}

    def _watch(self, kernel: Any, given: dict[str, Any], tensors: dict[str, list[torch.Tensor]]) -> None:
        """Note what a launch is given. A chosen configuration, and a grid that follows from it, differ from call to call."""
        for parameter, found in tensors.items():
            for tensor in found:
                self._memory.use(parameter, tensor)
        asked = frozenset(getattr(getattr(kernel.fn, "__code__", None), "co_names", ()))
        self.handed += [name for name, value in given.items() if not name.endswith(".grid") and computes(value, asked)]
        own = self._choices[-1] if self._choices else None
        numbers = []
        for parameter, value in given.items():
            name = parameter.rpartition(".")[2]
            if (own is None or name in own) and not (name == "grid" and callable(value)):
                numbers += [parameter, self._note_scalar(parameter, value)]
        self.chosen.launch(name_of(kernel), tensors, numbers)

    def _note_scalar(self, parameter: str, value: Any) -> str:
        words = [word for leaf in leaves_of(value, object) if (word := self._word(leaf)) is not None]
        if not words:
            return ""
        digest = digest_of(*words)
        self._scalars.setdefault(parameter, []).append(digest)
        return digest

    def _word(self, value: Any) -> str | None:
        """Return `spelled(value)`; an address counts as what lies there, since it changes from run to run."""
        return (self.chosen.place_of(value) if type(value) is int else None) or spelled(value)

    def _note(self, kernel: Any) -> None:
        """Note a kernel's name, and whether it is the candidate's; looked up once, since it is in the timed path."""
        known = self._kernels.get(id(kernel))
        if known is None or known[0] is not kernel:
            function = getattr(kernel, "fn", None)
            code = getattr(function, "__code__", None)
            name = name_of(kernel)
            own = code is not None and str(Path(code.co_filename).resolve()) in self._own
            known = self._kernels[id(kernel)] = (kernel, name, own)
        _, name, own = known
        self.names.append(name)
        if not own:
            self.foreign.append(name)
        elif getattr(kernel, "pre_run_hooks", None):
            self.foreign.append(f"the hooks of {name}")

    def _guarded(self, kernel: Any, grid: Any, tensors: dict[str, list[torch.Tensor]]) -> Any:
        @functools.wraps(grid)
        def guarded(meta: Any) -> Any:
            with self._gate.closed():
                found = grid(meta)
            if self.recording:
                with self._gate.opened():
                    for parameter, held in tensors.items():
                        for tensor in held:
                            self._memory.recheck(parameter, tensor)
                    if not self._choices:
                        self._note_scalar(f"{name_of(kernel)}.grid", found)
            return tuple(found) if isinstance(found, list) else found  # a list is one to a device, not to the interpreter

        return guarded

    def _around_choice(self, original: Any) -> Any:
        """Around an autotuned launch: note which arguments are the candidate's own."""

        @functools.wraps(original)
        def run(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            self._choices.append({*tuner.arg_names[: len(args)], *kwargs} - {"grid"})
            tuner.cache_results = False  # what was fastest in an earlier process would hide the other configurations
            hook = tuner.pre_hook
            own = getattr(getattr(hook, "__code__", None), "co_filename", "") == original.__code__.co_filename
            tuner.pre_hook = self._around_reset(hook) if own else hook
            try:
                result = original(tuner, *args, **kwargs)
            finally:
                tuner.pre_hook = hook
                self._choices.pop()
            self.configurations.chosen(tuner)
            return result

        return run

    def _around_reset(self, hook: Any) -> Any:
        def reset(*args: Any, **kwargs: Any) -> None:
            self._resetting = True
            try:
                hook(*args, **kwargs)
            finally:
                self._resetting = False

        return reset

    def _around_tuning(self, original: Any) -> Any:
        @functools.wraps(original)
        def tuned(*args: Any, **kwargs: Any) -> Any:
            tensors = leaves_of([*args, *kwargs.values()], torch.Tensor) if self.recording else []
            with self._gate.opened(), self._tuned():
                self._memory.timed(tensors)
                found = original(*args, **kwargs)
                self._memory.launched(tensors)
            return found

        return self.configurations.by_time(tuned)

    def _around_trial(self, original: Any) -> Any:
        """Choose in turn, in the interpreter. Nothing of a trial is noted: other passes have none."""

        @functools.wraps(original)
        def trial(*args: Any, **kwargs: Any) -> None:
            self._gate.listener = None
            try:
                with self._tuned(), self._memory.unnoticed(leaves_of([*args, *kwargs.values()], torch.Tensor), self._gate.opened):
                    original(*args, **kwargs)
            finally:
                self._gate.listener = self

        return self.configurations.in_turn(trial)

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
