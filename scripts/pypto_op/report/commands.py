"""`pypto-op report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pypto_op.errors import ContractError
from pypto_op.options import op_dir_argument
from pypto_op.workspace import OpWorkspace

_DEFAULT_NAME = "report.html"


@click.command()
@op_dir_argument()
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"Where the page goes; default: eval/{_DEFAULT_NAME} of the operator.",
)
def report(op_dir: Path, out: Path | None) -> int:
    """Write one HTML page about the operator in OP_DIR: verdict, error maps, cost model and history.

    Exit status: 0 written, 2 there is no verdict yet, a file is damaged, or --out is a file that is no such page.
    """
    from pypto_op.documents.targets import check_target, is_page
    from pypto_op.documents.writing import write_atomically
    from pypto_op.report.page import Story, render
    from pypto_op.report.sources import error_maps, history
    from pypto_op.state import evidence

    ws = OpWorkspace.at(op_dir)
    own = ws.eval_dir / _DEFAULT_NAME
    page = check_target(out or own, "page", is_page, own=own)
    verdict = evidence.read_report(ws.report)
    story = Story(
        op=ws.name,
        verdicts=[(_title(verdict, sealed=evidence.check_seal(verdict)), verdict)],
        perf=_optional_json(ws.perf_report),
        events=history(ws),
        heat_maps=error_maps(ws, verdict),
    )
    write_atomically(page, render(story))
    click.echo(str(page))
    return 0


def _title(verdict: dict[str, Any], *, sealed: bool) -> str:
    return "Verdict" if sealed else "Verdict (NOT SEALED: not written by this account's judge)"


def _optional_json(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise ContractError("is not valid JSON", file=path, remedy="run `pypto-op benchmark` again") from None
    return data if isinstance(data, dict) else None
