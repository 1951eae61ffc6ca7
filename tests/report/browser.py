"""A headless Chromium, driven by its own chromedriver over HTTP: opens a page and measures it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest

_FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
]  # fmt: skip

MEASURE = """
(() => {
  const wide = document.documentElement.clientWidth, wrong = [];
  if (document.documentElement.scrollWidth > wide) wrong.push(`page: ${document.documentElement.scrollWidth} of ${wide} px`);
  const said = text => (text || '').trim().slice(0, 40);
  const name = e => `<${e.tagName.toLowerCase()} class="${e.getAttribute('class') || ''}"> ${said(e.textContent)}`;
  let texts = 0;
  for (const e of document.body.querySelectorAll('*')) {
    const style = getComputedStyle(e), box = e.getBoundingClientRect();
    if (!box.width && !box.height) continue;
    if (box.left < -0.5 || box.right > wide + 0.5)
      wrong.push(`outside: ${name(e)} ${Math.round(box.left)}..${Math.round(box.right)}`);
    if (style.overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1) wrong.push(`clipped or scrolled: ${name(e)}`);
    if (style.overflowY !== 'visible' && e.scrollHeight > e.clientHeight + 1) wrong.push(`clipped in height: ${name(e)}`);
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    for (const box of range.getClientRects()) {
      if (!box.width) continue;
      texts += 1;
      const card = walker.currentNode.parentElement.closest('.card, .tile');
      const edge = card ? card.getBoundingClientRect().right : wide;
      if (box.right > edge + 0.5 || box.left < -0.5)
        wrong.push(`text over the edge: ${said(walker.currentNode.textContent)}`);
    }
  }
  const badge = document.querySelector('table .badge'), place = badge && badge.getBoundingClientRect();
  return JSON.stringify({wrong, texts, status_seen: !!place && place.width > 0 && place.left >= 0 && place.right <= wide,
    background: getComputedStyle(document.body).backgroundColor});
})()
"""


class Browser:
    """One browser for many pages."""

    def __init__(self) -> None:
        driver, chromium = shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("chromium-browser")
        if driver is None or chromium is None:
            pytest.skip("no chromium and chromedriver on PATH: install Debian's packages chromium and chromium-driver")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._driver = subprocess.Popen([driver, f"--port={port}"], **quiet)
        self._base = f"http://127.0.0.1:{port}"
        options = {"binary": chromium, "args": [*_FLAGS, f"--user-data-dir={self._profile.name}"]}
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
        deadline = time.monotonic() + 60
        while True:
            try:
                self._session = self._post("/session", wanted)["sessionId"]
                return
            except urllib.error.URLError:
                if time.monotonic() > deadline:
                    self.close()
                    raise
                time.sleep(0.2)

    def close(self) -> None:
        """End the driver and the browser, which would live on without it."""
        for process in psutil.Process(self._driver.pid).children(recursive=True):
            process.kill()
        self._driver.kill()
        self._driver.wait(20)
        self._profile.cleanup()

    def open(self, page: Path, width: int, *, dark: bool, touch: bool = False) -> dict[str, Any]:
        """Show a page at a width in pixels, light or dark, and return what `MEASURE` finds."""
        self._cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=touch)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._cdp("Emulation.setEmulatedMedia", features=[scheme])
        self._post(f"/session/{self._session}/url", {"url": page.resolve().as_uri()})
        there = f"document.readyState === 'complete' && location.href === '{page.resolve().as_uri()}' ? 'there' : ''"
        deadline = time.monotonic() + 120
        while self.value(there) != "there" and time.monotonic() < deadline:
            time.sleep(0.05)
        found: dict[str, Any] = json.loads(self.value(MEASURE))
        return found

    def value(self, expression: str) -> str:
        """Return what a JavaScript expression that makes a text gives on the page that is open."""
        answer = self._cdp("Runtime.evaluate", expression=expression)
        assert "value" in answer["result"], answer
        return str(answer["result"]["value"])

    def _cdp(self, command: str, **params: Any) -> dict[str, Any]:
        return self._post(f"/session/{self._session}/goog/cdp/execute", {"cmd": command, "params": params})

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            self._base + path, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            value: dict[str, Any] = json.load(answer)["value"]
        return value
