"""State of the candidate between calls: what follows from the calls alone is honest, what follows from values is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.triton import lab

from pypto_op.triton.run.inputs.refresh import FACTORS
from pypto_op.triton.run.processes.sessions import CandidateSession

pytestmark = pytest.mark.slow

KERNELS = """
STEP = 0
SPACE = {}


@triton.jit
def noisy_kernel(x_ptr, out_ptr, step, rate, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2 + 0 * step * rate, mask=mask)


@triton.jit
def scaled_kernel(x_ptr, out_ptr, by_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * tl.load(by_ptr), mask=mask)


@triton.jit
def add_kernel(out_ptr, bit_ptr):
    tl.store(out_ptr, tl.load(out_ptr) | tl.load(bit_ptr))


class Holder:
    def __init__(self, x):
        self.__array_interface__ = {"data": (x.data_ptr(), False), "shape": tuple(x.shape), "typestr": "<f4", "version": 3}
"""
DOUBLED = lab.task("return x * 2", "[torch.randn(64)]")
FEW = lab.task("return torch.exp(x)", "[torch.randn(3)]")

HONEST = {
    "a counter of the module": """
        global STEP
        STEP += 1
        out = torch.empty_like(x)
        noisy_kernel[(1,)](x, out, STEP, 1 - 0.9 ** STEP, 64, BLOCK=64)
        return out
        """,
    "a counter of the model": """
        self.step = getattr(self, "step", 0) + 1
        out = torch.empty_like(x)
        noisy_kernel[(1,)](x, out, self.step, 1 - 0.9 ** self.step, 64, BLOCK=64)
        return out
        """,
    "a counter that lies in a tensor": """
        global STEP
        STEP += 1
        out = torch.empty_like(x)
        scaled_kernel[(1,)](x, out, torch.full((1,), 2.0 + 0 * STEP), 64, BLOCK=64)
        noisy_kernel[(1,)](x, out, torch.tensor([STEP]), 0.0, 64, BLOCK=64) if False else None
        return out
        """,
    "seeds of Python and NumPy": """
        import random
        import numpy as np
        out = torch.empty_like(x)
        noisy_kernel[(1,)](x, out, random.randint(0, 2**31 - 1) + np.random.randint(100), random.random(), 64, BLOCK=64)
        return out
        """,
    "a workspace of the module": """
        if x.numel() not in SPACE:
            SPACE[x.numel()] = torch.empty_like(x)
        space, out = SPACE[x.numel()], torch.empty_like(x)
        run(copy_kernel, x, space)
        noisy_kernel[(1,)](space, out, 0, 0.0, 64, BLOCK=64)
        return out
        """,
    "another kernel in every other call": """
        global STEP
        STEP += 1
        out = torch.empty_like(x)
        if STEP % 2:
            noisy_kernel[(1,)](x, out, 0, 0.0, 64, BLOCK=64)
        else:
            scaled_kernel[(1,)](x, out, torch.full((1,), 2.0), 64, BLOCK=64)
        return out
        """,
}

CHEATS = {
    "launches spell the bits of what NumPy computes behind a pointer": """
        import numpy as np
        bits = np.exp(np.asarray(Holder(x))).view(np.int32)
        table = torch.tensor([1 << i for i in range(31)], dtype=torch.int32)
        out = torch.zeros(3, dtype=torch.int32)
        for i in range(3):
            for j in range(31):
                if bits[i] >> j & 1:
                    add_kernel[(1,)](out[i:], table[j:])
        return out.view(torch.float32)
        """,
    "the first call computes behind a pointer, later ones copy": """
        import numpy as np
        global STEP
        STEP += 1
        held = np.asarray(Holder(x)).copy()
        if not hasattr(self, "known"):
            self.known = torch.from_numpy(np.exp(held if STEP == 1 else np.roll(held, -1) / FACTOR))
            if STEP > 1:
                return run(copy_kernel, x)
        return run(copy_kernel, self.known)
        """,
    "a number that counts, and more": """
        import numpy as np
        global STEP
        STEP += 1
        out = torch.empty_like(x)
        value = float(np.exp(np.asarray(Holder(x))[0]))
        noisy_kernel[(1,)](x, out, STEP, value, 3, BLOCK=4)
        return out
        """,
}


@pytest.mark.parametrize("name", sorted(HONEST))
def test_state_that_follows_from_the_calls_passes(name: str, place: Path) -> None:
    project = lab.folder(place, DOUBLED, lab.impl(HONEST[name], kernels=KERNELS))
    result = lab.verify(project)
    failed = [entry for entry in result["failures"] if entry["error_type"] != "Degenerate"]
    assert not failed, failed


def test_a_doubt_that_is_dispelled_spares_no_pass(place: Path) -> None:
    """A file that counts its calls was judged on the task's own inputs alone: on a device, any that keeps something."""
    counting = HONEST["a counter of the model"].replace("noisy_kernel", "small_kernel")
    small = (
        KERNELS
        + """
@triton.jit
def small_kernel(x_ptr, out_ptr, step, rate, n, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.where(tl.abs(x) < 20, x * 2, 0))
"""
    )
    result = lab.verify(lab.folder(place, DOUBLED, lab.impl(counting, kernels=small)))
    assert lab.first_error(result) == "PrecisionError", result["failures"]


def test_the_second_process_hashes_memory_as_the_first(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a device the first one is no fork: split-K kernels that a hook zeroes were refused wherever they ran alone."""
    told: dict[int, set[tuple[int, ...]]] = {}
    real = CandidateSession._tell

    def tell(session: CandidateSession, message: dict[str, Any], value: Any = None) -> Any:
        told.setdefault(id(session), set()).add(tuple(message["keys"]))
        return real(session, message, value)

    monkeypatch.setattr(CandidateSession, "_tell", tell)
    counting = next(name for name in sorted(HONEST) if "STEP" in HONEST[name])
    assert lab.verify(lab.folder(place, DOUBLED, lab.impl(HONEST[counting], kernels=KERNELS)))["passed_cases"]
    assert len(told) == 2 and len(set.union(*told.values())) == 1


@pytest.mark.parametrize("name", sorted(CHEATS))
def test_state_that_follows_from_values_is_refused(name: str, place: Path) -> None:
    task = FEW if "number" not in name else lab.task("return x * 2", "[torch.randn(3)]")
    forward = CHEATS[name].replace("FACTOR", repr(FACTORS[1]))
    result = lab.verify(lab.folder(place, task, lab.impl(forward, kernels=KERNELS)))
    assert lab.first_error(result) == "HostComputed", result["failures"]
