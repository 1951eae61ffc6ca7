"""Writes a candidate: libcst replaces nodes, moves statements out of loops and exchanges loops; all else keeps its bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import libcst as cst

Change = Callable[[cst.CSTNode], cst.CSTNode]


@dataclass
class Edits:
    """What a candidate differs by, said of nodes of the kernel's tree (compared by identity)."""

    changes: dict[cst.CSTNode, Change] = field(default_factory=dict)  # node -> makes of the updated node what stands in its place
    lifted: dict[cst.CSTNode, cst.For] = field(default_factory=dict)  # statement -> the loop that it leaves
    # outer loop -> the loop that is the last statement of its body
    exchanged: dict[cst.For, cst.For] = field(default_factory=dict)
    # statements of an exchanged pair's inner body that stay outside of the new inner loop
    kept_between: set[cst.CSTNode] = field(default_factory=set)


def write(module: cst.Module, edits: Edits) -> str:
    """Return the text of `module` with `edits`."""
    made = module.visit(_Writer(edits))
    assert isinstance(made, cst.Module)
    return made.code


class _Writer(cst.CSTTransformer):
    def __init__(self, edits: Edits) -> None:
        super().__init__()
        self._edits = edits
        self._waiting: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
        self._between: list[cst.BaseStatement] = []

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> object:  # type: ignore[override]
        change = self._edits.changes.get(original_node)
        updated = change(updated_node) if change is not None else super().on_leave(original_node, updated_node)
        if original_node in self._edits.kept_between and isinstance(updated, cst.BaseStatement):
            self._between.append(updated)
            return cst.RemoveFromParent()
        loop = self._edits.lifted.get(original_node)
        if loop is not None and isinstance(updated, cst.BaseStatement):
            self._waiting.setdefault(loop, []).append(updated)
            return cst.RemoveFromParent()
        if isinstance(original_node, cst.For) and isinstance(updated, cst.For):
            return self._left(original_node, updated)
        return updated

    def _left(self, original: cst.For, updated: cst.For) -> object:
        if original in self._edits.exchanged:
            between, self._between = self._between, []
            return _exchanged(updated, between)
        lifted = self._waiting.pop(original, [])
        if not lifted:
            return updated
        first = lifted[0]
        if isinstance(first, cst.SimpleStatementLine):  # comments above the loop stay above all of it
            lifted[0] = first.with_changes(leading_lines=[*updated.leading_lines, *first.leading_lines])
            updated = updated.with_changes(leading_lines=[])
        return cst.FlattenSentinel([*lifted, updated])


def _exchanged(outer: cst.For, between: Iterable[cst.BaseStatement]) -> cst.For:
    """Return the loop over what was the inner one; the statements before that move inwards."""
    *first, inner = outer.body.body
    assert isinstance(inner, cst.For)
    inmost = outer.with_changes(leading_lines=inner.leading_lines, body=outer.body.with_changes(body=[*first, *inner.body.body]))
    return inner.with_changes(leading_lines=outer.leading_lines, body=inner.body.with_changes(body=[*between, inmost]))


def expression(text: str) -> Change:
    """Return a change to the expression that `text` says."""
    made = cst.parse_expression(text)
    return lambda updated: made


def keyword(name: str, text: str) -> Change:
    """Return a change of a call: its keyword `name` says `text` from now on; "" takes it out. Lines and commas stay."""

    def change(updated: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(updated, cst.Call)
        left = list(updated.args)
        end: cst.Comma | cst.MaybeSentinel = left[-1].comma if left else cst.MaybeSentinel.DEFAULT
        there = [arg for arg in left if arg.keyword is not None and arg.keyword.value == name]
        if text and there:
            left[left.index(there[0])] = there[0].with_changes(value=cst.parse_expression(text))
        elif text:
            if left:
                left[-1] = left[-1].with_changes(comma=_separator(updated))
            equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
            left.append(cst.Arg(cst.parse_expression(text), keyword=cst.Name(name), equal=equal, comma=end))
        else:
            left = [arg for arg in left if arg not in there]
            if left:
                left[-1] = left[-1].with_changes(comma=end)
        return updated.with_changes(args=left)

    return change


def _separator(call: cst.Call) -> cst.Comma:
    """Return the comma that parts the arguments of a call: with a new line where they stand one to a line."""
    before = call.args[-2].comma if len(call.args) > 1 else None
    if isinstance(before, cst.Comma):
        return before
    broken = isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace)
    return cst.Comma(whitespace_after=call.whitespace_before_args if broken else cst.SimpleWhitespace(" "))


def several(first: Change | None, second: Change) -> Change:
    """Return a change that makes one, then another, of the same node."""
    return second if first is None else lambda updated: second(first(updated))
