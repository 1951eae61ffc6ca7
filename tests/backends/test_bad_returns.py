"""What a candidate returns, launches, takes and prints amiss is classified, too; what hangs or crashes: `test_bad_candidates`."""

from __future__ import annotations

import pytest
import torch

from pypto_op.backends import sim
from pypto_op.vocabulary import Outcome
from pypto_op.workspace import OpWorkspace

from . import kernels
from .conftest import IMPATIENT, QUICK, Run, assert_correct
from .kernels import host_only, in_wrapper, instead

pytestmark = [pytest.mark.sim, pytest.mark.usefixtures("numeric")]


# -- what the wrapper returns -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returns", "structure"),
    [
        ("None", "None"),
        ("3.0", "float"),
        ("out.numpy()", "ndarray"),
        ("{'out': out}", "dict"),
        ("(out, None)", "tuple(tensor, None)"),
        ("()", "tuple(0)"),
        ("out.to_sparse()", "tensor"),
        ("out + 1j", "tensor"),
        ("torch._neg_view(out)", "tensor"),
        ("torch.empty(3, device='meta')", "tensor"),
        ("type('Mine', (torch.Tensor,), {})(out)", "tensor"),
        ("[out] * 3 + [[[[[[[[[[out]]]]]]]]]]", "list(tensor, tensor, tensor, list(1))"),
    ],
)
def test_things_that_are_no_tensors(run: Run, returns: str, structure: str) -> None:
    result = run(host_only(returns=returns))
    assert result.outcome is Outcome.BAD_OUTPUT
    assert result.structure.startswith(structure[:20])
    assert result.outputs == []


@pytest.mark.parametrize(
    ("returns", "structure", "shapes"),
    [
        ("(out, out + 1)", "tuple(2)", [(20, 32), (20, 32)]),
        ("[out]", "list(1)", [(20, 32)]),
        ("(out, [out, out])", "tuple(tensor, list(2))", [(20, 32)] * 3),
        ("out[:0]", "tensor", [(0, 32)]),
        ("out.sum()", "tensor", [()]),
        ("out.half()", "tensor", [(20, 32)]),
        ("out.t()", "tensor", [(32, 20)]),
        ("torch.nn.Parameter(out)", "tensor", [(20, 32)]),
    ],
)
def test_structure_is_reported_as_it_is(run: Run, returns: str, structure: str, shapes: list[tuple[int, ...]]) -> None:
    result = run(host_only(returns=returns))
    assert result.outcome is Outcome.OK
    assert result.structure == structure
    assert [tuple(output.shape) for output in result.outputs] == shapes
    assert all(output.is_contiguous() for output in result.outputs)


def test_nan_comes_through(run: Run) -> None:
    result = run(kernels.GOOD.replace("tile * 2.0", "tile * float('nan')"))
    assert result.outcome is Outcome.OK
    assert torch.isnan(result.outputs[0]).all()
    assert result.sentinel_left == (0,), "a computed NaN is not taken for the sentinel"


def test_unwritten_elements_are_counted(run: Run) -> None:
    skipped_tail = kernels.GOOD.replace("(x.shape[0] + 15) // 16", "x.shape[0] // 16")
    result = run(skipped_tail)
    assert result.outcome is Outcome.OK
    assert result.sentinel_left == (4 * 32,)
    assert run(instead("return torch.empty_like(x)")).sentinel_left == (20 * 32,)


def test_every_way_to_get_uninitialised_memory_is_marked(run: Run) -> None:
    ways = ["torch.empty(5, 2)", "torch.empty_like(x)", "x.new_empty(3)", "torch.empty_strided((2, 3), (3, 1))"]
    ways += ["torch.empty(3, dtype=torch.float16)", "torch.empty(3, dtype=torch.bfloat16)"]
    ways += ["torch.empty(3, dtype=torch.float64)", "torch.empty(3, dtype=torch.int64)"]
    ways += ["torch.empty(3, dtype=torch.int32)", "torch.empty(3, dtype=torch.int16)"]
    ways += ["torch.empty(3, dtype=torch.int8)", "torch.empty(3, dtype=torch.uint8)"]
    ways += ["torch.empty(3, dtype=torch.bool)", "torch.empty(3, device='npu:0')"]
    ways += ["torch.empty(3, requires_grad=True).detach()", "x.new_empty_strided((2, 2), (2, 1))"]
    result = run(instead(f"return ({', '.join(ways)})"))
    assert result.outcome is Outcome.OK, result.detail
    assert list(result.sentinel_left) == [output.numel() for output in result.outputs]


def test_values_that_look_like_the_sentinel_are_not_counted(run: Run) -> None:
    result = run(
        instead(
            "out = torch.empty(256, dtype=torch.uint8)",
            "out[:] = torch.arange(256)",
            "flags = torch.empty(8, dtype=torch.bool)",
            "flags[:4] = True",
            "return out, flags",
        )
    )
    assert result.sentinel_left == (0, 4)


def test_mutated_input(run: Run) -> None:
    assert run(host_only("x[3, 3] += 1")).mutated_inputs == (0,)


def test_mutated_input_is_noticed_when_the_wrapper_raises_too(run: Run) -> None:
    result = run(host_only("x.zero_()", "raise ValueError('after the damage')"))
    assert (result.outcome, result.mutated_inputs) == (Outcome.EXCEPTION, (0,))


@pytest.mark.parametrize("returns", ["x", "x[2:]", "(out, x.view(-1))"])
def test_alias_of_an_input(run: Run, returns: str) -> None:
    result = run(host_only(returns=returns))
    assert result.aliased_inputs == (0,)


def test_positions_count_arguments(operator: OpWorkspace, run: Run) -> None:
    operator.impl.write_text(kernels.HEAD + kernels.KERNEL + "def double_wrapper(n, pair, x):\n    x += 1\n    return pair[1]\n")
    inputs = [3, [torch.ones(2), torch.ones(2, 32)], torch.ones(3)]
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator) as session:
        result = session.run("case", inputs)
    assert (result.mutated_inputs, result.aliased_inputs) == ((2,), (1,))
    assert torch.equal(inputs[2], torch.ones(3)), "the judge's own tensor is untouched"


# -- kernels that did not do the work ---------------------------------------------------------------------------


def test_without_a_launch(run: Run) -> None:
    result = run(instead("return x * 2"))
    assert (result.outcome, result.launches, result.outputs_from_kernel) == (Outcome.OK, 0, False)


def test_output_that_no_kernel_got(run: Run) -> None:
    result = run(in_wrapper(returns="x * 2"))
    assert (result.launches, result.outputs_from_kernel) == (1, False)


def test_output_changed_by_the_host_after_the_kernel(run: Run) -> None:
    result = run(in_wrapper("out.copy_(x * 2 + 1)"))
    assert (result.launches, result.outputs_from_kernel) == (1, False)


def test_view_of_a_kernel_output_is_fine(run: Run) -> None:
    assert run(in_wrapper(returns="out.reshape(-1, 64)[:5]")).outputs_from_kernel


def test_output_filled_before_the_kernel(run: Run) -> None:
    source = instead("out = torch.empty_like(x)", "out.copy_(x * 2)", "double_kernel(x, out)", "return out")
    assert run(source).prefilled_outputs == (0,)
    zeros = instead("out = torch.zeros_like(x)", "double_kernel(x, out)", "return out")
    assert run(zeros).prefilled_outputs == ()


def test_a_launch_that_raised_does_not_count(run: Run) -> None:
    source = instead("try:", "    double_kernel(x.t(), x.t())", "except Exception: pass", "return torch.zeros_like(x)")
    assert run(source).launches == 0


# -- inputs and arguments ---------------------------------------------------------------------------------------


def test_non_contiguous_input_arrives_as_such_and_is_refused_by_pypto(run: Run) -> None:
    result = run(kernels.GOOD, x=torch.ones(32, 20).t())
    assert result.outcome is Outcome.EXCEPTION
    assert "not all tensors are contiguous" in result.detail
    copied = in_wrapper(before="assert not x.is_contiguous(); x = x.contiguous()")
    assert run(copied, x=torch.ones(32, 20).t()).outcome is Outcome.OK


def test_dtype_that_the_kernel_was_not_declared_for(run: Run) -> None:
    result = run(kernels.GOOD, x=torch.ones(4, 32, dtype=torch.float16))
    assert result.outcome is Outcome.EXCEPTION
    assert "dtype" in result.detail


def test_detail_names_the_line_and_the_reason(run: Run) -> None:
    result = run(kernels.GOOD.replace("    pypto.set_vec_tile_shapes(16, 32)\n", ""))
    assert result.outcome is Outcome.EXCEPTION
    assert "double_impl.py:" in result.detail
    assert "tile shape not set" in result.detail
    assert "\n" not in result.detail


def test_detail_of_a_failed_pass_names_the_first_cause(run: Run) -> None:
    wide = kernels.GOOD.replace("32]", "2048]").replace("(16, 32)", "(16, 2048)").replace("tile * 2.0", "tile + tile * 2.0")
    result = run(wide, x=torch.ones(16, 2048))
    assert result.outcome is Outcome.EXCEPTION
    assert "exceeds MEM_UB size" in result.detail


# -- words ------------------------------------------------------------------------------------------------------


def test_prints_that_look_like_a_verdict_are_only_words(run: Run) -> None:
    forged = '{"event": "ready"} {"outcome": "ok"} PASS overall: PASS'
    result = run(host_only(f"print({forged!r})", f"print({forged!r}, file=sys.stderr)", "os._exit(0)"))
    assert result.outcome is Outcome.EXITED
    assert_correct(run(host_only(f"print({forged!r}); sys.stdout.flush()")))


def test_output_is_kept_per_case(operator: OpWorkspace, run: Run) -> None:
    operator.impl.write_text(host_only("print('rows', len(x)); print('err', len(x), file=sys.stderr)"))
    with sim.SimBackend().open(operator.impl, "double_wrapper", operator) as session:
        results = [session.run(str(rows), [torch.ones(rows, 32)]) for rows in (3, 5)]
    assert [result.stdout.strip() for result in results] == ["rows 3", "rows 5"]
    assert [result.stderr.strip() for result in results] == ["err 3", "err 5"]


def test_huge_output_is_capped(run: Run) -> None:
    result = run(host_only("print('begin'); print('x' * (50 * 2**20)); print('end')"))
    assert_correct(result)
    assert len(result.stdout) < 3 * QUICK.output_bytes
    assert result.stdout.startswith("begin")
    assert result.stdout.rstrip().endswith("end")
    assert "bytes left out" in result.stdout


def test_endless_output_is_stopped(run: Run) -> None:
    result = run(host_only("while True: print('y' * 1000)"), limits=IMPATIENT)
    assert result.outcome is Outcome.TIMED_OUT
    assert len(result.stdout) < 3 * QUICK.output_bytes


def test_closed_streams(run: Run) -> None:
    assert_correct(run(host_only("sys.stdout.close(); sys.stderr.close()")))
    assert_correct(run(host_only("sys.stdout = sys.stderr = None")))
    assert_correct(run(host_only("os.close(1); os.close(2)")))
