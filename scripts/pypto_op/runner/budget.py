"""What a run may spend: tokens or money, and minutes; and what it has spent, by agent."""

from __future__ import annotations

import os
import re
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pypto_op.errors import ContractError

LEAST_ANSWER = 256
"""Output tokens below which a request is not worth sending."""

PRICES_ENV = "PYPTO_OP_PRICES"
_PRICES = Path(__file__).with_name("prices.yaml")
_CHARACTERS_PER_TOKEN = 3
"""A low estimate of how much text a token holds: what a request costs is guessed too high, never too low."""

_MOST_TOKENS = 10**9
"""More than any message costs: a service that says more, or less than none, may not move the sum so far."""


def tokens_of(text: str) -> int:
    """Return about how many tokens a text holds, rather too many than too few."""
    return len(text) // _CHARACTERS_PER_TOKEN


@dataclass
class Usage:
    """Tokens of one or more requests. `input` is what no cache held."""

    input: int = 0
    cache_write: int = 0
    cache_read: int = 0
    output: int = 0

    @classmethod
    def of(cls, usage: Mapping[str, object]) -> Usage:
        """Return what a message of the API says under `usage`."""

        def count(key: str) -> int:
            value = usage.get(key)
            return int(min(value, _MOST_TOKENS)) if isinstance(value, (int, float)) and value > 0 else 0

        return cls(
            count("input_tokens"), count("cache_creation_input_tokens"), count("cache_read_input_tokens"), count("output_tokens")
        )

    def add(self, other: Usage) -> None:
        """Add `other` to this one."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    @property
    def tokens(self) -> int:
        """Tokens that a budget counts: all but those that a cache served, which cost a tenth."""
        return self.input + self.cache_write + self.output


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens."""

    input: float
    cache_write: float
    cache_read: float
    output: float

    def of(self, usage: Usage) -> float:
        """Return what `usage` costs, in dollars."""
        return float(sum(getattr(self, name) * value for name, value in vars(usage).items()) / 1e6)


@cache
def price_of(model: str) -> Price | None:
    """Return a model's price, or None where `prices.yaml` and the file that PYPTO_OP_PRICES names have no row for it.

    Raises:
        ContractError: the named file is no such table.
    """
    import yaml

    own = Path(os.environ.get(PRICES_ENV) or _PRICES)
    try:
        table = {**yaml.safe_load(_PRICES.read_text(encoding="utf-8")), **yaml.safe_load(own.read_text(encoding="utf-8"))}
        found = max((prefix for prefix in table if model.startswith(prefix)), key=len, default=None)
        return Price(**{name: float(value) for name, value in table[found].items()}) if found else None
    except (OSError, yaml.YAMLError, TypeError, ValueError, AttributeError) as error:
        said = " ".join(str(error).split())[:200]
        raise ContractError(f"no table of prices ({said})", file=own, remedy=f"write rows as in {_PRICES.name}") from None


@dataclass(frozen=True)
class Limits:
    """Hard limits of a run; None is none."""

    tokens: int | None = None
    dollars: float | None = None
    minutes: float | None = None


def check_model(name: str | None) -> None:
    """Raise ContractError for a `--model` that is no name: an empty variable of a script must not run another model."""
    if name is not None and not re.fullmatch(r"[!-~]{1,200}", name):
        raise ContractError(f"{name[:40]!r} is no name of a model", remedy="give --model a name, or leave it out")


def parse_budget(text: str | None) -> Limits:
    """Return the limits that `--budget` names: `200000`, `200k`, `1.5M`, `3.50USD` or `$3.50`; without the option there are none.

    Raises:
        ContractError: it is neither.
    """
    if text is None:
        return Limits()
    plain = text.strip().replace("_", "").replace(",", "")
    money = re.fullmatch(r"\$(\d+(?:\.\d+)?)|(\d+(?:\.\d+)?) ?(?:usd|\$)", plain, re.IGNORECASE)
    if money:
        return _positive(Limits(dollars=float(money[1] or money[2])), text)
    tokens = re.fullmatch(r"(\d+(?:\.\d+)?)([km]?)", plain, re.IGNORECASE)
    if tokens:
        return _positive(Limits(tokens=int(float(tokens[1]) * {"": 1, "k": 1e3, "m": 1e6}[tokens[2].lower()])), text)
    raise ContractError(f"{text[:40]!r} is no budget", remedy="write tokens (200000, 200k, 1.5M) or money (3.50USD)")


def _positive(limits: Limits, text: str) -> Limits:
    if not (limits.tokens or limits.dollars):
        raise ContractError(f"a budget of {text[:40]!r} lets nothing run", remedy="give a positive one")
    return limits


class LimitReached(Exception):
    """The run has to end here; the text says which limit it met."""


@dataclass
class Budget:
    """Counts what a run spends, and refuses a request that could pass a limit.

    Raises:
        ContractError: money is limited and the model has no price.
    """

    limits: Limits  # the limits
    model: str  # whose price counts
    spent: Usage = field(default_factory=Usage)
    by_agent: dict[str, Usage] = field(default_factory=lambda: defaultdict(Usage))
    requests: int = 0
    _reserved: Usage = field(default_factory=Usage)
    _began: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.limits.dollars is not None and price_of(self.model) is None:
            remedy = f"give the budget in tokens, or a row in a file that {PRICES_ENV} names"
            raise ContractError(f"no price is known for {self.model}", file=_PRICES.name, remedy=remedy)

    @property
    def dollars(self) -> float | None:
        """What the run has cost; None where the model has no price."""
        price = price_of(self.model)
        return price.of(self.spent) if price else None

    @property
    def seconds_left(self) -> float:
        """Seconds until the run must end."""
        if self.limits.minutes is None:
            return float("inf")
        return self.limits.minutes * 60 - (time.monotonic() - self._began)

    def check_time(self) -> None:
        """Raise LimitReached when the minutes are over."""
        if self.seconds_left <= 0:
            raise LimitReached(f"the time is over ({self.limits.minutes:g} minutes)")

    def reserve(self, characters: int, max_tokens: int) -> Usage:
        """Set aside what a request of so many characters may cost, and return it; its output is what it may ask for.

        Raises:
            LimitReached: the budget has no room for it, or the time is over.
        """
        self.check_time()
        with self._lock:
            wanted = Usage(cache_write=characters // _CHARACTERS_PER_TOKEN, output=max_tokens)
            room = self._output_room(wanted)
            if room < LEAST_ANSWER:
                raise LimitReached(f"the budget is spent ({self._told()})")
            wanted.output = min(max_tokens, room)
            self._reserved.add(wanted)
            return wanted

    def _output_room(self, wanted: Usage) -> int:
        """Return how many output tokens the limits leave beside the input of `wanted`."""
        taken = Usage()
        for usage in (self.spent, self._reserved, Usage(cache_write=wanted.cache_write)):
            taken.add(usage)
        room = float(wanted.output)
        if self.limits.tokens is not None:
            room = min(room, self.limits.tokens - taken.tokens)
        price = price_of(self.model)
        if self.limits.dollars is not None and price:
            room = min(room, (self.limits.dollars - price.of(taken)) / price.output * 1e6)
        return int(room)

    def settle(self, reserved: Usage, usage: Usage, agent: str) -> None:
        """Replace what was set aside by what a request really cost."""
        with self._lock:
            for name, value in vars(reserved).items():
                setattr(self._reserved, name, getattr(self._reserved, name) - value)
            self.count(usage, agent)

    def count(self, usage: Usage, agent: str) -> None:
        """Add a request's cost; also what an earlier part of a resumed run has spent."""
        self.spent.add(usage)
        self.by_agent[agent].add(usage)
        self.requests += 1

    def _told(self) -> str:
        limit = f"{self.limits.tokens} tokens" if self.limits.tokens is not None else f"${self.limits.dollars:g}"
        return f"{self.spent.tokens} tokens used, the limit is {limit}, and the next request may pass it"
