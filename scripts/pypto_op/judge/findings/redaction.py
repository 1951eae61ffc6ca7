"""The judge's side of the information barrier: what the candidate printed, cleaned of goldens and of input values.

The candidate's process never receives a golden. It can still print its inputs, or open the golden's file and
print that, and a report is read by those who must not see either. So its words pass through here. This is a
scan for the plain ways, not proof against a candidate that encodes what it read; that it opens files of the
operator at all is the linter's and the sandbox's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

VALUES = "<values removed>"
SOURCE = "<golden source removed>"

_MIN_LINE = 12
_MAX_VALUES = 1_000_000
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NUMBER = r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?"
_TENSOR = re.compile(r"\b(?:tensor|array|Parameter)\((?:[^()]|\([^()]*\))*\)?", re.S)
_FLOATS = re.compile(r"\[\s*[-+]?(?:\d+\.\d*|\.\d+|\d+[eE])[^\[\]]*(?:\]|\Z)")
_LONG_LIST = re.compile(rf"\[\s*{_NUMBER}(?:[,\s]+(?:\.\.\.|{_NUMBER})){{8,}}\s*,?\s*\]")
_FLOAT_TOKEN = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d+|\d*\.\d+|\d+\.)(?:[eE][-+]?\d+)?(?![\w.])")


class Redactor:
    """Removes from a text the golden's own lines, dumps of tensors, and numbers that the judge handled.

    Args:
        golden: the golden's file.
        impl: the candidate's file; a line that it holds itself is no secret.
    """

    def __init__(self, golden: Path, impl: Path) -> None:
        secret = set(_lines(golden)) - set(_lines(impl))
        self._secret = {line: _however_spaced(line) for line in sorted(secret, key=len, reverse=True)}

    def clean(self, text: str, secrets: Sequence[torch.Tensor] = ()) -> str:
        """Return `text` without what the barrier keeps back.

        Args:
            text: what the candidate printed or raised.
            secrets: tensors whose values must not pass: inputs and golden outputs of the case.
        """
        text = _CONTROL.sub("", text)
        spaced = " ".join(text.split())
        for line, pattern in self._secret.items():
            if line in spaced:
                text = pattern.sub(SOURCE, text)
        for pattern in (_TENSOR, _FLOATS, _LONG_LIST):
            text = pattern.sub(VALUES, text)
        return _without_numbers(text, secrets)


def _lines(path: Path) -> Iterable[str]:
    try:
        source = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    lines = (" ".join(line.split()) for line in source.splitlines())
    return [line for line in lines if len(line) >= _MIN_LINE]


def _however_spaced(line: str) -> re.Pattern[str]:
    return re.compile(r"\s+".join(re.escape(word) for word in line.split()))


def _without_numbers(text: str, secrets: Sequence[torch.Tensor]) -> str:
    """Replace each decimal fraction of three digits or more that equals a secret value as far as it is printed."""
    found = [m for m in _FLOAT_TOKEN.finditer(text) if sum(c.isdigit() for c in m[0]) >= 3]
    if not found or not secrets:
        return text
    import torch

    parts = [t.detach().reshape(-1)[:_MAX_VALUES].to(torch.float64) for t in secrets if not t.is_complex()]
    known = torch.cat(parts) if parts else torch.empty(0, dtype=torch.float64)
    known = known[torch.isfinite(known)].unique()  # type: ignore[no-untyped-call]
    if not known.numel():
        return text
    values = torch.tensor([float(m[0]) for m in found], dtype=torch.float64)
    slack = torch.tensor([_half_unit(m[0]) for m in found], dtype=torch.float64)
    above = torch.searchsorted(known, values).clamp(max=known.numel() - 1)
    gap = torch.minimum((known[above] - values).abs(), (known[(above - 1).clamp(min=0)] - values).abs())
    for match, secret in reversed(list(zip(found, (gap <= slack).tolist(), strict=True))):
        if secret:
            text = text[: match.start()] + VALUES + text[match.end() :]
    return text


def _half_unit(token: str) -> float:
    """Return half a unit of the last printed digit, a little widened for the rounding of binary fractions."""
    mantissa, _, exponent = token.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return float(0.505 * 10.0 ** (int(exponent or 0) - decimals))
