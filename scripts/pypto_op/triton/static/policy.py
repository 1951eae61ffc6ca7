"""The policy of the static check, read from `policy.yaml`: what is allowed outside a kernel, and why the rest is not."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from typing import Any

from pypto_op.errors import ContractError

_YIELDS = ("host", "fresh", "view", "copy")


class Names:
    """A set of dotted names and patterns."""

    def __init__(self, names: Iterable[str]) -> None:
        names = list(names)
        self._exact = frozenset(name for name in names if "*" not in name)
        patterns = [name for name in names if "*" in name]
        self._pattern = re.compile("|".join(translate(name) for name in patterns)) if patterns else None

    def __contains__(self, name: str) -> bool:
        return name in self._exact or (self._pattern is not None and self._pattern.match(name) is not None)


@dataclass(frozen=True)
class Reasoned:
    """Names with the reason why they are denied."""

    names: Names
    reason: str
    excepted: Names


@dataclass(frozen=True)
class StaticPolicy:
    """The policy, ready to be asked."""

    data: Mapping[str, Any]  # the document it was made from
    _calls: dict[str, Names] = field(default_factory=dict)
    _methods: dict[str, Names] = field(default_factory=dict)
    _attributes: dict[str, Names] = field(default_factory=dict)
    _known: dict[str, Names] = field(default_factory=dict)
    _forbidden: list[Reasoned] = field(default_factory=list)
    _reasons: list[Reasoned] = field(default_factory=list)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> StaticPolicy:
        """Build a policy from a document that fits its schema."""
        policy = cls(data)
        policy._calls.update({key: Names(names) for key, names in data["calls"].items()})
        policy._methods.update({key: Names(names) for key, names in data["methods"].items()})
        policy._attributes.update({key: Names(names) for key, names in data["attributes"].items()})
        kernel = data["kernel"]
        stores = [f"{language}.{name}" for language in kernel["languages"] for name in kernel["stores"]]
        policy._known.update(jit=Names(kernel["jit"]), wrappers=Names(kernel["wrappers"]))
        policy._known["stores"] = Names(stores)
        policy._known["at_import"] = Names(data["at_import"])
        policy._known["host_modules"] = Names([n for name in data["host_modules"] for n in (name, name + ".*")])
        for rows, into in ((data["forbidden"], policy._forbidden), (data["reasons"], policy._reasons)):
            into.extend(Reasoned(Names(row["names"]), row["reason"], Names(row.get("except", ()))) for row in rows)
        return policy

    @property
    def stores(self) -> frozenset[str]:
        """Dotted names of the operations that write memory in a kernel."""
        kernel = self.data["kernel"]
        return frozenset(f"{language}.{name}" for language in kernel["languages"] for name in kernel["stores"])

    def makes_kernel(self, name: str) -> bool:
        """Whether a decorator of this name makes a kernel."""
        return name in self._known["jit"]

    def wraps_kernel(self, name: str) -> bool:
        """Whether a decorator of this name may stand around a kernel."""
        return name in self._known["wrappers"]

    def computes_on_host(self, name: str) -> bool:
        """Whether a function works on host values only."""
        return name in self._known["host_modules"]

    def may_import(self, name: str) -> bool:
        """Whether a file may call this while it is imported or its model is made."""
        return name in self._known["at_import"] or self.computes_on_host(name) or self.call(name) is not None

    def call(self, name: str) -> str | None:
        """Return what a call yields (host, fresh, view, copy); None when it is not allowed."""
        return next((kind for kind in reversed(_YIELDS) if name in self._calls[kind]), None)

    def method(self, name: str) -> str | None:
        """Return what a tensor's method yields; None when it is not allowed."""
        return next((kind for kind, names in self._methods.items() if name in names), None)

    def attribute(self, name: str) -> str | None:
        """Return what a tensor's attribute is (host, view); None when it is not allowed."""
        return next((kind for kind, names in self._attributes.items() if name in names), None)

    def forbidden(self, name: str) -> str | None:
        """Return why a name is denied wherever it is reached; None when it is not.

        A module of Python's that another module imported is that module, by whatever way it is named (`dataclasses.sys`).
        """
        parts = name.split(".")
        inner = [i for i in range(1, len(parts) - 1) if parts[i].lstrip("_") in sys.stdlib_module_names]
        names = [name, *(".".join([parts[i].lstrip("_"), *parts[i + 1 :]]) for i in inner)]
        return next((reason for one in names if (reason := _reason(self._forbidden, one)) is not None), None)

    def denied(self, name: str) -> str:
        """Return why a call in forward is denied."""
        return _reason(self._reasons, name) or "not known to be free of tensor computation, so it is denied"

    @property
    def most_launches(self) -> int | None:
        """How many launches forward may hold; None for any number."""
        most = self.data["launches"]["most"]
        return None if most is None else int(most)

    def allows(self, what: str) -> bool:
        """Whether `launches.<what>` (`in_loops`, `loops`) is allowed."""
        return bool(self.data["launches"][what] == "allow")


def _reason(rows: list[Reasoned], name: str) -> str | None:
    return next((row.reason for row in rows if name in row.names and name not in row.excepted), None)


@lru_cache(maxsize=8)
def load_policy(path: Path | None = None) -> StaticPolicy:
    """Return the policy: the built-in one, with the keys of the YAML file `path` in their place.

    Raises:
        ContractError: the file is missing or does not fit schemas/triton_static_policy.schema.json.
    """
    import yaml

    text = Path(__file__).with_name("policy.yaml").read_text(encoding="utf-8")
    data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    if path is not None:
        from pypto_op.documents import schema
        from pypto_op.documents.reading import read_yaml

        own = read_yaml(path)
        if not isinstance(own, dict):
            raise ContractError("not a mapping", file=path, remedy="write the keys of policy.yaml that differ")
        data = {**data, **{k: {**data[k], **v} if isinstance(v, dict) and k in data else v for k, v in own.items()}}
        schema.check(data, "triton_static_policy", file=path)
    return StaticPolicy.from_data(data)
