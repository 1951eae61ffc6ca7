"""`owner[a:b]` of lists and tuples: which items it is, where that is known."""

from __future__ import annotations

from pypto_op.triton.static.values import Container, Host, Value


def bounds_of(ends: list[Value]) -> slice | None:
    """Return the slice of lower end, upper end and step; None where one is not known to be a whole number or left out."""
    known = [end.const for end in ends if isinstance(end, Host) and (end.const is None or type(end.const) is int)]
    return slice(*known) if len(known) == 3 and known[2] != 0 else None


def part_of(owner: Container, which: slice | None) -> Container:
    """Return these items of a list or tuple; where it is not known which, or there are none, any of the owner's."""
    items = owner.items[which] if which is not None and owner.complete and not owner.keyed else []
    return Container(owner.kind, items) if items else Container(owner.kind, owner.members(), complete=False)
