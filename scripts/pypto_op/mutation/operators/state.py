"""Faults of carried state and of statements: not updated, started wrongly, in the wrong order, left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import libcst as cst

from pypto_op.mutation.operators.base import Edit, Operator, expression, grouped, pass_line
from pypto_op.mutation.program import Site, argument, called, names_in
from pypto_op_lint.constants import number_of


def _writes(node: cst.CSTNode) -> tuple[cst.Assign, str] | None:
    """Return the assignment and the name of `state[:] = value`."""
    match node:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=cst.Name(value=name)))]) as assign]
        ):
            return assign, name
    return None


def stale_state(site: Site) -> Iterable[Edit]:
    """The carried state is not updated."""
    if _writes(site.node):
        yield site.node, pass_line()


def initial_value(site: Site) -> Iterable[Edit]:
    """The carried state starts, or goes on, from something else."""
    if found := _writes(site.node):
        value = found[0].value
        yield value, expression("{v} * 0.0", v=grouped(value))
        yield value, expression("{v} + 1.0", v=grouped(value))
    match site.node:
        case cst.Call() if called(site.node) == "full":
            fill = argument(site.node, 1, "fill_value")
            if fill is not None:
                yield fill.value, expression("{v} + 1.0", v=grouped(fill.value))
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=("zeros" | "ones") as name)) as func) if site.function.on_device:
            yield func, func.with_changes(attr=cst.Name("ones" if name == "zeros" else "zeros"))


def update_order(site: Site) -> Iterable[Edit]:
    """Two neighbouring updates of state are swapped, so one sees the other's new value."""
    if not isinstance(site.node, (cst.IndentedBlock,)):
        return
    body: Sequence[cst.BaseStatement] = site.node.body
    for i in range(len(body) - 1):
        second, first = _writes(body[i + 1]), _writes(body[i])
        if first is not None and second is not None:
            swapped = [*body[:i], body[i + 1], body[i], *body[i + 2 :]]
            yield site.node, site.node.with_changes(body=swapped)


def lost_statement(site: Site) -> Iterable[Edit]:
    """An output is not written, or a step of the computation is left out."""
    match site.node:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call() as call)]) if called(call) == "assemble":
            yield site.node, pass_line()
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value)]) if (
            name in names_in(value)
        ):
            yield site.node, pass_line()


def swapped_outputs(site: Site) -> Iterable[Edit]:
    """Two results change places."""
    match site.node:
        case cst.Return(value=cst.Tuple(elements=[first, second, *rest])):
            swapped = [first.with_changes(value=second.value), second.with_changes(value=first.value), *rest]
            assert isinstance(site.node.value, cst.Tuple)
            yield site.node.value, site.node.value.with_changes(elements=swapped)


def swapped_arguments(site: Site) -> Iterable[Edit]:
    """Two neighbouring arguments of a call within the file change places: keys for values, one output for another."""
    match site.node:
        case cst.Call(func=func, args=args) if _is_ours(func, site):
            for i in range(len(args) - 1):
                one, two = args[i], args[i + 1]
                if one.keyword or two.keyword or number_of(one.value) is not None or one.value.deep_equals(two.value):
                    continue
                swapped = [*args[:i], one.with_changes(value=two.value), two.with_changes(value=one.value), *args[i + 2 :]]
                yield site.node, site.node.with_changes(args=swapped)


def _is_ours(func: cst.BaseExpression, site: Site) -> bool:
    """Whether a call is of a function of this file, or of what one of them built."""
    match func:
        case cst.Name(value=name) if name in site.program.functions:
            return site.program.functions[name].on_device
        case cst.Name(value=name):
            return not site.function.on_device and name in _kernels(site)
        case cst.Call(func=cst.Name(value=name)):
            return not site.function.on_device and name in site.program.functions
    return False


def _kernels(site: Site) -> set[str]:
    """Return the names that hold a built kernel in the function around a site."""
    found = set()
    for line in site.function.node.body.body:
        match line:
            case cst.SimpleStatementLine(
                body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=cst.Call(func=cst.Name(value=f)))]
            ) if f in site.program.functions:
                found.add(name)
    return found


def scaled_argument(site: Site) -> Iterable[Edit]:
    """A number that the host hands to the kernel is off."""
    match site.node:
        case cst.Call(func=func, args=args) if not site.function.on_device and _is_ours(func, site):
            for arg in args:
                match arg.value:
                    case cst.Call(func=cst.Name(value="float")) | cst.BinaryOperation(operator=cst.Divide()):
                        yield arg.value, expression("{v} * 1.01", v=grouped(arg.value))
                        yield arg.value, expression("{v} * 0.0", v=grouped(arg.value))


OPERATORS = (
    Operator("stale_state", "a carried state is not updated", stale_state),
    Operator("initial_value", "a state or accumulator starts from another value", initial_value),
    Operator("update_order", "one state is updated before another that needs the old value", update_order),
    Operator("lost_statement", "an output is not written, or a step is left out", lost_statement),
    Operator("swapped_outputs", "two results change places", swapped_outputs),
    Operator("swapped_arguments", "two neighbouring arguments change places", swapped_arguments),
    Operator("scaled_argument", "a number from the host (scale, eps) is off", scaled_argument),
)
