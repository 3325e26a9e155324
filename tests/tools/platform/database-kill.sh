#!/usr/bin/env bash
# Kills the embedded database (-9) again and again under load: calls are told to come again and nothing else, no process dies,
# every visit through the tunnel is whole, and all of them are in usage at the end.
# Usage: tests/tools/platform/database-kill.sh [KILLS] [CALLERS]    Exit code: the number of failures.
set -uo pipefail

# shellcheck source=tests/tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
kills=${1:-5}
callers=${2:-16}

start_stack killed
node "$root/bench/lib/sign-up.mjs" "$data_dir" >"$work/account.json" || exit 1
url=$(field "$work/account.json" platform_url)
token=$(field "$work/account.json" access_token)
curl -fsS -H "Authorization: Bearer $token" --json '{"label":"load"}' "$url/keys" >"$work/key.json" || exit 1
token_file=$work/key
field "$work/key.json" token >"$token_file"
port=$(free_port)
node -e "require('node:net').createServer({ allowHalfOpen: true }, (s) => { s.on('error', () => {}); s.pipe(s); }).listen($port, '127.0.0.1')" &
pids+=($!)
open_tunnel tcp "$port" || exit 1
client_pid=${pids[-1]}
tunnel_id=$(field "$events" tunnel_id)

node "$root/tests/tools/platform/lib/database-load.mjs" "$work/account.json" "$public_port" "$callers" >"$work/load.json" &
load_pid=$!
pids+=("$load_pid")

status_of() { curl -s -o "$work/body" -w '%{http_code}' "$url$1"; }
is_well() { [[ $(status_of /health/db) == 200 ]]; }
is_away() { [[ $(status_of /health/db) == 503 ]]; }
# The pid file names the one that is dead until the next one has written it.
postmaster() { head -n 1 "$data_dir/postgres/postmaster.pid" 2>/dev/null; }

for ((kill = 1; kill <= kills; kill++)); do
  until_true 20 is_well || report "kill $kill: the database is well before it" 1
  sleep 1
  begun=$(date +%s%N)
  kill -9 "$(postmaster)"
  until_true 5 is_away
  saw=$?
  health=$(status_of /health)
  until_true 10 is_well
  report "kill $kill: /health/db is 503, then 200 within 10 s; /health stays 200" $((saw + $? + (health != 200))) \
    "back after $((($(date +%s%N) - begun) / 1000000)) ms"
done

sleep 1
kill "$load_pid"
wait "$load_pid"
cat "$work/load.json"
for process in "$server_pid:server" "$client_pid:client"; do
  kill -0 "${process%%:*}" 2>/dev/null
  report "the ${process##*:} lives" $?
done
[[ $(field "$work/load.json" wrong) == 0 && $(field "$work/load.json" away) -gt 0 ]]
report 'calls were answered, or told to come again' $? "$(field "$work/load.json" ok) answered, $(field "$work/load.json" away) told"
[[ $(field "$work/load.json" broken_visits) == 0 ]]
report 'every visit was whole' $? "$(field "$work/load.json" visits)"

wanted="$(field "$work/load.json" visits) $(field "$work/load.json" visit_bytes)"
are_charged() {
  curl -fsS -H "Authorization: Bearer $token" "$url/usage/tunnels/$tunnel_id" >"$work/entry.json" &&
    [[ "$(field "$work/entry.json" request_count) $(field "$work/entry.json" bytes_proxied)" == "$wanted" ]]
}
until_true 20 are_charged
report 'all of them are in usage' $? "$wanted; usage says $(field "$work/entry.json" request_count) $(field "$work/entry.json" bytes_proxied)"
exit "$failures"
