#!/usr/bin/env bash
# Tune sample tasks on the GPU of this machine, and time every combination of the same options; results go to $OUT (gpu-out).
#
#   bash tests/triton/tune_on_gpu.sh --wheels     on a machine with a package registry: fetch what a bare GPU machine lacks
#   bash tests/triton/tune_on_gpu.sh TASK ...     on the GPU machine, with .gpu-wheels carried along
#
# TUNE_SECONDS (480): the most for all tasks. The wheels of tests/triton/on_gpu.sh are needed too.
set -uo pipefail
cd "$(dirname "$0")/../.."
wheels=.gpu-wheels
needed=(optuna==5.0.0 alembic==1.20.1 colorlog==6.12.0 mako==1.4.3 MarkupSafe==3.0.4 sqlalchemy==2.1.9 tqdm==4.70.1 packaging==26.3)

if [[ ${1:-} == --wheels ]]; then
  bash tests/triton/on_gpu.sh --wheels
  exec .venv/bin/python -m pip download --quiet --no-deps --dest "$wheels" --only-binary :all: --python-version 3.12 \
    --implementation cp --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux_2_28_x86_64 "${needed[@]}"
fi

python=${PYTHON:-python3}
out=$(mkdir -p "${OUT:-gpu-out}" && cd "${OUT:-gpu-out}" && pwd)
"$python" -m pip install --quiet --no-index --no-deps --no-compile --find-links "$wheels" click jsonschema jsonschema-specifications \
  referencing rpds-py attrs libcst psutil PyYAML safetensors typing_extensions "${needed[@]}" 2>&1 | tail -3
export PYTHONPATH="$PWD/scripts:$PWD/lint:$PWD"
"$python" tests/triton/tune_run.py "$out" "$@" 2>&1 | tee "$out/tune.txt"
exit "${PIPESTATUS[0]}"
