#!/bin/sh
# The MCP server of pypto-op over stdio. Where no Python can run it, this script answers in its place: the server is
# there, and its one tool says what to run.
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
. "$here/find.sh"
find_bundle
keep_safe_places

serve() { # serve: each line of stdin 3 is a Python; the event stream stays on stdin
  [ -n "$bundle" ] || return
  launcher=$bundle/scripts/mcp_server.py
  while IFS= read -r candidate <&3; do
    command -v "${candidate:-/nowhere}" >/dev/null 2>&1 || continue
    # The server must be imported as a whole before it takes over stdin. Never without -E: what PYTHONPATH names would come
    # before the standard library; the launcher puts it behind all that is installed.
    set -- -E ${PYTHONNOUSERSITE:+-s} ${PYTHONDONTWRITEBYTECODE:+-B} "$launcher"
    if said=$("$candidate" "$@" --check 2>&1 </dev/null 3>&-); then exec "$candidate" "$@" 3>&-; fi
    why=${said##*
}
  done
}

json() { printf %s "$1" | sed 's/[\\"]/\\&/g'; }

why=''
serve 3<<END
$pythons
END
rest=$(more_pythons)
[ -n "$bundle" ] || more_pythons >/dev/null
serve 3<<END
$rest
END
explain "$why"
message=$(json "$problem; $remedy")
tool='{"name":"set_up","description":"'"$message"'","inputSchema":{"type":"object","properties":{}}}'

while IFS= read -r line; do
  case $line in *'"method"'*) ;; *) continue ;; esac
  case $line in
    *'"jsonrpc":"2.0","id":'*) id=${line#*'"jsonrpc":"2.0","id":'} ;;
    *'"id":'*) id=${line##*'"id":'} ;;
    *) continue ;; # a notification
  esac
  id=${id# } id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'* | *'"method": "initialize"'*)
      version=${line#*'"protocolVersion":'} version=${version#*\"} version=${version%%\"*}
      answer='{"protocolVersion":"'"$version"'","capabilities":{"tools":{}},"serverInfo":{"name":"pypto-op","version":"0"},"instructions":"'"$message"'"}'
      ;;
    *'"tools/list"'*) answer='{"tools":['"$tool"']}' ;;
    *'"tools/call"'*) answer='{"content":[{"type":"text","text":"'"$message"'"}],"isError":true}' ;;
    *) answer='{}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$answer"
done
