"""What the language server answers: diagnostics on open, change, save and close; safe repairs as quick fixes."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer

from pypto_op import __version__
from pypto_op.workspace import OpWorkspace
from pypto_op_lint.lsp import diagnostics as said
from pypto_op_lint.lsp.worker import LinterLost, Worker

_QUIET_SECONDS = 0.15
"""How long the text must rest before it is linted: shorter than anybody waits, longer than between two keys."""


class LintServer(LanguageServer):
    """Lints what the editor holds, saved or not."""

    def __init__(self, worker: Worker) -> None:
        # Whole texts, not changes: kernels are small, and editor and server cannot disagree about what a line end is.
        super().__init__("pypto-op-lint", __version__, types.TextDocumentSyncKind.Full)
        self.worker = worker
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._turn = asyncio.Lock()

    def lint_soon(self, uri: str, pause: float = 0.0) -> None:
        """Lint a document after `pause` seconds; an earlier request for it that has not begun is dropped."""
        self.forget(uri)
        self._waiting[uri] = asyncio.get_running_loop().create_task(self._lint(uri, pause))

    def forget(self, uri: str) -> None:
        """Drop a request for a document that has not begun; what has begun is told only if its version still stands."""
        task = self._waiting.pop(uri, None)
        if task is not None:
            task.cancel()

    def siblings(self, uri: str) -> list[str]:
        """Return the other open documents of the operator that this one belongs to."""
        root = _operator_of(uri)
        return [other for other in self.workspace.text_documents if other != uri and root and _operator_of(other) == root]

    def publish(self, uri: str, version: int | None, found: list[types.Diagnostic]) -> None:
        """Tell the editor what there is to say about a version of a document."""
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))

    async def _lint(self, uri: str, pause: float) -> None:
        await asyncio.sleep(pause)
        async with self._turn:
            self._waiting.pop(uri, None)
            await self._lint_now(uri)

    async def _lint_now(self, uri: str) -> None:
        document = self.workspace.text_documents.get(uri)
        path = _path_of(uri)
        if document is None or path is None:
            return
        text, version = document.source, document.version
        unsaved = {p: self.workspace.text_documents[o].source for o in self.siblings(uri) if (p := _path_of(o)) is not None}
        begun = time.monotonic()
        try:
            result = await asyncio.to_thread(self.worker.lint, path, text, unsaved)
        except LinterLost as lost:
            found = [said.told(f"pypto-op: {lost}; the gates look at the file again")]
            self.window_log_message(types.LogMessageParams(types.MessageType.Error, f"{path}: {lost}"))
        else:
            units = self.workspace.position_codec.client_num_units
            found = said.diagnostics(result.findings, text, units) if result is not None else []
            spent = f"{path.name}: {len(found)} findings in {time.monotonic() - begun:.3f} s"
            self.window_log_message(types.LogMessageParams(types.MessageType.Log, spent))
        # Closed and opened again, it is another document, though its version may be the same.
        if self.workspace.text_documents.get(uri) is document and document.version == version:
            self.publish(uri, version, found)


def make_server(worker: Worker | None = None) -> LintServer:
    """Return the server with everything that it answers to."""
    server = LintServer(worker or Worker())

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def _opened(ls: LintServer, params: types.DidOpenTextDocumentParams) -> None:
        ls.lint_soon(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def _changed(ls: LintServer, params: types.DidChangeTextDocumentParams) -> None:
        ls.lint_soon(params.text_document.uri, _QUIET_SECONDS)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def _saved(ls: LintServer, params: types.DidSaveTextDocumentParams) -> None:
        uri = params.text_document.uri
        for each in (uri, *ls.siblings(uri)):  # a golden's rules read SPEC.md, a test's the kernel
            ls.lint_soon(each)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def _closed(ls: LintServer, params: types.DidCloseTextDocumentParams) -> None:
        ls.forget(params.text_document.uri)
        ls.publish(params.text_document.uri, None, [])

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions([types.CodeActionKind.QuickFix]))
    def _actions(_: LintServer, params: types.CodeActionParams) -> list[types.CodeAction]:
        return said.quick_fixes(params.text_document.uri, params.context.diagnostics)

    return server


def serve() -> None:
    """Speak the protocol on stdin and stdout until the editor says goodbye."""
    worker = Worker()
    server: Any = make_server(worker)
    try:
        server.start_io()
    finally:
        worker.close()


def _path_of(uri: str) -> Path | None:
    if not uri.startswith("file:"):
        return None
    path = uris.to_fs_path(uri)
    return Path(path) if path else None


def _operator_of(uri: str) -> Path | None:
    path = _path_of(uri)
    ws = OpWorkspace.owning(path) if path is not None else None
    return ws.root if ws is not None and not ws.is_nobodys() else None
