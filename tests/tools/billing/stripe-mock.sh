#!/usr/bin/env bash
# The payment processor's own mock (from the Go registry, into a folder that is gone afterwards) is made every call that the
# platform makes: it knows the processor's whole API and refuses calls and parameters that are not in it.
# Needs go and the Go registry. Usage: tests/tools/billing/stripe-mock.sh [VERSION]
# Exit code: 0 when everything was accepted; 77 when the mock cannot be installed.
set -uo pipefail

# What go fetched and built before is used again; lib.sh gives its programs another home.
go_path=$(go env GOPATH 2>/dev/null)
go_cache=$(go env GOCACHE 2>/dev/null)
# shellcheck source=tests/tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
version=${1:-latest}

GOPATH=${go_path:-$work/go} GOCACHE=${go_cache:-$work/go-cache} GOFLAGS=-modcacherw GOBIN=$work/bin \
  go install "github.com/stripe/stripe-mock@$version" >"$work/go.log" 2>&1 || {
  tail -n 5 "$work/go.log"
  skip stripe-mock 'go and its registry are needed'
  exit 77
}

port=$(free_port)
"$work/bin/stripe-mock" -http-addr "127.0.0.1:$port" >"$work/mock.log" 2>&1 &
pids+=($!)
until_true 20 curl -sS -o /dev/null "http://127.0.0.1:$port/" || {
  tail -n 5 "$work/mock.log"
  report 'the mock starts' 1
  exit 1
}

cd "$root" || exit 1
STRIPE_MOCK_URL=http://127.0.0.1:$port timeout 120 node node_modules/vitest/vitest.mjs run --project unit \
  apps/platform/src/billing/processor/mocked-processor.test.ts >"$work/calls.log" 2>&1
status=$?
[[ $status -eq 0 ]] || cat "$work/calls.log"
report 'every call is accepted' "$status" "$(grep -cE '^Request: ' "$work/mock.log") calls, stripe-mock $version"
exit "$failures"
