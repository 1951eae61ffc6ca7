"""Reads a log of any size with bounded memory: a short one whole, of a long one the lines that speak of errors.

A device writes gigabytes, most of it the same few lines. So of a long log the lines with a telling word are kept, with their
surroundings; a line that differs from an earlier one in its numbers only is kept three times. Such lines are known by
their shape, which is looked up: words are searched in the first line of each shape, so a gigabyte takes seconds.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from pypto_op import speaking
from pypto_op.diagnose.long_lines import bounded

WHOLE_BYTES = 2 * 1024 * 1024
"""A log up to this size is read whole, since it may be a JSON document; a longer one as a stream."""

SEARCHED_BYTES = 96 * 1024
"""Words up to this size are searched as they stand: a search costs a second of processor time for each 90 kB."""

KEPT_BYTES = 320 * 1024
"""About as much is kept of more words, and of all files together."""

_CHUNK = 1024 * 1024
_LONGEST_LINE = _CHUNK
_BEFORE, _AFTER = 3, 12
"""Lines kept around a telling one: tracebacks and compilers say the cause some lines below."""
_SAME = 3
_MOST_SHAPES = 100_000
_MOST_SHAPE_BYTES = 16 * _CHUNK
_WORDS = """
rror RROR Err ail AIL atal FATAL xception EXCEPTION SIG egmentation bort dumped ncaught bad_alloc emory exceed verflow ndefined
undeclared annot nvalid imeout imed.out times.out INTERNAL.BUG illed No.module No.such not.found ot.aligned llegal busy ccupied
heartbeat conflict -8005 -8020 unset is.used mismatch not.match Traceback not.set TROWEXPAND Algorithm FP8E8M0 PTO_TILE
bnormal nsupported did.not _ARRAY_API
lease must OL48 OL04 PX11 pypto_impl
npu::tile_fwk terminate tolerance #0 Loop Cycle overlap requires timed_out
错误 失败 放弃 超出 超时 达标 段错 无法 内存 已杀死 没有 未找到 不兼容 空间 异常 非法 忙 占用 未定义 未设置
"""
"""Words of lines that may tell something; a dot is a blank."""
TELLING = tuple(word.replace(".", " ") for word in _WORDS.split())
_TELLING = tuple(word.encode() for word in TELLING)
_PLAIN_TELLING = tuple(word for word in _TELLING if word.isascii())
_STRINGS = re.compile(rb"(?:[\t\x20-\x7e]|[\xe4-\xe9][\x80-\xbf]{2}){4,}")
"""Four printable characters or more, Chinese ones of UTF-8 among them."""
_NUMBERS = b"0123456789abcdef"
"""What a line's shape lacks: digits of any base."""
_PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"BZh")
"""How files begin that gzip, zip, xz, zstd and bzip2 wrote."""
_CODES = (b"5070", b"5078", b"1070", b"2070")
"""How the codes of CANN begin that lines hold without a word."""


@dataclass(frozen=True)
class Piece:
    """Lines of a log that follow one another."""

    name: str  # the log's file, "" for a text that was handed over
    line: int  # number of the first line in that file, counted from 1; 0 where lines have no number
    text: str  # the lines


def read_pieces(file: BinaryIO, name: str, budget: int = KEPT_BYTES) -> tuple[list[Piece], list[str]]:
    """Return the pieces of a log that are worth a search, in order, and what a reader must know of it, one line each.

    Args:
        budget: bytes that are kept of a log that is not read whole.
    """
    head = file.read(WHOLE_BYTES + 1)
    if not head:
        return [], [f"{name} is empty: name the file that the run wrote"]
    binary = head.startswith(_PACKED) or _is_binary(head[:65536])
    notes = [f"{name} {_not_text(head)}; its readable words were searched"] if binary else []
    if len(head) <= WHOLE_BYTES:
        piece = Piece(name, 1, _readable(head) if binary else decode(head))
        if not head.endswith(b"\n") and len(head) > 4096:
            notes.append(f"{name} ends in the middle of a line")
        return [piece], notes
    windows = _Windows(name, budget)
    for chunk in _chunks(head, file, name):
        windows.feed(_readable(chunk).encode() if binary else chunk)
    megabytes = windows.size / 1024**2
    notes.append(f"{name} has {megabytes:.0f} MiB; the lines around telling words were searched")
    if not windows.whole_lines:
        notes.append(f"{name} ends in the middle of a line")
    return windows.kept(), notes


def lines_with(file: BinaryIO, name: str, words: tuple[bytes, ...]) -> Iterator[str]:
    """Yield, in order, the lines of a log of any size that hold one of the words."""
    for chunk in _chunks(file.read(_CHUNK), file, name):
        for begin in sorted(_lines_with(chunk, words)):
            yield decode(_line_at(chunk, begin))


def narrowed(piece: Piece, budget: int) -> list[Piece]:
    """Return of a piece with many words the lines that are worth a search, in order."""
    if len(piece.text) <= min(SEARCHED_BYTES, budget):
        return [piece]
    windows = _Windows(piece.name, budget)
    windows.feed(piece.text.encode(errors="replace"))
    return [Piece(part.name, part.line + piece.line - 1, part.text) for part in windows.kept()]


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


def _readable(raw: bytes) -> str:
    """Return the readable words of bytes that are no text, as `strings` does; lines keep their numbers."""
    return decode(b"\n".join(b" ".join(_STRINGS.findall(line)) for line in raw.replace(b"\0", b"").split(b"\n")))


def _not_text(raw: bytes) -> str:
    return "is compressed: unpack it first" if raw.startswith(_PACKED) else "is not text"


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
        self._shapes = _Shapes()
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
            self._keep(Piece(self.name, line, bounded(decode(chunk[begin:end]), TELLING)))
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
        for first in self._shapes.telling(chunk):
            at = chunk.find(b"\n", first) + 1 or len(chunk)
            begin, end = _backward(chunk, first, _BEFORE), self._forward(chunk, at, _AFTER)
            if spans and begin <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
            else:
                spans.append((begin, end))
        return spans

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


class _Shapes:
    """Which lines tell something: those with a word or code of the lists, three of each shape.

    Lines of one shape count as alike. Their numbers may differ, and letters a to f, which could make a word only where the
    rest of the line is the same.
    """

    def __init__(self) -> None:
        self._told: dict[bytes, int] = {}
        self._done: set[bytes] = set()
        self._bytes = 0

    def telling(self, chunk: bytes) -> list[int]:
        """Return where the telling lines of the next chunk begin, in order."""
        shapes = chunk.translate(None, _NUMBERS).split(b"\n")
        asked = set(shapes) - self._done
        coded = _lines_with(chunk, _CODES)
        if not asked and not coded:
            return []
        if len(self._told) + len(self._done) > _MOST_SHAPES or self._bytes > _MOST_SHAPE_BYTES:
            self._told, self._done, self._bytes = {}, set(), 0
        if len(asked) > len(shapes) // 2:  # hardly two lines are alike: to look shapes up would cost more than it saves
            begins = sorted(coded | _lines_with(chunk, _words_for(chunk)))
            return [begin for begin in begins if self._is_new(_line_at(chunk, begin).translate(None, _NUMBERS))]
        lines = self._asked(chunk, shapes, asked, coded)
        self._judge({shape: line for _, shape, line in reversed(lines) if shape not in self._told})
        return [begin for begin, shape, _ in lines if (begin in coded or shape in self._told) and self._is_new(shape)]

    def _is_new(self, shape: bytes) -> bool:
        """Count a telling line; say whether it is one of the first of its shape."""
        times = self._told.get(shape, 0)
        if not times:
            self._bytes += len(shape)
        self._told[shape] = times + 1
        if times >= _SAME - 1:
            self._done.add(shape)
        return times < _SAME

    @staticmethod
    def _asked(chunk: bytes, shapes: list[bytes], asked: set[bytes], coded: set[int]) -> list[tuple[int, bytes, bytes]]:
        """Return begin, shape and text of the lines that are worth a look."""
        found, begin = [], 0
        for shape, line in zip(shapes, chunk.split(b"\n"), strict=True):
            if shape in asked or begin in coded:
                found.append((begin, shape, line))
            begin += len(line) + 1
        return found

    def _judge(self, first: dict[bytes, bytes]) -> None:
        """Look for words in the first line of each new shape."""
        text = b"\n".join(first.values())
        telling = _lines_with(text, _words_for(text))
        begin = 0
        for shape, line in first.items():
            if begin in telling:
                self._told[shape] = 0
            else:
                self._done.add(shape)
                self._bytes += len(shape)
            begin += len(line) + 1


def _words_for(text: bytes) -> tuple[bytes, ...]:
    return _PLAIN_TELLING if text.isascii() else _TELLING


def _line_at(text: bytes, begin: int) -> bytes:
    end = text.find(b"\n", begin)
    return text[begin:] if end < 0 else text[begin:end]


def _lines_with(text: bytes, words: tuple[bytes, ...]) -> set[int]:
    """Return where lines with one of the words begin. A plain search per word is many times faster than one expression."""
    begins: set[int] = set()
    for word in words:
        at = text.find(word)
        while at >= 0:
            begins.add(text.rfind(b"\n", 0, at) + 1)
            at = text.find(word, text.find(b"\n", at) + 1 or len(text))
    return begins


def _backward(chunk: bytes, at: int, lines: int) -> int:
    for _ in range(lines):
        if not at:
            break
        at = chunk.rfind(b"\n", 0, at - 1) + 1
    return at
