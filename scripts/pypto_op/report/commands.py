"""`pypto-op report`: writes the HTML page about an operator, or the index over all of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypto_op.errors import ContractError, PyptoOpError
from pypto_op.options import OperatorDir
from pypto_op.workspace import OPERATORS_DIR, OpWorkspace, to_run, typed

if TYPE_CHECKING:
    from pypto_op.report.index import Row

_DEFAULT_NAME = "report.html"
_INDEX_NAME = "index.html"


@click.command()
@click.argument("op_dir", required=False, type=click.Path(path_type=Path))
@click.option("--index", "workspace", type=click.Path(path_type=Path), help="A page over all operators of this workspace.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"Where the page goes; default: eval/{_DEFAULT_NAME} of the operator, {OPERATORS_DIR}/{_INDEX_NAME} for --index.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what the page was made of: its path, or for --index the rows.")
def report(op_dir: Path | None, workspace: Path | None, out: Path | None, as_json: bool) -> int:
    """Write one HTML page about the operator in OP_DIR: verdict, error maps, cost model and history.

    With --index WORKSPACE, write the index over its operators (stage, verdict, age, speed), and each operator's own page.

    Exit status: 0 written, 2 there is no verdict yet, a file is damaged, or --out is a file that is no such page.
    """
    if (op_dir is None) == (workspace is None):
        raise ContractError("one operator or one workspace is needed", remedy="name OP_DIR, or --index WORKSPACE")
    if workspace is not None:
        return _index(workspace, out, as_json=as_json)
    assert op_dir is not None
    page = _write_page(OpWorkspace.at(OperatorDir().convert(op_dir, None, None)), out)
    click.echo(json.dumps({"page": str(page)}) if as_json else typed(page))
    return 0


def _write_page(ws: OpWorkspace, out: Path | None) -> Path:
    """Write the page of one operator and return where it lies."""
    from pypto_op.documents.targets import check_target, is_page
    from pypto_op.documents.writing import write_atomically
    from pypto_op.proof import evidence
    from pypto_op.report.page import Story, render
    from pypto_op.report.sources import error_maps, history, swimlanes

    own = ws.eval_dir / _DEFAULT_NAME
    page = check_target(out or own, "page", is_page, own=own)
    verdict = evidence.read_report(ws.report)
    begun, events = history(ws)
    story = Story(
        op=ws.name,
        verdicts=[(_title(ws, verdict, sealed=evidence.check_seal(verdict)), verdict)],
        perf=_optional_json(ws.perf_report),
        events=events,
        heat_maps=error_maps(ws, verdict),
        begun=begun,
        swimlanes=swimlanes(ws, verdict),
    )
    write_atomically(page, render(story))
    return page


def _index(workspace: Path, out: Path | None, *, as_json: bool) -> int:
    from pypto_op.documents.targets import check_target, is_page
    from pypto_op.documents.writing import write_atomically
    from pypto_op.report import index

    workspace = workspace.expanduser().resolve()
    own = workspace / OPERATORS_DIR / _INDEX_NAME
    page = check_target(out or own, "index", is_page)
    rows = index.rows_of(workspace)
    if not rows:
        remedy = f"name the folder that holds {OPERATORS_DIR}/, or run `pypto-op new OP` in it"
        raise ContractError("holds no operator", file=workspace / OPERATORS_DIR, remedy=remedy)
    rows = [_with_page(workspace, page, row) for row in rows]
    write_atomically(page, index.render(workspace, rows))
    click.echo(json.dumps({"page": str(page), "operators": index.as_json(rows)}, indent=2) if as_json else typed(page))
    return 0


def _with_page(workspace: Path, index_page: Path, row: Row) -> Row:
    """Write an operator's own page where it has a verdict, and put its address into the row."""
    import os

    ws = OpWorkspace(workspace / OPERATORS_DIR / row.op, row.op)
    if not ws.report.is_file():
        return row
    try:
        page = _write_page(ws, None)
    except PyptoOpError as error:
        problem = f"no page: {error.one_line()}"
        return row if row.remark else replace(row, remark=problem)
    except (KeyError, TypeError, AttributeError, ValueError):
        # A verdict of another version may lack what the page shows; the index is about all the others too.
        return replace(row, remark="; ".join(filter(None, [row.remark, "no page: the verdict is of another shape"])))
    return replace(row, page=Path(os.path.relpath(page, index_page.absolute().parent)).as_posix())


def _title(ws: OpWorkspace, verdict: dict[str, Any], *, sealed: bool) -> str:
    """Return the heading of a verdict, which says where it is not about the files that lie there."""
    from pypto_op.report.index import doubt_about

    if not sealed:
        return "Verdict (NOT SEALED: not written by this account's judge)"
    doubt = doubt_about(ws, verdict)
    return f"Verdict ({doubt})" if doubt else "Verdict"


def _optional_json(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise ContractError("is not valid JSON", file=path, remedy=f"{to_run('benchmark', path.parent)} again") from None
    return data if isinstance(data, dict) else None
