"""Remembers how far honest orders of a golden were measured to differ on given inputs.

`harness new` measures each case that it makes, and the self-test asks the same of it. A figure stands for the golden's bytes and
name, every file that it loaded, the bytes of the inputs, the policies, the versions of Python and torch, and the code that
measures. The record is sealed (`proof.records`): no candidate can write what is believed here. It holds figures and no tensor:
what a kernel's outputs are compared with, each verdict computes itself.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto_op.backends.answers import add_value
from pypto_op.hashing import sha256_file, sha256_json
from pypto_op.proof import records
from pypto_op.proof.closure import Loaded
from pypto_op.vocabulary import Loader, Status

if TYPE_CHECKING:
    from pypto_op.backends.base import Value
    from pypto_op.backends.reference import ReferenceSession
    from pypto_op.documents.policy import Policy
    from pypto_op.judge.answers.expectation import Expectation
    from pypto_op.judge.findings.records import TrialVerdict
    from pypto_op.workspace import OpWorkspace

KIND = "natural_errors"
_MOST = 4000
"""Figures that are kept; a harness makes two hundred."""
_MEASURED_BY = ("twins", "comparison", "judge", "compare.py", "documents/policy.py", "documents/policies.yaml")


class Measured:
    """The figures of one golden; several threads may ask and note."""

    def __init__(self, ws: OpWorkspace, sessions: Sequence[ReferenceSession]) -> None:
        self._ws, self._sessions = ws, sessions
        self._about = _about(ws)
        kept = records.found(ws, KIND, self._about)
        self._figures: dict[str, Any] = dict(kept["figures"]) if kept else {}
        self._loaded: dict[str, dict[str, str]] = kept["loaded"] if kept else {}
        self._new = 0

    def share(self, inputs: Sequence[Value], policy: Policy, measure: Callable[[], float]) -> float:
        """Return how much of a tolerance honest rounding takes on these inputs (`natural.natural_share`), kept or measured."""
        key = self._key("share", inputs, [policy])
        if key in self._figures:
            return float(self._figures[key])
        found = measure()
        if math.isfinite(found):
            self._note(key, found)
        return found

    def orders(self, inputs: Sequence[Value], expectation: Expectation, orders: Sequence[str]) -> dict[str, float] | None:
        """Return the worst violation of each honest order, where all of them were measured, and each passed; else None."""
        found = self._figures.get(self._orders_key(inputs, expectation, orders))
        return None if found is None else dict(found)

    def note_orders(
        self, inputs: Sequence[Value], expectation: Expectation, orders: Sequence[str], told: Sequence[tuple[str, TrialVerdict]]
    ) -> None:
        """Keep what the judge said of the honest orders of a golden, if it took each."""
        if all(verdict.status is Status.PASS for _, verdict in told):
            worst = {name: max((leaf["max_violation"] or 0.0 for leaf in one.per_tensor), default=0.0) for name, one in told}
            if all(map(math.isfinite, worst.values())):
                self._note(self._orders_key(inputs, expectation, orders), worst)

    def keep(self) -> None:
        """Seal what was measured, unless the golden changed meanwhile."""
        if not self._new or _about(self._ws) != self._about:
            return
        loaded = Loaded()
        for session in self._sessions:
            loaded.note_all({str(Loader.GOLDEN): session.loaded().get(str(Loader.GOLDEN), {})})
        # What made the inputs is no part of it: each figure names the bytes that it made, and the file may be a draft still.
        closure = loaded.closure(self._ws, [self._ws.golden, self._ws.test_inputs])
        closure = {name: {**self._loaded.get(name, {}), **files} for name, files in closure.items()}
        figures = dict(list(self._figures.items())[-_MOST:])
        records.keep(self._ws, KIND, self._about, {"figures": figures, "loaded": closure}, closure=closure)

    def _note(self, key: str, figure: Any) -> None:
        self._figures[key] = figure
        self._new += 1

    def _orders_key(self, inputs: Sequence[Value], expectation: Expectation, orders: Sequence[str]) -> str:
        policies = [expectation.policy, expectation.natural, expectation.behind]
        return self._key(json.dumps(["orders", *orders, expectation.either]), inputs, policies)

    def _key(self, what: str, inputs: Sequence[Value], policies: Sequence[Policy | None]) -> str:
        told = [what, *(policy and [policy.id, policy.as_dict()] for policy in policies)]
        state = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
        for value in inputs:
            add_value(state, value)
        return state.hexdigest()


def _about(ws: OpWorkspace) -> Mapping[str, str]:
    """Return what decides every figure beside inputs and policies."""
    code = _code()
    return {"golden": sha256_file(ws.golden), "function": ws.golden_name(), "code": code, **records.package_versions("torch")}


@cache
def _code() -> str:
    """Return the hash of the code that measures."""
    package = Path(__file__).resolve().parents[2]
    roots = [package / name for name in _MEASURED_BY]
    files = [file for root in roots for file in (sorted(root.rglob("*.py")) if root.is_dir() else [root])]
    return sha256_json({str(file.relative_to(package)): sha256_file(file) for file in files})
