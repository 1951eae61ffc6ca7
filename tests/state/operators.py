"""Two small complete operators, written artefact by artefact in the order in which a team writes them.

`chain` (two modules: square, then add) takes the staged path, `square_add` (the same sum in one kernel) the single
one. The kernels are real: the simulator runs them.
"""

import json
from pathlib import Path

from tests.state.operator_designs import DESIGN, INTERFACES, TEST_INPUTS

from pypto_op.generators.writing.integration import cleanup
from pypto_op.generators.writing.tests import new_tests
from pypto_op.judge.adversarial import runner_text
from pypto_op.workspace import OpWorkspace

FRONT = """---
schema_version: "1.0"
op_name: {op}
supported_dtypes: [float32]
"""

SPEC = (
    FRONT
    + """p0_shapes:
  - {{N: 32, D: 32}}
tolerance:
  float32: {{atol: 1.0e-06, rtol: 1.0e-05}}
dynamic_axes: [N]
dynamic_axes_ranges:
  N: [1, 4096]
shape_constraints: [D == 32]
---
# {op}

## 1. What it does
The square of x plus y, element by element.

### Parameters
| name | kind | shape | dtype | meaning |
|---|---|---|---|---|
| x | tensor | [N, D] | float32 | squared |
| y | tensor | [N, D] | float32 | added |

## 2. Formula
$$ out = x \\cdot x + y $$

## 3. Algorithm
1. square x; 2. add y.

## 5. Inputs and outputs
| tensor | direction | shape | dtype | notes |
|---|---|---|---|---|
| x | in | [N, D] | float32 | |
| y | in | [N, D] | float32 | |
| out | out | [N, D] | float32 | |

## 6. Dtypes
| input dtype | accumulation dtype | output dtype |
|---|---|---|
| float32 | float32 | float32 |

## 7. Precision
atol 1e-6 and rtol 1e-5: two roundings.

## 8. Dynamic axes
N.
"""
)

API_REPORT = (
    FRONT
    + """dynamic_axes: [N]
tiling_required: true
feasibility: feasible
---
# {op}: which PyPTO calls do it

## 1. Overview
Two element-wise operations.

## 3. API mapping
| step | expression | PyPTO API | level | constraint ok | workaround |
|---|---|---|---|---|---|
| 1 | x * x | pypto.mul | direct | yes | |
| 2 | + y | pypto.add | direct | yes | |

## 4. Constraints
Same shape and dtype on both sides.

## 5. Tiling
Rows are cut in tiles of 16; the last tile may be ragged.

## 9. Verdict
Feasible.
"""
)

GOLDEN = '''"""Torch reference of {op}.

Golden function inventory
 1. square x   [N, D] -> [N, D]
 2. add y      [N, D] -> [N, D]
"""


def {op}_golden(x, y):
    """x, y: [N, D] float. Returns [N, D]."""
    squared = x * x  # [N, D]
    return squared + y  # [N, D]
'''

GOLDEN_PERF_REPORT = """# {op}: golden performance

## Op Performance

| op | count | mean_duration | total |
|---|---|---|---|
| mul | 1 | 2.0 | 2.0 |
| add | 1 | 2.0 | 2.0 |

## End to end
Median of one call: 6 us.
"""

KERNEL = '''"""{title}"""

import os

import pypto
import torch
import torch_npu  # noqa: F401  (registers the npu device)

torch.npu.set_device(int(os.environ.get("TILE_FWK_DEVICE_ID", "0")))

ROWS, WIDTH = 16, 32


def {name}_square(x, row, rows):
    """Return the square of one tile."""
    pypto.set_vec_tile_shapes(16, 32)
    tile = pypto.view(x, [ROWS, WIDTH], [row, 0], valid_shape=[rows, WIDTH])
    return tile * tile


{add}@pypto.frontend.jit(runtime_options={{"run_mode": pypto.RunMode.NPU}})
def {name}_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    y: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
    out: pypto.Tensor([pypto.DYNAMIC, WIDTH], pypto.DT_FP32),
):
    count = x.shape[0]
    for step in pypto.loop((count + ROWS - 1) // ROWS, name="ROWS", idx_name="step"):
        row = step * ROWS
        rows = pypto.min(count - row, ROWS)
        pypto.assemble({value}, [row, 0], out)


def {name}_wrapper(x, y):
    """x, y: [N, 32] float32, contiguous. Returns [N, 32]."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    {name}_kernel(x, y, out)
    return out
'''

ADD = '''def {name}_add(squared, y, row, rows):
    """Return the square plus a tile of y."""
    pypto.set_vec_tile_shapes(16, 32)
    return squared + pypto.view(y, [ROWS, WIDTH], [row, 0], valid_shape=[rows, WIDTH])


'''

VALUES = {
    1: "{name}_square(x, row, rows) + 0.0 * {name}_square(y, row, rows)",
    2: "{name}_add({name}_square(x, row, rows), y, row, rows)",
}

MODULE_GOLDEN = '''# Derived from module_interfaces.yaml. Do not hand-edit; on YAML changes, regenerate.
# generated during Phase M{k} scaffolding; do not hand-edit below the header
"""Cumulative golden of {name}."""


def {name}_golden(x, y):
    """x, y: [N, D] float. Returns [N, D]."""
    return {value}
'''

README = """# {op}

The square of x plus y. Call `{op}_wrapper(x, y)`.
"""

TUNING_REPORT = """# {op}: tuning

Baseline and result: one tile shape fits; nothing was adopted.
"""

SELF_REVIEW = """
## Phase M{k} self-review

- [x] host_wrapper signature matches the interfaces
- [x] every output is written
- [x] view offsets and valid shapes agree
- [x] Golden function inventory rows carry a check mark
- [x] no `for ... in range` on the host
- [x] the kernel is launched exactly once
"""


MEMORY = """# {op}: memory

## Experience Preflight

- [x] no cast that the device cannot do in one step

## Golden function inventory

| # | operation | shape change | PyPTO | Line | Status |
|---|---|---|---|---|---|
| 1 | square x | [N, D] -> [N, D] | `*` | 21 | ✅ |
| 2 | add y | [N, D] -> [N, D] | `+` | 27 | ✅ |
"""


class Operator:
    """Writes the artefacts of one operator; each method is one stage's or one role's work."""

    def __init__(self, root, *, op, n):
        self.root, self.op, self.n = Path(root), op, n
        self.root.mkdir(parents=True, exist_ok=True)

    def write(self, relative, text, **values):
        path = self.root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(op=self.op, n=self.n, **values) if values or "{op}" in text else text)
        return path

    def planning(self):
        self.write("SPEC.md", SPEC)
        self.write("API_REPORT.md", API_REPORT)

    def golden(self):
        self.write(f"{self.op}_golden.py", GOLDEN)
        self.write("GOLDEN_PERF_REPORT.md", GOLDEN_PERF_REPORT)

    def architecture(self):
        names = ("squared", "out")[-self.n :]
        rows = "\n".join(f"| M{k} | | x | {name} [N, D] | 0.04 |" for k, name in enumerate(names, 1))
        override = "" if self.n == 1 else "\nOverride reason: the team's exercise in the staged path"
        self.write("DESIGN.md", DESIGN, rows=rows, override=override)

    def design(self):
        self.write("eval/module_interfaces.yaml", INTERFACES[self.n])
        self.write("eval/test_inputs.py", TEST_INPUTS)
        self.write("eval/adversarial_suite.json", json.dumps(self.suite(), indent=1))
        (self.root / "eval" / "adversarial_runner.py").write_text(runner_text())

    def suite(self):
        rows = {"L1": (16, 21), "L2": (16, 32), "L3": (1, 17), "L4": (48, 67), "L5": (15, 33)}
        cases = [
            {
                "id": f"{level}_{rows_}",
                "level": level,
                "shape": {"N": rows_, "D": 32},
                "dtype": {"default": "float32"},
                "precision": level != "L1",
                "atol": 1e-6,
                "rtol": 1e-5,
                "seed": 42,
            }
            for level, counts in rows.items()
            for rows_ in counts
        ]
        return {"schema_version": 1, "op": self.op, "total_modules": self.n, "cases": cases}

    def kernel(self, name, k):
        value = VALUES[k].format(name=name)
        add = ADD.format(name=name) if k > 1 else ""
        return KERNEL.format(title=f"{name}: M1..M{k}.", name=name, value=value, add=add)

    def module(self, k):
        suffix = "".join(str(i) for i in range(1, k + 1))
        name = f"{self.op}_module{suffix}"
        value = "x * x" if k == 1 else "x * x + y"
        self.write(f"modules/{name}_impl.py", self.kernel(name, k))
        self.write(f"modules/{name}_golden.py", MODULE_GOLDEN.format(name=name, value=value, k=k))
        new_tests(OpWorkspace.at(self.root), phase=k)
        self.review(k)

    def review(self, k):
        memory = self.root / "MEMORY.md"
        text = memory.read_text() if memory.exists() else MEMORY.format(op=self.op)
        memory.write_text(text + SELF_REVIEW.format(k=k))

    def integrated(self):
        if self.n > 1:
            made = cleanup(OpWorkspace.at(self.root))  # what a team on the staged path calls; its gate must take it
            assert made.findings == []
        else:
            self.write(f"{self.op}_impl.py", self.kernel(self.op, 2))
            self.write("README.md", README)
        new_tests(OpWorkspace.at(self.root), e2e=True)

    def tuning(self):
        self.write(f"{self.op}_tuning_report.md", TUNING_REPORT)
