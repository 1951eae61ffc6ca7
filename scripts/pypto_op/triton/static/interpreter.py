"""Puts the interpreter together: a machine, and the parts that work on it."""

from __future__ import annotations

from pypto_op.triton.static.calls import Calls
from pypto_op.triton.static.evaluate import Expressions
from pypto_op.triton.static.execute import Statements
from pypto_op.triton.static.following import Following
from pypto_op.triton.static.gradients import Gradients
from pypto_op.triton.static.imports import Imports
from pypto_op.triton.static.machine import Machine
from pypto_op.triton.static.members import Members
from pypto_op.triton.static.policy import StaticPolicy
from pypto_op.triton.static.records import Records
from pypto_op.triton.static.suspects import Suspects
from pypto_op.triton.static.tables import Tables


def new_machine(policy: StaticPolicy, *, on_device: bool = False) -> Machine:
    """Return a machine that has executed nothing yet."""
    machine = Machine(policy, on_device=on_device)
    machine.suspects, machine.following, machine.records = Suspects(machine), Following(machine), Records(machine)
    machine.expressions, machine.statements = Expressions(machine), Statements(machine)
    machine.calls, machine.members, machine.imports = Calls(machine), Members(machine), Imports(machine)
    machine.tables, machine.gradients = Tables(machine), Gradients(machine)
    return machine
