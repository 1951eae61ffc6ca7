#!/usr/bin/env bash
# Install the pinned harness clients of tests/clients/package.json for the tests. Usage: clients.sh FOLDER STAMP
# Without Node, or where the registry cannot be reached, the tests that need them skip and say so; with CI=true that is an error.
set -euo pipefail
folder=$1 stamp=$2
here=$(cd "$(dirname "$0")/.." && pwd)

give_up() {
  echo "clients: $1; the tests with real clients are skipped" >&2
  if [[ ${CI:-} == true ]]; then echo "clients: CI=true demands them" >&2; exit 1; fi
  exit 0
}

command -v node >/dev/null && command -v npm >/dev/null || give_up "Node is not installed"
mkdir -p "$folder"
cp "$here/tests/clients/package.json" "$folder/package.json"
echo "clients: installing Claude Code and OpenCode into $folder (15 s, once)"
# No lock file: it would name the registry of whoever ran this. The two packages are pinned, and bring their own binaries.
timeout 300 npm install --prefix "$folder" --no-package-lock --no-audit --no-fund --loglevel=error >"$folder/install.log" 2>&1 ||
  give_up "npm install failed (see $folder/install.log)"
for client in claude opencode; do
  timeout 60 "$folder/node_modules/.bin/$client" --version >/dev/null 2>&1 || give_up "$client does not start here"
done
# OpenCode wants ripgrep and would download it; Claude Code's binary is one when it is called by that name.
mkdir -p "$folder/bin"
command -v rg >/dev/null || ln -sf ../node_modules/@anthropic-ai/claude-code/bin/claude.exe "$folder/bin/rg"
touch "$stamp"
