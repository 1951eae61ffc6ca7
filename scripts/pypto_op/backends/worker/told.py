"""Records what pypto is told while a kernel is built: which operators, on which operands, with which numbers.

A number may reach a kernel as an argument, through a closure, a global, a cache or an object's attribute. All of these
end here, where pypto's Python calls its C++.

No operand is kept alive: for each tensor that lives, pypto looks through its slots at the end of every function, so that a
kernel whose intermediates were kept took three times as long to build.
"""

from __future__ import annotations

import functools
import itertools
import re
import weakref
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType
from typing import Any, TypeAlias

Token: TypeAlias = str | float
"""A float stands for itself; a word for everything else."""

_NOT_OF_A_KERNEL = re.compile(
    r"(SetLocation|ClearLocation|SetVerifyData|Set(Global|Pass|Print|Build).*|CopyTo.*|CostModel.*|Device.*|Launch.*|Operator.*"
    r"|Get(Compiler|ConvTile|CubeTile|Current|Last|NPU|Options|Pass|VecTile|WorkSpace).*|Reset.*|Log(TopFolder)|Is.*"
    r"|BytesOf|ToFile|Dump|BuildCache|CurrentScope|GlobalScope|BeginScope|EndScope|SetScope)\Z"
)
"""Functions that steer the process rather than describe a kernel; addresses and line numbers go through them."""
_CLASSES = ("Element", "SymbolicScalar", "Tensor", "LoopRange", "CubeTile", "ConvTile", "RecordLoopFunc")
_PARAMETERS = ("MatmulExtendParam", "ConvExtendParam")
"""They hold numbers that nothing can ask them for, and may be made before a launch."""
_BRANCH = "RecordIfBranch"
"""It takes the condition, whose comparison nothing else tells; then file and line."""
_WRITES = "Move"
"""The method by which one operand gets what another holds."""


class Told:
    """What pypto was told since `begin`."""

    def __init__(self) -> None:
        self._tokens: list[Token] = []
        self._operands: dict[int, tuple[int, weakref.ref[Any]]] = {}
        self._numbers = itertools.count()
        self._listening = False
        self._made: weakref.WeakKeyDictionary[Any, tuple[Token, ...]] = weakref.WeakKeyDictionary()

    def install(self) -> None:
        """Listen to pypto's C++ functions in this process."""
        from pypto import pypto_impl

        self._operand, self._scalar, self._element = pypto_impl.Tensor, pypto_impl.SymbolicScalar, pypto_impl.Element
        self._range = pypto_impl.LoopRange
        for name, value in list(vars(pypto_impl).items()):
            if isinstance(value, BuiltinFunctionType) and not _NOT_OF_A_KERNEL.match(name):
                setattr(pypto_impl, name, self._heard(name, value))
        kinds = {name: getattr(pypto_impl, name, None) for name in (*_CLASSES, *_PARAMETERS)}
        for name, kind in kinds.items():
            if kind is not None:
                kind.__init__ = self._heard(name, kind.__init__, skip=1)
        for kind in filter(None, map(kinds.get, _PARAMETERS)):
            kind.__init__ = self._kept(kind.__init__)
        self._operand.Move = self._heard(_WRITES, self._operand.Move)
        branch = pypto_impl.RecordIfBranch
        branch.__init__ = self._heard(_BRANCH, branch.__init__, skip=1, most=2)

    def begin(self) -> None:
        """Forget what was told, and listen."""
        self._tokens, self._operands, self._numbers, self._listening = [], {}, itertools.count(), True

    def end(self) -> tuple[Token, ...]:
        """Stop listening; return what was told, in order."""
        self._listening, self._operands = False, {}
        return tuple(self._tokens)

    def _heard(self, name: str, function: Callable[..., Any], skip: int = 0, most: int | None = None) -> Callable[..., Any]:
        @functools.wraps(function)
        def heard(*args: Any, **kwargs: Any) -> Any:
            if not self._listening:
                return function(*args, **kwargs)
            self._listening = False  # what a call does inside is its own
            try:
                self._tokens.append(name)
                for value in (*args[skip:most], *kwargs.values()):
                    self._tokens += self._words(value)
                result = function(*args, **kwargs)
                if isinstance(result, self._operand):
                    self._place(result)
                return result
            finally:
                self._listening = True

        return heard

    def _kept(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a constructor that notes what an object is made of, also between launches."""

        @functools.wraps(function)
        def kept(made: Any, *args: Any, **kwargs: Any) -> None:
            function(made, *args, **kwargs)
            self._made[made] = tuple(word for value in (*args, *kwargs.values()) for word in self._words(value))

        return kept

    def _words(self, value: Any) -> Iterator[Token]:
        """Yield what an argument of pypto's C++ holds, whenever it was made: a kernel may choose among several."""
        if isinstance(value, self._operand):
            yield f"operand {self._place(value)}"
        elif isinstance(value, (self._scalar, self._range)):
            yield f"scalar {value.Dump()}"
        elif isinstance(value, self._element):
            yield "element"
            yield value._get_float_data() if value._is_float() else str(value._get_signed_data())
        elif type(value).__name__ in _PARAMETERS:
            yield from self._made.get(value, ())
        else:
            yield from words_of(value, self._words)

    def _place(self, operand: Any) -> int:
        """Return the number of an operand in order of appearance; one that has died leaves its identity to others."""
        number, known = self._operands.get(id(operand), (0, None))
        if known is None or known() is not operand:
            number = next(self._numbers)
            self._operands[id(operand)] = (number, weakref.ref(operand))
        return number


def words_of(value: Any, inner: Callable[[Any], Iterator[Token]] | None = None) -> Iterator[Token]:
    """Yield the numbers in a plain value, whatever its class overrides; names and other objects are left out."""
    inner = inner or words_of
    if isinstance(value, bool) or value is None:
        yield str(value)
    elif isinstance(value, int):
        yield int.__repr__(int.__add__(value, 0))
    elif isinstance(value, float):
        yield float.__add__(value, 0.0)
    elif isinstance(value, (list, tuple)):
        yield f"{len(value)} of"
        for item in list.__iter__(value) if isinstance(value, list) else tuple.__iter__(value):
            yield from inner(item)
    elif isinstance(value, dict):
        for item in dict.values(value):
            yield from inner(item)
    elif isinstance(value, complex):
        yield from (value.real, value.imag)
    elif type(type(value)).__name__ == "pybind11_type" and hasattr(value, "__int__"):
        yield f"{type(value).__name__} {int(value)}"
