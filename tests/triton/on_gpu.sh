#!/usr/bin/env bash
# Verify and time the six sample tasks on the NVIDIA GPU of this machine, in one command.
#
#   bash tests/triton/on_gpu.sh --wheels     on a machine with a package registry: fetch what a bare GPU machine lacks
#   bash tests/triton/on_gpu.sh [TASK ...]   on the GPU machine; results go to $OUT (default: gpu-out)
#
# The second form needs PyTorch with CUDA and Triton in python3 and nothing from outside. The wheels lie in .gpu-wheels,
# which git ignores, so they must be carried along.
set -uo pipefail
cd "$(dirname "$0")/../.."
wheels=.gpu-wheels
needed=(click==8.5.1 jsonschema==4.26.0 libcst==1.9.0 psutil==7.2.2 PyYAML==6.0.3 safetensors==0.8.0)

if [[ ${1:-} == --wheels ]]; then
  python=.venv/bin/python
  [[ -x $python ]] || python=python3
  for version in 3.11 3.12; do
    "$python" -m pip download --quiet --dest "$wheels" --only-binary :all: --python-version "$version" \
      --implementation cp --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux_2_28_x86_64 "${needed[@]}"
  done
  exit
fi

python=${PYTHON:-python3}
out=$(mkdir -p "${OUT:-gpu-out}" && cd "${OUT:-gpu-out}" && pwd)
if ! "$python" -c 'import click, jsonschema, libcst, psutil, yaml, safetensors' 2>/dev/null; then
  "$python" -m pip install --quiet --no-index --find-links "$wheels" "${needed[@]}" 2>&1 | tail -3 | tee "$out/pip.log"
fi
export PYTHONPATH="$PWD/scripts:$PWD/lint:$PWD"
"$python" tests/triton/gpu_run.py "$out" "$@" 2>&1 | tee "$out/log.txt"
exit "${PIPESTATUS[0]}"
