"""What the host hands to a kernel: what depends on the inputs' values is the kernel's to compute, the rest is not.

Each candidate here runs through `SimBackend`, so through the worker's recorder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests import quickly

torch = pytest.importorskip("torch")
quickly.skip_without("pypto")

from pypto_op.backends.base import RunResult  # noqa: E402
from pypto_op.backends.sim import SimBackend  # noqa: E402
from pypto_op.judge.answers.verdict import _moved  # noqa: E402
from pypto_op.vocabulary import Outcome  # noqa: E402
from pypto_op.workspace import OpWorkspace  # noqa: E402

from .conftest import QUICK  # noqa: E402
from .kernels import HEAD, KERNEL  # noqa: E402

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]

SCALED = """
from functools import lru_cache

@lru_cache(maxsize=None)
def build(width, baked=1.0, count=1):
    @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
    def scaled_kernel(
        x: pypto.Tensor([pypto.DYNAMIC, width], pypto.DT_FP32),
        out: pypto.Tensor([pypto.DYNAMIC, width], pypto.DT_FP32),
        scale: float,
        steps: int = 1,
    ):
        pypto.set_vec_tile_shapes(16, 32)
        for i in pypto.loop((x.shape[0] + 15) // 16, name="ROWS", idx_name="i"):
            rows = pypto.min(x.shape[0] - i * 16, 16)
            tile = pypto.view(x, [16, width], [i * 16, 0], valid_shape=[rows, width])
            for step in range(steps * count):
                tile = tile * (scale * baked)
            pypto.assemble(tile, [i * 16, 0], out)

    return scaled_kernel

ELEMENTS = [pypto.Element(pypto.DT_FP32, 2.0), pypto.Element(pypto.DT_FP32, 3.0)]

def chosen(x, out, first, place, element):
    pypto.set_vec_tile_shapes(16, 32)
    for i in pypto.loop((x.shape[0] + 15) // 16, name="ROWS", idx_name="i"):
        rows = pypto.min(x.shape[0] - i * 16, 16)
        state = pypto.tensor([16, 32], pypto.DT_FP32, "state")
        tile = pypto.view(x, [16, 32], [i * 16, 0], valid_shape=[rows, 32])
        if pypto.cond(i < 1 if first else i >= 1):
            both = tile * 2.0, tile * 3.0
            state[:] = pypto.where(pypto.ge(tile, ELEMENTS[element]), both[place], tile)
        else:
            state[:] = tile * 4.0
        pypto.assemble(pypto.view(state, [16, 32], [0, 0], valid_shape=[rows, 32]) * 1.0, [i * 16, 0], out)

@lru_cache(maxsize=None)
def choose(first, place, element=0):
    @pypto.frontend.jit(runtime_options={"run_mode": pypto.RunMode.NPU})
    def choosing_kernel(
        x: pypto.Tensor([pypto.DYNAMIC, 32], pypto.DT_FP32),
        out: pypto.Tensor([pypto.DYNAMIC, 32], pypto.DT_FP32),
    ):
        chosen(x, out, first, place, element)

    return choosing_kernel

"""
X = torch.linspace(-2.0, 3.0, 20 * 32).reshape(20, 32)
LENGTHS = torch.tensor([2, 1, 1], dtype=torch.int32)
SCALE = torch.tensor([0.75])
COUNTED = torch.arange(20 * 32).reshape(20, 32)


def runs(operator: OpWorkspace, source: str, *calls: Sequence[Any]) -> list[RunResult]:
    """Run one candidate on several inputs, each as another case, in one process."""
    operator.impl.write_text(source)
    with SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
        found = [session.run(f"case {i}", call) for i, call in enumerate(calls)]
    assert [run.outcome for run in found] == [Outcome.OK] * len(calls), [run.detail for run in found]
    return found


def wrapper(arguments: str, *lines: str) -> str:
    return HEAD + KERNEL + SCALED + f"def double_wrapper({arguments}):\n    " + "\n    ".join([*lines, "return out\n"])


OUT = "out = torch.empty_like(x)"
PADDED = "out = torch.empty_like(p)"

COMPUTED = {
    "a maximum as an argument": ("x", "build(32)(x, out, x.max().item())", (X,), "0.arguments"),
    "a mean, which goes along with any factor": ("x", "build(32)(x, out, float(x.mean()))", (X,), "0.arguments"),
    "an integer made of a float": ("x", "build(32)(x, out, 1.0, int(x.abs().max()))", (X,), "0.arguments"),
    "a whole number that numpy read": ("x", "build(32, count=int(x.numpy().max()))(x, out, 1.0)", (X,), "0.kernel"),
    "a number in the builder": ("x", "build(32, x.sum().tolist())(x, out, 1.0)", (X,), "0.kernel"),
    "a scale that is not handed on but inverted": ("x, s", "build(32)(x, out, 1.0 / s.item())", (X, SCALE), "0.arguments"),
    "how many kernels run": ("x", "for _ in range(int(x.max())): build(32)(x, out, 1.0)", (X,), "launches"),
    "a shape": (
        "x", "c = torch.zeros(int((x > 0.1).sum()), 32)\n    double_kernel(c, torch.empty_like(c)); build(32)(x, out, 1.0)",
        (X,), "0.shapes",
    ),
    "an order by magnitude": ("x", "double_kernel(x[x[:, 0].abs().argsort()].contiguous(), out)", (X - 0.4,), "0.0"),
    "the largest alone": ("x", "double_kernel(torch.where(x.abs() > x.abs().max() / 2, x, 0.0), out)", (X,), "0.0"),
    "a mask": ("x", "double_kernel((x > 2.9).float(), out)", (X,), "0.0"),
    "which part of a result is returned": (
        "x", "double_kernel(x, out); i = int(x[:, 0].argmax()); out = out[i : i + 1]", (X,), "0.returned",
    ),
    "which input a kernel gets a copy of": (
        "x, y", "double_kernel((x if torch.argmax(torch.stack([x.sum(), y.sum()])) else y).clone(), out)", (X, X + 1.0), "0.0",
    ),
    "whether a kernel gets a copy or zeros": (
        "x", "double_kernel(x.clone() if int(x.argmax()) > 99 else torch.zeros_like(x), out)", (X,), "0.0",
    ),
    "which of two results is returned": (
        "x",
        "p = torch.empty_like(x); double_kernel(x, out); double_kernel(x, p); out = out if x.sum() > 0 else p",
        (X,), "1.returned",
    ),
    "which input a kernel gets": (
        "x, y", "double_kernel(x if torch.argmax(torch.stack([x.sum(), y.sum()])) else y, out)", (X, X + 1.0), "0.memory",
    ),
    "which part of an input a kernel gets": (
        "x", "i = int(x[4:, 0].argmax()) // 15; out = torch.empty(4, 32); double_kernel(x[i : i + 4], out)", (X,), "0.memory",
    ),
    "which part of a result a kernel writes": (
        "x", "p = torch.empty(40, 32); i = int((x > 2.9).any()); double_kernel(x, p[20 * i : 20 * i + 20])\n"
        "    double_kernel(x, p[20 - 20 * i : 40 - 20 * i]); double_kernel(p[:20], out)", (X,), "0.memory",
    ),
    "which part of a kernel's memory a kernel gets": (
        "x", "p = torch.empty(40, 32); double_kernel(x, p[:20]); double_kernel(x, p[20:])\n"
        "    i = int(x.argmin()) // 32; double_kernel(p[i : i + 20], out)", (X,), "2.memory",
    ),
    "which of two results a kernel gets": (
        "x", "p, q = torch.empty_like(x), torch.empty_like(x); double_kernel(x, p); double_kernel(p, q)\n"
        "    double_kernel((p, q)[int(x.argmin()) // 600], out)", (X,), "2.memory",
    ),
    "in which steps a branch is taken": ("x", "choose(int(x.argmax()) // 500, 0)(x, out)", (X,), "0.kernel"),
    "which of two tiles a state gets": ("x", "choose(1, int(x.argmax()) // 500)(x, out)", (X,), "0.kernel"),
    "which of two numbers of pypto's is a threshold": ("x", "choose(1, 0, int(x.argmax()) // 500)(x, out)", (X,), "0.kernel"),
    "narrow integers": (
        "x, q", "double_kernel((q.int() * q.int()).float(), out)",
        (X, torch.arange(20 * 32).reshape(20, 32).fmod(11).to(torch.int8)), "0.0",
    ),
    "integers where there is nothing else": (
        "q", "x = q.float()\n    out = torch.empty_like(x)\n    double_kernel(x.cumsum(1), out)",
        (torch.arange(20 * 32, dtype=torch.int32).reshape(20, 32),), "0.0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPUTED)
def test_what_the_host_computes_from_values_is_seen(operator: OpWorkspace, name: str) -> None:
    arguments, line, inputs, key = COMPUTED[name]
    (run,) = runs(operator, wrapper(arguments, OUT, line) if arguments != "q" else wrapper(arguments, line), inputs)
    assert key in run.host_computed, run


def test_a_number_that_only_later_cases_compute_is_seen(operator: OpWorkspace) -> None:
    lines = ("global seen", "s = 2.0 if seen < 2 else x.max().item()", "seen += 1", OUT, "build(32)(x, out, s)")
    source = "seen = 0\n" + wrapper("x", *lines)
    first, second = runs(operator, source, (X,), (X + 1.0,))
    assert not first.host_computed and "0.arguments" in second.host_computed


def test_a_number_that_nobody_was_seen_to_read_is_seen_on_the_next_inputs_of_a_case(operator: OpWorkspace) -> None:
    """`nonzero` tells how many elements are positive by a shape; no value is read."""
    count = "count = 1 + min(len(torch.nonzero(x > 0.5)), 4) if len(x) == 21 else 1"
    operator.impl.write_text(wrapper("x", count, OUT, "build(32, count=count)(x, out, 1.0)"))
    one, two = (torch.linspace(0.1 * top, top, 21 * 32).reshape(21, 32) for top in (0.4, 10.0))
    with SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
        found = [session.run(case, [x]) for case, x in (("first", X), ("case", one), ("case", two))]
    assert [run.outcome for run in found] == [Outcome.OK] * 3, found
    assert found[2].host_computed == ("0.kernel",)


LINES = {
    "which signs a product has": ("x", "made = torch.sign(x * x[:1])", (X - 0.4,)),
    "integers of which a host knows that they are reflected in the middle": (
        "q", "twin = q.min() + q.max() - q; made = torch.minimum(q, twin).float()",
        (torch.arange(20 * 32, dtype=torch.int32).reshape(20, 32).fmod(37),),
    ),
    "integers in a wide range": (
        "q", "twin = q.min() + q.max() - q; made = torch.minimum(q, twin).float()",
        (torch.arange(20 * 32, dtype=torch.int32).reshape(20, 32) * 101,),
    ),
    "8-bit floats but for powers of two": (
        "q", "made = torch.frexp(q.float().abs())[0]", ((X.abs() + 1.0).to(torch.float8_e4m3fn),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_what_a_known_change_would_leave_is_seen_by_the_second_look(operator: OpWorkspace, name: str) -> None:
    arguments, line, inputs = LINES[name]
    operator.impl.write_text(wrapper(arguments, line, "out = torch.empty_like(made)", "double_kernel(made, out)"))
    with SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
        session.others_first = True
        assert session.run("case", inputs).host_computed == ("0.0",)


COUNTING = """double_wrapper.calls = calls = getattr(double_wrapper, "calls", 0) + 1
    table = torch.arange(32.0).expand(16, 32).contiguous() + (calls > {lies_from})
    double_kernel(table, torch.empty_like(table))
    if calls > {raises_after}:
        raise ValueError("once more")"""


@pytest.mark.parametrize(("lies_from", "trial", "calls"), [(9, True, 3), (9, False, 4), (2, True, 4)])
def test_a_call_that_hands_over_what_a_proven_one_did_needs_no_other_values(
    lies_from: int, trial: bool, calls: int, operator: OpWorkspace
) -> None:
    """Two trials of a case are three calls of the wrapper: other values, the first, the second. One more call raises.

    A table that is another after all is `late`: the judge calls the wrapper in a new process then, on other values first.
    """
    for most in (calls, calls - 1):
        lines = COUNTING.format(lies_from=lies_from, raises_after=most)
        operator.impl.write_text(wrapper("x", lines, "out = torch.empty_like(x)", "double_kernel(x, out)"))
        with SimBackend().open(operator.impl, "double_wrapper", operator, limits=QUICK) as session:
            session.others_first = True
            first, second = (session.run("case", [value], trial=trial) for value in (X, X * 0.7))
        assert first.outcome is Outcome.OK and not first.late
        if most == calls:
            assert second.outcome is Outcome.OK and second.late is (lies_from == 2) and not second.host_computed
        else:
            assert second.outcome is Outcome.EXCEPTION or second.unshown


def test_a_wrapper_that_takes_no_other_integers_has_shown_nothing_either(operator: OpWorkspace) -> None:
    narrow = torch.arange(20 * 32).reshape(20, 32).fmod(11).to(torch.int8)
    lines = ("assert int(q[0, 1]) == 1 and int(q[0, 2]) == 2", "made = q.float().cumsum(1)", "out = torch.empty_like(made)")
    (run,) = runs(operator, wrapper("q", *lines, "double_kernel(made, out)"), (narrow,))
    assert run.unshown and {key for key in run.host_made if "@" not in key} == {"0.0"} and not run.host_computed


HONEST = {
    "a constant and shapes": ("x", (OUT, "build(32)(x, out, 1.0 / x.shape[1] ** 0.5, x.shape[0] // 20)"), (X,)),
    "a scalar of the wrapper's": ("x, eps", (OUT, "build(32, 1.0 + eps)(x, out, eps * 2.0)"), (X, 0.5)),
    "a scale in a tensor, handed on": ("x, s", (OUT, "build(32)(x, out, s.item())"), (X, SCALE)),
    "a scale in a tensor, baked": ("x, s", (OUT, "build(32, s.tolist()[0])(x, out, 1.0)"), (X, SCALE)),
    "lengths as loop bounds": ("x, n", (OUT, "build(32, count=max(n.tolist()))(x, out, 1.0, int(n.sum()))"), (X, LENGTHS)),
    "lengths added up": (
        "x, n", (OUT, "starts = torch.cumsum(n, 0)", "build(32)(x, out, 1.0, int(starts[-1]))"), (X, LENGTHS),
    ),
    "a look at the values": (
        "x", ("assert torch.isfinite(x).all()", "x.max().item()", OUT, "build(32)(x, out, 2.0)"), (X,),
    ),
    "a part of a result": (
        "x", ("p = torch.empty(40, 32)", "double_kernel(x, p[20:])", "out = p[20:]"), (X,),
    ),
    "padding with -inf": (
        "x", ("p = torch.full((32, 32), float('-inf'))", "p[:20] = x", PADDED, "double_kernel(p, out)"), (X,),
    ),
    "ones beside it": ("x", ("p = torch.cat([x, torch.ones(4, 32)])", PADDED, "double_kernel(p, out)"), (X,)),
    "padding with any number": (
        "x", ("p = torch.full((32, 32), 7.5)", "p[:20] = x", PADDED, "double_kernel(p, out)"), (X,),
    ),
    "another order by indices": (
        "x, i", (OUT, "double_kernel(x[i.long()], out)"), (X, torch.arange(19, -1, -1, dtype=torch.int32)),
    ),
    "a table that stays": (
        "x", ("double_wrapper.t = getattr(double_wrapper, 't', torch.linspace(0.1, 0.9, 640).reshape(20, 32))", OUT,
              "double_kernel(double_wrapper.t, out)", "double_kernel(x, out)"), (X,),
    ),
    "narrow integers, handed on as floats": (
        "x, q", (OUT, "double_kernel(q.float(), out)"), (X, torch.ones(20, 32, dtype=torch.int8)),
    ),
    "8-bit floats, handed on as wider ones": (
        "q", ("x = q.float().contiguous()", OUT, "double_kernel(x, out)"), (X.to(torch.float8_e4m3fn).reshape(32, 20).T,),
    ),
    "integers in another order": (
        "q", ("x = q.flip(0).float()", OUT, "double_kernel(x, out)"), (torch.arange(640, dtype=torch.int32).reshape(20, 32) - 9,),
    ),
    "signed and unsigned bytes in another order": (
        "q, u", ("out = torch.empty(20, 32)", "double_kernel(q.flip(0).float(), out)", "double_kernel(u.flip(0).float(), out)"),
        (COUNTED.fmod(100).sub(110).to(torch.int8), COUNTED.fmod(90).add(160).to(torch.uint8)),
    ),
    "no values below zero": ("x", ("assert (x >= 0).all()", "p = torch.cat([x, torch.ones(4, 32)])", PADDED,
                                   "double_kernel(p, out)"), (X.abs(),)),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_what_does_not_depend_on_values_may_be_handed_over(operator: OpWorkspace, name: str) -> None:
    arguments, lines, inputs = HONEST[name]
    for run in runs(operator, wrapper(arguments, *lines), inputs, inputs):
        assert (run.host_computed, run.kept_arguments, run.unshown) == ((), (), False)


def test_a_wrapper_that_takes_no_other_values_is_said_to_have_shown_nothing(operator: OpWorkspace) -> None:
    """A wrapper that knows its inputs: nothing tells what it computes, but that it can be told is told."""
    (run,) = runs(operator, wrapper("x", "assert x[0, 0] == -2.0", OUT, "double_kernel(x * 3.0, out)"), (X,))
    assert run.unshown and {key for key in run.host_made if "@" not in key} == {"0.0"} and not run.host_computed


REFUSING = {
    "a constant": ("x", "build(32)(x, out, 0.5)", False),
    "a scale that is handed on": ("x, s", "build(32)(x, out, s.item())", False),
    "lengths": ("x, n", "build(32, count=int(n.max()))(x, out, 1.0)", False),
    "a number of the host's": ("x", "build(32)(x, out, float(x.mean()))", True),
    "a part that the host chose": (
        "x",
        "i = int(x.max() > 3); build(32)(x[i : i + 10], out[:10], 1.0); build(32)(x, out, 1.0)",
        True,
    ),
    "how often is launched": ("x", "for _ in range(int(x.max() - 2)): build(32)(x, out, 1.0)", True),
}


@pytest.mark.parametrize("name", REFUSING)
def test_numbers_of_a_wrapper_that_takes_no_other_values_are_compared_from_seed_to_seed(operator: OpWorkspace, name: str) -> None:
    arguments, line, computed = REFUSING[name]
    source = wrapper(
        arguments, "assert float(x[1, 0] - x[0, 0]) - 5 / 639 * 32 < 1e-5 and x[0, 0] < -0.9 and x[0, 0] % 1 == 0", OUT, line
    )
    more = [tensor for word, tensor in (("s", SCALE), ("n", LENGTHS)) if word in arguments]
    calls = [(X, *more), (X + 1.0, *([SCALE + 0.125] if "s" in arguments else [LENGTHS + 1] if "n" in arguments else []))]
    one, two = (run.host_made for run in runs(operator, source, *calls))
    assert one and two and computed is any(_moved(one.get(key, value), value) for key, value in two.items())


def test_memory_that_an_earlier_call_left_has_a_name_of_its_own(operator: OpWorkspace) -> None:
    """A buffer that is kept is no work of the host's; what a kernel finds in it is what the last call left there."""
    lines = ("global kept", "kept = torch.empty_like(x) if kept is None else kept", OUT, "double_kernel(x, kept)")
    source = "kept = None\n" + wrapper("x", *lines, "double_kernel(kept, out)")
    first, second = runs(operator, source, (X,), (X + 1.0,))
    assert not first.host_computed and not second.host_computed and second.kept_arguments == ("0.1",)
    source = "kept = None\n" + wrapper(
        "x", "global kept", "out = kept = torch.empty_like(x) if kept is None else kept", "double_kernel(x, out)"
    )
    _, second = runs(operator, source, (X,), (X + 1.0,))
    assert second.kept_outputs == (0,) and second.prefilled_outputs == ()


def test_what_a_subclass_of_tuple_says_does_not_count(operator: OpWorkspace) -> None:
    """What it holds does; a named tuple is one."""
    named = "from collections import namedtuple\nPair = namedtuple('Pair', 'out')\n"
    source = HEAD + KERNEL + named + f"def double_wrapper(x):\n    {OUT}\n    double_kernel(x, out)\n    return Pair(out)\n"
    (run,) = runs(operator, source, (X,))
    assert run.structure == "tuple(1)" and torch.equal(run.outputs[0], X * 2.0)
    late = "class Late(tuple):\n    def __iter__(self):\n        return iter((tuple.__getitem__(self, 0).neg_(),))\n"
    (run,) = runs(operator, source.replace(named, late).replace("Pair(out)", "Late((out,))"), (X,))
    assert torch.equal(run.outputs[0], X * 2.0)
