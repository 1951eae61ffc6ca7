# Finds the bundle and the Pythons that may serve it. Sourced by hook.sh, server.sh and pypto-op, which set `here`, the
# folder of this file. Sets `bundle` (empty: none) and `pythons`, one a line, best first; `explain` says what is missing.
#
# An installed workspace has place.sh beside this file, written by `pypto-op install`: it names both. A plugin finds
# the checkout that it is a part of, the marketplace's clone that it was copied from, the checkout that `make setup`
# noted last, or the `pypto-op` on PATH.

installed='' placed='' python=''
if [ -f "$here/place.sh" ]; then
  . "$here/place.sh"
  installed=1 placed=$bundle
fi

candidates() {
  [ -z "$PYPTO_OP_ROOT" ] || echo "$PYPTO_OP_ROOT"
  if [ -n "$installed" ]; then echo "$placed"; return; fi
  echo "$here/.."
  echo "$here/../../../../../marketplaces/pypto-op"
  noted=${XDG_DATA_HOME:-$HOME/.local/share}/pypto-op/checkout
  if [ -f "$noted" ]; then read -r line <"$noted" && echo "$line"; fi
}

# The Python of the `pypto-op` on PATH that is a Python script: what `uv tool install` and `pipx` leave there.
python_on_path() {
  script=$(command -v pypto-op 2>/dev/null) && [ -f "$script" ] && IFS= read -r line <"$script" 2>/dev/null || return
  case $line in '#!'*python*) line=${line#'#!'} && [ -x "${line%% *}" ] && echo "${line%% *}" ;; esac
}

has_linter() { [ -f "$1/lint/pypto_op_lint/client.py" ] || [ -f "$1/../../pypto_op_lint/client.py" ]; }

find_bundle() {
  bundle='' pythons=''
  [ -z "$PYPTO_OP_PYTHON" ] || pythons=$PYPTO_OP_PYTHON
  [ -z "$python" ] || pythons="$pythons
$python"
  # The quick way, for every call of a set-up checkout and of an installed workspace.
  if [ -n "$installed" ] && [ -z "$PYPTO_OP_ROOT" ]; then
    ! has_linter "$placed" || bundle=$placed
  elif [ -z "$PYPTO_OP_ROOT" ] && [ -x "$here/../.venv/bin/python" ] && has_linter "$here/.."; then
    bundle=$here/..
  else
    list=$(candidates)
    while IFS= read -r folder; do
      [ -f "$folder/hooks/hook.py" ] && has_linter "$folder" || continue
      [ -n "$bundle" ] || bundle=$folder
      if [ -x "$folder/.venv/bin/python" ]; then bundle=$folder; break; fi
    done <<END
$list
END
  fi
  # Links are followed: a Python works out its packages from the path that it is called by.
  [ -z "$bundle" ] || [ "$bundle" = "$placed" ] || bundle=$(cd -P "$bundle" && pwd -P)
  [ -z "$bundle" ] || pythons="$pythons
$bundle/.venv/bin/python"
}

# Python looks into PYTHONPATH before it runs a line of ours, and takes an empty part, as CANN's set_env.sh leaves one, for
# the current folder: an agent's sitecustomize.py would run in the process that decides. Such parts go; the bundle's stay.
keep_safe_places() {
  [ -n "$PYTHONPATH" ] || return 0
  kept='' rest=$PYTHONPATH: current=$(pwd -P)
  while [ -n "$rest" ]; do
    part=${rest%%:*} rest=${rest#*:}
    case $part in /*) ;; *) continue ;; esac
    real=$(cd -P "$part" 2>/dev/null && pwd -P) || real=$part
    [ "$real" != "$current" ] || continue
    case $real in "${bundle:-/nowhere}"/*) ;; *)
      for name in sitecustomize usercustomize pypto_op pypto_op_lint; do
        for found in "$real/$name" "$real/$name".*; do [ ! -e "$found" ] || continue 3; done
      done
    esac
    kept=$kept${kept:+:}$part
  done
  export PYTHONPATH="$kept"
}

# What else might do; looked up only when the first ones did not.
more_pythons() {
  own=$(python_on_path)
  if [ -n "$own" ]; then
    echo "$own"
    for folder in "${own%/bin/*}"/lib/python3.*/site-packages/pypto_op/_bundle; do
      if [ -z "$bundle" ] && [ -f "$folder/hooks/hook.py" ]; then bundle=$folder; fi
    done
  fi
  for name in python3.12 python3.11 python3.10 python3; do command -v "$name" 2>/dev/null; done
}

# Sets `problem` and `remedy`; $1 is what a Python said, where one said something.
explain() {
  said=$1
  target=$(cd -P "$here/../../.." 2>/dev/null && pwd)
  out="or take the hooks out with \`sh '$target/.pypto-op/uninstall.sh'\`"
  if [ -n "$installed" ] && ! has_linter "$placed"; then
    problem="the bundle at $placed is gone"
    remedy="run \`pypto-op doctor --target '$target'\` with a bundle that is set up, $out"
    return
  fi
  root=$(cd -P "${placed:-$here/..}" && pwd -P)
  case $root in
    */lib/python3.*/pypto_op/_bundle)
      prefix=${root%%/lib/python3.*} wheel="'PATH_OF_THE_WHEEL_FILE[sim,mcp]'"
      remedy="run \`'$prefix/bin/python' -m pip install --force-reinstall $wheel\`"
      [ ! -f "$prefix/uv-receipt.toml" ] || remedy="run \`uv tool install --force $wheel\`"
      [ ! -f "$prefix/pipx_metadata.json" ] || remedy="run \`pipx install --force $wheel\`"
      set --
      ;;
    *) set -- "$root" "$here/../../../../../marketplaces/pypto-op" ;;
  esac
  for folder; do
    if [ -f "$folder/Makefile" ] && [ -f "$folder/scripts/setup.sh" ]; then
      remedy="run \`make -C '$(cd -P "$folder" && pwd -P)' setup\`"
      break
    fi
    remedy="run \`make setup\` in a checkout of pypto-op, or \`uv tool install 'CHECKOUT[sim,mcp]'\` with its folder"
  done
  problem=${said:-no Python 3.10 to 3.12 with its packages was found}
  problem="pypto-op is not set up or broken ($problem)"
  [ -z "$installed" ] || remedy="$remedy, then \`pypto-op doctor --target '$target'\`, $out"
}
