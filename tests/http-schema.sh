#!/bin/sh
# Asks a server everything that its document allows, and much that it does not: no answer may be a fault of
# the server, and every answer must be as the document says. Needs schemathesis (PyPI).
#
#   tests/http-schema.sh PROGRAM     PROGRAM is the cofferdam to be asked
set -eu
program=$1
command -v schemathesis >/dev/null 2>&1 || {
  echo 'skipped: schemathesis: it is not installed (pip install schemathesis)'
  exit 0
}
base=$(mktemp -d /tmp/cofferdam-http-schema.XXXXXX)
server=''
finish() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  [ -z "$server" ] || wait "$server" 2>/dev/null || true
  ids=$("$program" ls 2>/dev/null | awk 'NR > 1 { print $1 }') || true
  # shellcheck disable=SC2086 # The list is meant to be split.
  [ -z "$ids" ] || "$program" rm $ids >/dev/null 2>&1 || true
  rm -rf "$base"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
export COFFERDAM_HOME="$base/state"
mkdir -p "$COFFERDAM_HOME"
cd "$base"
"$program" serve --no-workspace --listen 127.0.0.1:0 2>"$base/log" &
server=$!
url=''
for _ in $(seq 200); do
  url=$(sed -n 's/.*listening on \(http:[^ ]*\)/\1/p' "$base/log")
  [ -z "$url" ] || break
  sleep 0.1
done
[ -n "$url" ] || { cat "$base/log"; exit 1; }
key=$("$program" key create schema --max-sandboxes 4 --max-memory 64G)
python3 - "$url/v1/sandboxes/there" "$key" <<'PUT'
import sys, urllib.request
headers = {"authorization": "Bearer " + sys.argv[2], "content-type": "application/json"}
urllib.request.urlopen(urllib.request.Request(sys.argv[1], b"{}", headers, method="PUT")).read()
PUT
# Streams have no end; a run takes as long as it is told to.
schemathesis run "$url/openapi.json" --header "Authorization: Bearer $key" \
  --exclude-path-regex '/(stream|shells|watch)$|/v1/run$' --max-examples "${COFFERDAM_SCHEMA_EXAMPLES:-20}" \
  --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
  --generation-deterministic --workers 2 --request-timeout 90 --no-color || {
  cat "$base/log"
  exit 1
}
