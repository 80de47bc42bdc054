#!/bin/sh
# Asks a server everything that its document allows, and much that it does not: no answer may be a fault of
# the server, and every answer must be as the document says. Needs schemathesis (PyPI).
#
#   tests/http-schema.sh PROGRAM     PROGRAM is the cofferdam to be asked
#
#   COFFERDAM_SCHEMA_EXAMPLES=5      how many requests are made up for each operation in each phase
set -eu
program=$1
here=$(cd "$(dirname "$0")" && pwd -P)
examples=${COFFERDAM_SCHEMA_EXAMPLES:-5}
unset COFFERDAM_SCHEMA_EXAMPLES
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
mkdir -p "$COFFERDAM_HOME" "$base/workspace"
cd "$base"
"$program" serve --no-workspace --allow-workspace "$base/workspace" --listen 127.0.0.1:0 2>"$base/log" &
server=$!
url=''
for _ in $(seq 200); do
  url=$(sed -n 's/.*listening on \(http:[^ ]*\)/\1/p' "$base/log")
  [ -z "$url" ] || break
  sleep 0.1
done
[ -n "$url" ] || { cat "$base/log"; exit 1; }
key=$("$program" key create schema --max-sandboxes 8 --max-memory 64G --allow-workspace "$base/workspace")
# A sandbox with a layer, a command, a file and a snapshot, which requests are about.
python3 - "$url/v1/sandboxes/there" "$key" "$base/workspace" >"$base/exec" <<'PREPARE'
import json, sys, urllib.request
at, key, workspace = sys.argv[1:]
def ask(method, path, body):
    headers = {"authorization": "Bearer " + key, "content-type": "application/json"}
    request = urllib.request.Request(at + path, json.dumps(body).encode(), headers, method=method)
    return json.load(urllib.request.urlopen(request))
ask("PUT", "", {"workspace": workspace, "copy_on_write": True})
started = ask("POST", "/execs", {"shell": "echo out; echo err >&2; echo text > a"})
urllib.request.urlopen(urllib.request.Request(
    at + "/execs/" + started["id"] + "/wait", headers={"authorization": "Bearer " + key})).read()
ask("POST", "/snapshots", {"label": "kept"})
print(started["id"])
PREPARE
TEST_SCHEMA_SANDBOX=there
TEST_SCHEMA_EXEC=$(cat "$base/exec")
export TEST_SCHEMA_SANDBOX TEST_SCHEMA_EXEC
# Streams have no end; a run takes as long as it is told to. Without a random seed, each run is as the last.
PYTHONPATH=$here PYTHONDONTWRITEBYTECODE=1 SCHEMATHESIS_HOOKS=http_schema_hooks \
  schemathesis run "$url/openapi.json" --header "Authorization: Bearer $key" \
  --exclude-path-regex '/(stream|shells|watch)$|/v1/run$' --max-examples "$examples" \
  --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
  --generation-deterministic --workers 2 --request-timeout 90 --no-color || {
  cat "$base/log"
  exit 1
}
