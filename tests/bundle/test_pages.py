"""What the pages for people, and the docstrings, name is there: links, headings, paths, modules, commands, rules, agents.

The pages of agents and skills are held by `pypto-op bundle check`. Files move; a page that names the old place misleads.
"""

from __future__ import annotations

import ast
import fnmatch
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pypto_op.bundle.checks import command_lines, names, paths
from pypto_op.bundle.texts import Text
from pypto_op.triton import run

ROOT = Path(__file__).parents[2]
FOREIGN = {"docs/framework-scripts.md", "docs/public-operators.md"}
"""Tables of files of the framework's own repository."""

PAGES = [
    *sorted(page for page in ROOT.glob("*.md") if page.name != "CHANGELOG.md"),
    *sorted(page for page in ROOT.glob("docs/*.md") if page.relative_to(ROOT).as_posix() not in FOREIGN),
    *sorted(ROOT.glob("commands/*.md")),
    *(ROOT / folder / "README.md" for folder in ("hooks", "evals", "examples", "plugin")),
]
MADE = {
    "README.md": ["custom/softmax/softmax_impl.py"],
    "README.zh.md": ["custom/softmax/softmax_impl.py"],
    "docs/dependencies.md": [".clients"],
    "docs/evals.md": ["result.json", "index.html", "evals/requests/NAME"],
    "docs/execution.md": ["failure.json", "outcome.txt", "stdout.txt", "stderr.txt"],
    "docs/exploits.md": ["random.py", "torch.py"],
    "docs/first-hour.md": ["output", "kernel_details.csv"],
    "docs/install.md": ["DIR/*", "hooks/place.sh", ".claude/*", "opencode.json", ".opencode/*", "~/*", ".pypto-op/*", "no.py"],
    "docs/pool.md": ["work/*.left_behind.txt"],
    "docs/state.md": ["~/*"],
    "docs/triton-public.md": ["29_Softplus.py", "softplus/*"],
    "docs/tuning.md": ["A2A3.ini", "eval/perf.html"],
    "docs/versions.md": ["models", "hello_world.py"],
    "hooks/README.md": ["plugins", "index.json", "events.jsonl", "server.log"],
}
"""What is no file of this repository: what a reader writes, a command makes, or others bring."""

INVENTED = {"docs/adding-an-agent.md": ["pypto-op-reviewer", "has no command 'that'"]}
"""What a page makes up on purpose."""

ROOMS = sorted(path.name for path in (ROOT / "scripts/pypto_op").iterdir() if path.is_dir() and not path.name.startswith("_"))
DOTTED = re.compile(rf"`((?:{'|'.join(ROOMS)})(?:\.\w+)+)`")
OF_TRITON = {"triton.autotune", "triton.jit", "triton.constexpr_function", "triton.compiler", "triton.heuristics"}
"""The package of that name, and not our room."""

SOURCES = sorted(ROOT.glob("scripts/pypto_op/**/*.py"))


@functools.cache
def files() -> tuple[str, ...]:
    """Every file and folder of the repository that a page may name, with a slash in front."""
    tops = ("scripts", "lint", "tests", "docs", "skills", "examples", "benchmarks", "schemas", "hooks", "evals", "commands")
    found = [path for top in tops for path in (ROOT / top).rglob("*") if "__pycache__" not in path.parts]
    return tuple("/" + path.relative_to(ROOT).as_posix() for path in [*ROOT.iterdir(), *found])


def is_there(path: str) -> bool:
    """Whether a file's or folder's path ends so; what stands in brackets stands for anything."""
    ending = "*/" + re.sub(r"<[^>]*>|\{[^}]*\}", "*", path.rstrip("/").removeprefix("./"))
    return any(fnmatch.fnmatchcase(each, ending) for each in files())


@functools.cache
def known() -> names.Known:
    return names.Known(ROOT)


def problems(page: Path) -> Iterator[str]:
    text = Text(page, ROOT, page.read_text(encoding="utf-8"))
    for finding in (*paths.check(text), *command_lines.check(text), *names.check(text, known())):
        _, nowhere, path = finding.problem.partition("nothing lies at ")
        if nowhere and (is_there(path) or any(fnmatch.fnmatch(path.rstrip("/"), made) for made in MADE.get(text.name, ()))):
            continue
        invented = any(word in finding.problem for word in INVENTED.get(text.name, ()))
        if not invented and "has no pypto." not in finding.problem:  # a page may speak of other releases of pypto
            yield finding.one_line()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_names_is_there(page: Path) -> None:
    assert list(problems(page)) == []


def test_the_two_readmes_name_the_same_commands_and_pages() -> None:
    """A page, a command or a heading that one of them lacks is one that its readers do not find."""

    def named(page: str) -> dict[str, list[str]]:
        text = (ROOT / page).read_text(encoding="utf-8")
        commands = re.findall(r"^\$ (.*?)(?: +#.*)?$", text, re.MULTILINE)
        spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
        links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("README")]
        rows = [str(text.count("\n|")), str(text.count("\n## "))]
        return {"commands": commands, "spans": sorted(set(spans)), "links": links, "rows and headings": rows}

    assert len(named("README.md")["links"]) > 30
    assert named("README.zh.md") == named("README.md")


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""


def is_module(dotted: str) -> bool:
    """Whether the name is a package's, or begins with a module's."""
    parts = dotted.split(".")
    room = ROOT / "scripts/pypto_op"
    if parts[1][0].isupper():  # a class that the package itself offers
        return parts[1] in (room / parts[0] / "__init__.py").read_text(encoding="utf-8")
    return room.joinpath(*parts).is_dir() or any(
        room.joinpath(*parts[:length]).with_suffix(".py").is_file() for length in range(2, len(parts) + 1)
    )


def test_a_module_that_a_docstring_names_is_there() -> None:
    named = [
        (f"{path.relative_to(ROOT)}:{line}", name)
        for path in SOURCES
        for line, text in docstrings(path)
        for name in DOTTED.findall(text)
        if not any(name.startswith(other) for other in OF_TRITON)
    ]
    assert len(named) > 20
    assert [(place, name) for place, name in named if not is_module(name)] == []


def test_a_package_lists_modules_that_it_has() -> None:
    """The docstring of a package has rows such as `sites.py   what it is for`."""
    listed, wrong = 0, []
    for path in SOURCES:
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "" if path.name == "__init__.py" else ""
        rows = re.findall(r"^(\w+(?:\.py|/)) ", text, re.MULTILINE)
        listed += len(rows)
        wrong += [f"{path.relative_to(ROOT)}: {name}" for name in rows if not (path.parent / name).exists()]
    assert listed > 30 and wrong == []


def test_each_kind_of_refusal_of_a_triton_run_is_explained_to_agents() -> None:
    page = (ROOT / "skills/kernel-verifier/references/results.md").read_text(encoding="utf-8")
    sources = "\n".join(path.read_text(encoding="utf-8") for path in Path(run.__file__).parent.rglob("*.py"))
    kinds = set(re.findall(r'\bJudgement\(\s*"(\w+)"', sources)) | set(
        re.findall(r"^class (\w+Error)\(\w*Error\)", sources, re.M)
    )
    assert len(kinds) > 8 and sorted(kind for kind in kinds if kind not in page) == []
