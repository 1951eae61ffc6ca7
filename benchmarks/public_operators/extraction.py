"""Takes a kernel out of a public file, and puts a changed one back: by the file's statements, so that no line is kept here."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

import click


def assembled(public: str, entries: Sequence[str], wrapper: str) -> str:
    """Return an implementation file: imports and constants of `wrapper`, what the kernels need of `public`, the wrapper's rest.

    Args:
        public: text of the public file.
        entries: names that the file binds at its top, such as the jit function.
        wrapper: text of our own part. A name that it binds is not taken from the public file.

    Raises:
        click.ClickException: the public file does not bind an entry.
    """
    head, tail = _split(wrapper)
    own = {name for statement in ast.parse(wrapper).body for name in _bound(statement)}
    return "\n\n".join([*head, *_sources(public, taken(public, entries, own)), *tail]) + "\n"


def taken(public: str, entries: Sequence[str], own: Collection[str] = ()) -> list[ast.stmt]:
    """Return the statements at the top of `public` that bind `entries` and what these need, but for names in `own`."""
    body = ast.parse(public).body
    binding = {name: statement for statement in body for name in _bound(statement)}
    found: set[int] = set()
    waiting = list(entries)
    if missing := [name for name in entries if name not in binding]:
        raise click.ClickException(f"the public file does not bind {', '.join(missing)}; name another revision or kernel")
    seen = set(own)
    while waiting:
        name = waiting.pop()
        if name in seen or name not in binding:
            continue
        seen.add(name)
        found.add(binding[name].lineno)
        waiting += [inner.id for inner in ast.walk(binding[name]) if isinstance(inner, ast.Name)]
    return [statement for statement in body if statement.lineno in found]


def put_back(public: str, changed: str, entries: Sequence[str], wrapper: str) -> str:
    """Return the public file with what `assembled` took replaced by what stands for it in `changed`, a mutant of the result."""
    own = {name for statement in ast.parse(wrapper).body for name in _bound(statement)}
    now = {name: statement for statement in ast.parse(changed).body for name in _bound(statement)}
    lines, new = public.splitlines(keepends=True), changed.splitlines(keepends=True)
    for statement in reversed(taken(public, entries, own)):
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            continue
        for_it = now[next(iter(_bound(statement)))]
        lines[_first(statement) - 1 : statement.end_lineno] = [*new[_first(for_it) - 1 : for_it.end_lineno], "\n"]
    return "".join(lines)


def _split(wrapper: str) -> tuple[list[str], list[str]]:
    """Return the texts of the statements before the first definition, and of it and those after it."""
    body = ast.parse(wrapper).body
    first = next((i for i, one in enumerate(body) if isinstance(one, (ast.FunctionDef, ast.ClassDef))), len(body))
    return list(_sources(wrapper, body[:first])), list(_sources(wrapper, body[first:]))


def _sources(text: str, statements: Sequence[ast.stmt]) -> Iterator[str]:
    lines = text.splitlines(keepends=True)
    for statement in statements:
        yield "".join(lines[_first(statement) - 1 : statement.end_lineno]).rstrip("\n")


def _first(statement: ast.stmt) -> int:
    return min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", ()))])


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement at the top binds."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (one.asname or one.name.partition(".")[0] for one in names)
        case ast.Assign(targets=targets):
            yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
