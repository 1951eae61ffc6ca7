"""PX13: every tensor of eval/test_inputs.py is made on the device."""

import re

import libcst as cst

from pypto_op.vocabulary import Artifact, Severity
from pypto_op_lint.facts.values import ANY, Const, Path, Table
from pypto_op_lint.rule import Invalid, Rule, Valid
from pypto_op_lint.tree import Site

_FACTORIES = frozenset(
    {f"torch.{kind}_window" for kind in ("bartlett", "blackman", "hamming", "hann", "kaiser")}
    | {f"torch.{word}" for word in ("arange", "as_tensor", "asarray", "empty", "empty_permuted", "empty_strided", "eye", "full")}
    | {f"torch.{word}" for word in ("linspace", "logspace", "ones", "rand", "randint", "randn", "randperm", "range", "zeros")}
    | {f"torch.{word}" for word in ("scalar_tensor", "sparse_coo_tensor", "sparse_csr_tensor", "tensor", "from_file")}
    | {"torch.tril_indices", "torch.triu_indices"}
)
"""What takes `device` and makes a tensor of nothing. `*_like` and `new_*` follow the tensor that they are given."""

_ON_HOST = frozenset({"torch.from_numpy", "torch.frombuffer", "torch.Tensor"})
_TYPED = re.compile(r"torch\.(?:Float|Double|Half|BFloat16|Byte|Char|Short|Int|Long|Bool)Tensor\Z")
_WITH_SIZE = "torch.normal"

_INPUTS = """\
import os

import torch

PRIMARY_INPUT_ORDER = ["x"]
DEVICE = torch.device(f"npu:{int(os.environ.get('TILE_FWK_DEVICE_ID', '0'))}")


def make_inputs(case):
    torch.manual_seed(case.get("seed", 42))
    return {"x": torch.randn((case["shape"]["N"], 32), dtype=torch.float32, device=DEVICE)}
"""
_MADE = 'torch.randn((case["shape"]["N"], 32), dtype=torch.float32, device=DEVICE)'


def _with(made: str, *, before: str = "") -> str:
    return _INPUTS.replace("\n\ndef make_inputs", f"{before}\n\ndef make_inputs").replace(_MADE, made)


class InputsOnDevice(Rule):
    """An input is made on the host.

    What it does:
        Reports calls in eval/test_inputs.py that make a tensor of nothing (`torch.randn`, `zeros`, `tensor`, `arange`, ...)
        without `device=`, or with the host as device; also through aliases, `from torch import randn` and
        `functools.partial`. `from_numpy` and `torch.Tensor(...)` know no device and are reported always.

    Why:
        A tensor that is moved to the device afterwards leaves a window in which inputs lie on two devices, and on a machine
        without a device nobody sees that one was forgotten.

    Example:
        x = torch.randn(shape, dtype=dtype).to(DEVICE)

    Use instead:
        x = torch.randn(shape, dtype=dtype, device=DEVICE)

    Known limits:
        Keywords that come out of a mapping of unknown keys (`**options`) are taken to hold the device; the judge's own
        process looks again at what is really called.
    """

    id = "PX13"
    name = "inputs-on-device"
    severity = Severity.S1
    artifacts = frozenset({Artifact.TEST_INPUTS})
    needs = frozenset({"ev", "calls"})
    MESSAGE = "an input is not made on the device"
    FIX_HINT = "give device=DEVICE where the tensor is made; .to(...) afterwards does not count"

    VALID = [
        Valid(_INPUTS, artifact=Artifact.TEST_INPUTS),
        Valid(_with("torch.zeros_like(torch.ones(3, device=DEVICE)).new_full((2,), 1.0)"), artifact=Artifact.TEST_INPUTS),
        Valid(_with("_make(3)", before='_make = __import__("functools").partial\n'), artifact=Artifact.TEST_INPUTS),
        Valid(
            _with("_make(torch.rand)", before="\n\ndef _make(draw):\n    return draw((4, 32), device=DEVICE)\n"),
            artifact=Artifact.TEST_INPUTS,
        ),
        Valid(_with("torch.randn((4, 32), **OPTIONS)", before='OPTIONS = {"device": DEVICE}\n'), artifact=Artifact.TEST_INPUTS),
        Valid("import torch\n\nWEIGHT = torch.zeros(3)\n", artifact=Artifact.GOLDEN),
    ]
    INVALID = [
        Invalid(_with(_MADE.replace(", device=DEVICE", "")), artifact=Artifact.TEST_INPUTS, lines=(11,)),
        Invalid(_with(_MADE.replace(", device=DEVICE", "") + ".to(DEVICE)"), artifact=Artifact.TEST_INPUTS),
        Invalid(_with('torch.zeros((4, 32), device="cpu")'), artifact=Artifact.TEST_INPUTS),
        Invalid(_with("torch.zeros((4, 32), device=None)"), artifact=Artifact.TEST_INPUTS),
        Invalid(_with("randn((4, 32))", before="from torch import randn\n"), artifact=Artifact.TEST_INPUTS),
        Invalid(_with("t.zeros((4, 32))", before="t = torch\n"), artifact=Artifact.TEST_INPUTS),
        Invalid(_with("made((4, 32))", before="made = torch.randn\n"), artifact=Artifact.TEST_INPUTS),
        Invalid(
            _with("made((4, 32))", before="import functools\nmade = functools.partial(torch.randn, dtype=torch.float32)\n"),
            artifact=Artifact.TEST_INPUTS,
        ),
        Invalid(_with('getattr(torch, "ones")((4, 32))'), artifact=Artifact.TEST_INPUTS),
        Invalid(_with("list(map(torch.ones, [(4, 32)]))[0]"), artifact=Artifact.TEST_INPUTS),
        Invalid(
            _with("torch.randn((4, 32), **OPTIONS)", before='OPTIONS = {"dtype": torch.float32}\n'),
            artifact=Artifact.TEST_INPUTS,
        ),
        Invalid(_with("torch.from_numpy(array)"), artifact=Artifact.TEST_INPUTS),
        Invalid(_with("torch.FloatTensor([1.0])"), artifact=Artifact.TEST_INPUTS),
        Invalid(_with("torch.normal(0.0, 1.0, (4, 32))"), artifact=Artifact.TEST_INPUTS),
    ]

    def visit_Call(self, site: Site) -> None:
        """A call of a factory, or of something foreign that is handed one."""
        node: cst.Call = site.node  # type: ignore[assignment]
        names = self.facts.callee_names(node)
        if any(name in _ON_HOST or _TYPED.match(name) for name in names):
            self.report(site, f"`{self.code(node)}` makes a tensor on the host, whatever follows")
        elif any(_takes_device(name, node) for name in names):
            if not self._on_device(node) and not self._is_bound(node.func):
                self.report(site, f"`{self.code(node)}` makes a tensor on the host")
        elif names:
            self._handed_on(site, node)

    def _handed_on(self, site: Site, node: cst.Call) -> None:
        """`functools.partial(torch.randn)`, `map(torch.zeros, shapes)`."""
        for argument in node.args:
            values = self.facts.ev.values(argument.value)
            if any(isinstance(v, Path) and v.name in _FACTORIES for v in values) and not self._on_device(node):
                self.report(site, f"`{self.code(node)}` hands on `{self.code(argument.value)}` without a device")

    def _is_bound(self, callee: cst.BaseExpression) -> bool:
        """Whether a callee is a factory that `functools.partial` bound: the binding is looked at where it stands."""
        if isinstance(callee, cst.Call):
            return "functools.partial" in self.facts.callee_names(callee)
        return isinstance(callee, cst.Name) and callee.value in self._partials()

    def _partials(self) -> set[str]:
        found = set()
        for site in self.facts.tree.sites(cst.Assign):
            node: cst.Assign = site.node  # type: ignore[assignment]
            if isinstance(node.value, cst.Call) and "functools.partial" in self.facts.callee_names(node.value):
                found |= {target.target.value for target in node.targets if isinstance(target.target, cst.Name)}
        return found

    def _on_device(self, node: cst.Call) -> bool:
        for argument in node.args:
            if argument.star == "**" and self._may_hold_device(argument.value):
                return True
            if argument.keyword is not None and argument.keyword.value == "device":
                value = self.facts.ev.constant(argument.value)
                return value is None or not (value.value is None or str(value.value).startswith("cpu"))
        return False

    def _may_hold_device(self, options: cst.BaseExpression) -> bool:
        values = self.facts.ev.values(options)
        tables = [v for v in values if isinstance(v, Table)]
        if len(tables) < len(list(values)) or not tables:
            return True
        return any(key is ANY or key == "device" or key == Const.of("device") for table in tables for key in table.entries)


def _takes_device(name: str, node: cst.Call) -> bool:
    if name == _WITH_SIZE:  # without a size it follows its arguments
        return len(node.args) > 2 or any(a.keyword is not None and a.keyword.value == "size" for a in node.args)
    return name in _FACTORIES
