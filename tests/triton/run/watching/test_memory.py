"""The hash of bytes that lie on a device; it is computed with torch, so the CPU shows what it can tell."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from pypto_op.triton.run.watching import memory
from pypto_op.triton.run.watching.memory import keyed_sums


def tensor(data: bytes) -> torch.Tensor:
    return torch.tensor(list(data), dtype=torch.uint8)


@given(st.binary(max_size=200), st.integers(0, 7))
def test_equal_bytes_have_equal_hashes_wherever_they_lie(data, offset):
    moved = tensor(bytes(offset) + data)[offset:]
    assert keyed_sums(moved) == keyed_sums(tensor(data))


@given(st.binary(min_size=1, max_size=200), st.integers(0, 199), st.integers(1, 255))
def test_one_byte_makes_another_hash(data, position, change):
    other = bytearray(data)
    other[position % len(data)] ^= change
    assert keyed_sums(tensor(bytes(other))) != keyed_sums(tensor(data))


@given(st.permutations(list(range(40))))
def test_the_order_counts(order):
    plain = list(range(40))
    same = keyed_sums(tensor(bytes(order))) == keyed_sums(tensor(bytes(plain)))
    assert same == (order == plain)


@given(st.binary(min_size=8, max_size=200), st.integers(1, 12))
def test_pieces_add_up(data, words):
    whole = keyed_sums(tensor(data))
    kept, memory._WORDS_AT_ONCE = memory._WORDS_AT_ONCE, words
    try:
        assert keyed_sums(tensor(data)) == whole
    finally:
        memory._WORDS_AT_ONCE = kept


def test_the_length_counts():
    assert len({keyed_sums(tensor(bytes(n))) for n in range(20)}) == 20


def test_another_key_makes_another_hash_and_the_same_key_the_same(monkeypatch):
    monkeypatch.setattr(memory, "_KEYS", [3, 4])
    before = keyed_sums(tensor(b"some bytes"))
    memory.share_keys([1, 2])
    assert keyed_sums(tensor(b"some bytes")) != before
    memory.share_keys([3, 4])
    assert keyed_sums(tensor(b"some bytes")) == before


def noted(host: int, tuned: bool) -> list[str | None]:
    """Return what is noted of an output that the host filled with `host`, at two launches; the first may be timed before."""
    record, out = memory.Memory(), torch.full((8,), host, dtype=torch.int32)
    record.begin([], [])
    if tuned:
        for result in (7, 9):  # two configurations, whose runs write into the argument
            record.timed([out])
            out.fill_(result)
            record.launched([out])
    for result in (9, 11):
        record.use("kernel.out", out)
        out.fill_(result)
        record.launched([out])
    assert record.from_kernel(out)
    return record.used()["kernel.out"]


def test_runs_that_time_a_configuration_leave_no_trace_in_the_record():
    """A first call times configurations on a device, a later one does not; both look alike, and what the host wrote is seen."""
    assert noted(3, tuned=True) == noted(3, tuned=False)
    assert noted(3, tuned=True)[0] != noted(4, tuned=True)[0] and noted(3, tuned=True)[1] is None


def test_outputs_that_begin_in_one_place_are_repeated_and_halves_of_a_buffer_are_not():
    both = torch.zeros(8, 4)
    assert memory.repeated([both, both[:1], both[:, 2:], both.view(-1)[2:], torch.empty(0), torch.empty(0)]) == [1, 3]
    assert memory.repeated([both[:, :2], both[:, 2:], both.clone()]) == []


def test_memory_first_used_in_inference_mode_is_looked_at_after_it():
    kept = memory.Memory()
    with torch.inference_mode():
        output = torch.zeros(4)
        kept.use("kernel.out", output)
        kept.launched([output])
    kept.begin([], [])
    assert not kept.from_kernel(output)
