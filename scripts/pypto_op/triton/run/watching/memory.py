"""Where every byte of a call comes from: an input, a kernel, PyTorch's copy of one of these, or the host.

Memory changes rightly in three ways: a launch writes it, PyTorch copies into it, PyTorch fills it with a constant. After
each of these its bytes are kept. What differs from them later was written by the host. A digest of such bytes is noted
when a launch or a copy uses them: the bytes of a constant table are the same in every run, those that the host computed
from the inputs are not (`provenance`).
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

import torch

from pypto_op.triton.run.inputs.packing import address

_WORDS_AT_ONCE = 1 << 24
"""A device lends some 600 MB for as many 64-bit numbers."""
_LONGEST_TABLE = 1 << 20
"""Bytes of a table of addresses."""
_ALL = (1 << 64) - 1
_KEYS = [secrets.randbits(63) for _ in range(2)]
COPIES = "PyTorch's copies"
"""The user of what PyTorch copied, in the place of a kernel's parameter."""


@dataclass
class _Place:
    """The memory behind a tensor."""

    storage: Any  # held, so that its address is not given out twice within a call
    left: torch.Tensor  # its bytes after the last launch, copy or constant
    kernel: torch.Tensor  # per byte: a kernel wrote it, or it is a copy of such a byte
    data: bool = False  # it holds input values, so a launch that leaves it as it is did not write it
    # a digest of what the host wrote, seen while configurations were timed; the launch that was asked for notes it
    pending: str | None = None


class Memory:
    """The memory of one call of forward."""

    def __init__(self, place_of: Callable[[int], str | None] = lambda number: None) -> None:
        """Args: place_of: tells what an address is that the host may write into a table (`Chosen.place_of`)."""
        self._place_of = place_of
        self._places: dict[int, _Place] = {}
        self._used: dict[str, list[str | None]] = {}
        self._trials: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # bytes before and after, of memory first used then

    def begin(self, inputs: Sequence[torch.Tensor], held: Sequence[torch.Tensor], *, follows: bool = False) -> None:
        """Begin another call of forward.

        Memory that something still holds (a model, a global) keeps the bytes that its last launch, copy or constant left, so that
        what the host writes there between calls is seen; but no byte of it counts as a kernel's work of this call.

        Args:
            inputs: the arguments.
            held: what the model holds, of which only floats are data.
            follows: the model was called before, so what it holds may come from that call.
        """
        self._used = {}
        self._trials = {}
        self._places = {place: kept for place, kept in self._places.items() if _is_shared(kept.storage)}
        for kept in self._places.values():
            kept.kernel.zero_()
        for tensor in held:
            known = self._places.get(address(tensor)) if follows else self._keep(tensor)
            if known is not None:
                known.data = tensor.is_floating_point() or tensor.is_complex()
        for tensor in inputs:
            self._keep(tensor).data = True

    def rewritten(self, weights: Iterable[torch.Tensor]) -> None:
        """Take what the judge wrote into weights between two calls, which is nobody's work."""
        for tensor in weights:
            self._keep(tensor).data = True

    def carries(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor lies in memory that holds values of an input or of a kernel."""
        place = self._places.get(address(tensor))
        return place is not None and (place.data or bool(place.kernel.any()))

    def alive(self) -> Collection[int]:
        """Return the addresses of the memory that was used in this call, or is kept from an earlier one."""
        return self._places.keys()

    def shared(self, places: Collection[int]) -> list[Any]:
        """Return the storages at some addresses that something else holds, too."""
        return [
            self._places[place].storage for place in places if place in self._places and _is_shared(self._places[place].storage)
        ]

    def lent(self, tensor: torch.Tensor) -> bool:
        """Whether something outside PyTorch sees the memory of a tensor: NumPy, a bytearray. Of a CPU's memory PyTorch knows."""
        return tensor.device.type == "cpu" and not tensor.untyped_storage().resizable()

    def changed(self, tensor: torch.Tensor) -> bool:
        """Whether memory that was used before has other bytes now than its last launch, copy or constant left."""
        place = self._places.get(address(tensor))
        return place is not None and not torch.equal(bytes_of(tensor), place.left)

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor's memory was used before in this call."""
        return address(tensor) in self._places

    def use(self, user: str, tensor: torch.Tensor) -> None:
        """Note that `user` reads a tensor's memory: with a digest if the host wrote any of it."""
        digest = self._host_wrote(tensor)
        place = self._places[address(tensor)]
        self._used.setdefault(user, []).append(digest or place.pending)
        place.pending = None

    def timed(self, tensors: Sequence[torch.Tensor]) -> None:
        """Look at the memory of a launch before its configurations are timed; these runs write there, as the launch will."""
        for tensor in tensors:
            digest = self._host_wrote(tensor)
            place = self._places[address(tensor)]
            place.pending = digest or place.pending

    @contextlib.contextmanager
    def unnoticed(self, tensors: Sequence[torch.Tensor], opened: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
        """Let what changes memory meanwhile be no one's: what is kept of it is what would be kept without."""
        with opened():
            before = [(tensor, bytes_of(tensor).clone()) for tensor in tensors]
        yield
        with opened():
            for tensor, was in before:
                now, place = bytes_of(tensor).clone(), self._places.get(address(tensor))
                if place is None:
                    first, left = self._trials.get(address(tensor), (was, was))  # of an earlier trial
                    self._trials[address(tensor)] = (first if torch.equal(left, was) else was, now)
                else:
                    place.left = torch.where(now == was, place.left, now)

    def recheck(self, user: str, tensor: torch.Tensor) -> None:
        """Look again, after code of the candidate ran between `use` and the launch (the grid's function)."""
        digest = self._host_wrote(tensor)
        if digest is not None:
            self._used.setdefault(user, []).append(digest)

    def is_data(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor's memory holds values that came from an input, by a copy too."""
        place = self._places.get(address(tensor))
        return place is not None and place.data

    def launched(self, tensors: Sequence[torch.Tensor], stored: Mapping[int, Any] = MappingProxyType({})) -> None:
        """Note what a launch left in its arguments.

        Args:
            tensors: the arguments.
            stored: which bytes it stored to, by address; a store may leave what was there (`relu_` of a copy that has no
                negative element), and on a device nobody sees it.
        """
        for tensor in tensors:
            place = self._places.get(address(tensor)) or self._keep(tensor)
            now = bytes_of(tensor)
            if not place.data or not torch.equal(now, place.left):
                place.kernel.fill_(True)
            elif address(tensor) in stored:
                place.kernel |= torch.from_numpy(stored[address(tensor)])
            place.left = now.clone()

    def copied(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Note that PyTorch copied `source` into `target`, element by element, perhaps to another dtype."""
        origin = self._places.get(address(source))
        place = self._places.get(address(target)) or self._keep(target)
        place.left = bytes_of(target).clone()
        if target.numel() and origin is not None:
            place.data |= origin.data
            # Broadcast: over the shape as `copy_` does, and over the bytes of an element, of which there may be more or fewer.
            _elements(target, place.kernel).copy_(_elements(source, origin.kernel)[..., :1])

    def overwrite(self, user: str, target: torch.Tensor) -> None:
        """Note what the host wrote into memory that `user` is about to write a part of."""
        known = address(target) in self._places
        if known or target.numel() * target.element_size() != target.untyped_storage().nbytes():
            self.recheck(user, target)

    def filled(self, target: torch.Tensor) -> None:
        """Note that PyTorch filled `target` with a constant; memory that nobody used yet is looked at when it is used."""
        place = self._places.get(address(target))
        if place is None:
            return
        place.left = bytes_of(target).clone()
        if target.numel():
            _elements(target, place.kernel).fill_(False)

    def from_kernel(self, tensor: torch.Tensor) -> bool:
        """Whether a kernel wrote each element of a tensor, or of what PyTorch copied it from, and nobody changed it since."""
        if tensor.numel() == 0:
            return True
        place = self._places.get(address(tensor))
        if place is None or not bool(_elements(tensor, place.kernel).all()):
            return False
        return torch.equal(_elements(tensor, bytes_of(tensor)), _elements(tensor, place.left))

    def used(self) -> dict[str, list[str | None]]:
        """Return "kernel.parameter" -> per launch a digest of what the host wrote into that argument; None for nothing."""
        return {user: list(digests) for user, digests in self._used.items()}

    def _host_wrote(self, tensor: torch.Tensor) -> str | None:
        place = self._places.get(address(tensor))
        if place is None:
            self._keep(tensor)
            return self._told(tensor, self._without_trial(tensor))
        now = bytes_of(tensor)
        if torch.equal(now, place.left):
            return None
        changed = now != place.left
        place.left = now.clone()
        place.kernel[changed] = False
        return self._told(tensor, now)

    def _without_trial(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the bytes of memory that nobody used yet; those before a trial, where they are as it left them."""
        data = bytes_of(tensor)
        was, now = self._trials.pop(address(tensor), (data, data))
        return was if torch.equal(data, now) else data

    def _told(self, tensor: torch.Tensor, data: torch.Tensor) -> str:
        """Return a digest of a tensor's memory; an address in it counts as what lies there, not as its number."""
        if tensor.dtype is torch.int64 and data.numel() <= _LONGEST_TABLE and data.numel() % 8 == 0:
            numbers = data.view(torch.int64).tolist()
            words = [self._place_of(number) or number for number in numbers]
            if words != numbers:
                return blake2b(repr(words).encode(), digest_size=12).hexdigest()
        return _digest(data)

    def _keep(self, tensor: torch.Tensor) -> _Place:
        with torch.inference_mode(False):  # what is made in that mode cannot be written to after it
            now = bytes_of(tensor).clone()
            place = _Place(tensor.untyped_storage(), now, torch.zeros_like(now, dtype=torch.bool))
        self._places[address(tensor)] = place
        return place


def _is_shared(storage: Any) -> bool:
    """Whether anything but this module's own record holds a storage."""
    return bool(torch._C._storage_Use_Count(storage._cdata) > 1)


def aliased(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> list[int]:
    """Return the positions of the inputs whose memory some output has."""
    shared = {address(leaf) for leaf in outputs if leaf.numel()}
    return [i for i, tensor in enumerate(inputs) if tensor.numel() and address(tensor) in shared]


def repeated(outputs: Sequence[torch.Tensor]) -> list[int]:
    """Return the positions of outputs that begin at the same element of memory as an earlier one."""
    begins = [address(one) + one.storage_offset() * one.element_size() if one.numel() else 0 for one in outputs]
    return [at for at, begin in enumerate(begins) if begin and begin in begins[:at]]


def content(tensor: torch.Tensor) -> str:
    """Return a hash of a tensor's elements in order, whatever its shape and strides."""
    return _digest(tensor.detach().contiguous().reshape(-1).view(torch.uint8))


def _digest(data: torch.Tensor) -> str:
    """Return a hash of bytes: what lies on a device stays there, since its way to the host takes most of a large case's time."""
    if data.device.type != "cpu":
        return keyed_sums(data)
    return blake2b(data.clone().numpy().data, digest_size=12).hexdigest()  # of a copy: what NumPy sees counts as `lent`


def share_keys(keys: Sequence[int]) -> None:
    """Hash as another process does, whose hashes are compared with those of this one (`replay`); before anything is hashed."""
    _KEYS[:] = keys


def keyed_sums(data: torch.Tensor) -> str:
    """Return a hash of bytes, computed where they lie: two sums of their 32-bit words, each times a number of its place.

    The numbers follow from a key that this process drew, or was given (`share_keys`). Without the key nobody finds bytes of the
    same hash but by luck: two words that differ do so by less than 2^32, so one sum (modulo 2^64) agrees for one key in
    2^32, and both for one in 2^64 (multilinear hashing, Carter and Wegman 1979).
    """
    whole = data.numel() // 4 * 4
    words = (data[:whole].clone() if data.storage_offset() % 4 else data[:whole]).view(torch.int32)
    sums = torch.zeros(2, dtype=torch.int64, device=data.device)
    for start in range(0, len(words), _WORDS_AT_ONCE):
        piece = words[start : start + _WORDS_AT_ONCE].to(torch.int64)
        places = torch.arange(start, start + len(piece), device=data.device)
        sums += torch.stack([(piece * _mixed(places, key)).sum() for key in _KEYS])
    return f"{data.numel():x}.{bytes(data[whole:].tolist()).hex()}." + ".".join(f"{int(s) & _ALL:x}" for s in sums)


def _mixed(places: torch.Tensor, key: int) -> torch.Tensor:
    """Return a number for each place: the finaliser of SplitMix64 (Steele, Lea and Flood 2014) of place and key."""
    mixed = places * _signed(0x9E3779B97F4A7C15) + key
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed = (mixed ^ ((mixed >> shift) & (_ALL >> shift))) * _signed(factor)
    return mixed


def _signed(number: int) -> int:
    """Return 64 bits as the integer that torch holds in them."""
    return number - (1 << 64) if number >> 63 else number


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return the whole storage behind a tensor as bytes, without a copy."""
    return torch.tensor([], dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def _elements(tensor: torch.Tensor, per_byte: torch.Tensor) -> torch.Tensor:
    """Return the entries of a tensor with one entry per byte of its storage: shape of the tensor x bytes of an element."""
    size = tensor.element_size()
    strides = [stride * size for stride in tensor.stride()]
    return per_byte.as_strided([*tensor.shape, size], [*strides, 1], tensor.storage_offset() * size)
