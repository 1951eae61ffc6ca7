"""The language server, asked by a real LSP client over its pipe."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from pypto_op.bundle_files import bundle_root
from pypto_op_lint.lsp.worker import LinterLost, Worker

pytestmark = pytest.mark.slow

EXAMPLE = bundle_root() / "examples" / "ops" / "softmax"
_SECONDS = 60.0


class Editor:
    """An editor in small: opens, changes and closes documents, and waits for what the server says about them."""

    def __init__(self) -> None:
        self.client = LanguageClient("test-editor", "1")
        self.said: dict[tuple[str, int | None], list[types.Diagnostic]] = {}
        self.news = asyncio.Event()
        self.versions: dict[str, int] = {}

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def _published(params: types.PublishDiagnosticsParams) -> None:
            self.said[(params.uri, params.version)] = list(params.diagnostics)
            self.news.set()

        @self.client.feature(types.WINDOW_LOG_MESSAGE)
        def _logged(_: types.LogMessageParams) -> None:
            pass

    async def start(self) -> None:
        await self.client.start_io(sys.executable, "-m", "pypto_op.cli", "lsp", env={**os.environ, "PYTHONUTF8": "1"})
        answer = await self.client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
        assert answer.capabilities.code_action_provider
        self.client.initialized(types.InitializedParams())

    async def stop(self) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()

    async def open(self, path: Path, text: str | None = None) -> list[types.Diagnostic]:
        text = path.read_text(encoding="utf-8") if text is None else text
        self.versions[path.as_uri()] = 1
        self.said.pop((path.as_uri(), 1), None)
        item = types.TextDocumentItem(path.as_uri(), "python", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return await self.about(path)

    async def change(self, path: Path, text: str) -> list[types.Diagnostic]:
        self.type(path, text)
        return await self.about(path)

    def type(self, path: Path, text: str) -> None:
        self.versions[path.as_uri()] += 1
        named = types.VersionedTextDocumentIdentifier(self.versions[path.as_uri()], path.as_uri())
        whole = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(named, [whole]))

    async def close(self, path: Path) -> list[types.Diagnostic]:
        named = types.TextDocumentIdentifier(path.as_uri())
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(named))
        self.versions.pop(path.as_uri())
        return await self.about(path)

    async def about(self, path: Path) -> list[types.Diagnostic]:
        key = (path.as_uri(), self.versions.get(path.as_uri()))
        while key not in self.said:
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), _SECONDS)
        return self.said[key]


def with_editor(act: Callable[[Editor], Awaitable[None]]) -> None:
    async def run() -> None:
        editor = Editor()
        await editor.start()
        try:
            await act(editor)
        finally:
            await editor.stop()

    asyncio.run(run())


@pytest.fixture
def op(tmp_path: Path) -> Path:
    target = tmp_path / "custom" / "softmax"
    shutil.copytree(EXAMPLE, target)
    return target


def codes(found: list[types.Diagnostic]) -> set[str]:
    return {str(d.code) for d in found if d.severity == types.DiagnosticSeverity.Error}


def test_findings_come_on_open_and_change_and_go_on_mending_and_close(op: Path) -> None:
    impl = op / "softmax_impl.py"
    right = impl.read_text(encoding="utf-8")
    wrong = right.replace("set_vec_tile_shapes(", "set_vec_tile_shapes(width, ", 1)
    assert wrong != right

    async def act(editor: Editor) -> None:
        assert codes(await editor.open(impl)) == set()
        found = await editor.change(impl, wrong)
        assert "OL48" in codes(found)
        (tile,) = [d for d in found if d.code == "OL48"][:1]
        line = wrong.split("\n")[tile.range.start.line]
        assert "set_vec_tile_shapes(" in line
        assert tile.range.end.character <= len(line)
        assert tile.code_description and tile.code_description.href.endswith("OL48.md")
        assert codes(await editor.change(impl, right)) == set()
        assert "OL48" in codes(await editor.change(impl, wrong))
        assert await editor.close(impl) == []
        assert impl.read_text(encoding="utf-8") == right, "the server writes no file"

    with_editor(act)


BROKEN = {
    "empty": "",
    "half a line": "def f(",
    "null byte": "x = 1\0",
    "tabs and spaces": "if x:\n\ty\n        z\n",
    "lone surrogate pair half": "x = '\\ud800'\n",
    "deep": "(" * 5000 + ")" * 5000,
    "deep operators": "x = " + "-" * 20000 + "1\n",
    "long line": "x = " + "1+" * 60000 + "1\n",
    "huge": "# line\n" * 100_000,
    "form feed and separators": "x = 1\x0c\ny\u2028 = 2\x1c\nimport pypto as p\n",
    "carriage returns": "import pypto\rx = (\r",
    "byte order mark": "\ufeffimport pypto as p\n",
    "astral": "s = '\U0001f600\U0001f600'; import pypto as p\n",
    "another language": "fn main() { println!(\"hi\"); }\n",
}  # fmt: skip


def test_no_text_ends_the_server(op: Path) -> None:
    impl = op / "softmax_impl.py"
    right = impl.read_text(encoding="utf-8")

    async def act(editor: Editor) -> None:
        await editor.open(impl)
        for name, text in BROKEN.items():
            found = await editor.change(impl, text)
            lines = text.split("\n")
            assert found, name
            assert all(d.range.start.line < max(len(lines), text.count("\r") + 1) for d in found), name
        assert codes(await editor.change(impl, right)) == set(), "after all that, an honest text is clean"

    with_editor(act)


def test_columns_are_in_utf_16_units(op: Path) -> None:
    impl = op / "softmax_impl.py"

    async def act(editor: Editor) -> None:
        plain = [d for d in await editor.open(impl, "s = 'ab'; import pypto as p\n") if d.code == "OL07"]
        wide = [d for d in await editor.change(impl, "s = '\U0001f600'; import pypto as p\n") if d.code == "OL07"]
        assert [d.range for d in wide] == [d.range for d in plain] != []

    with_editor(act)


def test_files_that_are_no_operators_are_left_alone(op: Path, tmp_path: Path) -> None:
    other = tmp_path / "theme.py"
    other.write_text("import pypto as p\n", encoding="utf-8")

    async def act(editor: Editor) -> None:
        assert await editor.open(other) == []
        untitled = types.TextDocumentItem("untitled:Untitled-1", "python", 1, "x")
        editor.client.text_document_did_open(types.DidOpenTextDocumentParams(untitled))
        assert codes(await editor.open(op / "softmax_impl.py")) == set()

    with_editor(act)


def test_the_last_of_many_quick_changes_is_what_counts(op: Path) -> None:
    impl = op / "softmax_impl.py"
    right = impl.read_text(encoding="utf-8")

    async def act(editor: Editor) -> None:
        await editor.open(impl)
        for length in range(0, 2000, 40):
            editor.type(impl, right[:length])
        assert codes(await editor.change(impl, right)) == set()
        answered = [version for uri, version in editor.said if uri == impl.as_uri()]
        assert len(answered) < 10, "a text that was typed over is not linted"

    with_editor(act)


def test_a_repair_is_offered_and_applies(op: Path) -> None:
    impl = op / "softmax_impl.py"
    wrong = "from __future__ import annotations\n" + impl.read_text(encoding="utf-8")

    async def act(editor: Editor) -> None:
        (found,) = [d for d in await editor.open(impl, wrong) if d.data]
        named = types.TextDocumentIdentifier(impl.as_uri())
        asked = types.CodeActionParams(named, found.range, types.CodeActionContext([found]))
        (action,) = await editor.client.text_document_code_action_async(asked) or []
        assert isinstance(action, types.CodeAction)
        assert action.kind == types.CodeActionKind.QuickFix
        mended = applied(wrong, list((action.edit.changes or {})[impl.as_uri()]))
        assert codes(await editor.change(impl, mended)) == set()
        assert mended.strip() == impl.read_text(encoding="utf-8").strip()

    with_editor(act)


def applied(text: str, edits: list[types.TextEdit]) -> str:
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
        begin, end = edit.range.start, edit.range.end
        joined = lines[begin.line][: begin.character] + edit.new_text + lines[end.line][end.character :]
        lines[begin.line : end.line + 1] = joined.split("\n")
    return "\n".join(lines)


def test_what_another_file_says_unsaved_counts(op: Path) -> None:
    spec, test = op / "SPEC.md", op / "test_softmax.py"
    wider = spec.read_text(encoding="utf-8").replace("1024", "2048")

    async def act(editor: Editor) -> None:
        assert await editor.open(test) == []
        await editor.close(test)
        await editor.open(spec, wider)
        assert {d.code for d in await editor.open(test)} == {"OL34"}, "SPEC.md as it is typed names a shape without a test"

    with_editor(act)


def test_an_edit_costs_little(op: Path) -> None:
    impl = op / "softmax_impl.py"
    text = impl.read_text(encoding="utf-8")
    edits = 10

    async def act(editor: Editor) -> None:
        await editor.open(impl)
        await editor.change(impl, text + "# warm\n")
        begun = _processor_seconds()
        for number in range(edits):
            await editor.change(impl, text.replace("T_TILE", f"T_TILE_{number}") + f"# {number}\n")
        each = (_processor_seconds() - begun) / edits
        assert each < 0.2, f"{each:.3f} s of processor time an edit"

    with_editor(act)


def _processor_seconds() -> float:
    """Processor time of the server and of its linter."""
    return sum(sum(child.cpu_times()[:2]) for child in psutil.Process().children(recursive=True))


def test_a_linter_that_dies_or_hangs_is_replaced(op: Path) -> None:
    impl = op / "softmax_impl.py"
    text = impl.read_text(encoding="utf-8")
    worker = Worker(seconds=0.001)
    with pytest.raises(LinterLost, match="no answer in 0.001 s"):
        worker.lint(impl, text, {})
    worker.close()
    worker = Worker()
    first = worker.lint(impl, text, {})
    assert first is not None and not first.blocks
    for child in multiprocessing.active_children():
        child.kill()
        child.join()
    assert worker.lint(impl, text, {}) is not None
    worker.close()
