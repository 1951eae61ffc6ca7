# Says whether a hook's event (JSON on stdin) touches an operator: exit 0 when it does, or when it cannot be read, else 1.
# OPERATORS holds the workspace's operators, PROJECT its folder. For broken.sh alone: the guard proper is in lint/.

{ event = event $0 "\n" }

END {
  project = ENVIRON["PROJECT"]
  count = split(ENVIRON["OPERATORS"], names, " ")
  read_event()
  if (tool == "") exit 0
  team = agent ~ /(^|:)(pypto-op|triton-op)-/
  exit judged() ? 0 : 1
}

function judged(i, key) {
  if (tool ~ /state_transition$/) return 1
  if (tool ~ /^(Write|Edit|MultiEdit|NotebookEdit|Read)$/) {
    for (i = 1; i <= inputs; i++) if (is_path(keys[i]) && touches_path(values[i])) return 1
    return 0
  }
  if (tool ~ /^(Grep|Glob)$/) {
    for (i = 1; i <= inputs; i++) if (keys[i] == "path") return touches_path(values[i]) || (team && above(values[i]))
    return team && count > 0
  }
  for (i = 1; i <= inputs; i++) {
    key = keys[i]
    if (tool == "Bash" ? key == "command" : key ~ /command|cmd|script|code|patch/) {
      if (touches_text(values[i])) return 1
    } else if (tool != "Bash" && length(values[i]) < 1000 && values[i] !~ /\n/ && (touches_path(values[i]) || above(values[i])))
      return 1
  }
  return 0
}

function is_path(key) { return key == "file_path" || key == "filePath" || key == "notebook_path" || key == "path" }

# A path touches an operator when it lies in one, or would make one. What lies in `_debug/` is scratch.
function touches_path(path, real) {
  if (path == "" || path ~ /\n/) return 1
  path = whole(path)
  if (inside(path)) return 1
  real = resolved(path)
  return real != path && inside(real)
}

function inside(path, parts, n, i, folder, rest, name) {
  if (path ~ /\/\.local\/state\/pypto-op(\/|$)/ || path ~ /seal\.key$/) return 1
  n = split(path, parts, "/")
  folder = ""
  for (i = 2; i < n; i++) {
    folder = folder "/" parts[i]
    name = parts[i]
    rest = substr(path, length(folder) + 2)
    if (rest ~ /^(eval\/)?_debug\//) continue
    if (exists(folder "/.orchestrator_state.json")) return 1
    if (parts[i - 1] != "custom" || name !~ /^[a-z][a-z0-9_]*$/) continue
    if (team || rest == "SPEC.md" || rest ~ /^\.orchestrator_/ || rest == name "_golden.py") return 1
    if (exists(folder "/SPEC.md") || exists(folder "/" name "_golden.py") || exists(folder "/" name "_impl.py")) return 1
    if (rest == name "_impl.py" && count > 0) return 1
  }
  return 0
}

function above(path) {
  path = whole(path)
  return count > 0 && index(project "/custom/", path == "/" ? "/" : path "/") == 1
}

# A command touches an operator when it stands in one, names one, or changes whatever lies below.
function touches_text(text, i, word) {
  if (inside(whole(cwd) "/x")) return 1
  if (text ~ /seal\.key|\.local\/state\/pypto-op|\.orchestrator_|pypto-op"? +"?state|custom\/[a-z0-9_]+\/SPEC\.md/) return 1
  if (team && text ~ /(^|[^A-Za-z0-9_])custom([^A-Za-z0-9_]|$)/) return 1
  if (count == 0) return 0
  if (text ~ /(^|[^A-Za-z0-9_])custom([^A-Za-z0-9_]|$)/) return 1
  for (i = 1; i <= count; i++) {
    word = names[i]
    if (text ~ ("(^|[^A-Za-z0-9_])" word "/") || text ~ ("/" word "([^A-Za-z0-9_]|$)")) return 1
    if (text ~ (word "_(impl|golden|module)") || text ~ ("test_" word "([^A-Za-z0-9]|$)")) return 1
  }
  if (text ~ /git +([^;|&]* )?(checkout|restore|reset|clean|stash|apply|am|pull|merge|rebase|switch|rm|mv)([^A-Za-z]|$)/) return 1
  if (text !~ /(^|[^A-Za-z0-9_.-])(rm|mv|cp|find|sed|perl|xargs|rsync|ruff|black|truncate|chmod|chown|tar|unzip|tee|dd|shred|install|ln|eval|sh|bash|python[0-9.]*)([^A-Za-z0-9_.-]|$)/)
    return 0
  return text ~ /[*?\[$`]/ || text ~ /(^|[ \t])\.\/?([ \t;|&\n]|$)/
}

function exists(path, line, found) {
  found = (getline line < path) >= 0
  close(path)
  return found
}

# Makes a path absolute and takes `.` and `..` out.
function whole(path, parts, n, i, out, depth, kept) {
  if (path ~ /^~\//) path = ENVIRON["HOME"] substr(path, 2)
  if (path !~ /^\//) path = cwd "/" path
  n = split(path, parts, "/")
  depth = 0
  for (i = 1; i <= n; i++) {
    if (parts[i] == "" || parts[i] == ".") continue
    if (parts[i] == "..") { if (depth) depth--; continue }
    kept[++depth] = parts[i]
  }
  out = ""
  for (i = 1; i <= depth; i++) out = out "/" kept[i]
  return out == "" ? "/" : out
}

function resolved(path, command, line, quoted) {
  quoted = path
  gsub(/'/, "'\\''", quoted)
  command = "readlink -f -- '" quoted "' 2>/dev/null"
  if ((command | getline line) <= 0) line = path
  close(command)
  return line
}

# Reads tool_name, agent_type and cwd, and every text of tool_input with its key, from the JSON in `event`.
function read_event(segments, n, i, text, piece, depth, key, section, outside, pending) {
  n = split(event, segments, "\"")
  inputs = 0
  cwd = project
  for (i = 1; i <= n; i += 2) {
    outside = segments[i]
    if (pending != "") {
      if (outside ~ /^[ \t\n]*:/) {
        key = substr(pending, 2)
        if (depth == 1) section = key
      } else note(section, depth, key, substr(pending, 2))
      pending = ""
    }
    depth += gsub(/[{\[]/, "", outside) - gsub(/[}\]]/, "", outside)
    if (i + 1 > n) break
    text = piece = segments[i + 1]
    while (piece ~ /(^|[^\\])(\\\\)*\\$/ && i + 2 <= n) { # the quote is a part of the text
      i++
      piece = segments[i + 1]
      if (length(text) < 65536) text = text "\"" piece
    }
    pending = "=" unescaped(text)
  }
}

function note(section, depth, key, text) {
  if (section == "tool_input") {
    if (depth > 1) { keys[++inputs] = key; values[inputs] = text }
  } else if (depth == 1) {
    if (key == "tool_name") tool = text
    else if (key == "agent_type") agent = text
    else if (key == "cwd" && text != "") cwd = text
  }
}

function unescaped(text) {
  if (index(text, "\\") == 0) return text
  gsub(/\\\\/, "\001", text)
  gsub(/\\"/, "\"", text)
  gsub(/\\\//, "/", text)
  gsub(/\\n/, "\n", text)
  gsub(/\\[rtbf]/, " ", text)
  gsub(/\001/, "\\", text)
  return text
}
