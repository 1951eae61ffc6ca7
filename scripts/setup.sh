#!/usr/bin/env bash
# Make .venv and install the bundle into it; check the C++ tool chain that `sim` needs for numbers.
# Usage: setup.sh PYTHON VENV
set -euo pipefail
python=$1 venv=$2
here=$(cd "$(dirname "$0")/.." && pwd)
source "$here/scripts/speak.sh"

fits() { "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 13))' 2>/dev/null; }
if ! fits "$python"; then
  for candidate in python3.11 python3.12 python3.10; do
    if fits "$candidate"; then python=$candidate; break; fi
  done
fi
if ! fits "$python"; then
  echo "setup: Python 3.10, 3.11 or 3.12 is needed and none was found; install one, or run make PYTHON=/path/to/python3.11" >&2
  exit 3
fi

missing=()
for tool in cmake g++ make; do command -v "$tool" >/dev/null || missing+=("$tool"); done
if ((${#missing[@]})); then
  packages="${missing[*]}"
  if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
    echo "setup: installing ${packages} with apt"
    speaking "installing ${packages}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive speaking "installing ${packages}" apt-get install -y -qq ${packages} >/dev/null
  else
    echo "setup: ${packages} missing, so sim will check structure only; for numbers run: sudo apt-get install -y ${packages}" >&2
  fi
fi

[[ -x $venv/bin/python ]] || "$python" -m venv "$venv"
echo "setup: installing into $venv (a minute or two, once)"
speaking "installing packages" "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[sim,triton,mcp,run,lsp,tune,dev]' 2> >(grep -v '^WARNING: Location' >&2)
# An editable install compiles nothing, and where PYTHONDONTWRITEBYTECODE is set nobody else does: every hook would.
"$venv/bin/python" -m compileall -q "$here/lint" "$here/scripts"
# A copy of the plugin, as a harness keeps one, finds its Python by this note (hooks/find.sh).
noted=${XDG_DATA_HOME:-$HOME/.local/share}/pypto-op
if mkdir -p "$noted" 2>/dev/null && [[ -w $noted ]]; then printf '%s\n' "$here" >"$noted/checkout"; fi
# pypto's calculator, built now and kept by content in the user's cache: a second checkout finds it there.
"$venv/bin/python" -m pypto_op.cli doctor --build >/dev/null || echo "setup: sim is not ready; \`pypto-op doctor\` says why" >&2
echo "setup: done"
