"""Code that was written for the device runs unchanged on a machine without one."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests import program, quickly

from . import kernels

quickly.skip_without("torch")


def run_under_shim(tmp_path: Path, code: str) -> str:
    """Run a script as `python -m pypto_op.backends.hostshim` does, and return what it printed."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    done = program.with_torch("-m", "pypto_op.backends.hostshim", script, "an", "argument")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_every_way_to_name_the_device(tmp_path: Path) -> None:
    printed = run_under_shim(
        tmp_path,
        """
        import numpy, sys, torch, torch_npu
        from torch_npu import npu
        import torch.npu
        D = torch.device("npu:0")
        g = torch.Generator(device=D)
        g.manual_seed(1)
        made = [
            torch.empty(2, device=D), torch.empty(2, device="npu"), torch.randn(2, 3, device="npu:0"),
            torch.tensor([1, 2], device=D), torch.zeros(2, device=D), torch.full((2,), 3.0, device="npu:7"),
            torch.arange(3, device=D), torch.eye(2, device=D), torch.linspace(0, 1, 3, device=D),
            torch.randint(0, 3, (2,), device=D), torch.randn(2, generator=g, device=D),
            torch.empty_like(torch.ones(2), device=D), torch.ones(2).new_empty(3, device=D),
            torch.ones(2).npu(), torch.ones(2).npu(0), torch.ones(2).to(D), torch.ones(2).to("npu:0"),
            torch.ones(2).to(D, torch.float16), torch.ones(2).to(device=D, dtype=torch.int8),
            torch.ones(2).to(torch.device("npu", 3)), torch.randn(2, device=0), torch.ones(2).to(1), torch.ones(2).to(device=0),
            torch.ones(2, device=torch.device(0)), torch.from_numpy(numpy.ones(2)).npu(),
            torch.nn.Linear(2, 2).to(D).weight, torch.nn.Linear(2, 2, device=D).npu().bias,
        ]
        assert all(t.device.type == "cpu" for t in made)
        assert torch.ones(2).to(D, torch.float16).dtype is torch.float16
        assert isinstance(g, torch.Generator) and isinstance(torch.Generator(), torch.Generator)
        assert torch.equal(torch.randn(3, generator=torch.Generator(D).manual_seed(5)),
                           torch.randn(3, generator=torch.Generator().manual_seed(5)))
        with torch.device("npu:0"):
            assert torch.ones(2).device.type == "cpu"
        torch.set_default_device("npu:0")
        assert torch.ones(2).device.type == "cpu"
        print("fine", sys.argv[1:])
        """,
    )
    assert printed == "fine ['an', 'argument']\n"


@pytest.mark.slow
def test_the_functions_of_torch_npu(tmp_path: Path) -> None:
    printed = run_under_shim(
        tmp_path,
        """
        import torch, torch_npu
        torch.npu.set_device(0); torch.npu.set_device("npu:1"); torch.npu.set_device(torch.device("npu:0"))
        torch.npu.synchronize(); torch.npu.empty_cache(); torch.npu.manual_seed_all(3); torch.manual_seed(3)
        torch.npu.set_compile_mode(jit_compile=False)
        torch.npu.config.allow_internal_format = False
        assert torch.npu.is_available() and torch.npu.device_count() == 1 and torch.npu.current_device() == 0
        assert torch.npu.is_host_shim and torch_npu.is_host_shim
        assert torch.npu.current_stream().npu_stream == 0 and torch.npu.memory_allocated() == 0
        begin, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
        with torch.npu.stream(torch.npu.Stream()), torch.npu.device(0):
            begin.record(); end.record()
        begin.synchronize()
        assert begin.elapsed_time(end) >= 0
        x = torch.ones(2)
        assert torch_npu.get_npu_format(x) == 2 and torch_npu.npu_format_cast(x, 2) is x
        assert torch.npu.get_soc_version() == 221
        for call in (lambda: torch.npu.no_such_thing, lambda: torch_npu.npu_no_such_norm, lambda: torch.npu.set_device("x")):
            try:
                call()
            except (AttributeError, RuntimeError) as error:
                print(error)
        """,
    ).splitlines()
    assert printed[0].startswith("torch.npu.no_such_thing does not exist: torch_npu ")
    assert "torch_npu.npu_no_such_norm" in printed[1]
    assert "Invalid device" in printed[2]


@pytest.mark.slow
def test_a_layout_is_a_tag_and_the_numbers_stay(tmp_path: Path) -> None:
    printed = run_under_shim(
        tmp_path,
        """
        import torch, torch_npu
        x = torch.arange(6.0, device="npu:0").reshape(2, 3)
        nz = torch_npu.npu_format_cast(x, torch_npu.Format.FRACTAL_NZ)
        print(torch_npu.get_npu_format(nz), torch_npu.get_npu_format(x), torch.equal(nz, x))
        print(torch_npu.get_npu_format(torch_npu.npu_format_cast(nz, 2)), torch_npu.npu_format_cast(nz, 29) is nz)
        print(nz.device, x.device, torch.empty_like(nz).device, torch.ones(1, device=nz.device).device, nz.cpu().device)
        torch_npu.npu_format_cast_(x, nz)
        print(torch_npu.get_npu_format(x))
        """,
    )
    assert printed == "29 2 True\n2 True\nnpu:0 cpu cpu cpu cpu\n29\n"


def test_whole_numbers_are_drawn_as_a_device_draws_them(tmp_path: Path) -> None:
    printed = run_under_shim(
        tmp_path,
        """
        import torch
        x = torch.empty(1000, dtype=torch.int32, device="npu:0")
        assert x.uniform_(-3, 4) is x
        print(sorted(set(x.tolist())), torch.rand(2, 2, dtype=torch.int8, device="npu:0").tolist(), torch.rand(2).dtype)
        """,
    )
    assert printed == "[-2, -1, 0, 1, 2, 3] [[0, 0], [0, 0]] torch.float32\n"


def test_the_greatest_come_in_order_as_on_a_device(tmp_path: Path) -> None:
    printed = run_under_shim(
        tmp_path,
        """
        import torch, torch_npu
        x = torch.randperm(500).float().npu()
        asked = torch.topk(x, 8, -1, True, False), torch.topk(x, k=8, dim=0, sorted=False), x.topk(8, sorted=False), x.topk(8)
        for found in asked:
            assert found[0].tolist() == list(range(499, 491, -1)), found
        print("fine")
        """,
    )
    assert printed == "fine\n"


def test_operators_that_only_the_device_has(tmp_path: Path) -> None:
    printed = run_under_shim(
        tmp_path,
        """
        import torch, torch_npu
        x = torch.tensor([[1.0, -2.0, 0.5, 127.0], [0.0, 0.0, 0.0, 0.0]])
        steps, scale = torch_npu.npu_dynamic_quant(x)
        print(steps.tolist(), scale.tolist())
        print(torch_npu.npu_quantize(x, torch.tensor([2.0] * 4), torch.tensor([1.0] * 4), torch.qint8, -1, False)[0].tolist())
        product = torch_npu.npu_quant_matmul(steps, steps.t().contiguous(), torch.tensor([2.0, 1.0]), pertoken_scale=scale,
                                             bias=torch.tensor([1, 0], dtype=torch.int32), output_dtype=torch.float32)
        print(product.tolist())
        print(torch_npu.npu_swiglu(torch.tensor([[0.0, 1.0, 3.0, 2.0]])).tolist())
        y, rstd = torch_npu.npu_rms_norm(torch.tensor([[3.0, 4.0]]), torch.tensor([1.0, 2.0]), 0.0)
        print([round(v, 4) for v in y[0].tolist() + rstd[0].tolist()])
        ones, zeros = torch.ones(1, 4), torch.zeros(1, 4)
        turned = [torch_npu.npu_rotary_mul(x[:1], zeros, ones, mode).tolist()[0] for mode in ("half", "interleave")]
        print(torch_npu.npu_rotary_mul(x[:1], ones, zeros).equal(x[:1]), turned)
        """,
    ).splitlines()
    assert printed == [
        "[[1, -2, 0, 127], [0, 0, 0, 0]] [1.0, 0.0]",
        "[3, -3, 2, 127]",
        "[[32270.0, 0.0], [0.0, 0.0]]",
        "[[0.0, 1.4621171951293945]]",
        "[0.8485, 2.2627, 0.2828]",
        "True [[-0.5, -127.0, 1.0, -2.0], [2.0, 1.0, -127.0, 0.5]]",
    ]


@pytest.mark.slow
def test_a_graph_is_replayed_on_what_its_tensors_hold_now(tmp_path: Path) -> None:
    printed = run_under_shim(
        tmp_path,
        """
        import torch
        x = torch.ones(3, device="npu:0")
        g = torch.npu.NPUGraph()
        with torch.npu.graph(g):
            inside = torch.npu.is_current_stream_capturing()
            y = (x * 2).view(3, 1) + 1
        print(inside, torch.npu.is_current_stream_capturing(), y.flatten().tolist())
        x.fill_(5)
        g.replay()
        print(y.flatten().tolist())
        try:
            with torch.npu.graph(g), torch.npu.graph(torch.npu.NPUGraph()):
                pass
        except RuntimeError as error:
            print(error)
        g.replay()
        """,
    )
    assert printed == "True False [3.0, 3.0, 3.0]\n[11.0, 11.0, 11.0]\na graph is being captured already\n"


@pytest.mark.slow
def test_a_compiled_model_runs(tmp_path: Path) -> None:
    printed = run_under_shim(
        tmp_path,
        """
        import torch
        model = torch.compile(lambda x: x * 2, backend="eager")
        print(model(torch.ones(2, device="npu:0")).tolist())
        """,
    )
    assert printed == "[2.0, 2.0]\n"


@pytest.mark.sim
def test_a_graph_keeps_the_launches_of_kernels(tmp_path: Path) -> None:
    code = """
        x = torch.randn(20, 32, device="npu:0")
        g = torch.npu.NPUGraph()
        with torch.npu.graph(g):
            y = double_wrapper(x)
        x.fill_(3.0)
        g.replay()
        print(torch.equal(y, x * 2))
        """
    printed = run_under_shim(tmp_path, kernels.GOOD + textwrap.dedent(code))
    from pypto_op.backends import sim

    assert printed.split()[-1] == str(sim.SimBackend().availability().numeric)


@pytest.mark.parametrize(("text", "said"), [('print(os.environ["TILE_FWK_DEVICE_ID"])', "0\n"), ("print(3)", "3\n")])
def test_the_device_of_a_script_that_asks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str) -> None:
    monkeypatch.delenv("TILE_FWK_DEVICE_ID", raising=False)
    script = tmp_path / "script.py"
    script.write_text(f"import os\n{text}\n")
    done = program.with_torch("-m", "pypto_op.backends.hostshim", script)
    assert done.stdout == said
    assert done.stderr == ("pypto-op: TILE_FWK_DEVICE_ID is not set; it is 0 for script.py\n" if said == "0\n" else "")
    monkeypatch.setenv("TILE_FWK_DEVICE_ID", "5")
    assert program.with_torch("-m", "pypto_op.backends.hostshim", script).stderr == ""


@pytest.mark.sim
def test_declared_dots_stand_for_any_further_axes(tmp_path: Path) -> None:
    declared = kernels.GOOD.replace("pypto.Tensor([pypto.DYNAMIC, 32]", "pypto.Tensor([pypto.DYNAMIC, ...]")
    assert declared != kernels.GOOD
    printed = run_under_shim(
        tmp_path,
        declared
        + textwrap.dedent("""
        print(double_wrapper(torch.ones(20, 32, device="npu:0")).shape)
    """),
    )
    assert printed == "torch.Size([20, 32])\n"


@pytest.mark.sim
def test_a_script_may_hand_over_what_a_device_would_take(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        kernels.GOOD
        + textwrap.dedent("""
        x = torch.randn(32, 20, device="npu:0").t()
        out = torch.empty(32, 20).t()
        double_kernel(x, out)
        print(torch.equal(out, x * 2))
        """)
    )
    done = program.with_torch("-m", "pypto_op.backends.hostshim", script)
    from pypto_op.backends import sim

    assert done.stdout.split()[-1:] == [str(sim.SimBackend().availability().numeric)], done.stderr
    assert "argument 1 is not contiguous" in done.stderr and "argument 2 is not contiguous" in done.stderr


def test_it_does_not_hide_a_real_torch_npu(tmp_path: Path) -> None:
    (tmp_path / "torch_npu").mkdir()
    (tmp_path / "torch_npu" / "__init__.py").write_text("")
    code = "from pypto_op.backends import hostshim; hostshim.install()"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "would hide the installed torch_npu" in done.stderr


@pytest.mark.sim
def test_kernels_run_in_the_simulator(tmp_path: Path) -> None:
    printed = run_under_shim(
        tmp_path,
        kernels.GOOD
        + textwrap.dedent(
            """
            x = torch.randn(20, 32, device="npu:0")
            print(torch.equal(double_wrapper(x), x * 2), os.environ["TILE_FWK_OUTPUT_DIR"])
            """
        ),
    )
    from pypto_op.backends import sim

    right, folder = printed.split()[-2:]
    assert right == str(sim.SimBackend().availability().numeric)
    assert not Path(folder).exists()


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pypto_op.backends.hostshim", str(tmp_path / "missing.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("missing.py: no such file")


def test_usage_without_a_script() -> None:
    done = subprocess.run([sys.executable, "-m", "pypto_op.backends.hostshim"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("usage:")


@pytest.mark.parametrize(
    ("source", "aside"),
    [
        ("import math\n\nimport torch\n\n\ndef f(x):\n    return x.to(x.device) * math.pi\n", True),
        ("from torch.nn import functional\n", True),
        ('"""Return x. Accumulates in float64 for float64 inputs; evaluated once."""\nimport torch\n', True),
        ("import torch\nDEVICE = 'npu:0'\n", False),
        ("import torch\nINPUT = 'input_npu'\n", False),
        ("import torch\nhelper = eval('1')\n", False),
        ("import helper\n", False),
        ("from . import helper\n", False),
        ("import torch\nhelper = __import__('helper')\n", False),
        ("def broken(:\n", False),
    ],
)
def test_only_a_file_that_cannot_name_a_device_runs_without_the_rewriting(source: str, aside: bool) -> None:
    from pypto_op.backends.hostshim import devices

    assert devices.needs_no_host(source) is aside
