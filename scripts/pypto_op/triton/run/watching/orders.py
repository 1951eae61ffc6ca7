"""Other orders in which an NVIDIA GPU may run the programs of a launch, and the warps of one program.

A device runs programs side by side, and the warps of a program, too. A kernel that depends on their order may be right there by
luck. In a process of its own each kernel is compiled so that the order can be chosen:

- `program_id` and `num_programs` add what stands in a few words of memory. So a launch of n programs becomes n launches of one
  program, from the first to the last or from the last to the first.
- Before each load the warps of a program wait: later warps longer, or earlier ones. So one warp has stored before another loads.
- Before each load and store a program waits, each for another time. So one program stores while another computes. Loads look
  past the first cache, which holds what the program itself stored there.

A kernel whose programs and warps do not depend on each other's order gives the same numbers in all of them.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from types import ModuleType
from typing import Any

import torch

from pypto_op.triton.run.watching.handed import is_jitted

OWN = ""
"""The device's own."""
UP, DOWN, EARLY, LATE, APART = "up", "down", "early", "late", "apart"
ORDERS = {
    UP: "its programs run one after another, from the first to the last",
    DOWN: "its programs run one after another, from the last to the first",
    EARLY: "later warps of a program wait before each load",
    LATE: "earlier warps of a program wait before each load",
    APART: "each program waits for another time before it loads and stores",
}
"""Each order, and what a refusal says of it."""
OF_WARPS = {EARLY: 1, LATE: 2}
"""Of these the word that tells warps how to wait."""
_WAITS = {**OF_WARPS, APART: 3}
_CYCLES = 4000
"""What one warp waits longer than its neighbour, about 2 us: a load and the store that needs it take less."""
_WARPS = 8
"""So many warps wait for different times; with more, those 8 apart wait alike. Programs wait for as many different times."""
_MOST, _LEAST, _OF_CALL = 512, 8, 4096
"""A launch becomes at most, and at least, so many; those of one call of forward together hardly more."""
_ASM = """{
.reg .u32 %warp, %wait, %program, %part; .reg .u64 %now, %end; .reg .pred %more, %is;
mov.u32 %warp, %tid.x; shr.u32 %warp, %warp, 5; and.b32 %warp, %warp, WARPS;
setp.eq.u32 %is, $1, 2; @%is sub.u32 %warp, WARPS, %warp;
mul.lo.u32 %wait, %warp, CYCLES; setp.eq.u32 %is, $1, 0; @%is mov.u32 %wait, 0;
mov.u32 %program, %ctaid.x; mov.u32 %part, %ctaid.y; mad.lo.u32 %program, %part, 8191, %program;
mov.u32 %part, %ctaid.z; mad.lo.u32 %program, %part, 131071, %program; mad.lo.u32 %program, $2, 524287, %program;
mul.lo.u32 %program, %program, 2654435761; shr.u32 %program, %program, 20; and.b32 %program, %program, WARPS;
mul.lo.u32 %program, %program, CYCLES; setp.eq.u32 %is, $1, 3; @%is mov.u32 %wait, %program;
cvt.u64.u32 %end, %wait; mov.u64 %now, %clock64; add.u64 %end, %end, %now;
AGAIN: mov.u64 %now, %clock64; setp.lt.u64 %more, %now, %end; @%more bra AGAIN;
mov.u32 $0, 0;
}""".replace("WARPS", str(_WARPS - 1)).replace("CYCLES", str(_CYCLES))
"""Waits as the first number says (`_WAITS`); the second is the place in the kernel, for each has other programs that are late."""
_Cell = tuple[int, ...]
"""The first id along each axis, the number of programs along each, and who waits."""


class _Asked(Exception):
    """A launch told its grid and has to go no further."""


class Orders:
    """Chooses the order of launches.

    Args:
        opened: lets through what the candidate may not do (`Gate.opened`).
        device: where kernels read which program they are.
        warps: kernels have warps, so these can wait for each other.
    """

    def __init__(self, opened: Callable[[], AbstractContextManager[None]], device: str, *, warps: bool) -> None:
        self._opened, self._device, self._warps = opened, torch.device(device), warps
        self._order, self._left = OWN, 0
        self._places = itertools.count(1)
        self._cell = torch.zeros(7, dtype=torch.int32, device=device)

    def begin(self, order: str) -> None:
        """Take the order of the next call of forward, one of `ORDERS`, or `OWN`."""
        self._order, self._left = order, _OF_CALL

    def install(self, patch: Callable[[Any, str, Callable[[Any], Any]], None]) -> None:
        """Let kernels be compiled so that their order can be chosen; `patch` replaces a function of a class."""
        from triton.language.semantic import TritonSemantic

        patch(TritonSemantic, "program_id", self._around_id)
        patch(TritonSemantic, "num_programs", self._around_number)
        if self._warps:
            patch(TritonSemantic, "load", functools.partial(self._waiting, of_warps=True))
            patch(TritonSemantic, "store", functools.partial(self._waiting, of_warps=False))

    def launch(self, kernel: Any, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Launch a kernel in the present order; `original` is `JITFunction.run`."""
        boxes: list[tuple[_Cell, tuple[int, ...]]] = []
        if self._order in (UP, DOWN) and may_be_parted(kernel, kwargs):
            boxes += parts(_grid(kernel, original, args, kwargs), max(_LEAST, min(_MOST, self._left // 4)))
        if not boxes:
            self._put((0, 0, 0, 0, 0, 0, _WAITS.get(self._order, 0)))
            return original(kernel, *args, **kwargs)
        self._left = max(0, self._left - len(boxes))
        result = None
        for cell, size in boxes if self._order == UP else reversed(boxes):
            self._put(cell)
            result = original(kernel, *args, **{**kwargs, "grid": size})
        self._put((0,) * 7)
        return result

    def _put(self, cell: _Cell) -> None:
        """Write the words that the next launch reads; streams of the candidate wait for each other."""
        with self._opened():
            torch.cuda.synchronize(self._device)
            self._cell.copy_(torch.tensor(cell, dtype=torch.int32))

    def _word(self, semantic: Any, place: int) -> Any:
        """Return what loads a word of memory, in a kernel that is being compiled."""
        import triton.language as tl
        from triton._C.libtriton import ir

        builder = semantic.builder
        address = builder.get_int64(self._cell.data_ptr() + self._cell.element_size() * place)
        pointer = builder.create_int_to_ptr(address, tl.pointer_type(tl.int32).to_ir(builder))
        loaded = builder.create_load(pointer, ir.CACHE_MODIFIER.NONE, ir.EVICTION_POLICY.NORMAL, True)
        return semantic.tensor(loaded, tl.int32)

    def _around_id(self, original: Any) -> Any:
        def program_id(semantic: Any, axis: int) -> Any:
            return semantic.add(original(semantic, axis), self._word(semantic, axis), False)

        return program_id

    def _around_number(self, original: Any) -> Any:
        def num_programs(semantic: Any, axis: int) -> Any:
            own, told = original(semantic, axis), self._word(semantic, 3 + axis)
            return semantic.where(semantic.greater_than(told, semantic.to_tensor(0)), told, own)

        return num_programs

    def _waiting(self, original: Any, *, of_warps: bool) -> Any:
        """Return a load or a store that begins late: in `APART`, and where warps wait for each other, too."""
        signature = inspect.signature(original)

        def late(semantic: Any, *args: Any, **kwargs: Any) -> Any:
            import triton.language as tl

            who = self._word(semantic, 6)
            if not of_warps:
                apart = semantic.to_tensor(_WAITS[APART])
                who = semantic.where(semantic.equal(who, apart), apart, semantic.to_tensor(0))
            place = semantic.builder.get_int32(next(self._places))
            kind = tl.int32.to_ir(semantic.builder)
            semantic.builder.create_inline_asm(_ASM, "=r,r,r", [who.handle, place], [kind], False, 1)
            given = signature.bind(semantic, *args, **kwargs)
            if of_warps and given.arguments.get("cache_modifier") == "":
                given.arguments["cache_modifier"] = ".cg"
            return original(*given.args, **given.kwargs)

        return late


def may_be_parted(kernel: Any, kwargs: dict[str, Any]) -> bool:
    """Whether programs of a launch may run one after another: none waits for another one, and all ask Triton for their ids."""
    if kwargs.get("launch_cooperative_grid") or kwargs.get("num_ctas", 1) != 1:
        return False
    try:
        text = "\n".join(_texts(kernel, set()))
    except OSError:  # without its source nobody can tell
        return False
    return "ctaid" not in text and not ("while" in text and ("atomic" in text or "volatile" in text))


_source = functools.cache(inspect.getsource)
"""Kept: each launch asks for it."""


def _texts(kernel: Any, seen: set[int]) -> Iterator[str]:
    """Yield the source of a kernel and of the jitted functions that it names."""
    if id(kernel) in seen:
        return
    seen.add(id(kernel))
    yield _source(kernel.fn.__code__)
    space, names = kernel.fn.__globals__, kernel.fn.__code__.co_names
    named = [space.get(name) for name in names]
    inside = [getattr(module, name, None) for module in named if isinstance(module, ModuleType) for name in names]
    for value in (*named, *inside):
        if is_jitted(value):
            yield from _texts(value, seen)


def _grid(kernel: Any, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, ...]:
    """Return how many programs a launch has along three axes; the kernel does not run."""
    grid = kwargs["grid"]
    if callable(grid):
        found: list[Any] = []

        def asked(meta: Any) -> Any:
            found.append(grid(meta))
            raise _Asked

        with suppress(_Asked):
            original(kernel, *args, **{**kwargs, "grid": asked})
        grid = found[0]
    return (*map(int, grid), 1, 1, 1)[:3]


def parts(grid: tuple[int, ...], most: int) -> Iterator[tuple[_Cell, tuple[int, ...]]]:
    """Yield about `most` boxes of a grid, in the order of their ids: what ids begin with, and how many programs there are."""
    sizes, faster = [], 1
    for count in grid:  # the programs of one box follow each other, and ids along x are the fastest
        wanted = -(-math.prod(grid) // (faster * most))
        sizes.append(max(1, min(count, wanted)))
        faster *= max(1, count)
    steps = [range(0, count, size) for count, size in zip(grid, sizes, strict=True)]
    for z, y, x in itertools.product(*reversed(steps)):
        size = tuple(min(step, count - at) for step, count, at in zip(sizes, grid, (x, y, z), strict=True))
        yield (x, y, z, *grid, 0), size
