#!/bin/sh
# Finds the Python that answers a hook, and runs hook.py with it. $1 is the event: pre, post, stop or start.
#
# -I -S keep start-up short: the client needs nothing from site-packages. A Python that cannot answer says so before it
# reads the event (exit 3, or the exit of one that does not start), so the next one is asked. Where none answers,
# broken.sh refuses what touches an operator and lets the rest through.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
. "$here/find.sh"
find_bundle
export PYPTO_OP_HOOKS="$here"
[ -n "$PYPTO_OP_PYTHON" ] || [ -z "$python" ] || export PYPTO_OP_PYTHON="$python"

ask() { # ask EVENT: each line of stdin 3 is a Python
  while IFS= read -r candidate <&3; do
    command -v "${candidate:-/nowhere}" >/dev/null 2>&1 || continue
    { said=$("$candidate" -I -S "$bundle/hooks/hook.py" "$@" 2>&1 >&4 3>&- 4>&-); code=$?; } 4>&1
    case $code in
      0) exit 0 ;;
      2) printf '%s\n' "$said" >&2; exit 2 ;;
    esac
    [ -n "$said" ] && why=${said##*
} || why="$candidate does not run"
  done
}

why=''
[ -z "$bundle" ] || ask "$@" 3<<END
$pythons
END
if [ -z "$installed" ] || [ -n "$bundle" ]; then
  rest=$(more_pythons)
  [ -n "$bundle" ] || more_pythons >/dev/null # sets `bundle` here, outside the subshell
  [ -z "$bundle" ] || ask "$@" 3<<END
$rest
END
fi
exec sh "$here/broken.sh" "$1" "$why"
