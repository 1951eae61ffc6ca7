"""Goldens and input makers: right answers, and a clear result when they raise, print, or never end."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests import program

from pypto_op.backends.build_cache import CACHE_ENV
from pypto_op.backends.reference import ReferenceSession
from pypto_op.errors import ContractError, InfraError
from pypto_op.judge.cases.natural import WORST
from pypto_op.vocabulary import Outcome
from pypto_op.workspace import OpWorkspace

from .conftest import QUICK

pytestmark = pytest.mark.sim

IMPATIENT = replace(QUICK, case_seconds=2)
CASE = {"id": "L1_a", "shape": {"T": 3}, "seed": 1}


def golden(operator: OpWorkspace, source: str, inputs: list[object], **more: object):  # type: ignore[no-untyped-def]
    operator.golden.write_text("import torch\n\n\ndef double_golden(x):\n    " + source)
    with ReferenceSession(operator, limits=IMPATIENT) as session:
        return session.golden(inputs, function="double_golden", file=operator.golden, **more)  # type: ignore[arg-type]


def test_inputs_and_golden(operator: OpWorkspace) -> None:
    with ReferenceSession(operator) as session:
        named = session.make_inputs(CASE)
        again = session.make_inputs(CASE)
        result = session.golden([value for _, value in named], function="double_golden", file=operator.golden)
    assert [name for name, _ in named] == ["x"]
    x = named[0][1]
    assert isinstance(x, torch.Tensor)
    assert x.shape == (3, 32)
    assert torch.equal(x, again[0][1])  # type: ignore[arg-type]
    assert result.outcome is Outcome.OK
    assert torch.equal(result.outputs[0], x * 2)
    assert not list(operator.debug_dir.rglob("*")), "nothing is left in _debug/"


def test_a_closed_session_says_so_and_builds_nothing(
    operator: OpWorkspace, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv(CACHE_ENV, str(cache))
    session = ReferenceSession(operator)
    session.close()
    with pytest.raises(InfraError, match="the session is closed"):
        session.make_inputs(CASE)
    assert not list(cache.iterdir())


def test_float64_goes_through_casts_to_float32(operator: OpWorkspace) -> None:
    x = torch.randn(50, dtype=torch.float32).to(torch.bfloat16)
    source = "w = x.float(); v = w.to(torch.float32).to(dtype=torch.float16); return (v / 3 + torch.ones(1)).to(x.dtype)"
    exact = golden(operator, source, [x], float64=True)
    assert exact.outputs[0].dtype is torch.float64
    assert torch.equal(exact.outputs[0], x.double() / 3 + 1)
    native = golden(operator, source, [x])
    assert native.outputs[0].dtype is torch.bfloat16


def test_float64_keeps_integers(operator: OpWorkspace) -> None:
    source = "return (x * 2.5).round().to(torch.int8), x.to(torch.int32)"
    exact = golden(operator, source, [torch.arange(4, dtype=torch.float16)], float64=True)
    assert [output.dtype for output in exact.outputs] == [torch.int8, torch.int32]


@pytest.mark.parametrize(
    ("source", "outcome", "words"),
    [
        ("raise ValueError('no luck')", Outcome.EXCEPTION, "double_golden.py:5: ValueError: no luck"),
        ("raise SystemExit(0)", Outcome.EXITED, "sys.exit"),
        ("import os; os._exit(0)", Outcome.EXITED, "double_golden.py"),
        ("while True: pass", Outcome.TIMED_OUT, "double_golden.py did not end within 2 s"),
        ("return None", Outcome.BAD_OUTPUT, "double_golden of double_golden.py returned None"),
        ("return x, 3", Outcome.BAD_OUTPUT, "returned int where a tensor belongs"),
        ("return (", Outcome.SYNTAX_ERROR, "double_golden.py:5"),
        ("return torch.ones(10 ** 13)", Outcome.OUT_OF_MEMORY, "double_golden.py"),
    ],
)
def test_a_golden_that_fails(operator: OpWorkspace, source: str, outcome: Outcome, words: str) -> None:
    result = golden(operator, source, [torch.ones(2)])
    assert result.outcome is outcome
    assert words in result.detail
    assert result.outputs == []


def test_a_golden_that_prints(operator: OpWorkspace) -> None:
    result = golden(operator, "print('PASS'); return x, [x + 1]", [torch.ones(2)])
    assert (result.outcome, result.stdout, result.structure) == (Outcome.OK, "PASS\n", "tuple(tensor, list(1))")
    assert len(result.outputs) == 2


def test_a_golden_in_another_order_does_not_load_torchs_compiler(operator: OpWorkspace) -> None:
    """Each verdict has such a process, and would pay a second of processor time in it."""
    loaded = golden(
        operator, "import sys; y = x.sum(); return y * 0 + ('torch._dynamo' in sys.modules)", [torch.ones(9)], twin=WORST
    )
    assert (loaded.outcome, loaded.outputs[0].item()) == (Outcome.OK, 0.0), loaded.detail


def test_missing_golden(operator: OpWorkspace) -> None:
    operator.golden.unlink()
    with ReferenceSession(operator) as session:
        result = session.golden([], function="double_golden", file=operator.golden)
    assert result.outcome is Outcome.MISSING_FILE


def test_an_edited_golden_is_loaded_anew(operator: OpWorkspace) -> None:
    with ReferenceSession(operator) as session:
        for factor in (2.0, 3.0):
            operator.golden.write_text(f"def double_golden(x):\n    return x * {factor}\n")
            result = session.golden([torch.ones(1)], function="double_golden", file=operator.golden)
            assert result.outputs[0].item() == factor


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("return {", "raise KeyError('T')\n    return {"), "KeyError"),
        (("return {", "return 3 or {"), "returned int, not a dict"),
        (('["x"]', '["x", "eps"]'), "differ in: eps"),
        (('["x"]', "3"), "must define make_inputs(case) and PRIMARY_INPUT_ORDER"),
        (("import torch", "import torch, no_such_module"), "no_such_module"),
        (("torch.manual_seed", "while True: pass\n    torch.manual_seed"), "did not end within"),
        (("torch.randn(", "{1: torch.randn("), "SyntaxError"),
    ],
)
def test_input_makers_that_fail(operator: OpWorkspace, change: tuple[str, str], words: str) -> None:
    text = operator.test_inputs.read_text()
    assert change[0] in text
    operator.test_inputs.write_text(text.replace(*change, 1))
    with (
        ReferenceSession(operator, limits=IMPATIENT) as session,
        pytest.raises(ContractError) as caught,
    ):
        session.make_inputs(CASE)
    line = caught.value.one_line()
    assert words in line
    assert "eval/test_inputs.py" in line
    assert "L1_a" in line


def test_missing_input_maker(operator: OpWorkspace) -> None:
    operator.test_inputs.unlink()
    message = r"test_inputs.py: is missing.*pypto-op harness new"
    with ReferenceSession(operator) as session, pytest.raises(ContractError, match=message):
        session.make_inputs(CASE)


@pytest.mark.parametrize("source", ["return x.topk(2).indices", "return (x + 1.0).sum(-1)"])
def test_several_ways_in_one_message_answer_as_each_alone(operator: OpWorkspace, source: str) -> None:
    operator.golden.write_text("import torch\n\n\ndef double_golden(x):\n    " + source)
    x, ways = torch.ones(3, 8, dtype=torch.float16), [{"twin": "tiled"}, {"twin": "rounded_operands"}, {"twin": "other_ties"}]
    asked = {"function": "double_golden", "file": operator.golden}
    with ReferenceSession(operator) as session:
        alone = [session.golden([x], **asked, **way).outputs[0] for way in ways]  # type: ignore[arg-type]
        together = [result.outputs[0] for result in session.goldens([x], ways, **asked)]  # type: ignore[arg-type]
        plain = session.golden([x], **asked).outputs[0]  # type: ignore[arg-type]
    assert all(torch.equal(one, two) for one, two in zip(alone, together, strict=True))
    assert torch.equal(together[2], plain) is ("topk" not in source), "equal values have two orders"


GRADIENT = """
import sys, torch
from pypto_op.backends.worker import reference

before = set(sys.modules)
assert [mask.sum() for mask in reference.unread(lambda x: x[:1] * 2, [torch.ones(3)])] == [2]
print(sorted(name for name in set(sys.modules) - before if name.startswith("torch.")))
"""


def test_a_first_gradient_loads_nothing_more_of_torch() -> None:
    """Each verdict asks for one, in a process that was forked with everything loaded."""
    run = program.with_torch("-c", GRADIENT)
    assert run.stdout.strip() == "[]", run.stdout + run.stderr
