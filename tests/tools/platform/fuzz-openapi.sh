#!/usr/bin/env bash
# An outside fuzzer (schemathesis from PyPI, in a folder that is gone afterwards) reads the served /openapi.json and tries every
# operation: no 5xx, no status or content type that is not described, no answer that does not fit its schema.
# Needs python3 with venv, and PyPI. Usage: tests/tools/platform/fuzz-openapi.sh [EXAMPLES_PER_OPERATION] [SEED]
# Exit code: the number of failures; 77 when schemathesis cannot be installed.
set -uo pipefail

# shellcheck source=tests/tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
examples=${1:-30}
seed=${2:-}

python3 -m venv "$work/venv" >"$work/pip.log" 2>&1 &&
  "$work/venv/bin/pip" install --quiet --disable-pip-version-check 'schemathesis>=4.20,<5' >>"$work/pip.log" 2>&1 || {
  tail -n 5 "$work/pip.log"
  skip schemathesis 'python3 with venv and PyPI are needed'
  exit 77
}

# Thousands of attempts come from one address, and two accounts share what they find.
start_stack fuzzed '' '[platform.limits]
auth_per_minute = 1000000
auth_per_account_per_minute = 1000000
[load_balancing]
enabled = true'
node "$root/bench/lib/sign-up.mjs" "$data_dir" >"$work/account.json" || exit 1
url=$(field "$work/account.json" platform_url)
token=$(field "$work/account.json" access_token)

# Something to be found: a key, a tunnel, a request that it served.
curl -fsS -H "Authorization: Bearer $token" --json '{"label":"fuzz"}' "$url/keys" >"$work/key.json" || exit 1
token_file=$work/key
field "$work/key.json" token >"$token_file"
port=$(free_port)
node -e "require('node:http').createServer((_, answer) => answer.end('hello')).listen($port, '127.0.0.1')" &
pids+=($!)
open_tunnel http "$port" --subdomain fuzz || exit 1
curl -fsS -o "$work/answer" -H 'Host: fuzz.localhost' "$(field "$run_json" http_url)/" || exit 1

# A card, confirmed at the simulator, and the subscription: what is only for those who pay can be tried too.
bill() { curl -fsS -X POST -H "Authorization: Bearer $token" "$url/billing/$1"; }
bill setup-intent >"$work/intent.json" || exit 1
curl -fsS -o "$work/answer" -X POST \
  "$(field "$run_json" simulator_url)/_sim/setup_intents/$(field "$work/intent.json" client_secret)/confirm" || exit 1
bill subscribe >"$work/answer" || exit 1

fuzz() {
  local name=$1
  shift
  "$work/venv/bin/schemathesis" --config-file "$root/tests/tools/platform/schemathesis.toml" run "$url/openapi.json" \
    --max-examples "$examples" ${seed:+--seed "$seed"} --warnings off --continue-on-failure --no-color "$@" >"$work/fuzz.log" 2>&1
  local status=$?
  [[ $status -eq 0 ]] || cat "$work/fuzz.log"
  report "$name" "$status" "$(grep -E '[0-9]+ generated' "$work/fuzz.log" | sed 's/^ *//') $(grep -E '^Seed' "$work/fuzz.log")"
}

fuzz 'with an access token' -H "Authorization: Bearer $token"
fuzz 'without one'

kill -0 "$server_pid" 2>/dev/null
report 'the server lives' $?
! grep -E '"level":"(error|fatal)"' "$server_log"
report 'no error in its log' $?
exit "$failures"
