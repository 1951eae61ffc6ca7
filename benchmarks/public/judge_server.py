"""Verifies one folder after the other: a line of JSON with `folder` and `limit` in, a line with `ok` and `why` out."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pypto_op.triton.run.setup.targets import warm


def main() -> None:
    """Serve until standard input ends."""
    target = sys.argv[1]
    warm(target)
    from pypto_op.triton.run.setup.project import Project
    from pypto_op.triton.run.setup.request import Request
    from pypto_op.triton.run.verify import verify_triton

    for line in sys.stdin:
        wanted = json.loads(line)
        project = Project.at(Path(wanted["folder"]), "op", "triton_ascend_impl")
        result = verify_triton(project, Request(target=target, timeout=wanted["limit"], memory_mb=60_000))
        failure = result["failures"][0] if result["failures"] else {}
        why = f"{failure.get('error_type', '')}: {failure.get('error_msg', result['error'] or '')}"
        ok = result["status"] == "PASS"
        print(json.dumps({"ok": ok, "why": "" if ok else " ".join(why.split())[:200]}), flush=True)


if __name__ == "__main__":
    main()
