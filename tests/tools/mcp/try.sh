#!/usr/bin/env bash
# Programs of others with our MCP servers: the inspector over stdio and at /mcp, the conformance suite at /mcp (a relay adds the key) and at a
# published server, and a walk through OAuth by the SDK's client: consent, refresh, one more scope, and the end of the grant.
# Inspector and suite want a newer Node.js than this repository: they come with one from the npm registry, kept in .cache/programs.
# Usage: tests/tools/mcp/try.sh. Exit code: the number of failures; 77 when the programs cannot be fetched. Needs `npm run build`.
set -uo pipefail

# shellcheck source=tests/tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
here=$root/tests/tools/mcp

# npm's own home is another one than that of the tunnel.
HOME=$(getent passwd "$(id -u)" | cut -d: -f6) TMPDIR=/tmp node "$here/lib/programs.mjs" >"$work/programs.json" || {
  skip 'inspector and conformance' 'the npm registry is needed'
  exit 77
}
newer_node=$(field "$work/programs.json" node)
inspector=$(field "$work/programs.json" inspector)
conformance=$(field "$work/programs.json" conformance)

# The SDK takes an https address for the client's document alone, so that the server has to trust the certificate of one on loopback.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=documents -addext subjectAltName=IP:127.0.0.1 \
  -keyout "$work/documents.key" -out "$work/documents.crt" 2>"$work/openssl.log" || { cat "$work/openssl.log"; exit 1; }
export NODE_EXTRA_CA_CERTS=$work/documents.crt
# Tokens are for the address that the platform calls its own.
platform_port=$(free_port)
# Each try of the inspector is a few calls, and all of them are of one account.
start_stack mcp '' '[platform.mcp]
calls_per_minute = 100000
[platform.limits]
auth_per_minute = 1000'
node "$root/bench/lib/sign-up.mjs" "$data_dir" >"$work/account.json" || exit 1
platform=$(field "$work/account.json" platform_url)
token=$(field "$work/account.json" access_token)
curl -fsS -H "Authorization: Bearer $token" --json '{"label":"mcp"}' "$platform/keys" >"$work/key.json" || exit 1
token_file=$work/key
field "$work/key.json" token >"$token_file"
chmod 600 "$token_file"

# A service, a tunnel to it and a request that it served.
port=$(free_port)
node -e "require('node:http').createServer((_, answer) => answer.end('hello')).listen($port, '127.0.0.1')" &
pids+=($!)
open_tunnel http "$port" --subdomain tried || exit 1
tunnel=$(field "$events" tunnel_id)
http_url=$(field "$run_json" http_url)
visit() { curl -fsS -o "$work/answer" -H 'Host: tried.localhost' "$http_url/$1"; }
visit 'hook?token=hunter2' || exit 1
api=$(field "$run_json" api_url)
curl -fsS -H "Authorization: Bearer $(<"$token_file")" "$api/api/tunnels/$tunnel/requests" >"$work/requests.json" || exit 1
request=$(node -p 'JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8")).requests[0].id' "$work/requests.json")

# get_usage and list_keys are there for those alone who are logged in.
field "$work/account.json" password | node "$root/apps/cli/bin/tunnel.mjs" login --platform "$platform" \
  --email "$(field "$work/account.json" email)" --password-stdin --no-key >"$work/login.log" 2>&1 || { cat "$work/login.log"; exit 1; }

# ---- the inspector ----

stdio=(-- node "$root/apps/cli/bin/tunnel-mcp.mjs" --server "$control" --token-file "$token_file" --api "$api")
remote=("$platform/mcp" --transport http --header "Authorization: Bearer $(<"$token_file")")

# inspect WHERE FLAGS...: its answer in `work/inspected.json`.
inspect() {
  local -n where=$1
  shift
  # A command stands behind --, an address in front.
  if [[ ${where[0]} == -- ]]; then set -- "$@" "${where[@]}"; else set -- "${where[@]}" "$@"; fi
  timeout 60 "$newer_node" "$inspector" --cli --format json "$@" >"$work/inspected.json" 2>"$work/inspected.log"
}

# holds EXPRESSION: of the answer, as `it`.
holds() {
  node -e '
    const read = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"));
    const it = read.result ?? read;
    process.exit(Function("it", `return (${process.argv[2]})`)(it) ? 0 : 1);
  ' "$work/inspected.json" "$1" 2>>"$work/inspected.log"
}

# try_inspector NAME WHERE EXPRESSION FLAGS...
try_inspector() {
  local name=$1 where=$2 expression=$3
  shift 3
  inspect "$where" "$@" && holds "$expression"
  local status=$?
  report "inspector, $name" "$status"
  [[ $status -eq 0 ]] || head -c 2000 "$work/inspected.json" "$work/inspected.log"
}

both='close_tunnel get_request get_status get_tunnel get_usage list_keys list_pools list_requests list_tunnels replay_request wait_for_request'
here_too=$(tr ' ' '\n' <<<"$both open_tunnel run_doctor" | sort | paste -sd' ')
is_good='it.isError !== true && it.structuredContent !== undefined && JSON.stringify(it).includes("hunter2") === false'

for where in stdio remote; do
  names=$both
  [[ $where == stdio ]] && names=$here_too
  try_inspector "$where: tools/list" "$where" "it.tools.map(({ name }) => name).join(' ') === '$names'" --method tools/list --strict
  try_inspector "$where: resources/list" "$where" 'it.resources.some(({ uri }) => uri === "tunnel://tunnels")' --method resources/list
  try_inspector "$where: resources/read" "$where" "JSON.stringify(it).includes('$tunnel')" --method resources/read --uri tunnel://tunnels
  try_inspector "$where: prompts/list" "$where" 'it.prompts.some(({ name }) => name === "debug_webhook")' --method prompts/list
  for tool in get_status get_usage list_keys list_pools list_tunnels; do
    try_inspector "$where: $tool" "$where" "$is_good" --method tools/call --tool-name "$tool"
  done
  try_inspector "$where: get_tunnel" "$where" "$is_good && JSON.stringify(it).includes('$tunnel')" \
    --method tools/call --tool-name get_tunnel --tool-arg "tunnel=$tunnel"
  try_inspector "$where: list_requests" "$where" "$is_good && it.structuredContent.requests.some(({ id }) => id === '$request')" \
    --method tools/call --tool-name list_requests --tool-arg "tunnel=$tunnel" limit=50
  try_inspector "$where: get_request" "$where" "$is_good && it.structuredContent.request.id === '$request'" \
    --method tools/call --tool-name get_request --tool-arg "tunnel=$tunnel" "request_id=$request"
  # The visitor comes again and again until the call has seen one.
  (for _ in $(seq 60); do visit waited-for; sleep 0.5; done) &
  visitor=$!
  try_inspector "$where: wait_for_request" "$where" "$is_good && it.structuredContent.request.path === '/waited-for'" \
    --method tools/call --tool-name wait_for_request --tool-arg "tunnel=$tunnel" path_contains=waited timeout_secs=30
  kill "$visitor" 2>/dev/null
  wait "$visitor" 2>/dev/null
done
try_inspector 'stdio: run_doctor' stdio "$is_good && Array.isArray(it.structuredContent.checks)" --method tools/call --tool-name run_doctor

# ---- the conformance suite ----

# try_conformance NAME URL SCENARIO...
try_conformance() {
  local name=$1 url=$2 scenario
  shift 2
  for scenario in "$@"; do
    (cd "$work" && timeout 60 "$newer_node" "$conformance" server --url "$url" --scenario "$scenario") >"$work/conformance.log" 2>&1
    local status=$?
    report "conformance, $name: $scenario" "$status"
    [[ $status -eq 0 ]] || tail -n 15 "$work/conformance.log"
  done
}

# relay_to URL KEY_FILE [HOST]: sets `relay`. The suite can send no bearer.
relay_to() {
  local log=$work/relay-$RANDOM.log
  node "$here/lib/bearer-relay.mjs" "$@" >"$log" &
  pids+=($!)
  until_true 20 test -s "$log" || return 1
  relay=$(<"$log")
}

scenarios=(server-initialize ping tools-list resources-list prompts-list dns-rebinding-protection)
relay_to "$platform" "$token_file" && try_conformance /mcp "$relay/mcp" "${scenarios[@]}"

if node "$root/apps/cli/bin/tunnel.mjs" mcp-publish --help 2>/dev/null | grep -q -- --token-file; then
  node -e 'process.stdout.write(`mcp_${require("node:crypto").randomBytes(16).toString("hex")}`)' >"$work/published-token"
  chmod 600 "$work/published-token"
  published=$work/published.json
  # The flag is of those who call; the key comes otherwise.
  TUNNEL_API_KEY=$(<"$token_file") node "$root/apps/cli/bin/tunnel.mjs" mcp-publish --json --subdomain published \
    --server "$control" --token-file "$work/published-token" -- node "$here/lib/small-server.mjs" >"$published" 2>"$work/published.log" &
  publisher=$!
  pids+=("$publisher")
  if until_true 20 grep -q '"event":"ready"' "$published"; then
    relay_to "$http_url" "$work/published-token" "published.localhost" &&
      try_conformance 'a published server' "$relay/mcp" "${scenarios[@]}"
    published_at=("$relay/mcp" --transport http)
    try_inspector 'a published server: tools/call' published_at 'it.content[0].text === "hello ann"' \
      --method tools/call --tool-name greet --tool-arg name=ann
  else
    cat "$published" "$work/published.log"
    report 'mcp-publish' 1
  fi
else
  skip 'a published server' 'this tunnel has no mcp-publish'
fi

# ---- OAuth, by the client of the SDK ----

node "$here/lib/oauth-walk.mjs" "$platform" "$token" "$tunnel" "$work/documents" >"$work/walk.log" 2>&1
status=$?
sed 's/^/        /' "$work/walk.log"
report 'OAuth by the client of the SDK' "$status"

kill -0 "$server_pid" 2>/dev/null
report 'the server lives' $?
! grep -E '"level":"(error|fatal)"' "$server_log"
report 'no error in its log' $?
exit "$failures"
