"""What a search of a Triton implementation refuses before torch is imported."""

from __future__ import annotations

from pypto_op.errors import InfraError
from pypto_op.triton.bench import gate
from pypto_op.triton.run.setup.project import Project
from pypto_op.triton.run.setup.targets import Place, Target, choose
from pypto_op.tuning.admission import need_budget


def admit(project: Project, target: str | None, seconds: float, trials: int) -> Place:
    """Return where an implementation is to be timed.

    Args:
        target: interpret, cuda, npu, or None for the device that is there.
        trials: the most candidates.

    Raises:
        ContractError: no budget, or no PASS for exactly these bytes on that target.
        InfraError: there is no device; the interpreter's times mean nothing, so it must be asked for by name.
    """
    need_budget(seconds, trials)
    gate.exists(project)
    project.check()
    place = choose(target)
    if place.target is Target.INTERPRET and target != str(Target.INTERPRET):
        raise InfraError("there is no GPU, and the interpreter's times mean nothing", remedy="tune on a machine with a device")
    gate.check(project, str(place.target))
    return place
