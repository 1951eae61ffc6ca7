"""What counts as a look at a tensor's values on the host."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from pypto_op.triton.run.watching.reads import Reads


def _read(look: Callable[[torch.Tensor], object]) -> tuple[list[str], list[torch.Tensor]]:
    """Return which reads of a look are noted, and of which tensors it asks for the address."""
    asked: list[torch.Tensor] = []
    reads = Reads(lambda tensor: True, frozenset({__file__}), asked.append, lambda: False)
    x = torch.arange(4.0)
    with reads:
        look(x)
    return [said.partition(" ")[0] for said in reads.found], asked


def test_the_length_of_a_storage_and_its_place_are_no_values() -> None:
    def look(x: torch.Tensor) -> None:
        storage = x.untyped_storage()
        assert storage.size() == storage.nbytes() == len(storage) == 16
        assert storage.data_ptr() == x.data_ptr()

    found, asked = _read(look)
    assert not found and len(asked) == 2  # whoever has the address may read by it


@pytest.mark.parametrize(
    ("word", "look"),
    [
        ("__iter__", lambda x: bytes(x.untyped_storage())),
        ("__getitem__", lambda x: x.untyped_storage()[1]),
        ("__getitem__", lambda x: torch.tensor(x.untyped_storage())),
        ("tolist", lambda x: x.untyped_storage().tolist()),
        ("clone", lambda x: x.untyped_storage().clone()),
        ("fill_", lambda x: x.untyped_storage().fill_(0)),
        ("__setitem__", lambda x: x.untyped_storage().__setitem__(0, 1)),
        ("_cdata", lambda x: x.untyped_storage()._cdata),
    ],
)
def test_whatever_else_a_storage_is_asked_is_a_read(word: str, look: Callable[[torch.Tensor], object]) -> None:
    assert f"Tensor.untyped_storage().{word}" in _read(look)[0]
