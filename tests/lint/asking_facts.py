"""Facts of a text, and the argument that a test asks about."""

from __future__ import annotations

from textwrap import dedent

import libcst as cst

from pypto_op_lint.facts import Facts
from pypto_op_lint.parsing import parse_file
from pypto_op_lint.tree import Tree

KERNEL = """
import functools
import pypto
import torch

@pypto.frontend.jit
def kernel(x: pypto.Tensor([8, 8], pypto.DT_FP32), out: pypto.Tensor([8, 8], pypto.DT_FP32)):
    out[:] = stage(x)

def stage(x):
    return inner(x)

def inner(x):
    return pypto.exp(x)

"""


def facts_of(text: str) -> Facts:
    facts = Facts(Tree(parse_file(dedent(text))))
    assert facts.calls is not None
    return facts


def argument_of(facts: Facts, callee: str = "use") -> cst.BaseExpression:
    """The first argument of the last call of `use`."""
    calls = [s.node for s in facts.tree.sites(cst.Call) if getattr(s.node.func, "value", "") == callee]
    return cst.ensure_type(calls[-1], cst.Call).args[0].value
