"""Paths, links and sections that a text names: in the bundle, in an operator's folder, or in `known_paths.yaml`."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Iterator
from pathlib import Path

from pypto_op.bundle.finding import Finding
from pypto_op.bundle.texts import Text
from pypto_op.documents import markdown
from pypto_op.documents.reading import read_yaml
from pypto_op.vocabulary import Artifact
from pypto_op.workspace import OpWorkspace, Place

_KNOWN = Path(__file__).resolve().parents[1] / "known_paths.yaml"
_TEMPLATES = Path(__file__).resolve().parents[2] / "documents" / "templates"
_ENDING = r"(?:md|py|ya?ml|jsonl?|sh|js|mjs|txt|csv|log|toml|cpp|so|ini|png|html)"
_NAMED = re.compile(rf"^(?:\.{{0,2}}/|~/)?(?:[\w.<>{{}}*-]+/)*[\w.<>{{}}*-]+\.{_ENDING}$")
_FOLDER = re.compile(r"^(?:\.{0,2}/|~/)?(?:[\w.<>{}*-]+/)+(?:[\w.<>{}*-]+)?$")
_SECTION = re.compile(r"`?(?P<file>[\w/-]+?)(?:\.md)?`?[,:]? (?:§ ?|[Ss]ections? )(?P<number>\d+(?:\.\d+)*[a-z]?)")
_PLANNED = re.compile(r"\b(?P<file>DESIGN|SPEC|API_REPORT)\.md`? (?:§ ?)?(?P<number>\d+(?:\.\d+)*)\b")
_HOME = re.compile(r"(?<![\w.])/(?:home|root|work|Users)/\w+")
_PLACEHOLDERS = {"<op>": "op", "OP": "op", "{op}": "op", "<1..k>": "12", "<sfx>": "12", "<suffix>": "12", "{suffix}": "12"}
_SKILL = re.compile(r"(?<![\w./-])(?:pypto|kernel)-[a-z-]+[a-z]")
_OPERATOR_FOLDERS = ("custom", "eval", "modules", "_debug")
_MADE_IN_DEBUG = ("_debug/", "eval/_debug/")


def check(text: Text) -> Iterator[Finding]:
    """Yield the paths, links and sections in `text` that lead nowhere."""
    for piece in text.spans:
        if _looks_like_a_path(piece.text) and not exists(piece.text, text):
            yield Finding(text.name, piece.line, f"nothing lies at {piece.text}")
    for piece in text.links:
        yield from _link(piece.line, piece.text, text)
    for piece in text.prose:
        for found in _SECTION.finditer(piece.text):
            target = _find(f"{found['file']}.md", text)
            if target and not _has_section(target, found["number"]):
                yield Finding(text.name, piece.line, f"{target.name} has no section {found['number']}")
        for found in _PLANNED.finditer(piece.text):
            if not _has_section(_TEMPLATES / f"{found['file']}.md.j2", found["number"]):
                yield Finding(text.name, piece.line, f"the template of {found['file']}.md has no section {found['number']}")
    for number, line in enumerate(text.text.split("\n"), 1):
        if _HOME.search(line):
            yield Finding(text.name, number, "names a path of one person's machine")


def exists(path: str, text: Text) -> bool:
    """Say whether `path`, as it stands in `text`, is something that exists or will be made."""
    plain = path.rstrip("/").removeprefix("./")
    return _find(plain, text) is not None or _of_an_operator(plain) or _known(plain)


def _looks_like_a_path(span: str) -> bool:
    if "://" in span or "..." in span or span.startswith(("-", "@", "$")) or re.fullmatch(r"[\w.]+/[\w.]+ .*", span):
        return False
    return bool(_NAMED.match(span)) or (bool(_FOLDER.match(span)) and span.endswith("/"))


def _find(path: str, text: Text) -> Path | None:
    """Return the file or folder in the bundle that `path` means, seen from `text`.

    A path may start at the text's folder, at its skill, at a skill that the text names, or at the bundle.
    """
    plain = path.removeprefix("./").rstrip("/")
    skills = [text.root / "skills" / name for name in _skills_named(text)]
    own = [text.skill] if text.skill else []
    for base in [text.path.parent, *own, *skills, text.root, text.root / "skills", text.root / "scripts"]:
        if any(sign in plain for sign in "*<{"):
            if any(base.glob(re.sub(r"<[^>]*>|\{[^}]*\}", "*", plain))):
                return base
        elif (base / plain).exists():
            return base / plain
    for skill in [*own, *skills]:  # deeper in it: `idioms/x.py` for `snippets/idioms/x.py`
        found = next((there for there in sorted(skill.rglob(Path(plain).name)) if there.as_posix().endswith(f"/{plain}")), None)
        if found:
            return found
    return None


def _skills_named(text: Text) -> list[str]:
    words = dict.fromkeys(_SKILL.findall(text.text))
    return [word for word in words if (text.root / "skills" / word).is_dir()]


def _of_an_operator(path: str) -> bool:
    """Say whether a path belongs to the layout of `custom/<op>/`."""
    for placeholder, word in _PLACEHOLDERS.items():
        path = path.replace(placeholder, word)
    path = re.sub(r"^custom/[a-z_]+/?", "", path)
    if not path or path in _OPERATOR_FOLDERS or path.startswith(_MADE_IN_DEBUG):
        return True
    path = path.replace("*", "op_module12") if path.startswith("modules/") else path.replace("*", "op")
    workspace = OpWorkspace(Path("/custom/op"), "op")
    folders = ("", "eval/", "modules/")  # a file is often named without its folder
    if any(f"{folder}{path}" in _layout() for folder in folders):
        return True
    return any(workspace.artifact_of(workspace.root / f"{folder}{path}")[0] is not Artifact.OTHER for folder in folders)


@functools.cache
def _layout() -> frozenset[str]:
    """Return the paths that `OpWorkspace` names, relative to the operator `op`."""
    workspace = OpWorkspace(Path("/custom/op"), "op")
    fixed = [name for name, value in vars(OpWorkspace).items() if isinstance(value, (Place, property))]
    return frozenset(getattr(workspace, name).relative_to(workspace.root).as_posix() for name in fixed)


@functools.cache
def _patterns() -> list[str]:
    found: list[str] = read_yaml(_KNOWN)["paths"]
    return found


def _known(path: str) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in _patterns())


def _link(line: int, goal: str, text: Text) -> Iterator[Finding]:
    if "://" in goal or goal.startswith("mailto:"):
        return
    path, _, anchor = goal.partition("#")
    target = (text.path.parent / path) if path else text.path
    if not target.exists():
        yield Finding(text.name, line, f"the link leads nowhere: {goal}")
    elif anchor and target.suffix == ".md":
        anchors = {_anchor(title) for title in _titles(target)}
        if anchor not in anchors:
            yield Finding(text.name, line, f"{path or text.path.name} has no heading for #{anchor}")


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def _has_section(path: Path, number: str) -> bool:
    number = rf"{re.escape(number)}(?![\d])(?:\.(?!\d)|[\s:)a-z]|$)"
    return any(re.match(number, title) for title in _titles(path))


def _titles(path: Path) -> list[str]:
    """Return the headings of a page, without the sign in front of a section's number."""
    found = markdown.sections(path.read_text(encoding="utf-8"))
    return [section.title.removeprefix("§").lstrip() for section in found]
