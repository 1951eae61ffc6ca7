"""What `--pool` names: this machine, a Ray of this machine, or a Ray cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import click

from pypto_op.errors import ContractError

WORDS = "local, ray://local or ray://HOST[:PORT][?LABEL=VALUE&...]"
HEAD_PORT = 6379
"""Where `ray start --head` listens unless told otherwise."""

_RAY = re.compile(r"ray://(?P<host>[A-Za-z0-9_.-]+|\[[0-9a-fA-F:.]+\])(?::(?P<port>\d{1,5}))?(?:\?(?P<labels>[^?]+))?\Z")
_LABEL = re.compile(r"(?P<key>[A-Za-z0-9_./-]+)=(?P<value>[A-Za-z0-9_.-]+)\Z")


@dataclass(frozen=True)
class Address:
    """Where jobs run."""

    text: str = "local"  # as the user wrote it
    ray: bool = False  # jobs run as Ray's actors; False: in this process and in children of it
    host: str = ""  # of the cluster's head; "": a Ray of this machine is started, and ended with the command
    port: int = HEAD_PORT  # of the cluster's head
    labels: Mapping[str, str] = field(default_factory=dict)  # what a host must be labelled with (`ray start --labels`)

    @property
    def head(self) -> str:
        """HOST:PORT of the cluster's head."""
        return f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read what `--pool` was given; raise ContractError for anything that names no pool."""
        if text == "local":
            return cls()
        found = _RAY.match(text)
        if found is None or not 0 < int(found["port"] or HEAD_PORT) < 2**16:
            raise ContractError(f"--pool {text[:60]!r} names no pool", remedy=f"use {WORDS}")
        labels = dict(_label(part, text) for part in (found["labels"] or "").split("&") if part)
        host = "" if found["host"] == "local" else found["host"]
        if not host and found["port"]:
            raise ContractError(f"--pool {text[:60]!r} names a port of no host", remedy="use ray://local")
        if not host and labels:
            raise ContractError(
                f"--pool {text[:60]!r} names labels, and this machine's own Ray has none", remedy="use ray://local"
            )
        return cls(text, True, host, int(found["port"] or HEAD_PORT), labels)


def _label(part: str, text: str) -> tuple[str, str]:
    found = _LABEL.match(part)
    if found is None:
        raise ContractError(f"--pool {text[:60]!r}: {part[:30]!r} is no label", remedy="write ?LABEL=VALUE&LABEL=VALUE")
    return found["key"], found["value"]


class PoolType(click.ParamType[Address]):
    """The value of `--pool`."""

    name = "pool"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        """Return the address; raise ContractError where it names no pool."""
        return value if isinstance(value, Address) else Address.parse(str(value))


pool_option = click.option(
    "--pool", type=PoolType(), default="local", metavar="POOL", help=f"Where jobs run: {WORDS}; default: local."
)
"""`--pool` of every command whose jobs may run elsewhere."""
