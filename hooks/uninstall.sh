#!/bin/sh
# Takes pypto-op out of this workspace without the bundle that put it in: removes the files that it wrote and nobody
# changed since, and gives the user's own files back as they were. `pypto-op install` leaves it in .pypto-op/.
root=$(cd "${0%/*}/.." && pwd -P) && cd "$root" || exit 3
if [ ! -f .pypto-op/files.sha256 ]; then echo "pypto-op: nothing is installed in $root" >&2; exit 2; fi

hash() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum <"$1"; else shasum -a 256 <"$1"; fi 2>/dev/null | cut -d' ' -f1
}

held=$(mktemp -d) || exit 3
trap 'rm -rf "$held"' EXIT
number=0
while IFS='|' read -r sha made kept path; do # before the client writes into them
  number=$((number + 1))
  [ -f "$path" ] && [ "$(hash "$path")" = "$sha" ] || { [ ! -f "$path" ] || touch "$held/$number.changed"; continue; }
  [ "$made" = 1 ] && touch "$held/$number.made" || cp -p ".pypto-op/kept/$kept" "$held/$number.back"
done <.pypto-op/edits

read -r marketplace registered <.pypto-op/marketplace
if [ "$registered" = 1 ]; then
  if command -v claude >/dev/null 2>&1; then
    claude plugin uninstall "pypto-op@$marketplace" --scope local </dev/null >/dev/null 2>&1
    claude plugin marketplace remove "$marketplace" </dev/null >/dev/null 2>&1
  else
    echo "the client still knows the marketplace $marketplace: run \`claude plugin marketplace remove $marketplace\`" >&2
  fi
fi

number=0
while IFS='|' read -r sha made kept path; do
  number=$((number + 1))
  if [ -f "$held/$number.made" ]; then rm -f "$path"; rmdir -p "${path%/*}" 2>/dev/null
  elif [ -f "$held/$number.back" ]; then cat "$held/$number.back" >"$path"
  elif [ -f "$held/$number.changed" ]; then echo "changed since, so take what names pypto-op out of it by hand: $path" >&2
  fi
done <.pypto-op/edits

mv .pypto-op/files.sha256 "$held/files"
rm -rf .pypto-op/install.json .pypto-op/edits .pypto-op/marketplace .pypto-op/kept
while read -r sha path; do
  [ -f "$path" ] || continue
  if [ "$(hash "$path")" = "$sha" ]; then rm -f "$path"; else echo "kept, since it was changed by hand: $path" >&2; fi
  rmdir -p "${path%/*}" 2>/dev/null
done <"$held/files"
rmdir .pypto-op 2>/dev/null
echo "pypto-op is taken out of $root"
