"""Reads a log of any size with bounded memory: a short one whole, of a long one the lines that speak of errors.

A device writes gigabytes, most of it the same few lines. So of a long log the lines with a telling word are kept, with their
surroundings; a line that differs from an earlier one in its digits only is kept three times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from pypto_op import speaking

WHOLE_BYTES = 2 * 1024 * 1024
"""A log up to this size is searched whole; of a longer one about as much is kept."""

_CHUNK = 1024 * 1024
_LONGEST_LINE = 4 * _CHUNK
_BEFORE, _AFTER = 3, 12
"""Lines kept around a telling one: tracebacks and compilers say the cause some lines below."""
_SAME = 3
_MOST_KEYS = 50_000
_WORDS = """
rror RROR Err ail AIL atal FATAL xception EXCEPTION SIG egmentation bort dumped ncaught bad_alloc emory exceed verflow ndefined
undeclared annot nvalid imeout imed.out times.out INTERNAL.BUG illed No.module No.such not.found ot.aligned llegal busy ccupied
heartbeat conflict -8005 -8020 unset is.used mismatch not.match Traceback not.set TROWEXPAND Algorithm FP8E8M0 PTO_TILE
lease must OL48 OL04 PX11 pypto_impl
npu::tile_fwk #0 Loop Cycle overlap requires 5070 5078 1070 2070 timed_out
错误 失败 段错 无法 内存 已杀死 没有 未找到 不兼容 空间 异常 非法 忙 占用 未定义 未设置
"""
"""Words of lines that may tell something; a dot is a blank."""
_TELLING = tuple(word.replace(".", " ").encode() for word in _WORDS.split())
_DIGITS = b"0123456789"


@dataclass(frozen=True)
class Piece:
    """Lines of a log that follow one another.

    Attributes:
        name: the log's file, "" for a text that was handed over.
        line: number of the first line in that file, counted from 1; 0 where lines have no number.
        text: the lines.
    """

    name: str
    line: int
    text: str


def read_pieces(file: BinaryIO, name: str, budget: int = WHOLE_BYTES) -> tuple[list[Piece], list[str]]:
    """Return the pieces of a log that are worth a search, in order, and what a reader must know of it, one line each.

    Args:
        file: the log, read once from where it stands.
        name: what it is called.
        budget: bytes that are kept.
    """
    head = file.read(budget + 1)
    if not head:
        return [], [f"{name} is empty"]
    notes = [f"{name} is not text; its readable words were searched"] if _is_binary(head[:65536]) else []
    if len(head) <= budget:
        if not head.endswith(b"\n") and len(head) > 4096:
            notes.append(f"{name} ends in the middle of a line")
        return [Piece(name, 1, decode(head))], notes
    windows = _Windows(name, budget)
    for chunk in _chunks(head, file, name):
        windows.feed(chunk)
    megabytes = windows.size / 1024**2
    notes.append(f"{name} has {megabytes:.0f} MiB; the lines around telling words were searched")
    if not windows.whole_lines:
        notes.append(f"{name} ends in the middle of a line")
    return windows.kept(), notes


def decode(raw: bytes) -> str:
    """Return what bytes say: UTF-16 with its mark, UTF-8, GB 18030 as Chinese consoles write, else UTF-8 as far as it goes."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) and raw[:400].count(0) * 4 > len(raw[:400]):
        return raw.decode("utf-16", errors="replace")
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            return raw.replace(b"\0", b"").decode(encoding)
        except UnicodeDecodeError:
            continue
    return raw.replace(b"\0", b"").decode("utf-8", errors="replace")


def _is_binary(raw: bytes) -> bool:
    """Whether a tenth of the bytes are control characters; the zeros of UTF-16 are none."""
    plain = raw.replace(b"\0", b"")
    control = len(plain) - len(plain.translate(None, bytes(set(range(32)) - {8, 9, 10, 12, 13, 27}) + b"\x7f"))
    return control > len(plain) // 10 or len(plain) < len(raw) // 3


def _chunks(head: bytes, file: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the log in parts that end with a line, but for lines beyond any sense and the last part."""
    carry, read = b"", 0
    while head or (head := file.read(_CHUNK)):
        read += len(head)
        speaking.now(f"reading {name}, {read // _CHUNK} MiB")
        block, head = carry + head.replace(b"\0", b""), b""
        cut = block.rfind(b"\n") + 1
        if not cut and len(block) < _LONGEST_LINE:
            carry = block
            continue
        yield block[:cut] or block
        carry = block[cut:] if cut else b""
    if carry:
        yield carry


class _Windows:
    """Gathers the telling lines of a long log with their surroundings: the first half of the budget, and the last."""

    def __init__(self, name: str, budget: int) -> None:
        self.name, self.half, self.size, self.whole_lines = name, budget // 2, 0, True
        self._line, self._owed = 1, 0
        self._seen: dict[int, int] = {}
        self._first: list[Piece] = []
        self._last: deque[Piece] = deque()
        self._first_bytes = self._last_bytes = 0

    def feed(self, chunk: bytes) -> None:
        """Look through the next part of the log."""
        begin = 0
        counted, line = 0, self._line
        for begin, end in self._spans(chunk):
            line += chunk.count(b"\n", counted, begin)
            counted = begin
            self._keep(Piece(self.name, line, decode(chunk[begin:end])))
        self._line += chunk.count(b"\n")
        self.size += len(chunk)
        self.whole_lines = chunk.endswith(b"\n")

    def kept(self) -> list[Piece]:
        """Return what was kept, in the log's order."""
        return [*self._first, *self._last]

    def _spans(self, chunk: bytes) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        if self._owed:
            spans.append((0, self._forward(chunk, 0, self._owed)))
        for first in _telling_lines(chunk):
            at = chunk.find(b"\n", first) + 1 or len(chunk)
            if not self._is_new(chunk[first : min(at, first + 400)]):
                continue
            begin, end = _backward(chunk, first, _BEFORE), self._forward(chunk, at, _AFTER)
            if spans and begin <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
            else:
                spans.append((begin, end))
        return spans

    def _is_new(self, line: bytes) -> bool:
        if len(self._seen) >= _MOST_KEYS:
            self._seen.clear()
        key = hash(line.translate(None, _DIGITS))
        times = self._seen.get(key, 0)
        self._seen[key] = times + 1
        return times < _SAME

    def _forward(self, chunk: bytes, at: int, lines: int) -> int:
        """Return where `lines` more lines end; what lies beyond the chunk is owed by the next one."""
        self._owed = 0
        for left in range(lines, 0, -1):
            end = chunk.find(b"\n", at)
            if end < 0:
                self._owed = left
                return len(chunk)
            at = end + 1
        return at

    def _keep(self, piece: Piece) -> None:
        size = len(piece.text)
        if self._first_bytes + size <= self.half:
            self._first.append(piece)
            self._first_bytes += size
            return
        self._first_bytes = self.half + 1  # from here on everything belongs to the end
        cut = piece if size <= self.half else Piece(piece.name, piece.line, piece.text[: self.half])
        self._last.append(cut)
        self._last_bytes += len(cut.text)
        while self._last_bytes > self.half:
            self._last_bytes -= len(self._last.popleft().text)


def _telling_lines(chunk: bytes) -> list[int]:
    """Return where lines with a telling word begin. A plain search per word is many times faster than one expression."""
    begins: set[int] = set()
    for word in _TELLING:
        at = chunk.find(word)
        while at >= 0:
            begins.add(chunk.rfind(b"\n", 0, at) + 1)
            at = chunk.find(word, chunk.find(b"\n", at) + 1 or len(chunk))
    return sorted(begins)


def _backward(chunk: bytes, at: int, lines: int) -> int:
    for _ in range(lines):
        if not at:
            break
        at = chunk.rfind(b"\n", 0, at - 1) + 1
    return at
