#!/usr/bin/env bash
# Play the league on the NVIDIA GPU of this machine: own tests of public kernels against `triton verify`, on planted faults.
#
#   bash benchmarks/public/on_gpu.sh --wheels       on a machine with a package registry: fetch what a bare GPU machine lacks
#   python -m benchmarks.public prepare --source NAME=CHECKOUT ... --out .league
#   bash benchmarks/public/on_gpu.sh                on the GPU machine, with .gpu-wheels and .league carried along; results go to $OUT
#
# LEAGUE_SECONDS (170): no kernel is begun after that. LEAGUE_LANES (16): how many at once.
set -uo pipefail
cd "$(dirname "$0")/../.."
wheels=.gpu-wheels
needed=(pytest==9.2.0 pluggy==1.7.0 iniconfig==2.3.1 packaging==26.3 pygments==2.21.0)

if [[ ${1:-} == --wheels ]]; then
  bash tests/triton/on_gpu.sh --wheels
  exec .venv/bin/python -m pip download --quiet --no-deps --dest "$wheels" --only-binary :all: "${needed[@]}"
fi

python=${PYTHON:-python3}
out=$(mkdir -p "${OUT:-gpu-out}" && cd "${OUT:-gpu-out}" && pwd)
extra=$(mktemp -d)
trap 'rm -rf "$extra"' EXIT
# A virtual environment, not a folder on PYTHONPATH: the judge trusts packages in an environment's own folders alone. One on top of
# another does not see what that holds, so a Python that is one already gets the wheels itself.
if "$python" -c 'import sys; sys.exit(sys.prefix != sys.base_prefix)'; then
  "$python" -m venv --system-site-packages "$extra/venv" && python=$extra/venv/bin/python
fi
"$python" -m pip install --quiet --no-index --no-deps --no-compile --upgrade \
  $("$python" - "$wheels" <<'PY'
import pathlib, sys
tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
print(*(p for p in sorted(pathlib.Path(sys.argv[1]).glob("*.whl")) if tag in p.name or "abi3" in p.name or "-none-" in p.name))
PY
) 2>&1 | tail -3
export PYTHONPATH="$PWD/scripts:$PWD/lint:$PWD" PYPTO_OP_KEY_FILE="$extra/seal.key"
"$python" -m benchmarks.public league --from .league --target cuda --lanes "${LEAGUE_LANES:-16}" \
  --seconds "${LEAGUE_SECONDS:-170}" --limit 40 --tests 24 --out "$out" 2>&1 | tee "$out/league.txt"
exit "${PIPESTATUS[0]}"
