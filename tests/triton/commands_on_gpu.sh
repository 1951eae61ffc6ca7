#!/usr/bin/env bash
# Time whole commands on the GPU of this machine, at the sizes of gpu_shapes; the table goes to $OUT/triton_commands.txt.
#
#   bash tests/triton/commands_on_gpu.sh [TASK ...]     with .gpu-wheels of tests/triton/on_gpu.sh carried along
set -uo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
out=$(mkdir -p "${OUT:-gpu-out}" && cd "${OUT:-gpu-out}" && pwd)/triton_commands.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -c 'import click, jsonschema, libcst, psutil, yaml, safetensors' 2>/dev/null ||
  "$python" -m pip install --quiet --no-index --find-links .gpu-wheels click jsonschema libcst psutil PyYAML safetensors 2>&1 | tail -3
# A machine whose packages cannot be written to compiles them at each start, which is not what is measured.
export PYTHONPATH="$PWD/scripts:$PWD/lint:$PWD" PYTHONPYCACHEPREFIX="$work/bytecode" TIMEFORMAT=%R

timed() { # LABEL COMMAND...
  local label=$1 took
  shift
  took=$({ time "$@" > "$work/said" 2>&1; } 2>&1)
  echo "$took s  $label  $(grep -m1 -E '^(PASS|FAIL|ERROR)' "$work/said")" | tee -a "$out"
}

: > "$out"
bare='import torch, triton; x = torch.ones(8, device="cuda"); (x + x).sum().item()'
command='import sys; from pypto_op.cli import main; sys.exit(main())'
"$python" -c "$bare"
for turn in 1 2; do timed "import torch, triton; one sum" "$python" -c "$bare"; done
for task in ${*:-softmax layernorm matmul reduction fused scatter}; do
  cp -r "examples/triton/$task" "$work/$task"
  cp "tests/triton/gpu_shapes/$task.json" "$work/$task/shapes.json"
  given=(--op_name "$task" --verify_dir "$work/$task" --triton_impl_name triton_ascend_impl --target cuda)
  [[ $task == softmax || $# -gt 0 ]] && "$python" -c "$command" triton verify "${given[@]}" > /dev/null 2>&1 # bytecode
  for turn in 1 2; do
    timed "triton verify $task" "$python" -c "$command" triton verify "${given[@]}"
    timed "triton benchmark $task" "$python" -c "$command" triton benchmark "${given[@]}"
  done
done
