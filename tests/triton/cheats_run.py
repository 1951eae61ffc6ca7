"""Judge every cheat and every honest file of these tests on the GPU of this machine; called by cheats_on_gpu.sh.

Usage: cheats_run.py OUT [NAME or TABLE ...]. Writes OUT/triton_cheats.json: per file its kind, its verdict and the first error.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tests.triton import lab

from pypto_op.triton.run.setup.request import Request
from pypto_op.triton.run.verify import verify_triton

WORKERS = 8
Job = tuple[str, str, str, str]
"""Kind, name, the task's text, the implementation's text."""


def jobs() -> Iterator[Job]:
    """Yield every file: the exploits, and the collections that were written before anybody ran them."""
    for name, impl in sorted(lab.exploits().items()):
        yield "cheat", name, lab.EXPO, impl
    for table in lab.FRESH:
        for kind, name, task, impl in lab.fresh(table):
            yield kind.removesuffix("s"), f"{table}/{name}", task, impl


def judged(job: Job) -> dict[str, Any]:
    """Verify one file; what ends in an error of the tool says so."""
    kind, name, task, impl = job
    with tempfile.TemporaryDirectory(prefix="cheat-") as folder:
        os.environ["PYPTO_OP_KEY_FILE"] = str(Path(folder) / "seal.key")
        project = lab.folder(Path(folder) / "op", task, impl)
        patience = 5.0 if name == "endless" else 60.0
        try:
            found = verify_triton(project, Request(target="cuda", timeout=200.0, case_timeout=patience, memory_mb=40_000))
        except Exception as error:
            return {"kind": kind, "name": name, "status": "BROKEN", "error": f"{type(error).__name__}: {error}"[:300]}
    first = found["failures"][0] if found["failures"] else {"error_type": "", "error_msg": found["error"] or ""}
    words = str(first["error_msg"]).replace(f"{lab.HERE.parents[1]}/", "")[:300]  # no path of the machine in the record
    return {"kind": kind, "name": name, "status": found["status"], "error_type": first["error_type"], "error": words}


def main() -> int:
    """Judge them all, several at once; exit status 1 where a cheat passed or an honest file did not."""
    out, wanted = Path(sys.argv[1]), set(sys.argv[2:])
    chosen = [job for job in jobs() if not wanted or {job[1], job[1].partition("/")[0]} & wanted]
    if not chosen:
        print(f"no file of {', '.join(sorted(wanted))}", file=sys.stderr)
        return 2
    rows = []
    with ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("spawn")) as pool:
        for row in pool.map(judged, chosen):
            rows.append(row)
            (out / "triton_cheats.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
            if (row["status"] == "PASS") != (row["kind"] == "honest"):
                print(json.dumps(row), flush=True)
    for kind, right in (("cheat", "FAIL"), ("honest", "PASS")):
        of_kind = [row for row in rows if row["kind"] == kind]
        print(f"{kind}: {sum(row['status'] == right for row in of_kind)} of {len(of_kind)} are {right}")
    return int(any((row["status"] == "PASS") != (row["kind"] == "honest") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
