"""PX02: the device is chosen when the module is loaded."""

from pypto_op.vocabulary import Severity
from pypto_op_lint.examples import HEAD, impl
from pypto_op_lint.rule import IMPLS, Invalid, Rule, Valid

_SETTERS = {"torch.npu.set_device", "torch_npu.npu.set_device"}
_LINE = 'torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))\n'


class DeviceAtModuleLevel(Rule):
    """The module does not choose its NPU before anything makes a tensor.

    What it does:
        Wants a call of `torch.npu.set_device` at module level, outside the main block.

    Why:
        Tensors made before the device is chosen land on device 0, which another job may use, and the launch then mixes devices.

    Example:
        import torch_npu

        def softmax_wrapper(x): ...

    Use instead:
        import torch_npu

        torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

    Known limits:
        Warns only: a wrapper whose caller has set the device works.
    """

    id = "PX02"
    name = "device-at-module-level"
    severity = Severity.S2
    artifacts = IMPLS
    needs = frozenset({"foreign_calls"})
    MESSAGE = "the module does not call `torch.npu.set_device` at module level"
    FIX_HINT = 'write `torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))` below the imports'

    VALID = [
        Valid(impl()),
        Valid(impl(head=HEAD.replace(_LINE, "DEVICE = 3\nif DEVICE is not None:\n    torch.npu.set_device(DEVICE)\n"))),
        Valid(impl(head=HEAD.replace(_LINE, "from torch.npu import set_device\n\nset_device(0)\n"))),
    ]
    INVALID = [
        Invalid(impl(head=HEAD.replace(_LINE, ""))),
        Invalid(impl(head=HEAD.replace(_LINE, ""), before=f"def _late():\n    {_LINE}")),
        Invalid(impl(head=HEAD.replace(_LINE, "# " + _LINE))),
        Invalid(impl(head=HEAD.replace(_LINE, ""), after=f'if __name__ == "__main__":\n    {_LINE}')),
    ]

    def check_file(self) -> None:
        """Look for the call."""
        for site, _, names in self.facts.foreign_calls:
            if names & _SETTERS and site.function is None and not site.in_main:
                return
        self.report(None)
