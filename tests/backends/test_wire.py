"""Values arrive as they were sent: bytes, shape, strides, dtype, scalars and nesting."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quickly import examples

from pypto_op.backends import wire
from pypto_op.backends.worker.given import content
from pypto_op.judge.cases.inputs import digest
from pypto_op.tensor_bytes import bytes_in

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16]
DTYPES += [torch.int8, torch.uint8, torch.bool, torch.float8_e4m3fn, torch.float8_e5m2]


def same(a: Any, b: Any) -> bool:
    """Whether two values are the same to the bit."""
    if isinstance(a, torch.Tensor):
        return (
            isinstance(b, torch.Tensor)
            and (a.dtype, a.shape) == (b.dtype, b.shape)
            and (a.numel() == 0 or a.is_contiguous() or a.stride() == b.stride())
            and torch.equal(octets(a), octets(b))
        )
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    return type(a) is type(b) and a == b


def octets(tensor: torch.Tensor) -> torch.Tensor:
    """Return the bytes of a tensor's elements in order."""
    return tensor.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    dtype = draw(st.sampled_from(DTYPES))
    width = torch.empty(0, dtype=dtype).element_size()
    count = math.prod(shape)
    data = draw(st.binary(min_size=count * width, max_size=count * width))
    flat = torch.tensor(list(data), dtype=torch.uint8)
    tensor = (flat % 2).bool() if dtype is torch.bool else flat.view(dtype)
    tensor = tensor.reshape(shape)
    change = draw(st.sampled_from(["none", "transpose", "slice", "expand"]))
    if change == "transpose" and tensor.dim() >= 2:
        return tensor.transpose(0, -1)
    if change == "slice" and tensor.dim() >= 1:
        return tensor[::2]
    if change == "expand":
        return tensor.unsqueeze(0).expand(3, *tensor.shape)
    return tensor


values = st.recursive(
    st.one_of(tensors(), st.none(), st.booleans(), st.integers(), st.floats()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple)),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(st.lists(values, max_size=4), st.booleans())
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, sent: list[Any], mapped: bool) -> None:
    stem = tmp_path_factory.mktemp("wire") / "values"
    wire.write_values(stem, sent, nonce="n", number=3)
    received, document = wire.read_values(stem, mapped=mapped)
    assert same(sent, received)
    assert (document["nonce"], document["number"]) == ("n", 3)


MAPPED = pytest.mark.parametrize("mapped", [False, True], ids=["read", "mapped"])


@MAPPED
def test_nothing_is_shared(tmp_path: Path, mapped: bool) -> None:
    base = torch.arange(8.0)
    wire.write_values(tmp_path / "v", [base, base[2:], base])
    received, _ = wire.read_values(tmp_path / "v", mapped=mapped)
    received[0].zero_()  # type: ignore[union-attr]
    assert torch.equal(received[1], torch.arange(2.0, 8.0))  # type: ignore[arg-type]
    assert len({value.untyped_storage().data_ptr() for value in received}) == 3  # type: ignore[union-attr]


def test_what_is_mapped_leaves_its_file_alone_and_outlives_it(tmp_path: Path) -> None:
    wire.write_values(tmp_path / "v", [torch.arange(8.0)])
    (received,), _ = wire.read_values(tmp_path / "v", mapped=True)
    (other,), _ = wire.read_values(tmp_path / "v", mapped=True)
    received.zero_()  # type: ignore[union-attr]
    assert same(wire.read_values(tmp_path / "v")[0], [torch.arange(8.0)])
    wire.remove_values(tmp_path / "v")
    assert same([received, other], [torch.zeros(8), torch.arange(8.0)])


@pytest.mark.parametrize("value", [{"a": 1}, "text", object(), torch.ones(2) + 1j, torch.eye(2).to_sparse()])
def test_what_cannot_travel_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(TypeError):
        wire.write_values(tmp_path / "v", [value])


@MAPPED
@pytest.mark.parametrize("damage", ["truncate", "other size", "no list", "no bytes", "not json", "wrong name"])
def test_damage_is_noticed(tmp_path: Path, damage: str, mapped: bool) -> None:
    wire.write_values(tmp_path / "v", [torch.ones(4)])
    document, data = tmp_path / "v.json", tmp_path / "v.safetensors"
    if damage == "truncate":
        data.write_bytes(data.read_bytes()[:-4])
    elif damage == "no bytes":
        data.unlink()
    else:
        old = '{"values": [{"tensor": "t0", "size": [4]}]}'
        assert document.read_text() == old
        new = {
            "other size": old.replace("[4]", "[5]"),
            "no list": '{"values": 3}',
            "not json": "{",
            "wrong name": old.replace("t0", "t1"),
        }
        document.write_text(new[damage])
    with pytest.raises((ValueError, OSError)):
        wire.read_values(tmp_path / "v", mapped=mapped)


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
@pytest.mark.parametrize("kind", ["symbolic", "hard", "pipe"])
def test_an_answer_that_is_a_link_is_refused(tmp_path: Path, suffix: str, kind: str) -> None:
    """It would let a candidate name the judge's own file as its result."""
    wire.write_values(tmp_path / "secret", [torch.ones(4)])
    wire.write_values(tmp_path / "mine", [torch.zeros(4)])
    mine = tmp_path / f"mine{suffix}"
    mine.unlink()
    if kind == "symbolic":
        mine.symlink_to(tmp_path / f"secret{suffix}")
    elif kind == "hard":
        mine.hardlink_to(tmp_path / f"secret{suffix}")
    else:
        os.mkfifo(mine)
    with pytest.raises((ValueError, OSError)):
        wire.read_values(tmp_path / "mine")


def test_a_huge_document_is_refused(tmp_path: Path) -> None:
    wire.write_values(tmp_path / "v", [torch.ones(4)])
    with (tmp_path / "v.json").open("ab") as file:
        file.truncate(17 * 1024 * 1024)
    with pytest.raises(ValueError, match="too many"):
        wire.read_values(tmp_path / "v")


def test_remove(tmp_path: Path) -> None:
    wire.write_values(tmp_path / "v", [torch.ones(4)])
    wire.remove_values(tmp_path / "v")
    wire.remove_values(tmp_path / "v")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool])
def test_one_element_of_a_row_has_bytes(dtype: torch.dtype) -> None:
    """`g[:, t]` of one head: torch calls it contiguous and keeps its stride, with which it cannot be viewed as bytes."""
    one, plain = torch.ones(256).to(dtype)[::128][:1], torch.ones(1).to(dtype)
    assert one.stride() == (128,) and one.is_contiguous()
    assert content(one) == content(plain) and digest([one]) == digest([plain])
    assert bytes_in(torch.arange(6.0).reshape(2, 3).T).numpy().tobytes() == torch.tensor([0.0, 3, 1, 4, 2, 5]).numpy().tobytes()
    assert bytes_in(torch.empty(0, 4)).numel() == 0
