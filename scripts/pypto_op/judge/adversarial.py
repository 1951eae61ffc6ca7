"""What eval/adversarial_runner.py of every operator is made of, under the names that the seed binds.

The runner file holds no logic (`runner_text`), so these are the functions behind
`_phase_suffix`, `_load_truth_golden`, `_resolve_impl_wrapper`, `run_modes`, `_compare`, `_sanitize` and
`_FORBIDDEN_REPORT_KEYS`. Neither a candidate nor a golden is imported into the caller's process: what stands for
them here runs them in processes of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto_op.documents.stamps import stamped_python
from pypto_op.errors import ContractError, PyptoOpError
from pypto_op.modes import WORDS
from pypto_op.vocabulary import Mode, Outcome
from pypto_op.workspace import OpWorkspace, phase_suffix, suffix_phase

if TYPE_CHECKING:
    import torch

__all__ = [
    "FORBIDDEN_REPORT_KEYS",
    "ImplModule",
    "compare",
    "load_truth_golden",
    "main",
    "phase_suffix",
    "resolve_impl_wrapper",
    "run_modes",
    "sanitize",
]

FORBIDDEN_REPORT_KEYS = frozenset(
    {"golden", "golden_output", "golden_outputs", "golden_tensors", "golden_source", "golden_code", "truth", "truth_tuple"}
    | {"expected", "reference", "inputs", "input_values", "raw_inputs", "tensor", "tensors", "values", "source", "diff_tensor"}
    | {"outlier_values1", "outlier_values2", "inspection_values", "inspection_tensors"}
)
"""Keys that never reach a report, at any depth. The schema's allow-list removes them and everything else unknown."""

_REMEDY = "restore it with `pypto-op harness new OP_DIR --force`"


@dataclass(frozen=True)
class ImplModule:
    """An implementation file, standing for the module that it would be; the judge never imports it."""

    path: Path  # the file
    workspace: OpWorkspace  # its operator
    phase: int | None = None  # k of the cumulative phase; None for the integrated implementation

    def has(self, function: str) -> bool:
        """Whether the file defines a function at its top level."""
        from pypto_op.documents.golden import read_signature

        try:
            read_signature(self.path, function)
        except ContractError:
            return False
        return True


def load_truth_golden(op_dir: str, op_name: str, suffix: str) -> Callable[..., tuple[torch.Tensor, ...]]:
    """Return the one cumulative golden of a phase; it runs in the reference process, and nothing else is loaded.

    Args:
        suffix: of the phase: "1", "12", "123", ...

    Raises:
        ContractError: the golden is missing; the message names the function that was looked for.
    """
    workspace = OpWorkspace(Path(op_dir).resolve(), op_name)
    k = suffix_phase(suffix)
    file, function = workspace.module_golden(k), workspace.golden_name(k)
    if not file.is_file():
        raise ContractError(f"is missing; {function} was looked for", file=file, remedy=f"write the golden of M{k} first")

    def golden(*primary_inputs: Any) -> tuple[torch.Tensor, ...]:
        from pypto_op.backends.reference import ReferenceSession
        from pypto_op.judge.findings.reasons import ended_with

        with ReferenceSession(workspace, alone=file) as session:
            result = session.golden(primary_inputs, function=function, file=file)
        if result.outcome is not Outcome.OK:
            raise ContractError(f"{function} {ended_with(result)}", file=file, remedy="mend the golden")
        return tuple(result.outputs)

    golden.__name__ = function
    return golden


def resolve_impl_wrapper(impl_module: Any, op_name: str, suffix: str) -> Callable[..., Any]:
    """Return the cumulative wrapper of an implementation; no other name is tried.

    Args:
        impl_module: an `ImplModule`, or a module that somebody else imported.
        suffix: of the phase.

    Raises:
        ContractError: it has no such function; the message names it.
    """
    name = f"{op_name}_module{suffix}_wrapper"
    if not isinstance(impl_module, ImplModule):
        wrapper = getattr(impl_module, name, None)
        if callable(wrapper):
            return wrapper  # type: ignore[no-any-return]
    elif impl_module.has(name):

        def run(*primary_inputs: Any) -> tuple[torch.Tensor, ...]:
            return _run_in_sim(impl_module, name, primary_inputs)

        run.__name__ = name
        return run
    where = impl_module.path if isinstance(impl_module, ImplModule) else getattr(impl_module, "__file__", None)
    raise ContractError(f"naming contract: it has no function {name}", file=where, remedy=f"name the wrapper {name}")


def _run_in_sim(impl: ImplModule, wrapper: str, inputs: Sequence[Any]) -> tuple[torch.Tensor, ...]:
    from pypto_op.backends.registry import get_backend

    with get_backend(Mode.SIM).open(impl.path, wrapper, impl.workspace) as session:
        result = session.run("call", inputs)
    if result.outcome is not Outcome.OK:
        raise ContractError(f"{wrapper} ended with: {result.outcome}: {result.detail}", file=impl.path)
    return tuple(result.outputs)


def _standing_for(impl_module: Any) -> ImplModule:
    """Return the file of an imported module; the judge runs the file in a process of its own.

    Raises:
        ContractError: it has no file, or the file is none of an operator.
    """
    if isinstance(impl_module, ImplModule):
        return impl_module
    file = Path(str(getattr(impl_module, "__file__", None) or "module")).resolve()
    workspace = OpWorkspace.owning(file) if file.is_file() else None
    if workspace is None:
        name = getattr(impl_module, "__name__", type(impl_module).__name__)
        raise ContractError(f"{name} is no implementation of an operator", remedy="import it from custom/<op>/")
    return ImplModule(file, workspace, workspace.artifact_of(file)[1])


def run_modes(impl_module: Any, case: Mapping[str, Any], modes: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Judge one case in every mode; no mode is spared because another failed.

    Args:
        impl_module: what is judged, at the boundary of its phase: an `ImplModule`, or a module that somebody imported.
            Of the latter only the file counts.
        case: a case as in adversarial_suite.json.
        modes: words of `Mode`.

    Returns:
        mode -> {status, per_tensor, max_abs_diff, max_rel_diff, stdout, stderr, runtime_s}.

    Raises:
        ContractError: the contract, the golden or a mode's name is wrong.
        InfraError: the reference process cannot run.
    """
    from pypto_op.judge.reporting.report import largest, worst_leaves
    from pypto_op.judge.verify import judge_case

    try:
        asked = tuple(dict.fromkeys(Mode(mode) for mode in modes))
    except ValueError as error:
        raise ContractError(str(error), remedy=f"use a subset of {WORDS}") from None
    impl_module = _standing_for(impl_module)
    record = judge_case(impl_module.workspace, case, impl=impl_module.path, up_to_module=impl_module.phase, modes=asked)
    results = {}
    for mode, entry in record.modes.items():
        leaves = worst_leaves(entry)
        results[str(mode)] = {
            "status": str(entry.status),
            "per_tensor": leaves,
            "max_abs_diff": largest(leaves, "max_abs_diff"),
            "max_rel_diff": largest(leaves, "max_rel_diff"),
            "stdout": "\n".join(trial.stdout for trial in entry.trials if trial.stdout),
            "stderr": "\n".join(trial.stderr for trial in entry.trials if trial.stderr),
            "runtime_s": sum(trial.seconds for trial in entry.trials),
        }
    return results


def compare(candidate_tuple: Any, truth_tuple: Any, atol: float, rtol: float) -> dict[str, Any]:
    """Compare outputs leaf by leaf: |candidate - truth| <= atol + rtol |truth|, integers exactly.

    Returns:
        {all_close, per_tensor: [{name, max_abs_diff, max_rel_diff, all_close}], problem}. A different number of
        outputs is not close, whatever they hold.
    """
    from pypto_op.compare import compare_leaves
    from pypto_op.documents.policy import get_policy

    actual, expected = _as_tuple(candidate_tuple), _as_tuple(truth_tuple)
    policy = get_policy({"name": "allclose", "version": 1, "atol": atol, "rtol": rtol})
    result = compare_leaves(actual, expected, names=[f"out{i}" for i in range(len(expected))], policy=policy)
    kept = ("name", "max_abs_diff", "max_rel_diff", "all_close")
    rows = [{key: leaf.as_dict()[key] for key in kept} for leaf in result.per_tensor]
    return {"all_close": result.all_close, "per_tensor": rows, "problem": result.message}


def sanitize(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report without forbidden keys, and without any other that its schema does not name."""
    from pypto_op.judge.reporting import report as reports

    return reports.sanitize(_without_forbidden(report))


def main(runner: str, argv: Sequence[str]) -> int:
    """Run the judge for the operator whose `eval/` holds `runner`.

    Returns:
        0 PASS, 1 FAIL, 2 the contract, 3 the machine.
    """
    from pypto_op import cli

    file = Path(runner)
    try:
        check_runner(file)
    except PyptoOpError as error:
        print(f"adversarial_runner: {error.told()}", file=sys.stderr)
        return int(error.exit_code)
    try:
        cli.main(["verify", str(file.parent.parent), *argv])
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


def runner_text() -> str:
    """Return the bytes that every operator's eval/adversarial_runner.py must have."""
    return stamped_python(Path(__file__).with_name("templates").joinpath("adversarial_runner.py.txt").read_text("utf-8"))


def check_runner(file: Path) -> None:
    """Hold a runner file to the bytes that `pypto-op harness new` writes.

    Raises:
        ContractError: it is missing, or somebody changed it.
    """
    try:
        found = file.read_bytes()
    except OSError as error:
        raise ContractError(f"cannot be read ({error.strerror})", file=file, remedy=_REMEDY) from None
    if found != runner_text().encode("utf-8"):
        raise ContractError(
            "is not what pypto-op generates: it was changed, or another version wrote it", file=file, remedy=_REMEDY
        )


def _without_forbidden(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_forbidden(item) for key, item in value.items() if str(key) not in FORBIDDEN_REPORT_KEYS}
    return [_without_forbidden(item) for item in value] if isinstance(value, (list, tuple)) else value


def _as_tuple(outputs: Any) -> tuple[Any, ...]:
    return tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)
