#!/usr/bin/env bash
# Run the tests beside one another; what fails runs once more, alone, and both answers are told.
# A client, a disk or a time-out can fail a test on a crowded machine; a fault of the code fails it twice.
# Usage: test.sh WORKERS [ARGUMENTS OF PYTEST]
set -uo pipefail
workers=$1
shift
most=10 # more failures than these are no accident of the machine

cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
python -m pytest -n "$workers" --dist worksteal -o "cache_dir=$cache" "$@"
first=$?
((first == 1)) || exit "$first"

failed=$(python -c 'import json, sys; print(len(json.load(open(sys.argv[1]))))' "$cache/v/cache/lastfailed") || exit "$first"
if ((failed > most)); then
  echo "test: $failed tests failed, more than $most, so none is run again" >&2
  exit "$first"
fi
echo "test: $failed failed beside others; they run once more, alone"
if python -m pytest -n 0 -o "cache_dir=$cache" --last-failed --last-failed-no-failures none "$@"; then
  echo "test: the $failed that failed above passed alone: they depend on the machine's load or on chance, and want a look"
  exit 0
fi
exit 1
