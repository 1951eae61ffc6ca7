"""The suite's `raises`: what a sentence of SPEC.md's edge cases says that the wrapper answers with ValueError.

Read are only the forms that cannot be meant otherwise: `S = 0`, `D > 128`, `eps < 0`, "other dtypes", "non-contiguous x".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pypto_op.documents import markdown
from pypto_op.documents.axes import symbols_of
from pypto_op.documents.reading import read_text
from pypto_op.generators.sources import INTEGERS
from pypto_op.generators.walks import product

if TYPE_CHECKING:
    from pypto_op.generators.case_maker import Maker

_MOST_ELEMENTS = 1 << 18
_RAISES = re.compile(r"\bValueError\b")
_COMPARED = re.compile(r"`?\b([A-Za-z_]\w*)\s*(==|=|<=|>=|<|>)\s*(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)`?(?!\s*[-+*/%\w.])")
_DTYPES = re.compile(r"\b(other|unsupported|any other) dtypes?\b", re.I)
_STRIDED = re.compile(r"\bnon-contiguous\b((?:[\s,`]|and|or|input|inputs|tensors?|[A-Za-z_]\w*)*)", re.I)


def refusals(maker: Maker) -> list[dict[str, Any]]:
    """Return what the judge calls the wrapper with to see it raise, an entry per fault; none where SPEC.md names none."""
    found: dict[str, dict[str, Any]] = {}
    base: dict[str, Any] = {"shape": dict(maker.base), "dtype": {"default": maker.sources.spec.supported_dtypes[0]}, "seed": 42}
    for sentence in _sentences(read_text(maker.sources.ws.spec)):
        for told in (*_compared(maker, sentence), *_kinds(maker, sentence)):
            made = {**base, **told, "shape": {**base["shape"], **told.get("shape", {})}}
            found.setdefault(made["id"], made)
    return list(found.values())


def _sentences(text: str) -> Iterator[str]:
    """Yield, of each sentence of the edge cases that speaks of ValueError, what stands before that word."""
    for section in markdown.sections(text):
        if "edge cases" in section.title.casefold():
            for part in re.split(r"[.;](?=\s|$)|\n(?=\s*[-*|])", section.text):
                if said := _RAISES.search(part):
                    yield " ".join(part[: said.start()].split())


def _compared(maker: Maker, sentence: str) -> Iterator[Mapping[str, Any]]:
    """Yield sizes and scalars beyond a bound that the sentence names."""
    sources = maker.sources
    scalars = {port.name: port.dtype for port in sources.interfaces.primary_inputs if not port.shape}
    for name, sign, text in _COMPARED.findall(sentence):
        whole = name in maker.base or scalars.get(name) in INTEGERS
        number, step = (int(float(text)), 1) if whole else (float(text), 1.0)
        value = number + {"<": -step, ">": step}.get(sign, 0)
        if name in maker.base and name not in scalars and value >= 0 and any(name in symbols_of(p) for p in sources.tensors):
            sizes = {**maker.base, name: int(value)}
            if value == 0 or (not sources.legal(sizes) and product(sources, sizes) <= _MOST_ELEMENTS):
                yield {"id": f"raises_{name}_{value}", "fault": "size", "shape": {name: int(value)}}
        elif name in scalars and scalars[name] != "bool":
            yield {"id": re.sub(r"[^\w.+-]", "_", f"raises_{name}_{value}"), "fault": "scalar", "input": name, "value": value}


def _kinds(maker: Maker, sentence: str) -> Iterator[Mapping[str, Any]]:
    """Yield other dtypes and non-contiguous inputs."""
    sources = maker.sources
    if _DTYPES.search(sentence) and sources.floating and "int32" not in sources.spec.supported_dtypes:
        yield {"id": "raises_dtype", "fault": "dtype"}
    if strided := _STRIDED.search(sentence):
        words = set(re.findall(r"[A-Za-z_]\w*", strided[1]))
        names = [port.name for port in sources.tensors]
        named = [name for name in names if name in words] or (names if words & {"input", "inputs", "tensor", "tensors"} else [])
        for name in named or names[: len(names) == 1]:
            yield {"id": f"raises_non_contiguous_{name}", "fault": "non_contiguous", "input": name}
