"""OL20: a test takes its device from the environment."""

import libcst as cst

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.examples import TEST
from pypto_op_lint.facts.values import Const
from pypto_op_lint.import_statements import dotted
from pypto_op_lint.rule import TESTS, Invalid, Rule, Valid
from pypto_op_lint.testcode import live_sites

_VARIABLE = "TILE_FWK_DEVICE_ID"
_READ = 'int(os.environ.get("TILE_FWK_DEVICE_ID", "0"))'


class DeviceFromEnv(Rule):
    """A test does not read TILE_FWK_DEVICE_ID, or does not set the device to it.

    What it does:
        Looks, in code, for a read of the variable and, in what the test really runs, for a call of `set_device` whose
        argument is no plain number.

    Why:
        Several jobs share a host; a fixed device runs two kernels on one card, and both are timed wrong.

    Example:
        torch.npu.set_device(0)

    Use instead:
        torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

    Known limits:
        It does not prove that the number given to set_device comes from the variable.
    """

    id = "OL20"
    name = "device-from-env"
    severity = Severity.S1
    artifacts = TESTS
    needs = frozenset({"ev", "calls"})
    MESSAGE = "the test does not take its device from TILE_FWK_DEVICE_ID"
    FIX_HINT = 'call torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))'

    VALID = [
        Valid(TEST, artifact=Artifact.TEST),
        Valid(TEST.replace(_READ, 'int(os.getenv("TILE_FWK_DEVICE_ID") or 0)'), artifact=Artifact.TEST),
        Valid(TEST.replace(_READ, 'int(os.environ["TILE_FWK_DEVICE_ID"])'), artifact=Artifact.MODULE_TEST, phase=1),
    ]
    INVALID = [
        Invalid(TEST.replace(_READ, "0"), artifact=Artifact.TEST),
        Invalid(TEST.replace("    torch.npu.set_device(DEVICE_ID)\n", ""), artifact=Artifact.TEST),
        Invalid(TEST.replace("set_device(DEVICE_ID)", "set_device(3)"), artifact=Artifact.TEST),
        Invalid(TEST.replace(_READ, "0") + "\n# TILE_FWK_DEVICE_ID\n", artifact=Artifact.TEST),
    ]

    def check_file(self) -> None:
        """Look for the read and for the call."""
        if not any(self._names_variable(site.node) for site in self.facts.tree.sites(cst.Arg, cst.Index)):
            self.report(None, f"the test never reads {_VARIABLE}")
        calls = [
            site
            for site in live_sites(self.facts)
            if isinstance(site.node, cst.Call) and dotted(site.node.func).rpartition(".")[2] == "set_device"
        ]
        if not calls:
            self.report(None, "the test never calls torch.npu.set_device")
        for site in calls:
            node: cst.Call = site.node  # type: ignore[assignment]
            if node.args and isinstance(node.args[0].value, cst.Integer):
                self.report(site, f"`{self.code(node)}` fixes the device")

    def _names_variable(self, node: cst.CSTNode) -> bool:
        assert isinstance(node, (cst.Arg, cst.Index))
        return any(isinstance(v, Const) and v.value == _VARIABLE for v in self.facts.ev.values(node.value))
