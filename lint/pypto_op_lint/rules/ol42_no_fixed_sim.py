"""OL42: a test does not tie itself to the simulator."""

import libcst as cst

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.examples import TEST
from pypto_op_lint.facts.values import Const
from pypto_op_lint.import_statements import dotted
from pypto_op_lint.rule import TESTS, Invalid, Rule, Valid
from pypto_op_lint.tree import Site

_SIM_MODE = "pypto.RunMode.SIM"
_NAMES = ("run_mode", "mode", "run_modes", "modes")


class NoFixedSim(Rule):
    """The test fixes the run mode to the simulator.

    What it does:
        Reports `run_mode="sim"` (and `pypto.RunMode.SIM`) given to a call or assigned, and an option whose `default=` is
        `"sim"`. A list of modes that holds both is fine.

    Why:
        Such a test stays on the CPU on a machine with a device, and its PASS is taken for the device's.

    Example:
        parser.add_argument("--run_mode", default="sim")

    Use instead:
        parser.add_argument("--run_mode", default="npu")

    Known limits:
        A mode that comes from the environment or the command line is not followed.
    """

    id = "OL42"
    name = "no-fixed-sim"
    severity = Severity.S1
    artifacts = TESTS
    needs = frozenset({"ev"})
    MESSAGE = "the test is tied to the simulator"
    FIX_HINT = "leave the run mode to the runner, or default to npu; on a CPU machine the runner maps it"

    VALID = [
        Valid(TEST, artifact=Artifact.TEST),
        Valid(TEST + '\n# run_mode="sim" is not for here\n', artifact=Artifact.TEST),
        Valid(TEST + '\nMODES = ["sim", "npu"]\nSIMULATED = "similar"\n', artifact=Artifact.TEST),
        Valid(
            TEST + '\nimport argparse\n\nargparse.ArgumentParser().add_argument("--run_mode", choices=["sim", "npu"])\n',
            artifact=Artifact.TEST,
        ),
    ]
    INVALID = [
        Invalid(
            TEST + '\nimport argparse\n\nargparse.ArgumentParser().add_argument("--run_mode", default="sim")\n',
            artifact=Artifact.TEST,
        ),
        Invalid(TEST + '\nrun_mode = "sim"\n', artifact=Artifact.TEST),
        Invalid(TEST.replace("demo_wrapper(x),", "demo_wrapper(x, run_mode='SIM'),"), artifact=Artifact.TEST),
        Invalid(
            TEST.replace("import torch\n", "import pypto\nimport torch\n", 1).replace(
                "demo_wrapper(x),", "demo_wrapper(x, run_mode=pypto.RunMode.SIM),"
            ),
            artifact=Artifact.MODULE_TEST,
            phase=1,
        ),
    ]

    def visit_Arg(self, site: Site) -> None:
        """`run_mode="sim"`, `default="sim"`."""
        node: cst.Arg = site.node  # type: ignore[assignment]
        if node.keyword is not None and node.keyword.value in (*_NAMES, "default") and self._is_sim(node.value):
            self.report(site, f"`{self.code(node)}` ties the test to the simulator")

    def visit_Assign(self, site: Site) -> None:
        """`run_mode = "sim"`."""
        node: cst.Assign = site.node  # type: ignore[assignment]
        names = {dotted(t.target).rpartition(".")[2].casefold() for t in node.targets}
        if names & set(_NAMES) and self._is_sim(node.value):
            self.report(site, f"`{self.code(node)}` ties the test to the simulator")

    def visit_DictElement(self, site: Site) -> None:
        """`{"run_mode": pypto.RunMode.SIM}`."""
        node: cst.DictElement = site.node  # type: ignore[assignment]
        key = self.facts.ev.constant(node.key)
        if key is not None and key.value == "run_mode" and self._is_sim(node.value):
            self.report(site, f"`{self.code(node.value)}` ties the test to the simulator")

    def _is_sim(self, node: cst.BaseExpression) -> bool:
        values = self.facts.ev.values(node)
        constant = [v.value for v in values if isinstance(v, Const)]
        return any(isinstance(v, str) and v.casefold() == "sim" for v in constant) or (_SIM_MODE in self.facts.ev.paths(node))
