"""Faults, variants and probes of the example operators: edits of the examples' kernels as they are today."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from tests.markdown_cases import cases
from tests.markdown_cases.pages import PageError

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("faults", "variants", "probes")


@dataclass(frozen=True)
class Kernel:
    """One edited kernel. `case` is the id of the suite's case that judges it in an ordinary run; `right`, what it must say."""

    name: str
    text: bytes
    why: str
    case: str
    right: bool


@functools.cache
def kernels(kind: str, op: str) -> tuple[Kernel, ...]:
    """Return the kernels of tests/fixtures/<kind>/<op>.md, `kind` being "faults", "variants" or "probes".

    Raises:
        PageError: the page is not in order, or the example moved on and an edit has no place in it any more.
    """
    example = ROOT / "examples" / "ops" / op
    files = {str(path.relative_to(example)): path.read_bytes() for path in sorted(example.rglob("*_impl.py"))}
    found = cases.load(ROOT / "tests" / "fixtures" / kind / f"{op}.md", {"example": files})
    made = []
    for case in found.cases:
        keys = {**found.page.front, **case.keys}
        if set(keys) != {"case"} or set(case.files) != {""}:
            message = f"{case.name} is one file with one key: `case`, the case of the suite that judges it"
            raise PageError(found.page.path, case.line, message)
        made.append(Kernel(case.name, case.files[""], case.why, str(keys["case"]), case.label == "good"))
    return tuple(made)


def kernel(kind: str, op: str, name: str) -> Kernel:
    """Return one of them by name; KeyError when there is none."""
    return {kernel.name: kernel for kernel in kernels(kind, op)}[name]
