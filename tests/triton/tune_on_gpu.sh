#!/usr/bin/env bash
# Tune sample tasks on the GPU of this machine: verify, then `pypto-op triton tune`; results go to $OUT (default: gpu-out).
#
#   bash tests/triton/tune_on_gpu.sh FOLDER OP_NAME     FOLDER holds OP_NAME_torch.py and OP_NAME_triton_ascend_impl.py
#
# python3 needs PyTorch with CUDA, Triton, and the packages of the extras `triton` and `tune`. `timings` of the result is the number of
# benchmarks that the search ran; triton.autotune would run one for each combination of the same options.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$1 op=$2 out=${OUT:-gpu-out}
mkdir -p "$out/$op"
cp -r "$folder/." "$out/$op/"
export PYTHONPATH="$PWD/scripts:$PWD/lint${PYTHONPATH:+:$PYTHONPATH}"
python3 -m pypto_op.cli triton verify --op_name "$op" --verify_dir "$out/$op" --target cuda
python3 -m pypto_op.cli triton tune --op_name "$op" --verify_dir "$out/$op" --target cuda --json | tee "$out/$op/tuned.json"
