"""The search for a kernel's results among a golden's tensors finds what a search through every place finds."""

from __future__ import annotations

import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pypto_op.debug.matching import Golden

VALUES = st.sampled_from([0.0, 0.0, 0.0, 1.0, -1.0, 2.5, float("inf"), float("nan")])
SIZES = st.integers(1, 5)


@st.composite
def _matrix(draw: st.DrawFn) -> torch.Tensor:
    rows, columns = draw(SIZES), draw(SIZES)
    drawn = draw(st.lists(VALUES, min_size=rows * columns, max_size=rows * columns))
    return torch.tensor(drawn).reshape(rows, columns)


def _same(one: torch.Tensor, two: torch.Tensor, allowed: float) -> bool:
    wide, narrow = one.double(), two.double()
    near = ((wide - narrow).abs() <= allowed + 2e-4 * narrow.abs()) & narrow.isfinite()  # all is within infinity of infinity
    return bool((near | (wide == narrow) | (wide.isnan() & narrow.isnan())).all())


def _squeezed(tensor: torch.Tensor) -> torch.Tensor:
    wide = tensor.squeeze()
    while wide.dim() < 2:
        wide = wide.unsqueeze(-1)
    return wide


def _stands_in(block: torch.Tensor, whole: torch.Tensor) -> bool:
    finite = torch.where(block.isfinite(), block.abs(), torch.zeros_like(block))
    rows, columns = block.shape
    places = ((r, c) for r in range(whole.shape[0] - rows + 1) for c in range(whole.shape[1] - columns + 1))
    return any(_same(whole[r : r + rows, c : c + columns], block, 2e-4 * float(finite.max())) for r, c in places)


@given(st.lists(_matrix(), min_size=1, max_size=4), _matrix())
@example([torch.tensor([[0.0] * 19 + [float("nan")]]).reshape(4, 5)], torch.tensor([[float("nan")]]))
@example([torch.tensor([[0.0]])], torch.tensor([[float("inf")]]))
@settings(max_examples=300, deadline=None)
def test_a_block_is_found_in_each_tensor_that_holds_it_and_in_no_other(tensors: list[torch.Tensor], block: torch.Tensor) -> None:
    golden = Golden(tensors, [{"op": "input", "line": 0, "tensor": at, "inputs": []} for at in range(len(tensors))])
    found = {match.tensor: match.places for match in golden.matches(block, 2e-4)}
    one = _squeezed(block)
    wanted = {
        at for at, tensor in enumerate(tensors) if _stands_in(one, _squeezed(tensor)) or _stands_in(one.T, _squeezed(tensor))
    }
    assert set(found) == wanted
    for at, places in found.items():
        whole = _squeezed(tensors[at])
        for row, column in places:
            parts = [whole[row : row + form.shape[0], column : column + form.shape[1]] for form in (one, one.T)]
            assert any(
                part.shape == form.shape and _stands_in(form, part) for part, form in zip(parts, (one, one.T), strict=True)
            )
