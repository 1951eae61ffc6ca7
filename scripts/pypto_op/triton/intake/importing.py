"""`import_task`: a public task's file becomes a folder that `verify` takes, small enough for the interpreter."""

from __future__ import annotations

import ast
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pypto_op.backends.base import Limits
from pypto_op.errors import ContractError, PyptoOpError, unreadable, with_kind
from pypto_op.hashing import open_regular
from pypto_op.triton.intake import constants, page
from pypto_op.triton.intake.constants import Site
from pypto_op.triton.run.inputs.describe import describe
from pypto_op.triton.run.inputs.packing import tensors_of
from pypto_op.triton.run.processes.sessions import SurveySession, TaskSession, Told
from pypto_op.triton.run.setup.project import Project, data_names
from pypto_op.triton.run.setup.targets import Place, choose
from pypto_op.vocabulary import ExitCode

_WITHOUT = "\n\ndef get_init_inputs():\n    return []\n"
_LONGEST = 1 << 20


class TaskFails(PyptoOpError):
    """The task is one, but it does not run: it raises, does not end, or wants too much memory (exit 1)."""

    exit_code = ExitCode.FAIL


@dataclass(frozen=True)
class Request:
    """How to import."""

    op_name: str | None = None  # name of the operator; None: made of the file's name
    folder: Path | None = None  # where the task goes; None: a folder of the operator's name here
    gpu: bool = False  # keep the public sizes, for a device
    elements: int = 4096  # of the largest tensor, at most
    flops: int = 1 << 21  # operations of products and convolutions in forward, at most
    fixed: Mapping[str, int] = field(default_factory=dict)  # variables of the task's module that get this number, and keep it
    timeout: float = 120.0  # seconds for everything that the task's own code does
    memory_mb: int = 4096  # resident memory of the task's process


def import_task(file: Path, request: Request = Request()) -> dict[str, Any]:  # noqa: B008
    """Write the folder and return what was done (`pypto-op triton import --json`).

    Raises:
        ContractError: the file is no task, or the folder has something else in it; nothing is changed.
        TaskFails: the task does not run; nothing is changed.
        InfraError: Triton or the device is not there.
    """
    text = _read(file)
    tree = constants.parse(text, file)
    name = request.op_name or op_name_of(file)
    folder = request.folder if request.folder is not None else Path(name)
    _check_folder(folder, name)
    sites = constants.sites(tree)
    fixed = _fixed(sites, request.fixed, file)
    begin = time.monotonic()
    place = choose("interpret")
    with tempfile.TemporaryDirectory(prefix="pypto-op-import-") as scratch:
        project = _staged(Path(scratch) / "task", name, file, tree, text)
        try:
            found = _surveyed(project, place, sites, fixed, request)
            changes = {sites[int(key)]: int(value) for key, value in found["changes"].items()}
            project.task.write_text(constants.replaced(_whole(tree, text), changes, remark=True), encoding="utf-8")
            left = max(1.0, request.timeout - (time.monotonic() - begin))
            drawn = None if request.gpu else _drawn(project, place, left, request)
        except Told as told:
            raise _fails(told, project, file, settable=bool(sites)) from None
        smaller = page.smaller(project.data_files(), settable=bool(sites))
        result = _result(file, name, folder, found, changes, drawn, request, smaller)
        (project.folder / page.NAME).write_text(page.render(result), encoding="utf-8")
        shutil.copytree(project.folder, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("_debug", "__pycache__"))
    return result


def op_name_of(file: Path) -> str:
    """Return a name made of a file's: `19_ReLU.py` is `relu`."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", file.stem).strip("_").lower()
    words = re.sub(r"^[0-9_]+(?=[a-z])", "", words).removesuffix("_torch")
    return words if words and not words[0].isdigit() else f"task_{words}".strip("_")


def _read(file: Path) -> str:
    try:
        with open_regular(file) as stream:
            data = stream.read(_LONGEST + 1)
    except OSError as error:
        raise unreadable(error, file, "give a task's .py file") from None
    try:
        if len(data) > _LONGEST or b"\0" in data:
            raise ValueError
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except ValueError:
        raise ContractError("not Python: no text in UTF-8", file=file, remedy="give a task's .py file") from None


def _check_folder(folder: Path, name: str) -> None:
    """Refuse a folder that holds anything but an earlier import of the same operator."""
    if folder.exists() and not folder.is_dir():
        raise ContractError("this is a file, not a folder", file=folder, remedy="name another with --dir")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    if not ((folder / page.NAME).is_file() and (folder / f"{name}_torch.py").is_file()):
        raise ContractError(
            "the folder is not empty, and no import of this operator", file=folder, remedy="name another with --dir"
        )


def _fixed(sites: list[Site], wanted: Mapping[str, int], file: Path) -> dict[Site, int]:
    found: dict[Site, int] = {}
    for name, value in wanted.items():
        named = [site for site in sites if name in site.name.split(" = ")]
        if not named:
            known = ", ".join(dict.fromkeys(site.name for site in sites)) or "none"
            raise ContractError(f"--set {name}: no such number", file=file, remedy=f"the task's numbers are: {known}")
        found |= dict.fromkeys(named, value)
    return found


def _staged(folder: Path, name: str, file: Path, tree: ast.Module, text: str) -> Project:
    """Lay task, data and the modules beside it that it imports in a folder of our own."""
    folder.mkdir()
    project = Project.at(folder, name, "triton_ascend_impl")
    project.task.write_text(_whole(tree, text), encoding="utf-8")
    for beside in _companions(file, tree, text):
        shutil.copyfile(beside, folder / beside.name)
    return project


def _companions(file: Path, tree: ast.Module, text: str) -> list[Path]:
    """Return the files beside a task that it names: data, and modules that it imports."""
    modules = {alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    names = {*data_names(text), f"{file.stem}.json", f"{file.stem}.jsonl", *(f"{module}.py" for module in modules)}
    return [path for name in sorted(names) if (path := file.parent / name).is_file() and path.resolve() != file.resolve()]


def _whole(tree: ast.Module, text: str) -> str:
    return text if constants.has_constructor_inputs(tree) else text.rstrip("\n") + _WITHOUT


def _surveyed(project: Project, place: Place, sites: list[Site], fixed: dict[Site, int], request: Request) -> dict[str, Any]:
    """Let the task's process look for sizes; a task whose numbers are set need not run with the public ones."""
    message = {
        "sites": [asdict(site) for site in sites],
        "fixed": {str(sites.index(site)): value for site, value in fixed.items()},
        "elements": request.elements,
        "flops": request.flops,
        "keep": request.gpu,
    }
    for public in (True, False) if fixed else (True,):
        session = SurveySession(project, place, Limits(request.memory_mb, request.timeout, request.timeout))
        try:
            return session.survey({**message, "public": public})
        except Told as told:
            told_last = told
        finally:
            session.close()
    raise told_last


def _drawn(project: Project, place: Place, left: float, request: Request) -> dict[str, Any]:
    """Run the first case as `verify` will; return what it is given and returns."""
    session = TaskSession(project, place, Limits(request.memory_mb, left, left))
    try:
        total = session.open(0)
        found = session.case(0, 0)
    finally:
        session.close()
    if found is None:
        raise TaskFails(
            "the task yields no case", file=project.task.name, remedy="let get_inputs return the arguments of forward"
        )
    return {"total": total, **found[0]}


def _fails(told: Told, project: Project, file: Path, *, settable: bool) -> TaskFails:
    words = " ".join(told.message.split())[:400].replace(f"{project.folder}/", "")
    smaller = page.smaller(project.data_files(), settable=settable)
    remedies = {
        "Timeout": f"give it more time (--timeout); {smaller}",
        "OutOfMemory": f"give it more memory (--memory_mb); {smaller}",
    }
    remedy = remedies.get(
        told.error_type, "mend the task; with --set NAME=N you choose its numbers" if settable else "mend the task"
    )
    said = with_kind(told.error_type, words)
    return TaskFails(f"the task does not run (what ran is a copy, line by line): {said}", file=file, remedy=remedy)


def _result(
    file: Path,
    name: str,
    folder: Path,
    found: dict[str, Any],
    changes: dict[Site, int],
    drawn: dict[str, Any] | None,
    request: Request,
    smaller: str,
) -> dict[str, Any]:
    before, after = found["natural"], found["size"]
    result: dict[str, Any] = {
        "op_name": name,
        "source": file.name,
        "folder": str(folder),
        "task": f"{name}_torch.py",
        "implementation": f"{name}_triton_ascend_impl.py",
        "numbers": [{"name": site.name, "public": site.value, "here": value} for site, value in changes.items()],
        "arguments": [
            {"name": word, "public": old, "here": new}
            for word, old, new in zip(found["arguments"], found["inputs_before"], found["inputs"], strict=False)
        ],
        "elements": {"public": before["elements"], "here": after["elements"]},
        "largest_input_or_output": after["data"] or after["elements"],
        "flops": {"public": before["flops"], "here": after["flops"]},
        "small_enough": bool(found["fits"]),
        "cases": 1,
        "outputs": [],
    }
    signs: list[str] = []
    if drawn is not None:
        result["cases"] = drawn["total"]
        result["outputs"] = describe(tensors_of(drawn["outputs"]))
        floats = [tensor for tensor in tensors_of(drawn["inputs"]) if tensor.is_floating_point() and tensor.numel()]
        tensors = [tensor.double() for tensor in floats]  # PyTorch compares no floats of 8 bits
        signs = [str(i) for i, tensor in enumerate(tensors) if bool((tensor >= 0).all()) or bool((tensor <= 0).all())]
        signs = signs if len(signs) == len(tensors) else []
    result["untested"] = page.untested(result, one_sign=bool(signs), draws=found["draws"], gpu=request.gpu, smaller=smaller)
    return result
