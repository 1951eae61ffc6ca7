"""Where the service is: what is no address, what will not heal by waiting, and where no key may go."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pypto_op.errors import ContractError

if TYPE_CHECKING:
    import httpx2

VARIABLE = "ANTHROPIC_BASE_URL"
_PORTS = {"http": 80, "https": 443}


class Redirected(Exception):
    """The service sends its caller to another origin; the request, and with it the key, was not sent there."""


def check() -> None:
    """Refuse an address that is none before anything begins.

    Raises:
        ContractError: the variable holds something else than `http://` or `https://`, a host, and a port where there is one.
    """
    text = os.environ.get(VARIABLE, "")
    if text and (why := _why_not(text)):
        raise ContractError(
            f"{VARIABLE} is no address of a service: {why}", remedy="write it as https://HOST or https://HOST:PORT"
        )


def _why_not(text: str) -> str:
    """Return what is wrong with an address, without a password that may stand in it; "" for nothing."""
    if not text.isprintable() or " " in text:
        return "it holds a space or a character that cannot be seen"
    try:
        parts = urlsplit(text)
        if parts.scheme not in _PORTS:
            return "it does not begin with http:// or https://"
        if not parts.hostname:
            return "it names no host"
        if parts.port == 0:
            return "0 is no port"
    except ValueError as error:  # a port that is none, a bracket that is open
        return str(error).rstrip(".")[:100]
    return ""


def shown(url: httpx2.URL) -> str:
    """Return scheme, host and port of an address: no password, no query."""
    return f"{url.scheme}://{url.netloc.decode(errors='replace')}"


class OneOrigin:
    """Stops a request that would go to another origin than the first one went to: the service's own."""

    def __init__(self) -> None:
        self._origin: tuple[str, str, int | None] | None = None

    def __call__(self, request: httpx2.Request) -> None:
        """Look at a request before it is sent, a redirected one too."""
        url = request.url
        origin = (url.scheme, url.host, url.port or _PORTS.get(url.scheme))
        self._origin = self._origin or origin
        if origin != self._origin:
            raise Redirected(f"it redirects to {shown(url)}, and the key goes to no other address")


def will_not_heal(error: BaseException, *, heard: bool) -> str:
    """Return why the same request cannot succeed later; "" where it may.

    Args:
        heard: the service has answered this run before: then a refused connection may be a restart.
    """
    import ssl

    import httpx2

    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, Redirected):
            return str(cause)
    lasting = (ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError, httpx2.TooManyRedirects)
    return next((str(cause) for cause in causes if isinstance(cause, lasting)), "") if not heard else ""


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
