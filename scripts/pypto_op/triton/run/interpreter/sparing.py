"""Triton's interpreter without what it does again and again to the same end: its answers stay, they come in less time.

Seen in triton 3.7.1, of the time of a kernel with reductions:

- a fifth: each call of a jitted function puts the interpreter's functions into Triton's language, where they lie already;
- up to a fifth: whether a sum, difference or product of whole numbers overflows is computed, and nobody asks: only where Triton
  is debugged, it is said;
- a twentieth: for each result, a table of all types is built to find one of them;
- each launch looks through all names of the language for the few hundred that the interpreter replaces.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any


def install() -> None:
    """Replace the interpreter's functions in this process."""
    from triton.runtime import interpreter

    builder = interpreter.interpreter_builder
    if hasattr(builder.options, "sanitize_overflow"):
        builder.options = dataclasses.replace(builder.options, sanitize_overflow=builder.options.debug)
    if hasattr(interpreter, "_get_np_dtype"):
        interpreter._get_np_dtype = _kept(interpreter._get_np_dtype)
    if hasattr(interpreter, "_patch_attr"):
        interpreter._patch_builtin = _of_known_names
    launch = interpreter.GridExecutor.__call__
    interpreter._patch_lang, interpreter.GridExecutor.__call__ = _once_a_launch(interpreter._patch_lang, launch)


def _of_known_names(package: Any, builder: Any, *scope: Any) -> None:
    """Stand for `_patch_builtin`: put the interpreter's functions into a module or class of the language."""
    from triton.language.core import is_builtin
    from triton.runtime import interpreter

    for name in _builtins_of(package):
        member = getattr(package, name)
        if is_builtin(member):
            interpreter._patch_attr(package, name, member, builder, *scope)


@functools.cache
def _builtins_of(package: Any) -> tuple[str, ...]:
    """Return the names of the language's own functions there; first asked before any of them is replaced."""
    from triton.language.core import is_builtin

    return tuple(name for name, member in inspect.getmembers(package) if is_builtin(member))


def _once_a_launch(patch: Callable[[Any], Any], launch: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return what stands for `_patch_lang` and for a launch: to that, each module of the language is new once.

    The first call of a launch is its own, whose answer undoes it at the end; the others are those of its functions. (Functions
    that hold functions, and no object: `tampering` looks at what lies in them.)
    """
    import triton.language as tl

    done: list[set[frozenset[int]]] = []  # of each launch that runs: a grid's function may launch, too

    def patched(function: Any) -> Any:
        languages = frozenset({id(tl), id(tl.core)} & set(map(id, function.__globals__.values())))
        if done and languages in done[-1]:
            return None
        if done and languages:
            done[-1].add(languages)
        return patch(function)

    def launched(executor: Any, *args: Any, **kwargs: Any) -> Any:
        done.append(set())
        try:
            return launch(executor, *args, **kwargs)
        finally:
            done.pop()
            if done:
                done[-1].clear()

    return patched, launched


def _kept(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that asks another once for each type of elements."""
    import triton.language as tl

    known: dict[str, Any] = {}

    def found(kind: Any) -> Any:
        scalar = kind.element_ty if type(kind) is tl.block_type else kind
        if type(scalar) is not tl.dtype:
            return original(scalar if type(scalar) is tl.pointer_type else kind)
        made = known.get(scalar.name)
        if made is None:
            made = known[scalar.name] = original(scalar)
        return made

    return found
