"""A Triton implementation seen as its free choices: block sizes, warps and stages of its launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from pypto_op.mutation.program import below, called, names_in
from pypto_op.tuning.choice import Assignment, Choice, Kind, changed, counts
from pypto_op.tuning.rewriting import Edits, expression, keyword, several, write
from pypto_op_lint.parsing import parse_contract

_LEAST, _MOST = 16, 65536
_WARPS = ("1", "2", "4", "8", "16")
_STAGES = ("1", "2", "3", "4", "5")
NONE = "default"
Edit = Callable[[Edits, str], None]


class TritonKernel:
    """An implementation, with the same questions as `kernel.Kernel`.

    Raises:
        ContractError: the text does not parse.
    """

    def __init__(self, source: str) -> None:
        wrapper = MetadataWrapper(
            parse_contract(source, file="the implementation", remedy="mend it first"), unsafe_skip_copy=True
        )
        self.source, self._module = source, wrapper.module
        self._lines = wrapper.resolve(PositionProvider)
        self._edits: dict[str, Edit] = {}
        self.choices: dict[str, Choice] = {}
        for choice, edit in (*self._constants(), *self._launches()):
            self.choices[choice.key], self._edits[choice.key] = choice, edit

    def essence(self, assignment: Assignment) -> dict[str, str]:
        """Return the choices of an assignment that differ from the implementation's."""
        return changed(self.choices, {key: option for key, option in assignment.items() if key in self.choices})

    def counts(self, key: str, assignment: Assignment) -> bool:
        """Say whether a choice matters under an assignment."""
        return counts(self.choices, self.choices[key], assignment)

    def faults(self, assignment: Assignment) -> list[str]:
        """Return []: the compiler knows the limits of its device."""
        return []

    def write(self, assignment: Assignment) -> str:
        """Return the text of the candidate."""
        edits = Edits()
        for key, option in self.essence(assignment).items():
            self._edits[key](edits, option)
        return write(self._module, edits)

    def _line(self, node: cst.CSTNode) -> int:
        return int(self._lines[node].start.line)

    def _constants(self) -> Iterator[tuple[Choice, Edit]]:
        """Yield named powers of two, of the module or of a function, that a launch is given or a grid is cut by."""
        used = {name for call in self._calls() for name in names_in(call)}
        for node in below(self._module):
            match node:
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=cst.Integer() as number):
                    if name in used and _is_block(number.evaluated_value):
                        key = f"block {name}, line {self._line(node)}"
                        yield self._sizes(key, node, number.evaluated_value), _replacing([number])

    def _launches(self) -> Iterator[tuple[Choice, Edit]]:
        for number, call in enumerate(self._calls(), 1):
            name = f"launch {number} of {_kernel(call)}"
            for arg in call.args:
                if arg.keyword is not None and isinstance(arg.value, cst.Integer) and _is_block(arg.value.evaluated_value):
                    if arg.keyword.value.startswith("num_"):
                        continue
                    key = f"{arg.keyword.value} of {name}"
                    followers = [arg.value, *self._followers(call, arg.value.evaluated_value)]
                    yield self._sizes(key, call, arg.value.evaluated_value), _replacing(followers)
            for word, options in (("num_warps", _WARPS), ("num_stages", _STAGES)):
                said = [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == word]
                now = self._module.code_for_node(said[0]) if said else NONE
                rest = tuple(option for option in options if option != now)
                yield Choice(f"{word} of {name}", Kind.PASS_OPTION, self._line(call), (now, *rest)), _keyword(call, word)

    def _followers(self, call: cst.Call, value: int) -> list[cst.Integer]:
        """Return numbers of the same value by which grids around a launch are cut: `triton.cdiv(n, 512)`."""
        around = [node for node in below(self._module) if isinstance(node, cst.FunctionDef) and _holds(node, call)]
        found = []
        for node in below(around[-1]) if around else ():
            if isinstance(node, cst.Call) and called(node) == "cdiv":
                last = node.args[-1].value
                if isinstance(last, cst.Integer) and last.evaluated_value == value:
                    found.append(last)
        return found

    def _calls(self) -> list[cst.Call]:
        """Return launches: calls of `kernel[grid](...)`."""
        return [node for node in below(self._module) if isinstance(node, cst.Call) and isinstance(node.func, cst.Subscript)]

    def _sizes(self, key: str, node: cst.CSTNode, value: int) -> Choice:
        sizes = [value // factor for factor in (8, 4, 2)] + [value * factor for factor in (2, 4, 8)]
        options = [value, *(size for size in sizes if _LEAST <= size <= _MOST)]
        return Choice(key, Kind.ROWS, self._line(node), tuple(map(str, options)))


def _is_block(value: int) -> bool:
    return _LEAST <= value <= _MOST and value & (value - 1) == 0


def _kernel(call: cst.Call) -> str:
    assert isinstance(call.func, cst.Subscript)
    return call.func.value.value if isinstance(call.func.value, cst.Name) else "a kernel"


def _holds(function: cst.FunctionDef, call: cst.Call) -> bool:
    return any(node is call for node in below(function))


def _replacing(nodes: list[cst.Integer]) -> Edit:
    def edit(edits: Edits, option: str) -> None:
        for node in nodes:
            edits.changes[node] = expression(option)

    return edit


def _keyword(call: cst.Call, word: str) -> Edit:
    def edit(edits: Edits, option: str) -> None:
        edits.changes[call] = several(edits.changes.get(call), keyword(word, "" if option == NONE else option))

    return edit
