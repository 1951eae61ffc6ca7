#!/bin/sh
# Answers a hook where no Python can: refuses what touches an operator, lets everything else through.
# $1 is the event (pre, post, stop, start), $2 what a Python said; the event lies on stdin.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
. "$here/find.sh"
find_bundle
project=${CLAUDE_PROJECT_DIR:-$PWD}
case $project/ in */custom/*) project=${project%%/custom/*} ;; esac

json() { # prints $1 as the inside of a JSON string
  text=$1 out=''
  while [ -n "$text" ]; do
    next=${text#?} first=${text%"${text#?}"}
    case $first in '"' | '\') out=$out\\$first ;; [[:cntrl:]]) out="$out " ;; *) out=$out$first ;; esac
    text=$next
  done
  printf %s "$out"
}

# Names of the workspace's operators, between spaces.
names() {
  for folder in "$project"/custom/*/; do
    name=${folder%/} name=${name##*/}
    for mark in SPEC.md .orchestrator_state.json .orchestrator_journal.jsonl eval/module_interfaces.yaml \
      "${name}_golden.py" "${name}_impl.py"; do
      if [ -f "$folder$mark" ]; then printf '%s ' "$name"; break; fi
    done
  done
}

touches() {
  operators=$(names)
  if command -v awk >/dev/null 2>&1; then
    OPERATORS=$operators PROJECT=$project LC_ALL=C awk -f "$here/touches.awk"
    return
  fi
  event=$(cat 2>/dev/null || { IFS= read -r line; printf %s "$line"; })
  case $event in '' | *custom/* | *.orchestrator_* | *pypto-op-*) return 0 ;; esac
  return 1
}

tell() { # tell WORDS: fills in the message
  explain "$why"
  message="[pypto-op] $1: $problem; $remedy"
  message=$(json "$message")
}

why=$2
case $1 in
  pre)
    touches || exit 0
    tell 'this call touches an operator and the guard cannot run'
    printf '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"%s"}}\n' "$message"
    ;;
  post)
    touches || exit 0
    tell 'this call touched an operator and was not checked'
    printf '{"decision":"block","reason":"%s"}\n' "$message"
    ;;
  stop)
    [ -n "$(names)" ] || exit 0
    tell 'the turn ends unchecked'
    printf '{"systemMessage":"%s"}\n' "$message"
    ;;
  start)
    tell 'no operator can be made or changed yet'
    printf '{"systemMessage":"%s","hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"%s"}}\n' "$message" "$message"
    ;;
esac
exit 0
