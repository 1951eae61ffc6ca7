"""Documents of two parts: YAML front matter that machines read, and a Markdown body that people read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypto_op.documents import headings, markdown, schema
from pypto_op.documents.reading import parse_yaml, read_text, refuse_empty
from pypto_op.documents.schema import Finding
from pypto_op.errors import ContractError


@dataclass(frozen=True)
class Document:
    """A document after reading."""

    path: Path  # where it lies
    data: dict[str, Any]  # the front matter
    body: str  # the Markdown after it
    body_line: int  # the line of the file on which the body begins

    @property
    def sections(self) -> list[markdown.Section]:
        """The body's sections."""
        return markdown.sections(self.body, first_line=self.body_line)


def split(text: str, *, file: Path | str | None = None) -> tuple[dict[str, Any], str, int]:
    """Return (front matter, body, the body's first line).

    Raises:
        ContractError: the text is empty, there is no front matter, it is not closed, not YAML, or not a mapping.
    """
    lines = text.split("\n")
    refuse_empty(text, file)
    if lines[0].rstrip() != "---":
        raise ContractError("has no front matter", file=file, where="line 1", remedy="begin with --- and the required keys")
    end = markdown.front_matter_lines(text)
    if not end:
        raise ContractError("the front matter is not closed", file=file, where="line 1", remedy="close it with a line ---")
    data = parse_yaml("\n".join(lines[1 : end - 1]), file=file, first_line=2)
    if not isinstance(data, dict):
        found = "empty" if data is None else f"a {type(data).__name__}"
        raise ContractError(f"the front matter is {found}, not a mapping", file=file, where="line 1", remedy="write `key: value`")
    return data, "\n".join(lines[end:]), end + 1


def read(path: Path | str) -> Document:
    """Read a document; see `split` and `reading.read_text` for what is refused."""
    path = Path(path)
    data, body, body_line = split(read_text(path), file=path)
    return Document(path, data, body, body_line)


def load(path: Path | str, schema_name: str) -> Document:
    """Read a document and check its front matter.

    Raises:
        ContractError: not readable, or the front matter breaks `schemas/<schema_name>.schema.json`, says TODO,
            or names another operator.
    """
    document = read(path)
    schema.raise_first(schema.left_to_do(document.data), file=document.path)
    schema.check(document.data, schema_name, file=document.path)
    schema.raise_first(schema.of_another(document.data.get("op_name"), document.path, "op_name"), file=document.path)
    return document


def check(path: Path | str, schema_name: str, sections_of: str) -> tuple[Document | None, list[Finding]]:
    """Return the document (None if it cannot be read) and what is wrong with it as a document.

    Checked: the front matter's schema, that `op_name` is the directory's, sections, and that nothing is
    left to do.

    Args:
        sections_of: the key of `headings.yaml`.
    """
    try:
        document = read(path)
    except ContractError as error:
        return None, [Finding.of(error)]
    found = schema.findings(document.data, schema_name)
    found += schema.of_another(document.data.get("op_name"), document.path, "op_name")
    found += headings.check_sections(sections_of, document.sections)
    found += headings.unfinished(_yaml_lines(document), first_line=1)
    found += headings.unfinished(document.body, first_line=document.body_line)
    return document, found


def _yaml_lines(document: Document) -> str:
    return "\n".join(read_text(document.path).split("\n")[: document.body_line - 1])
