"""Arguments of the actions: from what a person or an agent typed to checked, normalised values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pypto_op.errors import ContractError, Refused
from pypto_op.state.facts import Arguments
from pypto_op.state.model import phase_name
from pypto_op.vocabulary import FailureCategory, Mode, Role
from pypto_op.workflow import ActionRow, workflow
from pypto_op.workspace import parse_phase

MAX_TEXT = 2000


def parse(row: ActionRow, given: Mapping[str, Any]) -> Arguments:
    """Return the checked arguments of an action; None counts as not given.

    Raises:
        Refused: an argument is missing, is not taken by this action, or has a wrong value.
    """
    values = {name: value for name, value in given.items() if value is not None}
    for name in values:
        if name not in row.args:
            takes = ", ".join(row.args) or "no arguments"
            raise Refused(f"{row.name} does not take {name}", remedy=f"it takes {takes}")
    for name, need in row.args.items():
        if need == "required" and name not in values:
            raise Refused(f"{row.name} needs {name}", remedy=f"add --{name.replace('_', '-')}")
    return {name: _PARSERS[name](name, value) for name, value in values.items()}  # type: ignore[return-value]


def _stage(name: str, value: Any) -> int:
    last = workflow().limits.max_stage
    text = str(value).strip()
    if isinstance(value, (bool, float)) or text not in {str(n) for n in range(1, last + 1)}:
        what = name.replace("_", " ")
        raise Refused(f"{_shown(value)} is no {what}", remedy=f"write a number from 1 to {last}")
    return int(text)


def _boundary(name: str, value: Any) -> int:
    return _phase_number(value)


def _phase_number(value: Any) -> int:
    if isinstance(value, (bool, float)):
        raise Refused(f"{_shown(value)} is not a phase", remedy="write M1, M2, ...")
    try:
        return parse_phase(str(value))
    except ContractError as error:
        raise Refused(error.problem, remedy=error.remedy) from None


def _phase(name: str, value: Any) -> str:
    return phase_name(_phase_number(value))


def _text(name: str, value: Any) -> str:
    text = " ".join(str(value).split()) if isinstance(value, str) else ""
    if not text:
        raise Refused(f"{name} is empty", remedy="say it in one sentence")
    if len(text) > MAX_TEXT:
        raise Refused(f"{name} has {len(text)} characters", remedy=f"keep it below {MAX_TEXT}")
    if not text.isprintable():
        raise Refused(f"{name} holds control characters", remedy="write plain text")
    return text


def _category(name: str, value: Any) -> str:
    try:
        return str(FailureCategory.parse(_text(name, value)))
    except ValueError:
        words = ", ".join(FailureCategory)
        raise Refused(f"{_shown(value)} is no failure category", remedy=f"use one of {words}") from None


def _role(name: str, value: Any) -> str:
    text = _text(name, value).rsplit(":", 1)[-1]  # Claude Code writes `plugin:agent`
    text = text if text.startswith("pypto-op-") else f"pypto-op-{text}"
    try:
        return str(Role(text))
    except ValueError:
        raise Refused(f"{_shown(value)} is no role", remedy=f"use one of {', '.join(Role)}") from None


def _modes(name: str, value: Any) -> list[str]:
    words = value if isinstance(value, (list, tuple)) else str(value).split(",")
    try:
        modes = [str(Mode(str(word).strip())) for word in words]
    except ValueError:
        raise Refused(f"{_shown(value)} are no modes", remedy=f"use {', '.join(Mode)}") from None
    if not modes or len(set(modes)) != len(modes):
        raise Refused(f"{_shown(value)} are no modes", remedy="name each mode once")
    return modes


def _hash(name: str, value: Any) -> str:
    text = str(value).strip().lower()
    if len(text) != 64 or set(text) - set("0123456789abcdef"):
        raise Refused(f"{_shown(value)} is no sha256", remedy="leave --hash out; the tool computes it")
    return text


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


_PARSERS = {
    "stage": _stage,
    "max_stage": _stage,
    "target_stage": _stage,
    "phase": _phase,
    "failed_phase": _phase,
    "failing_module_boundary": _boundary,
    "reason": _text,
    "last_error": _text,
    "attempt": _text,
    "report": _text,
    "name": _text,
    "hash": _hash,
    "role": _role,
    "modes": _modes,
    "failure_category": _category,
}
