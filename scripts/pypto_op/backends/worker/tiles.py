"""The tiles that a kernel sets while its graph is built, held against the chip's limits.

The linter reads the same numbers in the text; these are the ones that computed values, arguments and closures came to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypto_op import hardware

_SETS = ("SetScope", "BeginScope", "SetVecTile", "SetCubeTile")
_MULTIPLIES = ("Matmul", "BatchMatmul", "MatmulMX", "TransposedBatchMatmul")
_Bits = tuple[int, int]
_Cube = tuple[list[int], list[int], list[int]]


class TileObserver:
    """Sees every setting of a tile, every product, and the dtypes of what is computed under a vector tile."""

    def __init__(self) -> None:
        self._vector: tuple[int, ...] = ()
        self._cube: _Cube | None = None
        self._outer: list[tuple[tuple[int, ...], _Cube | None]] = []
        self._made: dict[tuple[int, ...], _Bits | None] = {}
        self._faults: dict[str, None] = {}

    def install(self) -> None:
        """Put this around pypto's own functions, once in a process."""
        from pypto import _op_wrapper, pypto_impl

        module: Any = pypto_impl
        for name in _SETS:
            if hasattr(module, name):
                setattr(module, name, self._around_setting(getattr(module, name), name))
        module.EndScope = self._around_end(module.EndScope)
        for name in _MULTIPLIES:
            if hasattr(module, name):
                setattr(module, name, self._around_product(getattr(module, name)))
        wrapper: Any = _op_wrapper
        wrapper._from_base = self._around_result(wrapper._from_base, module.Tensor)

    def begin(self) -> None:
        """Forget what was seen before."""
        self._vector, self._cube = (), None
        self._outer.clear()
        self._made.clear()
        self._faults.clear()

    def fault(self) -> str | None:
        """Return the first thing seen since `begin` that does not fit, with its arithmetic; None when all fits."""
        for tile, bits in self._made.items():
            for fault in hardware.vector_faults(tile, *(bits or ())):
                self._faults[f"vector tile {list(tile)}: {fault}"] = None
        return next(iter(self._faults), None)

    def _around_setting(self, inner: Callable[..., Any], name: str) -> Callable[..., Any]:
        def setting(*args: Any, **kwargs: Any) -> Any:
            result = inner(*args, **kwargs)
            if name == "BeginScope":
                self._outer.append((self._vector, self._cube))
            if name == "SetCubeTile":
                m, k, n, *_ = (*args, *kwargs.values())
                self._cube = (list(m), list(k), list(n))
            for options in (a for a in (*args, *kwargs.values()) if isinstance(a, dict)):
                self._take(options)
            return result

        return setting

    def _take(self, options: dict[str, Any]) -> None:
        if options.get("vec_tile_shapes"):
            self._vector = tuple(int(entry) for entry in options["vec_tile_shapes"])
            self._made.setdefault(self._vector, None)
        cube = options.get("cube_tile_shapes")
        if cube is not None:
            self._cube = (list(cube.m), list(cube.k), list(cube.n))

    def _around_end(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def end(*args: Any, **kwargs: Any) -> Any:
            result = inner(*args, **kwargs)
            if self._outer:
                self._vector, self._cube = self._outer.pop()
            return result

        return end

    def _around_product(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def product(*args: Any, **kwargs: Any) -> Any:
            operands = [a for a in (*args, *kwargs.values()) if hasattr(a, "GetDataType")]
            flags = [a for a in args if isinstance(a, bool)]
            bits = [_bits(operand) for operand in operands]
            if self._cube and bits:
                transposed = bool(flags and flags[0]) or bool(kwargs.get("a_trans"))
                for fault in hardware.cube_faults(*self._cube, min(bits), max(bits), transposed):
                    self._faults[f"cube tile {', '.join(map(str, self._cube))}: {fault}"] = None
            return inner(*args, **kwargs)

        return product

    def _around_result(self, inner: Callable[[Any], Any], tensor: type) -> Callable[[Any], Any]:
        def result(out: Any) -> Any:
            if self._vector and isinstance(out, tensor):
                bits, known = _bits(out), self._made.get(self._vector)
                self._made[self._vector] = (min(bits, known[0]), max(bits, known[1])) if known else (bits, bits)
            return inner(out)

        return result


def _bits(tensor: Any) -> int:
    """Bits of an element of pypto's `tensor`; of the narrowest that there is where the dtype has no entry."""
    return hardware.DTYPE_BITS.get(tensor.GetDataType().name.removeprefix("DT_"), hardware.NARROWEST)
