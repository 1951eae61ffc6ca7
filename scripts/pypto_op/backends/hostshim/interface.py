"""What the real torch_npu offers: names and parameters, for the shim to be held against.

`interface.json` holds them; `tests/backends/torch_npu_wheel.py` writes it anew from a wheel.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("interface.json")
UNKNOWN = ""
"""Stands for the parameters of what is compiled."""


@functools.cache
def table() -> dict[str, Any]:
    """Return what `interface.json` holds.

    `version`: torch_npu's. `modules`: module to name to the forms of its call. `classes`: class to method to the forms.
    A form is a parameter list in Python's notation with `...` for defaults. An empty form is not known: the thing is compiled, or
    no function.
    """
    found: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return found


def forms(module: str, name: str) -> list[str] | None:
    """Return the ways to call `module.name`; None where torch_npu has no such name.

    Args:
        module: `torch.npu`, `torch_npu` or `torch_npu.profiler`.
        name: what is looked for there.
    """
    found: list[str] | None = table()["modules"][module].get(name)
    return found


def check_call(what: str, ways: list[str], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise TypeError, as Python does, where the real function takes no such call."""
    for way in ways:
        if way == UNKNOWN:
            return
        try:
            signature(way).bind(*args, **kwargs)
        except TypeError as error:
            last = error
        else:
            return
    raise TypeError(f"{what}(): {last} (torch_npu {table()['version']} takes {' or '.join(ways)})")


@functools.cache
def signature(form: str) -> inspect.Signature:
    """Return a form as a signature."""
    node = ast.parse(f"def f{form}: ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    given, kind = node.args, inspect.Parameter
    positional = [*given.posonlyargs, *given.args]
    bare = len(positional) - len(given.defaults)
    made = [
        kind(
            argument.arg,
            kind.POSITIONAL_ONLY if place < len(given.posonlyargs) else kind.POSITIONAL_OR_KEYWORD,
            default=kind.empty if place < bare else ...,
        )
        for place, argument in enumerate(positional)
    ]
    if given.vararg:
        made.append(kind(given.vararg.arg, kind.VAR_POSITIONAL))
    made += [
        kind(argument.arg, kind.KEYWORD_ONLY, default=kind.empty if default is None else ...)
        for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    if given.kwarg:
        made.append(kind(given.kwarg.arg, kind.VAR_KEYWORD))
    return inspect.Signature(made)
