#!/usr/bin/env bash
# Print the ids of NPU chips that run no process, separated by spaces. Exit 1: npu-smi is missing or fails.
set -u
table=$(npu-smi info 2>/dev/null) || { echo "list_idle_chip_ids: npu-smi is missing or fails; is this a machine with an NPU?" >&2; exit 1; }
# Lower half of `npu-smi info`: "| NPU Chip | Process id | ..." rows, or "No running processes found in NPU <id>".
idle=$(printf '%s\n' "$table" | sed -n 's/.*No running processes found in NPU \([0-9][0-9]*\).*/\1/p' | sort -n | tr '\n' ' ')
printf '%s\n' "${idle% }"
