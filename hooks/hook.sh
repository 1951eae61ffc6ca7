#!/bin/sh
# Finds the Python that answers a hook, and runs hook.py with it. $1 is the event: pre, post, stop or start.
#
# The order: $PYPTO_OP_PYTHON, the bundle's own .venv, python3. -I -S keep start-up short: the client needs nothing
# from site-packages. Where there is no Python at all, the person and the model are told; the gates check again.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
if [ -n "$PYPTO_OP_PYTHON" ] && command -v "$PYPTO_OP_PYTHON" >/dev/null 2>&1; then
  exec "$PYPTO_OP_PYTHON" -I -S "$here/hook.py" "$@"
elif [ -x "$here/../.venv/bin/python" ]; then
  exec "$here/../.venv/bin/python" -I -S "$here/hook.py" "$@"
fi
for python in python3.12 python3.11 python3.10 python3; do
  if command -v "$python" >/dev/null 2>&1; then exec "$python" -I -S "$here/hook.py" "$@"; fi
done
text='pypto-op hooks did nothing: no Python 3.10 or newer was found. Run `make setup` in the bundle, or set PYPTO_OP_PYTHON. The state gates check every file again.'
echo "$text" >&2
if [ "$1" = post ]; then
  printf '{"systemMessage":"%s","hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"%s"}}\n' "$text" "$text"
else
  printf '{"systemMessage":"%s"}\n' "$text"
fi
exit 0
