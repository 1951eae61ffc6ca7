"""A module golden stands alone: one that reaches another file is refused by judge and composition, whatever way it takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pypto_op import self_contained
from pypto_op.errors import ContractError
from pypto_op.workspace import OpWorkspace

from .judging import place, verify
from .staged import CASES

pytestmark = pytest.mark.sim

HONEST = "    square = x * x\n    return (square + y,)\n"


@pytest.fixture
def ws(clean_workspace: Path) -> OpWorkspace:
    return place("chain", clean_workspace, cases=CASES)


SEEN = {
    "import": "from chain_golden import chain_golden\n@    return (chain_golden(x, y),)\n",
    "import in the body": "@    import chain_golden as reference\n    return (reference.chain_golden(x, y),)\n",
    "relative import": "@    from . import chain_golden\n    return (chain_golden.chain_golden(x, y),)\n",
    "sibling": "from chain_module1_golden import chain_module1_golden\n@    return (chain_module1_golden(x, y)[0] + y,)\n",
    "impl": "from chain_impl import chain_wrapper\n@    return (chain_wrapper(x, y),)\n",
    "numpy": "import numpy as np\n@    return (x * x + y + np.zeros(1)[0],)\n",
    "importlib": "import importlib\n@    return (importlib.import_module('chain_golden').chain_golden(x, y),)\n",
    "__import__": "@    return (__import__('chain_golden').chain_golden(x, y),)\n",
    "exec of a file": "@    n = {}\n    exec(open('chain_golden.py').read(), n)\n    return (n['chain_golden'](x, y),)\n",
    "pathlib": "import pathlib\n@    return (x * x + y,)\n",
    "sys.modules": "import sys\n@    return (sys.modules['chain_golden'].chain_golden(x, y),)\n",
    "torch.load": "import torch\n@    return (torch.load('golden.pt'),)\n",
    "an alias of torch": "import torch as t\n@    f = t.jit.load\n    return (f('golden.pt')(x, y),)\n",
    "from torch": "from torch import hub\n@    return (hub.load('.', 'chain_golden', source='local')(x, y),)\n",
    "through a module's module": "import random\n@    return (random._os.sep and x * x + y,)\n",
    "frames": "@    g = (lambda: 0).__globals__\n    return (x * x + y,)\n",
    "loader": "@    return (__loader__ and x * x + y,)\n",
}


def golden(head_and_body: str) -> str:
    head, body = head_and_body.split("@")
    return f"{head}\n\ndef chain_module12_golden(x, y):\n{body}"


@pytest.mark.parametrize("way", SEEN)
def test_what_the_source_shows_is_refused_before_anything_runs(ws: OpWorkspace, way: str) -> None:
    ws.module_golden(2).write_text(golden(SEEN[way]))
    for flags in (["--compose"], ["--up-to-module", "2"]):
        told = verify(ws.root, *flags, as_json=False)
        words = " ".join((told.stdout + told.stderr).split())
        assert told.code == 2 and "a module golden stands alone; it " in words, (flags, told)
        assert "chain_module12_golden.py: line " in words and "with torch and math alone" in words


HIDDEN = {
    "a file, by a name put together": "import torch\n@    read = getattr(torch, 'lo' + 'ad')\n    return (read(PATH),)\n",
    "open, by a name put together": (
        "import random\n@    text = getattr(random, '_o' + 's').open(PATH, 0)\n    return (x * x + y + 0 * text,)\n"
    ),
    "a program, its refusal swallowed": (
        "import random\n@    try:\n        getattr(random, '_o' + 's').system('true')\n"
        "    except PermissionError:\n        pass\n    return (x * x + y,)\n"
    ),
    "at import": "import random\nHERE = getattr(random, '_o' + 's').listdir(FOLDER)\n@    return (x * x + y,)\n",
}


@pytest.mark.parametrize("way", HIDDEN)
def test_what_the_source_hides_is_refused_while_it_runs(ws: OpWorkspace, way: str) -> None:
    text = golden(HIDDEN[way]).replace("PATH", repr(str(ws.golden))).replace("FOLDER", repr(str(ws.root)))
    ws.module_golden(2).write_text(text)
    self_contained.check(ws.module_golden(2))  # no reading sees it
    told = verify(ws.root, "--compose", as_json=False)
    assert told.code == 2 and "a module golden stands alone; it tried to" in told.stderr, told
    assert verify(ws.root, "--up-to-module", "2").report["status"] == "ERROR"


def test_a_module_golden_that_computes_alone_is_accepted(ws: OpWorkspace) -> None:
    lines = "from __future__ import annotations\nimport functools\nimport math\nimport itertools\n\nimport torch\n"
    lines += "import torch.nn.functional as F\nfrom torch import Tensor\n"
    helper = "\n\ndef _square(x: Tensor) -> Tensor:\n    return F.relu(x * x) + math.floor(0.5) * torch.zeros_like(x)\n"
    body = "\n\ndef chain_module12_golden(x, y):\n    return (functools.reduce(torch.add, itertools.chain([_square(x)], [y])),)\n"
    ws.module_golden(2).write_text(lines + helper + body)
    told = verify(ws.root, "--compose")
    assert told.code == 0, told
    assert {row["dtype"] for row in json.loads(told.stdout)["triples"]} == {"float32"}
    assert verify(ws.root, "--up-to-module", "2").code == 0


@pytest.mark.parametrize("k", [1, 2])
def test_every_example_stands_alone(k: int) -> None:
    examples = Path(__file__).resolve().parents[2] / "examples" / "ops"
    for name in ("flash_attention_bwd", "gated_delta_rule_bwd"):
        self_contained.check(OpWorkspace.at(examples / name).module_golden(k))


def test_a_golden_too_deep_to_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep_module1_golden.py"
    path.write_text("x = " + "-" * 100_000 + "1\n")
    with pytest.raises(ContractError):
        self_contained.check(path)
