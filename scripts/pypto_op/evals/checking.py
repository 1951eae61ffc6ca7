"""Whether a request and its hidden golden fit each other, before a team is asked: `pypto-op eval --check FOLDER`.

A golden that is wrong, or that nobody can call, would grade every team wrongly; so each rule of docs/evals.md is tried here.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from pypto_op.errors import ContractError
from pypto_op.evals import hidden
from pypto_op.evals.requests import CANARY, Request

INDEPENDENT_TOLERANCE = 1e-9
_MOST_ELEMENTS = 1 << 20
"""Of a case's axes multiplied: larger ones are left out, but for the two smallest."""
Module = Mapping[str, Any]


def check(request: Request) -> str:
    """Return in a few words what was tried.

    Raises:
        ContractError: the first fault, with file and place.
    """
    for pattern in request.data.get("question_names", []):
        _compiles(request, pattern)
    if "cases" not in request.data:
        return "asks a question; no golden is needed"
    _names(request)
    golden, draws = _golden(request), _run(request, hidden.inputs_text(request), "draws")
    cases = sorted(request.data["cases"], key=lambda case: prod(case["shape"].values()))
    tried = [case for number, case in enumerate(cases) if number < 2 or prod(case["shape"].values()) <= _MOST_ELEMENTS]
    for case in tried:
        _try_case(request, golden, draws, case)
    from pypto_op.judge.cases.contract import load_contract
    from pypto_op.workspace import OpWorkspace

    for reading in request.data.get("readings", [""]):
        with hidden.made(request, reading) as root:
            load_contract(OpWorkspace.at(root))
    return f"fits its golden; {len(tried)} of {len(cases)} cases tried"


def _fault(request: Request, problem: str, remedy: str, *, where: str = "", golden: bool = False) -> ContractError:
    file = request.golden if golden else request.folder / "request.yaml"
    return ContractError(problem, file=file, where=where or None, remedy=remedy)


def _compiles(request: Request, pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise _fault(request, f"{pattern!r} is no regular expression ({error})", "mend it", where="question_names") from None


# -- names in request.yaml -----------------------------------------------------------------------------------------


def _names(request: Request) -> None:
    """Refuse names that no other part of the request knows: they would be passed over without a word."""
    data = request.data
    tensors = {entry["name"] for entry in data["inputs"] if "value" not in entry}
    scalars = {entry["name"] for entry in data["inputs"] if "value" in entry}
    for entry in data["inputs"]:
        where = f"inputs, {entry['name']}"
        if ("value" in entry) != (not entry["shape"]):
            raise _fault(request, "a scalar has shape [] and a value, and nothing else has", "give both, or none", where=where)
        if entry["dtype"].startswith(("int", "uint")) and "value" not in entry and "high" not in entry.get("draw", {}):
            raise _fault(request, "integers are drawn below `high`, which is missing", "write draw: {high: N}", where=where)
    for case in data["cases"]:
        where = f"cases, {case['id']}"
        for key, known in (("scalars", scalars), ("draws", tensors)):
            for name in sorted(case.get(key, {}).keys() - known):
                raise _fault(
                    request, f"{key} names {name!r}, which is none of the inputs", f"there are {_list(known)}", where=where
                )
        if case["dtype"] not in data["tolerance"]:
            raise _fault(request, f"no tolerance for {case['dtype']}", "add it to tolerance", where=where)
        for symbol in sorted(set(_symbols(data)) - case["shape"].keys() - scalars):
            raise _fault(request, f"the case gives {symbol} no size", "add it to its shape", where=where)


def _symbols(data: Mapping[str, Any]) -> list[str]:
    axes = [str(axis) for entry in (*data["inputs"], *data["outputs"]) for axis in entry["shape"]]
    return [symbol for axis in axes for symbol in re.findall(r"[A-Za-z_]\w*", axis)] + list(data["dynamic_axes"])


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


# -- the golden ----------------------------------------------------------------------------------------------------


def _golden(request: Request) -> Module:
    """Return the golden's module, with each function that a grader or a check calls."""
    try:
        text = request.golden.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _fault(request, f"cannot be read ({error})", "write it as UTF-8", golden=True) from None
    if not text.startswith(f'"""{CANARY}'):
        raise _fault(
            request, f"it does not begin with {CANARY!r}", f'begin with """{CANARY}: ...""", so that a leak shows', golden=True
        )
    module = _run(request, text, "golden.py")
    wanted = [*request.data.get("readings", [f"{request.op}_golden"]), "independent"]
    if wanted[0] != f"{request.op}_golden":
        raise _fault(request, f"the first reading is {request.op}_golden", "name it first", where="readings")
    names = [entry["name"] for entry in request.data["inputs"]]
    for name in wanted:
        function = module.get(name)
        if not inspect.isfunction(function):
            raise _fault(request, f"it has no function {name}", f"write def {name}({', '.join(names)})", golden=True)
        if list(inspect.signature(function).parameters) != names:
            raise _fault(
                request, f"{name} takes other arguments than the inputs", f"write def {name}({', '.join(names)})", golden=True
            )
    if re.search(r"^(def|class) (?!independent\b)", text.partition("\n\ndef independent(")[2], re.MULTILINE):
        raise _fault(
            request, "something follows independent, and the judge gets only what stands above it", "let it be last", golden=True
        )
    return module


def _run(request: Request, text: str, name: str) -> Module:
    """Run a golden or the draws, on the CPU."""
    made = types.ModuleType("made")
    try:
        exec(compile(text.replace('torch.device(f"npu:', 'torch.device(f"cpu:'), name, "exec"), made.__dict__)  # noqa: S102
    except Exception as error:
        raise _fault(request, f"{name}: {type(error).__name__}: {error}", "mend it", golden=True) from None
    return vars(made)


def _try_case(request: Request, golden: Module, draws: Module, case: Mapping[str, Any]) -> None:
    """Hold the golden's outputs against the contract, and in float64 against `independent`."""
    import torch

    where, name = f"case {case['id']}", f"{request.op}_golden"
    drawn = _called(request, where, lambda: list(draws["make_inputs"]({**case, "seed": 42}).values()))
    sizes = {**case["shape"], **{entry["name"]: one for entry, one in zip(request.data["inputs"], drawn, strict=True)}}
    outputs = _called(request, where, partial(_outputs, golden[name], drawn))
    if len(outputs) != len(request.data["outputs"]):
        problem = f"{name} returns {len(outputs)} tensors, and outputs names {len(request.data['outputs'])}"
        raise _fault(request, problem, "return them in that order", where=where, golden=True)
    for output, said in zip(outputs, request.data["outputs"], strict=True):
        dtype = getattr(torch, case["dtype"] if said["dtype"] == "case" else said["dtype"], None)
        shape = _called(request, where, partial(_shape, draws, said["shape"], sizes))
        if (output.dtype, tuple(output.shape)) != (dtype, shape):
            problem = f"{said['name']} is {output.dtype} {list(output.shape)}, and the request says {dtype} {list(shape)}"
            raise _fault(request, problem, "return what outputs says", where=where, golden=True)
    _agree(request, golden, drawn, where)


def _agree(request: Request, golden: Module, drawn: Sequence[Any], where: str) -> None:
    """Hold golden and `independent` against each other in float64."""
    import torch

    name, limit = f"{request.op}_golden", INDEPENDENT_TOLERANCE
    wide = [one.double() if isinstance(one, torch.Tensor) and one.is_floating_point() else one for one in drawn]
    ours, theirs = (_called(request, where, partial(_outputs, golden[each], wide)) for each in (name, "independent"))
    if len(ours) != len(theirs):
        problem = f"independent returns {len(theirs)} tensors, not {len(ours)}"
        raise _fault(request, problem, "return the same", where=where, golden=True)
    for one, other, said in zip(ours, theirs, request.data["outputs"], strict=True):
        if one.is_floating_point() and one.dtype != torch.float64:
            problem = f"{said['name']} is {one.dtype} for float64 inputs"
            remedy = "compute in the wider of float32 and the input's dtype"
            raise _fault(request, problem, remedy, where=where, golden=True)
        if one.shape != other.shape or not torch.allclose(one.double(), other.double(), rtol=limit, atol=limit, equal_nan=True):
            problem = f"{name} and independent differ in {said['name']} beyond {limit:g} in float64"
            raise _fault(request, problem, "mend the one that is wrong", where=where, golden=True)


def _called(request: Request, where: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        raise _fault(request, f"{type(error).__name__}: {error}"[:300], "mend golden or case", where=where, golden=True) from None


def _shape(draws: Module, axes: Sequence[Any], sizes: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(draws["_size"](axis, sizes) for axis in axes)


def _outputs(function: Callable[..., Any], inputs: Sequence[Any]) -> list[Any]:
    """Return the tensors that a golden makes of copies of its inputs."""
    result = function(*(one.clone() if hasattr(one, "clone") else one for one in inputs))
    found = list(result) if isinstance(result, tuple) else [result]
    for one in found:
        if not hasattr(one, "dtype"):
            raise TypeError(f"a golden returns tensors, and this one a {type(one).__name__}")
    return found
