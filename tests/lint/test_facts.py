"""What the shared facts say about names, constants, calls, kernels and launches."""

from __future__ import annotations

import pytest
from tests.lint.asking_facts import KERNEL, argument_of, facts_of

from pypto_op_lint.facts import Facts
from pypto_op_lint.facts.dtypes import dtypes_of
from pypto_op_lint.facts.launches import MANY
from pypto_op_lint.facts.values import Const, Seq
from pypto_op_lint.tree import Function


def function(facts: Facts, name: str) -> Function:
    return next(f for f in facts.tree.functions if f.name == name)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("use(64 * 2)", 128),
        ("D: int = 128\nuse(D)", 128),
        ("A, B = 1, 128\nuse(B)", 128),
        ("A, (B, C) = 1, (2, 3)\nuse(C)", 3),
        ("T = (1, 2)\nuse([*T, 3][2])", 3),
        ("T = (1, 2) + (3,)\nuse(T[-1])", 3),
        ("class C:\n    D = 64\n    E = 2 * D\nuse(C.E)", 128),
        ("class C:\n    D = 64\nclass E(C):\n    pass\nuse(E.D)", 64),
        ("from enum import IntEnum\nclass C(IntEnum):\n    D = 64\nuse(C.D.value)", 64),
        ("class C:\n    def __init__(self):\n        self.d = 64\nuse(C().d)", 64),
        ("from dataclasses import dataclass\n@dataclass\nclass C:\n    a: int\n    b: int = 8\nc = C(4)\nuse(c.a + c.b)", 12),
        ("from types import SimpleNamespace\nc = SimpleNamespace(d=64)\nuse(c.d)", 64),
        ("M = {'a': 1, 'b': {'c': 64}}\nuse(M['b']['c'])", 64),
        ("use(max(1, 64))", 64),
        ("import math\nuse(math.gcd(96, 64))", 32),
        ("use(len([1, 2, 3]))", 3),
        ("use(1 << 7)", 128),
        ("use(-(-130 // 64))", 3),
        ("def f(n):\n    use(n)\nf(64)", 64),
        ("def f(n=64):\n    use(n)\nf()", 64),
        ("def build(n):\n    def k():\n        use(n)\n    return k\nbuild(64)()", 64),
        ("D = 1\ndef f():\n    D = 64\n    use(D)\nf()", 64),
        ("def f(x):\n    d = x.shape[0]\n    d = 64\n    use(d)\n", 64),
        ("use(64 if True else x)", 64),
        ("FLAG = False\nuse(1 if FLAG else 2)", 2),
        ("use((n := 64))", 64),
        ("def f():\n    global D\n    D = 64\nuse(D)", 64),
        ("d = getattr(c, 'd')\nclass c:\n    d = 64\nuse(c.d)", 64),
    ],
)
def test_constants_are_followed(code: str, expected: int) -> None:
    facts = facts_of(code)
    assert facts.ev.constant(argument_of(facts)) == Const.of(expected)


@pytest.mark.parametrize(
    "code",
    [
        "def f(n):\n    use(n)",
        "def f(n):\n    use(n)\nf(64)\nf(x.shape[0])",
        "D = 64\nD = x\nuse(D)",
        "D = 64\nif x:\n    D = y\nuse(D)",
        "for i in z:\n    use(D)\n    D = i\nD = 1",
        "D = 64\ndef f(D):\n    use(D)",
        "def f(*n):\n    use(n[0])\nf(*x)",
        "D = 64\nD += x\nuse(D)",
        "use(unknown())",
        "use(2 ** 100000)",
        "use('a' * 10**9)",
    ],
)
def test_what_is_not_constant_is_not_taken_for_one(code: str) -> None:
    facts = facts_of(code)
    assert facts.ev.constant(argument_of(facts)) is None


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("import pypto\nuse(pypto.loop)", "pypto.loop"),
        ("import pypto as pt\nuse(pt.loop)", "pypto.loop"),
        ("import pypto.frontend as F\nuse(F.jit)", "pypto.frontend.jit"),
        ("from pypto.frontend import jit as j\nuse(j)", "pypto.frontend.jit"),
        ("from pypto import *\nuse(loop)", "pypto.loop"),
        ("import pypto\np = pypto\nq = p\nuse(q.loop)", "pypto.loop"),
        ("import pypto\nuse(getattr(pypto, 'loop'))", "pypto.loop"),
        ("import pypto\nuse(pypto.__dict__['loop'])", "pypto.loop"),
        ("import pypto\nuse(vars(pypto)['loop'])", "pypto.loop"),
        ("import importlib\nuse(importlib.import_module('pypto').loop)", "pypto.loop"),
        ("use(__import__('pypto').loop)", "pypto.loop"),
        ("def f():\n    import pypto as z\n    use(z.loop)", "pypto.loop"),
        ("try:\n    import pypto as z\nexcept ImportError:\n    z = None\nuse(z.loop)", "pypto.loop"),
        ("import pypto\nclass A:\n    lib = pypto\nuse(A.lib.loop)", "pypto.loop"),
        ("import pypto\ndef lib():\n    return pypto\nuse(lib().loop)", "pypto.loop"),
        ("use(min)", "builtins.min"),
        ("import builtins\nuse(builtins.min)", "builtins.min"),
    ],
)
def test_names_are_resolved_through_every_alias(code: str, path: str) -> None:
    facts = facts_of(code)
    assert path in facts.ev.paths(argument_of(facts))


def test_a_local_definition_hides_the_builtin() -> None:
    facts = facts_of("def min(a, b):\n    return a\nuse(min)\n")
    assert facts.ev.paths(argument_of(facts)) == set()
    assert [f.function.name for f in facts.ev.functions(argument_of(facts))] == ["min"]


@pytest.mark.parametrize(
    ("code", "length"),
    [
        ("use([1, 2, 4])", 3),
        ("use([2**i for i in range(4)])", 4),
        ("use(list(range(1, 9, 2)))", 4),
        ("use([0] * 5)", 5),
        ("use({1})", 1),
        ("U = [1, 2]\nuse(U[:1])", 1),
    ],
)
def test_lengths_of_sequences_are_known(code: str, length: int) -> None:
    facts = facts_of(code)
    (value,) = facts.ev.values(argument_of(facts))
    assert isinstance(value, Seq)
    assert len(value.items) == length


def test_graph_functions_are_the_kernel_and_what_it_calls() -> None:
    facts = facts_of(KERNEL + "def idle(x):\n    return pypto.exp(x)\n\ndef kernel_wrapper(x):\n    return x\n")
    assert [f.name for f in facts.kernels] == ["kernel"]
    assert {f.name for f in facts.graph_functions} == {"kernel", "stage", "inner"}
    assert [f.name for f in facts.wrappers] == ["kernel_wrapper"]


@pytest.mark.parametrize(
    "launch",
    [
        "kernel(x, out)",
        "launch = kernel\n    launch(x, out)",
        "functools.partial(kernel, x)(out)",
        "(lambda a: kernel(a, out))(x)",
        "helper(x, out)",
        "apply(kernel, x, out)",
        "[kernel][0](x, out)",
        "{'k': kernel}['k'](x, out)",
        "Holder.run(x, out)",
        "Holder().go(x, out)",
        "factory()(x, out)",
        "cached()(x, out)",
        "globals_of(x)",
    ],
)
def test_a_launch_is_found_through_every_detour(launch: str) -> None:
    facts = facts_of(
        KERNEL
        + f"""
def helper(x, out):
    kernel(x, out)

def apply(f, *args):
    f(*args)

class Holder:
    run = kernel
    def go(self, x, out):
        self.later(x, out)
    def later(self, x, out):
        kernel(x, out)

def factory():
    return kernel

@functools.lru_cache(maxsize=None)
def cached():
    return kernel

def decorate(f):
    def inner_call(*args):
        kernel(*args)
        return f(*args)
    return inner_call

@decorate
def globals_of(x):
    return x

def kernel_wrapper(x):
    out = torch.empty_like(x)
    {launch}
    return out
"""
    )
    wrapper = function(facts, "kernel_wrapper")
    assert facts.launches.may_launch(wrapper)
    assert facts.launches.count(wrapper).most == 1


def test_a_factory_with_a_closure_is_one_kernel() -> None:
    facts = facts_of(
        """
        import functools
        import pypto

        @functools.lru_cache(maxsize=None)
        def _build(dtype):
            @pypto.frontend.jit
            def kernel(x: pypto.Tensor([8], dtype), out: pypto.Tensor([8], dtype)):
                out[:] = pypto.exp(x)
            return kernel

        def op_wrapper(x):
            launch = _build(pypto.DT_FP32)
            launch(x, x)
        """
    )
    assert [(e.function.name, e.literal) for e in facts.jit_entries] == [("kernel", True)]
    assert facts.launches.count(function(facts, "op_wrapper")).most == 1


@pytest.mark.parametrize(
    ("body", "least", "most"),
    [
        ("kernel(x, o)", 1, 1),
        ("pass", 0, 0),
        ("kernel(x, o); kernel(x, o)", 2, 2),
        ("if a:\n        kernel(x, o)\n    else:\n        kernel(o, x)", 1, 1),
        ("if a:\n        kernel(x, o)\n        return x\n    kernel(o, x)", 1, 1),
        ("if a:\n        return x\n    kernel(o, x)", 0, 1),
        ("if a:\n        kernel(x, o)\n    kernel(o, x)", 1, 2),
        ("kernel(x, o) if a else kernel(o, x)", 1, 1),
        ("try:\n        kernel(x, o)\n    except E:\n        kernel(o, x)", 1, 2),
        ("try:\n        kernel(x, o)\n    except E:\n        raise", 1, 1),
        ("if x.numel() == 0:\n        return o\n    kernel(o, x)", 1, 1),
        ("if x.shape[0] > 0:\n        kernel(o, x)", 1, 1),
        ("with c:\n        kernel(x, o)", 1, 1),
        ("for i in x:\n        kernel(x, o)", 0, MANY),
        ("while a:\n        kernel(x, o)", 0, MANY),
        ("[kernel(i, o) for i in x]", 0, MANY),
        ("def f():\n        kernel(x, o)\n    f()", 1, 1),
        ("def f():\n        kernel(x, o)", 0, 0),
        ("raise E\n    kernel(x, o)", 0, 0),
        ("if False:\n        kernel(x, o)", 0, 0),
        ("match a:\n        case 1:\n            kernel(x, o)\n        case _:\n            kernel(o, x)", 1, 1),
        ("match a:\n        case 1:\n            kernel(x, o)\n        case 2:\n            kernel(o, x)", 0, 1),
    ],
)
def test_launches_are_counted_over_paths(body: str, least: int, most: int) -> None:
    facts = facts_of(KERNEL + f"\ndef k_wrapper(x, o, a):\n    {body}\n")
    count = facts.launches.count(function(facts, "k_wrapper"))
    assert (count.least, count.most) == (least, most)


def test_host_functions_leave_out_self_tests_that_the_product_does_not_use() -> None:
    facts = facts_of(
        KERNEL
        + """
def _make_inputs():
    return 1

def main():
    return used_by_product() + _only_here()

def _only_here():
    return 2

def k_wrapper(x):
    return main_helper(x)

def main_helper(x):
    return _validate(x)

def _validate(x):
    return x

def used_by_product():
    return 1

if __name__ == "__main__":
    main()
    _make_inputs()
"""
    )
    names = {f.name for f in facts.host_functions}
    assert {"k_wrapper", "main_helper", "_validate", "used_by_product"} <= names
    assert not names & {"_make_inputs", "main", "_only_here", "kernel", "stage"}


@pytest.mark.parametrize(
    "code",
    [
        "a = b\nb = a\nuse(a)",
        "def f():\n    return g()\ndef g():\n    return f()\nuse(f())",
        "h = lambda: h()\nuse(h())",
        "class A(A):\n    x = A.x\nuse(A.x)",
        "A.x.y = A.x\nuse(A.x.y)",
        "def f(x):\n    return f(f)\nuse(f(f))",
        "x = [x for x in x]\nuse(x)",
        "use((lambda s: s(s))(lambda s: s(s)))",
        "def d(f):\n    return d\n@d\ndef e():\n    return e\nuse(e())",
    ],
)
def test_circles_end(code: str) -> None:
    facts = facts_of(code)
    assert facts.ev.values(argument_of(facts))
    assert facts.launches.looped(facts.tree.functions) == []


def test_a_name_bound_again_and_again_in_terms_of_itself_is_looked_at_once() -> None:
    again = "".join(f"        if i == {turn}:\n            a = a * a\n" for turn in range(12))
    text = KERNEL.replace(
        "    out[:] = stage(x)\n", f"    a = x\n    for i in pypto.loop(4):\n{again}        use(a)\n    use(a)\n"
    )
    facts = facts_of(text)
    assert dtypes_of(facts, argument_of(facts)) == set()  # it is carried further than anybody looks
    plain = facts_of(KERNEL.replace("    out[:] = stage(x)\n", "    a = x\n    a = a * a\n    use(a)\n"))
    assert dtypes_of(plain, argument_of(plain)) == {"FP32"}
