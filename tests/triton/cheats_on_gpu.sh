#!/usr/bin/env bash
# Judge every cheat and honest file of tests/triton on the GPU of this machine; results go to $OUT (default: gpu-out).
#
#   bash tests/triton/cheats_on_gpu.sh [NAME or TABLE ...]     with .gpu-wheels of tests/triton/on_gpu.sh carried along
set -uo pipefail
cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
out=$(mkdir -p "${OUT:-gpu-out}" && cd "${OUT:-gpu-out}" && pwd)
"$python" -m pip install --quiet --no-index --no-deps --no-compile --find-links .gpu-wheels click jsonschema \
  jsonschema-specifications referencing rpds-py attrs libcst psutil PyYAML safetensors typing_extensions 2>&1 | tail -3
export PYTHONPATH="$PWD/scripts:$PWD/lint:$PWD"
"$python" tests/triton/cheats_run.py "$out" "$@" 2>&1 | tee "$out/cheats.txt"
exit "${PIPESTATUS[0]}"
