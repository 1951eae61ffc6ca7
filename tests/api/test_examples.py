"""Every example of `pypto-op api` runs in the simulator, and its output equals the torch expression beside it."""

from __future__ import annotations

import pytest

from pypto_op.api.examples import Example, examples
from pypto_op.workspace import OpWorkspace

_GROUP = 14
GROUPS = [list(examples().values())[i : i + _GROUP] for i in range(0, len(examples()), _GROUP)]
"""Several examples share one file and one process: each is the text that is shown, with its wrapper renamed."""


def joined(group: list[Example]) -> str:
    """Return one file with all examples of a group and a wrapper that calls each in turn."""
    parts, calls, names = ["import pypto\nimport torch\n"], [], []
    for example in group:
        body = example.source().removeprefix("import pypto\nimport torch\n")
        parts.append(body.replace("def example_wrapper(", f"def {example.name}_wrapper("))
        own = [f"{example.name}_{port.name}" for port in example.inputs]
        names += own
        calls.append(f"{example.name}_wrapper({', '.join(own)})")
    parts.append(f"def example_wrapper({', '.join(names)}):\n    return ({', '.join(calls)},)\n")
    return "\n\n".join(parts)


def values(torch, example: Example):
    """Return inputs that the example may get."""
    made = []
    for port in example.inputs:
        dtype = getattr(torch, port.torch_dtype)
        if dtype.is_floating_point:
            value = torch.randn(port.shape)
            made.append((value if example.low is None else value.abs() + example.low).to(dtype))
        elif example.distinct:
            made.append(torch.randperm(32)[: port.shape[-1]].expand(port.shape).contiguous().to(dtype))
        else:
            made.append(torch.randint(0, 16, port.shape, dtype=dtype))
    return made


@pytest.mark.sim
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: f"{group[0].name}-to-{group[-1].name}")
def test_the_examples_run_and_are_right(group, tmp_path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("pypto")
    from pypto_op.backends.base import Limits
    from pypto_op.backends.sim import SimBackend

    backend = SimBackend()
    if not backend.availability().numeric:
        pytest.skip(backend.availability().reason)
    root = tmp_path / "custom" / "example"
    (root / "eval").mkdir(parents=True)
    ws = OpWorkspace.at(root)
    ws.impl.write_text(joined(group))
    torch.manual_seed(1)
    inputs = {example.name: values(torch, example) for example in group}
    flat = [value for example in group for value in inputs[example.name]]
    limits = Limits(memory_mb=3000, case_seconds=200, startup_seconds=100)
    with backend.open(ws.impl, "example_wrapper", ws, limits=limits) as session:
        result = session.run("case", flat)
    assert result.outcome == "ok", result.detail + result.stderr[:2000]
    assert result.launches == len(group)
    for example, out in zip(group, result.outputs, strict=True):
        names = dict(zip([port.name for port in example.inputs], inputs[example.name], strict=True))
        wanted = eval(example.torch, {"torch": torch, **names})
        torch.testing.assert_close(out, wanted, rtol=1e-4, atol=1e-5, msg=lambda text, name=example.name: f"{name}: {text}")


def test_every_example_is_a_whole_file_that_parses():
    for example in examples().values():
        compile(example.source(), example.name, "exec")
        assert f"pypto.{example.name}(" in example.source(), example.name
