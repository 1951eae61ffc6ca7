# Sourced by the set-up scripts. speaking WORDS COMMAND...: run it, and say every ten seconds that it still runs.
speaking() {
  local words=$1 begun=$SECONDS code=0
  shift
  (while sleep 10; do echo "setup: still $words, $((SECONDS - begun)) s so far"; done) &
  local ticker=$!
  "$@" || code=$?
  kill "$ticker" 2>/dev/null
  wait "$ticker" 2>/dev/null || true
  return "$code"
}
