"""What a kernel's body may ask for while the interpreter, which runs Python, executes it.

The static check reads names; here the objects themselves are looked at, whatever led to them. A call needs a function of
Triton's language, a jitted function, or one of the builtins that Triton's compiler knows. An attribute leads to no private part
and to no NumPy array behind a value. What comes from outside (parameters, globals) is a value, not code. Numbers that a body
takes from globals and from objects are kept, since the host may have put them there.

The interpreter gives a scalar to Python wherever Python asks for a number or a word (`__index__`, `__str__`). No device does, so
Python's own functions, places in a tuple and words may ask for no tensor. What they make of numbers is kept too: a branch on a
tensor chooses between numbers.
"""

from __future__ import annotations

import ast
import builtins
import functools
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from pypto_op.triton.run.watching.handed import computes, is_jitted, library_of, own_methods
from pypto_op.triton.run.watching.places import own_line

_ATTRIBUTE, _CALLEE, _OUTSIDE, _ENTER, _ITEM, _PLACE, _WORD, _POWER, _REMAINDER = (
    f"guard {word}" for word in ("attribute", "callee", "outside", "enter", "item", "place", "word", "power", "remainder")
)
"""Names that no source can spell."""
_BUILTINS = frozenset({
    "len", "list", "range", "float", "int", "isinstance", "hasattr", "min", "max", "print", "abs", "bool", "tuple", "str", "zip",
    "enumerate", "reversed", "round", "sum", "any", "all", "slice", "divmod", "pow",
})  # fmt: skip
_OF_TENSORS = frozenset({"len", "list", "isinstance", "hasattr", "min", "max", "print", "tuple", "zip", "enumerate", "reversed"})
"""Builtins that may be given a tensor: they ask it for no number."""
_LANGUAGES = ("triton.language", "triton.experimental.gluon.language")
_REFUSED = (
    ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.With, ast.Try, ast.TryStar,
    ast.Global, ast.Nonlocal, ast.Delete, ast.Yield, ast.YieldFrom, ast.Await, ast.Match, ast.NamedExpr, ast.Break,
    ast.Continue, ast.GeneratorExp, ast.Set, ast.SetComp, ast.Dict, ast.DictComp,
)  # fmt: skip
_MOST_TOLD = 5
_MOST_NUMBERS = 10_000
_CONSTANT, _CONSTEXPR = frozenset({"ConstexprFunction"}), frozenset({"constexpr"})
_BEHIND = frozenset({"handle", "data"})
_OURS = str(Path(__file__).resolve().parents[3]) + os.sep


class KernelGuard:
    """Rewrites bodies and answers what they ask."""

    def __init__(self) -> None:
        from triton.runtime.interpreter import GridExecutor

        import triton

        self._launches = GridExecutor.__call__.__code__
        self.denied: list[str] = []  # what no device can execute, in words
        # numbers and words that bodies took from globals and objects since the last launch began, by name
        self.taken: dict[str, Any] = {}
        # which numbers and words Python's own functions and operators were given, each once, by place of the text
        self.computed: dict[str, dict[str, None]] = {}
        self.own: frozenset[str] = frozenset()  # the candidate's files, resolved
        self.begins: Callable[[], object] = bool  # called when a launch begins to execute a body
        self.leaves: Callable[[], object] = bool  # called before a body calls Python code that is none
        self._triton = str(Path(triton.__file__).resolve().parent) + os.sep
        self._languages = [self._triton + name.partition(".")[2].replace(".", os.sep) + os.sep for name in _LANGUAGES]
        # Sets of choices that the language names and Triton's C++ defines, as `tl.PropagateNan`.
        self._choices = [value for value in vars(triton.language).values() if type(value).__name__ == "pybind11_type"]
        self._known: dict[int, Any] = {}

    def guarded(self, function: ast.FunctionDef) -> ast.FunctionDef:
        """Return a function whose body asks this guard; what Triton's compiler refuses is denied when it is called."""
        refused = next(filter(_is_refused, ast.walk(ast.Module(function.body, []))), None)
        arguments = function.args
        own = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        own += [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
        names = {argument.arg for argument in own}
        guarding = _Guarding(function.name, names | _assigned(function.body))
        function.body = [guarding.visit(statement) for statement in function.body]
        word = "" if refused is None else type(refused).__name__
        entry = ast.Expr(_asked(_ENTER, ast.Constant(word), *(ast.Name(argument.arg, ast.Load()) for argument in own)))
        function.body.insert(0, entry)
        return function

    def names(self) -> dict[str, Any]:
        """Return what rewritten bodies call, by name."""
        return {
            _ATTRIBUTE: self._attribute, _CALLEE: self._callee, _OUTSIDE: self._outside, _ENTER: self._enter, _ITEM: self._item,
            _PLACE: self._place, _WORD: self._word, _POWER: self._power, _REMAINDER: self._remainder,
        }  # fmt: skip

    # -- what bodies ask -------------------------------------------------------------------------------------------

    def _enter(self, refused: str, *values: Any) -> None:
        if sys._getframe(2).f_code is self._launches:
            self.begins()
        if refused:
            self._deny(f"`{refused}`")
        for value in values:
            self._value(value, "an argument")

    def _outside(self, name: str, value: Any) -> Any:
        if name == "interpreter_semantic":
            self._deny(f"the interpreter's `{name}`")
        if isinstance(value, ModuleType):
            return value
        if callable(value) and type(value).__name__ != "constexpr":
            self._handed(value, f"`{name}`")
            return value
        self._value(getattr(value, "value", value) if callable(value) else value, f"`{name}`")
        self.taken[name] = value
        return value

    def _handed(self, function: Any, what: str) -> None:
        """Deny what is given away and not called here, where it is no device function: Triton's interpreter would call it."""
        if not self._is_allowed(function) or getattr(function, "__self__", None) is math:
            self._value(function, what)

    def _attribute(self, value: Any, name: str, called: bool = False) -> Any:
        if name.startswith("_") and not (isinstance(value, ModuleType) and name.startswith("_experimental")):
            self._deny(f"the private `{name}`")
        kind = value if isinstance(value, type) else type(value)
        of_library = str(kind.__module__).partition(".")[0] in ("triton", "torch", "numpy", "pypto_op")
        if name in _BEHIND and of_library:
            self._deny(f"the interpreter's `{name}`")
        found = getattr(value, name)
        if isinstance(found, ModuleType) or called:
            return found  # what is called is looked at where it is called
        if callable(found):
            self._handed(found, f"`{name}`")
        elif not isinstance(value, ModuleType) and (of_library or isinstance(value, (str, tuple, list, int, float))):
            pass
        else:
            self._value(found, f"`{name}`")
            self.taken[name] = found
        return found

    def _item(self, value: Any) -> Any:
        if isinstance(value, (tuple, list, str)) or self._is_of_triton(type(value)):
            return value
        self._deny(f"an item of {type(value).__name__}")
        return value

    def _place(self, value: Any, site: str) -> Any:
        """A place in a tuple, or an end of a slice."""
        if _is_tensor(value):
            self._deny("a tensor as a place in a tuple")
        elif value is not None and not isinstance(value, (slice, type(...))):
            self._note(f"the place at {site}", (value,))
        return value

    def _word(self, value: Any) -> Any:
        """A value that becomes a part of a word."""
        if _holds_tensor(value):
            self._deny("words made of a tensor")
        return value

    def _power(self, base: Any, exponent: Any, site: str) -> Any:
        if not _is_tensor(base) and not _is_tensor(exponent):
            self._note(f"the power at {site}", (base, exponent))
        return base**exponent

    def _remainder(self, left: Any, right: Any) -> Any:
        return left % (self._word(right) if isinstance(left, str) else right)

    def _callee(self, function: Any, site: str) -> Any:
        known = self._known.get(id(function))
        if known is function:
            return function
        if function is getattr:
            return self._getattr
        if function is range or (getattr(function, "__name__", "") == "_new_range" and self._is_allowed(function)):
            return functools.partial(_turns, function)
        if self._is_of_python(function):
            return functools.partial(self._in_python, function, site)
        if self._is_allowed(function):
            if not isinstance(function, MethodType):
                self._known[id(function)] = function
            return function
        if is_jitted(function, _CONSTANT) or _is_constant_function(function):
            return self._on_constants(function)
        name = getattr(function, "__qualname__", None) or type(function).__name__
        self._deny(f"{name}, which is no function of Triton's")
        return function

    def _in_python(self, function: Any, site: str, /, *given: Any, **named: Any) -> Any:
        """Call a function of Python's, which no device executes: it may see what is the same in every run."""
        name = str(function.__name__)
        if name not in _OF_TENSORS:
            if _holds_tensor((*given, *named.values())):
                self._deny(f"`{name}` of a tensor")
            self._note(f"{name}() at {site}", (*given, *named.values()))
        return function(*given, **named)

    def _note(self, name: str, numbers: tuple[Any, ...]) -> None:
        """Keep which numbers and words Python computed with at one place of the text, each once: how often a loop runs and which
        way a branch goes may follow from the inputs."""
        kept = self.computed.setdefault(name, {})
        kept[repr([getattr(number, "value", number) for number in numbers])] = None
        if len(kept) > _MOST_NUMBERS:
            kept.popitem()
            self._deny(f"more numbers than are looked at: {name}")

    # -- what is what ----------------------------------------------------------------------------------------------

    def _is_of_python(self, function: Any) -> bool:
        if isinstance(function, BuiltinFunctionType):
            home = function.__self__
            return home is builtins or home is math or isinstance(home, str)
        return isinstance(function, type) and vars(builtins).get(function.__name__) is function

    def _is_allowed(self, function: Any) -> bool:
        if isinstance(function, MethodType):
            return self._is_of_language(type(function.__self__)) or self._is_of_language(function.__self__)
        if isinstance(function, FunctionType):
            real = os.path.realpath(function.__code__.co_filename)
            stands_in = real.endswith("interpreter.py") and "<locals>" in function.__qualname__  # while a kernel runs
            return real.startswith((*self._languages, _OURS)) or (stands_in and real.startswith(self._triton))
        if isinstance(function, functools.partial):
            # What the interpreter makes of `multiple_of` and its like, which compute nothing.
            hint = function.func
            real = os.path.realpath(hint.__code__.co_filename) if isinstance(hint, FunctionType) else ""
            plain = not function.args and set(map(type, function.keywords.values())) == {str}
            return plain and real.startswith(self._triton) and hint.__name__ == "_set_attr"
        if isinstance(function, BuiltinFunctionType):
            home = function.__self__
            known = home is builtins and function.__name__ in _BUILTINS
            return known or home is math or isinstance(home, str)
        if isinstance(function, type):
            name = function.__name__
            if vars(builtins).get(name) is function:
                return name in _BUILTINS
            return self._is_of_language(function) or (issubclass(function, tuple) and not own_methods(function))
        return is_jitted(function)

    def _is_of_language(self, kind: Any) -> bool:
        """Whether a class is one that kernels may name."""
        if not self._is_of_triton(kind):
            return False
        return kind in self._choices or any(base.__module__.startswith(_LANGUAGES) for base in kind.__mro__)

    def _is_of_triton(self, kind: Any) -> bool:
        """Whether a class is Triton's own, or adds no code to one."""
        if not isinstance(kind, type) or library_of(kind) == "triton":
            return isinstance(kind, type)
        return any(library_of(base) == "triton" for base in kind.__mro__) and not own_methods(kind)

    def _value(self, value: Any, what: str) -> None:
        kind = type(value)
        if is_jitted(value) or is_jitted(value, _CONSTANT) or kind in self._choices:
            return
        behind = kind.__module__.startswith("triton.") and not kind.__module__.startswith((*_LANGUAGES, "triton.tools"))
        if behind or isinstance(value, (dict, set)) or computes(value, frozenset()):
            self._deny(f"{what}, which is or holds Python code or a {type(value).__name__}")

    def _getattr(self, value: Any, name: str, *default: Any) -> Any:
        if default and not hasattr(value, name):
            return default[0]
        return self._attribute(value, name)

    def _on_constants(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a constexpr function that refuses tensors: at compile time there are none."""

        def called(*args: Any, **kwargs: Any) -> Any:
            if _holds_tensor((*args, *kwargs.values())):
                self._deny("a constexpr function of a tensor")
            self.leaves()
            return function(*args, **kwargs)

        return called

    def _deny(self, what: str) -> None:
        """Remember it, with its line; the run goes on, so that the judge says of all files alike what was wrong with them."""
        if len(self.denied) < _MOST_TOLD:
            line = own_line(self.own)
            self.denied.append(f"{what} ({line})" if line else what)


def _is_constant_function(value: Any) -> bool:
    """Whether a value is a function under `tl.constexpr`, which the compiler calls as one under `triton.constexpr_function`."""
    return is_jitted(value, _CONSTEXPR) and isinstance(value.value, FunctionType)


def _is_tensor(value: Any) -> bool:
    return type(value).__name__ == "tensor" and type(value).__module__.startswith(_LANGUAGES)


def _holds_tensor(value: Any) -> bool:
    return any(map(_holds_tensor, value)) if isinstance(value, (tuple, list)) else _is_tensor(value)


def _turns(function: Any, /, *ends: Any, **named: Any) -> Any:
    """Return a loop's numbers: tensors where an end is one, as on a device; the interpreter makes Python's numbers of it."""
    turns = function(*ends, **named)
    like = next((end for end in ends if _is_tensor(end)), None)
    return turns if like is None else (like * 0 + number for number in turns)


def _is_refused(node: ast.AST) -> bool:
    sets = isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load)
    return sets or isinstance(node, _REFUSED)


def _assigned(body: list[ast.stmt]) -> set[str]:
    """Return the names that statements bind; those of comprehensions are their own."""
    found: set[str] = set()
    for node in ast.walk(ast.Module(body, [])):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For)):
            targets = [node.target]
        found |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return found


def _asked(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


class _Guarding(ast.NodeTransformer):
    """Puts the questions into a body."""

    def __init__(self, name: str, local: set[str]) -> None:
        self._name, self._local = name, local

    def _site(self, node: ast.expr) -> ast.Constant:
        """Return where an expression stands: function, its line there and column."""
        return ast.Constant(f"{self._name}:{getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)}")

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.args = [self.visit(argument) for argument in node.args]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        node.func = _asked(_CALLEE, self._called(node.func), self._site(node))
        return node

    def _called(self, function: ast.expr) -> ast.expr:
        """Return what gives a call its function; the function itself is looked at as a whole."""
        if isinstance(function, ast.Attribute):
            return _asked(_ATTRIBUTE, self.visit(function.value), ast.Constant(function.attr), ast.Constant(True))
        return function if isinstance(function, ast.Name) else self.visit(function)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        return _asked(_ATTRIBUTE, node.value, ast.Constant(node.attr)) if isinstance(node.ctx, ast.Load) else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        node.value = _asked(_ITEM, node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        asked = [self._asked_place(part) for part in parts]
        node.slice = ast.Tuple(asked, ast.Load()) if isinstance(node.slice, ast.Tuple) else asked[0]
        return node

    def _asked_place(self, part: ast.expr) -> ast.expr:
        if isinstance(part, ast.Slice):
            ends = (part.lower, part.upper, part.step)
            return ast.Slice(*(None if end is None else _asked(_PLACE, end, self._site(part)) for end in ends))
        return part if isinstance(part, (ast.Constant, ast.Starred)) else _asked(_PLACE, part, self._site(part))

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.FormattedValue:
        self.generic_visit(node)
        node.value = _asked(_WORD, node.value)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Pow):
            return _asked(_POWER, node.left, node.right, self._site(node))
        return _asked(_REMAINDER, node.left, node.right) if isinstance(node.op, ast.Mod) else node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not isinstance(node.ctx, ast.Load) or node.id in self._local:
            return node
        return _asked(_OUTSIDE, ast.Constant(node.id), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.value = self.visit(node.value) if node.value is not None else None
        return node
