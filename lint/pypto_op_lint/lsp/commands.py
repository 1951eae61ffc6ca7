"""`pypto-op lsp`: serves the linter to an editor, as a language server."""

from __future__ import annotations

import click


@click.command()
def lsp() -> int:
    """Serve the linter to an editor: the Language Server Protocol on stdin and stdout.

    Exit status: 0 the editor ended it, 3 the package pygls is not installed.
    """
    import pygls  # noqa: F401  first: the package that the extra names, if it is missing

    from pypto_op_lint.lsp.server import serve

    serve()
    return 0
