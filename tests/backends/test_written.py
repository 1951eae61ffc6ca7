"""A dict that was written to is looked at again, however it was written to; one that nobody wrote to is not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto_op.backends.worker import written
from pypto_op.backends.worker.tampering import Snapshot
from pypto_op.backends.worker.written import Written, dict_of

NAMES = st.sampled_from(["one", "two", "three"])
WRITES: dict[str, Callable[[Any, str], object]] = {
    "set": lambda home, name: setattr(home, name, object()),
    "set through its dict": lambda home, name: _dict(home).__setitem__(name, object()),
    "update": lambda home, name: _dict(home).update({name: object()}),
    "or": lambda home, name: _dict(home).__ior__({name: object()}),
    "delete": lambda home, name: _dict(home).pop(name, None),
    "default": lambda home, name: _dict(home).setdefault(name, object()),
    "another order": lambda home, name: _dict(home).update({name: _dict(home).pop(name, None)}),
    "by a statement": lambda home, name: _set_often(home),
    "read": lambda home, name: getattr(home, name, None),
    "listed": lambda home, name: list(_dict(home).items()),
}


def _dict(home: Any) -> dict[str, Any]:
    return dict_of(home) if isinstance(home, type) else vars(home)


def _set_often(home: Any) -> None:
    for _ in range(40):  # so often that Python writes by a short way, which a plain dict's own methods do not take
        home.one = object()


def _looked_at(home: Any) -> list[tuple[str, int]]:
    return [(name, id(value)) for name, value in _dict(home).items()]


@given(st.lists(st.tuples(st.sampled_from(sorted(WRITES)), NAMES, st.booleans()), max_size=30))
def test_no_write_is_missed(writes: list[tuple[str, str, bool]]) -> None:
    homes = [type("Kind", (), {"one": 1}), ModuleType("module"), type("Still", (), {})]
    watch = Written([_dict(home) for home in homes])
    assert list(watch.places()) == [0, 1, 2]
    watch.are_right()
    kept = [dict(_dict(home)) for home in homes]  # no object ends, so that no other takes its place
    right = [_looked_at(home) for home in homes]
    for way, name, at_module in writes:
        WRITES[way](homes[at_module], name)
        kept += [dict(_dict(home)) for home in homes]
        now = [_looked_at(home) for home in homes]
        places = set(watch.places())
        assert {place for place in range(3) if now[place] != right[place]} <= places
        assert 2 not in places, "nobody wrote to it"
        if way in ("read", "default"):
            watch.are_right()
            right = now


@pytest.mark.parametrize("numbered", [True, False])
def test_what_was_replaced_is_told_until_it_is_put_back(numbered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "_NUMBERED", numbered)  # a Python without numbers looks each time
    module = ModuleType("watched_for_this_test")
    kind = type("Kind", (), {"__module__": module.__name__, "method": lambda self: 1})
    module.function, module.Kind, module.number = len, kind, 1  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    try:
        snapshot = Snapshot([module.__name__])
        assert snapshot.replaced() == []
        for number in range(3):  # a number decides nothing, and what is written beside it does not hide behind it
            module.number = number  # type: ignore[attr-defined]
            assert snapshot.replaced() == []
        for home, name, other in ((module, "function", max), (kind, "method", max), (kind, "new", max)):
            before = _dict(home).get(name)
            setattr(home, name, other)
            for _ in range(2):
                assert snapshot.replaced() == [f"{module.__name__}.{'' if home is module else 'Kind.'}{name}"]
            delattr(home, name) if before is None else setattr(home, name, before)
            assert snapshot.replaced() == []
    finally:
        del sys.modules[module.__name__]
