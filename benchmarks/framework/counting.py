"""`python -m benchmarks.framework.counting FILE SCRIPT WORDS...`: as `pypto-op script` runs it; FILE gets the launches."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pypto_op.backends.hostshim.__main__ import main
from pypto_op.backends.worker import pypto_hooks

_launches = 0


def _counted(call: Callable[..., Any]) -> Callable[..., Any]:
    def launched(*args: Any, **kwargs: Any) -> Any:
        global _launches
        _launches += 1
        return call(*args, **kwargs)

    return launched


def _simulate(**options: Any) -> None:
    _real(**options)
    pypto_hooks.record_launches(_counted)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    _real, pypto_hooks.simulate = pypto_hooks.simulate, _simulate
    atexit.register(lambda: target.write_text(str(_launches)))
    sys.argv = sys.argv[1:]
    main()
