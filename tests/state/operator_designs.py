"""Design, contract and inputs of the two small operators (`operators`)."""

DESIGN = """---
schema_version: "2.1"
op_name: {op}
status: final
compute_kind: vector
dtypes: [float32]
dynamic_axes: [N]
---
# {op}: design

## 0. Complexity and decomposition

### 0.1 Signals
| effective_lines | loop_carried_state_groups | matmul_count | cross_tile_reduce_count |
|---|---|---|---|
| 2 | 0 | 0 | 0 |

### 0.2 Total
total_complexity = 0.07

### 0.3 Decision
Decision: module_count = {n}{override}

### 0.4 Heavy and light operations
| operation | heavy or light | module |
|---|---|---|
| mul | light | M1 |
| add | light | M{n} |

### 0.5 Modules and boundaries
| module | heavy ops | merged light ops | boundary tensor (name, shape) | CU |
|---|---|---|---|---|
{rows}

## 1. API mapping
| step | PyPTO call | dtype in, dtype out | why not another |
|---|---|---|---|
| 1 | x * x | float32 | |
| 2 | + y | float32 | |

## 2. Kernel signature
| parameter | annotation | kind (tensor, int, float) | dynamic axis |
|---|---|---|---|
| x, y, out | pypto.Tensor([pypto.DYNAMIC, 32], pypto.DT_FP32) | tensor | N |

## 3. Tiling
### 3.2.5 Tile code
```python
pypto.set_vec_tile_shapes(16, 32)
```

## 4. Loops
One loop over row tiles; the last tile has fewer valid rows.

## 6. Verification plan
Shapes at tile boundaries, float32, tolerance as in SPEC.md.

## Numerical Stability Profile
Nothing cancels but x * x against y of the opposite sign; both are exact to one rounding.
"""

INTERFACES = {
    1: """schema_version: 1
op: {op}
primary_inputs:
  - {{name: x, shape: [N, D], dtype: float32}}
  - {{name: y, shape: [N, D], dtype: float32}}
modules:
  - id: 1
    name: square_add
    description: square x and add y
    inputs:
      - {{name: x, source: primary}}
      - {{name: y, source: primary}}
    outputs:
      - {{name: out, shape: [N, D], dtype: float32}}
    live_out: [out]
final_outputs:
  - {{name: out, source: module_1}}
composition_verification:
  atol: 1.0e-6
  rtol: 1.0e-5
  seeds: [3, 17]
  shapes: [{{N: 16, D: 32}}, {{N: 17, D: 32}}]
""",
    2: """schema_version: 1
op: {op}
primary_inputs:
  - {{name: x, shape: [N, D], dtype: float32}}
  - {{name: y, shape: [N, D], dtype: float32}}
modules:
  - id: 1
    name: square
    description: square of x
    inputs:
      - {{name: x, source: primary}}
    outputs:
      - {{name: squared, shape: [N, D], dtype: float32}}
    live_out: [squared]
  - id: 2
    name: add
    description: add y
    inputs:
      - {{name: squared, source: module_1}}
      - {{name: y, source: primary}}
    outputs:
      - {{name: out, shape: [N, D], dtype: float32}}
    live_out: [out]
final_outputs:
  - {{name: out, source: module_2}}
composition_verification:
  atol: 1.0e-6
  rtol: 1.0e-5
  seeds: [3, 17]
  shapes: [{{N: 16, D: 32}}, {{N: 17, D: 32}}]
""",
}

TEST_INPUTS = '''"""Inputs of {op} for every case of adversarial_suite.json."""

import os

import torch

PRIMARY_INPUT_ORDER = ["x", "y"]

DEVICE = torch.device(f"npu:{{int(os.environ.get('TILE_FWK_DEVICE_ID', '0'))}}")

_DTYPES = {{"float32": torch.float32}}


def _dtype_from_str(word):
    return _DTYPES[word["default"] if isinstance(word, dict) else word]


def _resolve_shape(names, symbols):
    return tuple(int(symbols[name]) for name in names)


def make_inputs(case):
    """Return {{"x": [N, D], "y": [N, D]}} for one suite case."""
    torch.manual_seed(case.get("seed", 42))
    dtype = _dtype_from_str(case["dtype"])
    shape = _resolve_shape(["N", "D"], case["shape"])
    return {{
        "x": torch.randn(shape, dtype=dtype, device=DEVICE),
        "y": torch.randn(shape, dtype=dtype, device=DEVICE),
    }}
'''
