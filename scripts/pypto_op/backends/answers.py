"""Remembers what a golden answered in one session, so that no question is run twice.

Kept in memory and within one session only. A verdict names every file that its own golden process loaded, its second seed is
drawn afresh, and no file that a candidate's process could write decides what is right; so nothing is kept on disk.
An answer stands for the golden's bytes, its function, the inputs (bytes, shapes, strides, dtypes, scalars), the way it was
asked, and every file that the process had loaded: where one of them is another now, all answers are forgotten.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto_op.backends.base import RunResult
from pypto_op.proof.closure import hash_at
from pypto_op.tensor_bytes import bytes_in
from pypto_op.twins.orders import ORDERS
from pypto_op.twins.other_form import SUFFIX, counted, defines_form, disagreement
from pypto_op.twins.reordering import OTHER_FORM
from pypto_op.vocabulary import Loader, Outcome

if TYPE_CHECKING:
    from pypto_op.backends.base import Value
    from pypto_op.backends.reference import ReferenceSession

_MOST_BYTES = 256 * 2**20
"""Of outputs that are kept; the oldest go first."""

_ROOT = Path("/")


class Answers:
    """The answers of one golden in one session; several threads may ask, one at a time."""

    def __init__(self, session: ReferenceSession, *, function: str, file: Path) -> None:
        self._session, self._function, self._file = session, function, Path(file)
        self._kept: OrderedDict[str, RunResult] = OrderedDict()
        self._bytes = 0
        self._turn = threading.RLock()

    def ask(self, inputs: Sequence[Value], **how: Any) -> RunResult:
        """Return what `ReferenceSession.golden` does, run or kept; the tensors are not to be changed."""
        how = self._meant(how)
        key = self._key(inputs, how)
        with self._turn:
            found = self._found(key)
            if found is None and how.get("twin") == OTHER_FORM:
                found = self._form(inputs)
                self._keep(key, found)
            if found is None:
                found = self._session.golden(inputs, function=self._function, file=self._file, **how)
                self._keep(key, found)
            return replace(found)

    def prepare(self, inputs: Sequence[Value], ways: Sequence[Mapping[str, Any]]) -> None:
        """Have a golden answered in several ways by one message; what is lost there is asked again, alone, when wanted.

        Args:
            ways: keywords of `ReferenceSession.golden`, one mapping for each answer.
        """
        ways = [meant for way in ways if (meant := self._meant(way)).get("twin") != OTHER_FORM]
        keys = [self._key(inputs, way) for way in ways]
        with self._turn:
            missing = [(key, way) for key, way in zip(keys, ways, strict=True) if self._found(key) is None]
            if len(missing) < 2:
                return
            asked = [way for _, way in missing]
            answers = self._session.goldens(inputs, asked, function=self._function, file=self._file)
            for (key, _), answer in zip(missing, answers, strict=False):
                self._keep(key, answer)

    def _form(self, inputs: Sequence[Value]) -> RunResult:
        """Return what counts of the golden's other form, which is judged by what the golden says: that is kept here."""
        own, exact = self.ask(inputs), self.ask(inputs, float64=True)
        function = f"{self._function}{SUFFIX}"
        ways: list[dict[str, Any]] = [{}, {"float64": True}, *({"twin": order} for order in ORDERS)]
        told = self._session.goldens(inputs, ways, function=function, file=self._file)
        told = told or [self._session.golden(inputs, function=function, file=self._file, **way) for way in ways]
        for run in (own, exact, *told):
            if run.outcome is not Outcome.OK:
                return run
        form, form_exact, *reordered = told
        if fault := disagreement(own.outputs, exact.outputs, form.outputs, form_exact.outputs):
            return RunResult(Outcome.BAD_OUTPUT, detail=f"{self._file.name}, {function}: {fault}")
        return replace(form, outputs=counted(own.outputs, exact.outputs, [one.outputs for one in (form, *reordered)]))

    def _meant(self, how: Mapping[str, Any]) -> dict[str, Any]:
        """Return a way to ask; where the golden has no other form, that is the golden as it stands."""
        if how.get("twin") != OTHER_FORM:
            return dict(how)
        try:
            source = self._file.read_text(encoding="utf-8")
        except (OSError, UnicodeError):
            source = ""
        return dict(how) if defines_form(source, self._function) else {**how, "twin": None}

    def _key(self, inputs: Sequence[Value], how: Mapping[str, Any]) -> str:
        plain = {name: value for name, value in sorted(how.items()) if value not in (None, False)}
        state = hashlib.sha256(json.dumps([str(self._file), self._function, plain]).encode())
        state.update(hash_at(_ROOT, str(self._file)).encode())
        for value in inputs:
            add_value(state, value)
        return state.hexdigest()

    def _found(self, key: str) -> RunResult | None:
        if key not in self._kept:
            return None
        files = self._session.loaded().get(str(Loader.GOLDEN), {})
        if any(hash_at(_ROOT, path) != digest for path, digest in files.items()):
            self._kept.clear()
            self._bytes = 0
            return None
        self._kept.move_to_end(key)
        return self._kept[key]

    def _keep(self, key: str, answer: RunResult) -> None:
        if answer.outcome is not Outcome.OK or answer.mutated_inputs:
            return
        self._kept[key] = answer
        self._bytes += _size(answer)
        while self._bytes > _MOST_BYTES:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= _size(oldest)


def _size(answer: RunResult) -> int:
    return sum(leaf.numel() * leaf.element_size() for way in (answer.outputs, *answer.others) for leaf in way)


def add_value(state: Any, value: Any) -> None:
    """Add a value to a hash so that no two different ones are alike."""
    import torch

    if isinstance(value, torch.Tensor):
        data = bytes_in(value).numpy()
        state.update(f"{value.dtype}{tuple(value.shape)}{value.stride()}:".encode())
        state.update(data)
    elif isinstance(value, (list, tuple)):
        state.update(f"{type(value).__name__}{len(value)}[".encode())
        for item in value:
            add_value(state, item)
    else:
        text = repr(value)
        state.update(f"{type(value).__name__}{len(text)}:{text}".encode())
