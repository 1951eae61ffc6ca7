"""`pypto-op verify-many`: a list of operators, side by side where a cluster has room."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from pypto_op import speaking
from pypto_op.errors import PyptoOpError
from pypto_op.judge.options import modes_option
from pypto_op.options import OperatorDir
from pypto_op.pool.address import Address, pool_option
from pypto_op.pool.work import Say, Work
from pypto_op.vocabulary import ExitCode, Mode
from pypto_op.workspace import OpWorkspace

_SIDE_BY_SIDE = 16
"""Operators whose verdicts are put together at once; their lanes wait for the cluster's workers."""


class _Operators:
    """Operators as jobs of this process: each hands its own lanes to the pool."""

    silence = float("inf")

    def __init__(self, modes: Sequence[Mode], jobs: int | None, pool: Any) -> None:
        self._modes, self._jobs, self._pool = modes, jobs, pool

    def here(self, payload: Path, say: Say) -> dict[str, Any]:
        """Verify one operator; its report is written, and sealed, here."""
        from pypto_op.judge.cases.request import Request
        from pypto_op.judge.reporting import report as reports
        from pypto_op.judge.verify import verify_operator

        row: dict[str, Any] = {"op_dir": str(payload), "op_name": payload.resolve().name}
        try:
            report = verify_operator(OpWorkspace.at(payload), Request(modes=self._modes, jobs=self._jobs, pool=self._pool))
        except PyptoOpError as error:
            nothing = {"status": "ERROR", "cases_passed": 0, "cases_total": 0, "seconds": 0.0}
            return {**row, **nothing, "exit_code": int(error.exit_code), "message": error.one_line()}
        told = {name: report[name] for name in ("status", "cases_passed", "cases_total", "seconds")}
        message = (report.get("error") or {}).get("message") or (report["first_failure"] or {}).get("summary", "")
        return {**row, **told, "exit_code": int(reports.exit_code(report)), "message": message or ""}

    def away(self) -> Work:
        """Never asked: verdicts are sealed on this machine."""
        raise NotImplementedError

    def stop(self) -> None:
        """Each operator's own lanes end with the pool."""
        self._pool.close()


@click.command("verify-many")
@click.argument("op_dirs", nargs=-1, required=True, type=OperatorDir(), metavar="OP_DIR...")
@modes_option
@click.option("--jobs", type=click.IntRange(1, 64), help="Lanes of one operator at once; default: what the pool has room for.")
@pool_option
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
def verify_many(op_dirs: tuple[Path, ...], modes: tuple[Mode, ...], jobs: int | None, pool: Address, as_json: bool) -> int:
    """Verify each OP_DIR as `pypto-op verify` does, and write its report; on a cluster side by side.

    Exit status: the greatest of them: 0 each is PASS or PARTIAL, 1 a kernel is wrong, 2 an operator's files are, 3 the
    machine, or the cluster, cannot judge.
    """
    from pypto_op.pool.pool import Pool
    from pypto_op.pool.work import Job

    places = list(dict.fromkeys(path.resolve() for path in op_dirs))
    rows: dict[str, dict[str, Any]] = {}
    with Pool(pool) as there:
        errand = _Operators(modes, jobs, there)
        each = [Job(str(path), path) for path in places]
        for job, row in Pool().run(errand, each, size=_SIDE_BY_SIDE if pool.ray else 1):
            rows[job.key] = row
            speaking.now(f"verify-many, {len(rows)} of {len(places)} operators judged", len(rows), len(places))
            if not as_json:
                told = f": {row['message']}" if row["message"] else ""
                passed = f"{row['cases_passed']} of {row['cases_total']} cases passed"
                click.echo(f"{row['status']:7} {row['op_name']}: {passed}, {row['seconds']:.1f} s{told}")
                speaking.heard()
    ordered = [rows[str(path)] for path in places]
    if as_json:
        click.echo(json.dumps({"schema_version": 1, "pool": pool.text, "operators": ordered}, indent=1))
    return max((row["exit_code"] for row in ordered), default=int(ExitCode.OK))
