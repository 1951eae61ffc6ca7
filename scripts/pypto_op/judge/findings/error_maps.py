"""Error maps of a verdict: for each case, where its worst output is off. For people; they decide nothing."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from pypto_op.vocabulary import Mode
from pypto_op.workspace import OpWorkspace

Cells = list[list[float]]


class ErrorMaps:
    """Keeps the worst map of each case under the operator's `_debug/error_maps/`; earlier ones are removed.

    Args:
        impl_sha256: the bytes that the maps are about, so that a page can tell old ones.
    """

    def __init__(self, ws: OpWorkspace, impl_sha256: str) -> None:
        self._ws, self._impl = ws, impl_sha256
        self._worst: dict[str, float] = {}
        self._lock = threading.Lock()
        shutil.rmtree(self._folder(), ignore_errors=True)

    def keeper(self, case_id: str, mode: Mode) -> Callable[[str, Cells], None]:
        """Return the function that takes (output name, cells) of one run."""

        def keep(output: str, cells: Cells) -> None:
            greatest = max((cell for row in cells for cell in row), default=-1.0)
            with self._lock:
                if not cells or greatest <= self._worst.get(case_id, -1.0):
                    return
                self._worst[case_id] = greatest
                path = self._ws.error_map(case_id)
                path.parent.mkdir(parents=True, exist_ok=True)
                data = {"case": case_id, "mode": str(mode), "output": output, "impl": self._impl, "cells": cells}
                path.write_text(json.dumps(data), encoding="utf-8")

        return keep

    def _folder(self) -> Path:
        return self._ws.error_map("any").parent
