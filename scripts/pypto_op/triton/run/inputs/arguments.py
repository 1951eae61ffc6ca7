"""What public task suites return from `get_init_inputs` and `get_inputs`, as arguments of a call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from pypto_op.backends.worker.loading import Failure
from pypto_op.triton.run.inputs.packing import Named, tensors_of
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
    """Return the arguments of one case, by their position; what the reference takes by keyword only is `Named`, and the last.

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
        signature = inspect.signature(forward)
        bound = signature.bind(**group)
    except (TypeError, ValueError) as error:
        raise Failure(Outcome.BAD_OUTPUT, f"{path.name}: a case is a dict that forward cannot take: {error}") from None
    if bound.kwargs:
        bound.apply_defaults()
    named = Named({name: value for name, value in bound.kwargs.items() if name in group})
    return [*bound.args, named] if named else list(bound.args)


def call(model: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    """Call a model with the arguments of a case."""
    if inputs and type(inputs[-1]) is Named:
        return model(*inputs[:-1], **inputs[-1])
    return model(*inputs)


def plain_ones(inputs: Sequence[Any]) -> list[bool | str | None]:
    """Return by position which arguments hold no tensor, None for one that is nothing; then the names of such by keyword."""
    named = inputs[-1] if inputs and type(inputs[-1]) is Named else {}
    return [*map(_is_plain, inputs[:-1] if named else inputs), *(name for name, value in named.items() if _is_plain(value))]


def always_plain(cases: Sequence[Sequence[bool | str | None]]) -> list[bool | str | None]:
    """Return what `plain_ones` says of all cases; an argument that is nothing in some is what it is in the others."""
    columns = zip(*([one for one in case if not isinstance(one, str)] for case in cases), strict=False)
    named = [one for one in cases[0] if isinstance(one, str) and all(one in case for case in cases)]
    return [*(any(column) and False not in column for column in columns), *named]


def _is_plain(value: Any) -> bool | None:
    return None if value is None else not tensors_of(value)


def _named(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


def _fits(kind: Callable[..., Any], positional: list[Any], keywords: dict[str, Any]) -> bool:
    try:
        inspect.signature(kind).bind(*positional, **keywords)
    except (TypeError, ValueError):
        return False
    return True
