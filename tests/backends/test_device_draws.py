"""Random numbers that are drawn on the device come from its own generator, and leave the CPU's where it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import quickly

from .test_hostshim import run_under_shim

quickly.skip_without("torch")


def test_each_draw_advances_the_generator_of_where_it_is_drawn(tmp_path: Path) -> None:
    printed = run_under_shim(
        tmp_path,
        """
        import torch, torch_npu
        D, X = torch.device("npu:0"), torch.full((4, 5), 0.5, device="npu")
        sent = torch.nn.Linear(2, 2).npu()

        def by_default():
            with torch.device("npu"):
                return torch.randn(3)

        on_device = [
            lambda: torch.rand(3, device="npu:0"), lambda: torch.randn(3, device=D), lambda: torch.randint(0, 99, (3,), device=0),
            lambda: torch.randperm(50, device="npu"), lambda: torch.normal(0.0, 1.0, (3,), device=D), lambda: torch.rand_like(X),
            lambda: torch.randn_like(torch.ones(3), device=D), lambda: torch.normal(X, 1.0), lambda: torch.normal(0.0, X),
            lambda: torch.bernoulli(X), lambda: torch.empty(3, device=D).uniform_(-1, 1), lambda: torch.ones(3).npu().normal_(),
            lambda: torch.ones(3).to(D).exponential_(), lambda: torch.ones(3).to(D, torch.float16).view(3, 1).random_(99),
            lambda: torch.zeros(3, dtype=torch.int32, device=D).uniform_(0, 1000), lambda: torch.rand(3, device=X.device),
            lambda: torch.nn.Linear(2, 2, device=D), lambda: torch.nn.init.xavier_normal_(sent.weight), by_default,
        ]
        on_cpu = [
            lambda: torch.rand(3), lambda: torch.randn(3, device="cpu"), lambda: torch.randint(0, 99, (3,)).npu(),
            lambda: torch.empty(3).uniform_(-1, 1).npu(), lambda: torch.rand_like(X, device="cpu"), lambda: torch.randperm(50),
            lambda: torch.randn(3, device=torch.ones(1).device), lambda: torch.nn.Linear(2, 2).npu(),
            lambda: torch.bernoulli(torch.eye(3)),
        ]

        def moved(draw):
            before = torch.get_rng_state(), torch.npu.get_rng_state()
            draw()
            return [not torch.equal(*two) for two in zip(before, (torch.get_rng_state(), torch.npu.get_rng_state()))]

        print([at for at, draw in enumerate(on_device) if moved(draw) != [False, True]])
        print([at for at, draw in enumerate(on_cpu) if moved(draw) != [True, False]])
        print(moved(lambda: torch.rand(3, device=D, generator=torch.Generator(D).manual_seed(5))))
        """,
    )
    assert printed == "[]\n[]\n[False, False]\n"


def test_each_seed_seeds_what_it_does_on_a_device(tmp_path: Path) -> None:
    printed = run_under_shim(
        tmp_path,
        """
        import torch, torch_npu
        both = lambda: (torch.rand(4).tolist(), torch.rand(4, device="npu").tolist())
        torch.manual_seed(3)
        cpu, device = both()
        assert cpu != device and torch.npu.initial_seed() == 3 == torch.initial_seed()
        torch.manual_seed(3)
        assert both() == (cpu, device)

        for seed_again in (torch.npu.manual_seed, torch.npu.manual_seed_all):
            seed_again(3)
            again = both()
            assert again[1] == device and again[0] != cpu
        torch.npu.manual_seed(2**40 + 1)
        assert torch.npu.initial_seed() == 2**40 + 1 and torch.initial_seed() == 3
        for seed_again in (torch.npu.seed, torch.npu.seed_all, torch.seed):
            seed_again()
            assert both()[1] != device

        kept = torch.npu.get_rng_state(), torch.npu.get_rng_state_all()
        first = both()[1]
        torch.npu.set_rng_state(kept[0])
        assert both()[1] == first
        torch.npu.set_rng_state_all(kept[1])
        assert both()[1] == first
        for place in ({"device_type": "npu"}, {"devices": [0], "device_type": "npu"}, {}):
            with torch.random.fork_rng(**place):
                inside = both()
            assert both() == inside, place
        print("fine")
        """,
    )
    assert printed == "fine\n"


@pytest.mark.parametrize("draw", ["torch.rand(5, device='npu')", "torch.empty(5, device='npu').normal_()"])
def test_a_replayed_graph_draws_on(tmp_path: Path, draw: str) -> None:
    printed = run_under_shim(
        tmp_path,
        f"""
        import torch, torch_npu
        graph, before = torch.npu.NPUGraph(), torch.get_rng_state()
        with torch.npu.graph(graph):
            x = {draw}
        first = x.clone()
        graph.replay()
        print(torch.equal(x, first), torch.equal(before, torch.get_rng_state()))
        """,
    )
    assert printed == "False True\n"


def test_what_has_no_memory_of_its_own_says_where_it_is(tmp_path: Path) -> None:
    printed = run_under_shim(
        tmp_path,
        """
        import torch, torch_npu
        scaled = torch.vmap(lambda row: row * torch.ones(2, device=row.device))(torch.ones(3, 2))
        print(scaled.shape, torch.eye(3).to_sparse().to("npu").device, torch.eye(3, device="npu").to_sparse().npu().device)
        """,
    )
    assert printed == "torch.Size([3, 2]) cpu cpu\n"
