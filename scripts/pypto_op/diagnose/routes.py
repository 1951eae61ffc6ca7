"""The debugger's router as data (`routes.yaml`): from category, fingerprint, words and numbers to one sub-skill."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pypto_op.vocabulary import FailureCategory

FILE = Path(__file__).with_name("routes.yaml")
BY_TEXT, BY_CATEGORY = "by_text", "by_category"


@dataclass(frozen=True)
class Row:
    """One row of the router."""

    id: str  # its name
    when: Mapping[str, Any]  # signal -> what it must be; everything that is named must hold
    skill: str | None  # the sub-skill, `BY_TEXT` or `BY_CATEGORY`; None where a command decides before any skill is loaded
    page: str  # the page of that skill, "" for its first one
    why: str  # half a sentence
    tools: str = ""  # another sub-skill, whose first tool is named before those of `skill`; "" for none


@functools.cache
def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return data


@functools.cache
def rows() -> tuple[Row, ...]:
    """Return the rows, in the order in which they are tried."""
    return tuple(
        Row(row["id"], row["when"], row["skill"], row.get("page", ""), row["why"], row.get("tools", ""))
        for row in _data()["rows"]
    )


def skill_of(category: FailureCategory) -> str:
    """Return the sub-skill for a failure category."""
    return str(_data()["categories"][str(category)])


def page_of(category: FailureCategory) -> str:
    """Return the page of that sub-skill, "" for its first one."""
    return str(_data()["pages"].get(str(category), ""))


def tools_of(skill: str, **known: str) -> list[str]:
    """Return the commands that a sub-skill begins with, those whose placeholders are all known.

    Args:
        skill: its name.
        known: what stands for `{op}`, `{choice}` and `{words}`, quoted for a shell.
    """
    lines = _data()["tools"].get(skill, ())
    return [line.format(**known) for line in lines if set(re.findall(r"{(\w+)}", line)) <= known.keys()]
