"""What public task suites return from `get_init_inputs` and `get_inputs`, as arguments of a call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from pypto_op.backends.worker.loading import Failure
from pypto_op.vocabulary import Outcome


def of_constructor(given: Any, kind: Callable[..., Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and the keyword arguments that `get_init_inputs` means.

    A list is positional, a dict is keywords, and `[[...], {...}]` is both, as suites made from PyTorch modules write it,
    unless the constructor wants just such a list and such a dict.
    """
    if given is None:
        return [], {}
    if _named(given):
        return [], dict(given)
    if not isinstance(given, (list, tuple)):
        return [given], {}
    if len(given) == 2 and isinstance(given[0], (list, tuple)) and _named(given[1]):
        positional, keywords = list(given[0]), dict(given[1])
        if _fits(kind, positional, keywords) and (keywords or not positional or not _fits(kind, list(given), {})):
            return positional, keywords
    return list(given), {}


def of_case(group: Any, forward: Callable[..., Any], path: Path) -> list[Any]:
    """Return the positional arguments of one case.

    A single tensor is one argument, not a list of its rows; a dict is put in the order of the reference's parameters, since
    an implementation may name its own differently.
    """
    if isinstance(group, torch.Tensor):
        return [group]
    if isinstance(group, (list, tuple)):
        return list(group)
    if not _named(group):
        raise Failure(Outcome.BAD_OUTPUT, f"{path.name}: a case is a {type(group).__name__}, not a list of arguments")
    try:
        bound = inspect.signature(forward).bind(**group)
    except (TypeError, ValueError) as error:
        raise Failure(Outcome.BAD_OUTPUT, f"{path.name}: a case is a dict that forward cannot take: {error}") from None
    if bound.kwargs:
        bound.apply_defaults()
    if bound.kwargs:
        names = ", ".join(bound.kwargs)
        raise Failure(Outcome.BAD_OUTPUT, f"{path.name}: forward takes {names} by keyword only, and arguments are positional")
    return list(bound.args)


def _named(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


def _fits(kind: Callable[..., Any], positional: list[Any], keywords: dict[str, Any]) -> bool:
    try:
        inspect.signature(kind).bind(*positional, **keywords)
    except (TypeError, ValueError):
        return False
    return True
