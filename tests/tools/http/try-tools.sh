#!/usr/bin/env bash
# Runs real HTTP clients through http tunnels on loopback, prints one ok/failed line each, and leaves nothing behind.
# Uses what is installed of curl, git, wrk, nghttp2 (h2load, nghttp) and chromium; what is missing is skipped. Vite comes from
# npm into a temporary folder: offline it is skipped.
# Usage: tests/tools/http/try-tools.sh [SECONDS_OF_LOAD]    Exit code: the number of failures.
set -uo pipefail

npm_cache=${npm_config_cache:-$HOME/.npm}
# shellcheck source=tests/tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
here=$root/tests/tools/http
seconds=${1:-5}
# For *.edge.test, which the TLS edge has as its domain: clients take no wildcard right below a top-level name.
cert=$root/packages/testkit/fixtures/tls/renewed-cert.pem
key=$root/packages/testkit/fixtures/tls/renewed-key.pem

has() { command -v "$1" >/dev/null; }

# start_service FILE ARGS...: sets `port`, which is the file's first argument.
start_service() {
  local file=$1
  shift
  port=$(free_port)
  node "$file" "$port" "$@" >>"$work/services.log" 2>&1 &
  pids+=($!)
  until_true 20 node -e 'require("node:net").connect(+process.argv[1], "127.0.0.1").on("connect", () => process.exit(0)).on("error", () => process.exit(1))' "$port"
}

# use_edge plain|tls: where tunnels are opened from now on.
use_edge() {
  local -n edge=$1_edge
  control=${edge[control]}
  token_file=${edge[token_file]}
}

try_curl() {
  has curl || { skip curl 'curl is not installed'; return; }
  [[ $(curl -fsS "$web_url/small") == hello ]]
  report 'curl: by the name of the tunnel' $?
  local heard
  heard=$(curl -fsSv "$web_url/small" "$web_url/small" 2>&1)
  [[ $(grep -c 'Connected to' <<<"$heard") -eq 1 && $heard == *'Re-using existing connection'* ]]
  report 'curl: two requests on one connection' $?
  head -c 50000000 /dev/urandom >"$work/big"
  local sum
  sum=$(sha256sum <"$work/big" | cut -d' ' -f1)
  [[ $(curl -fsS -T "$work/big" "$web_url/sum") == "$sum" ]]
  report 'curl: upload of 50 MB, with 100-continue' $?
  [[ $(curl -fsS -H 'Transfer-Encoding: chunked' -T - "$web_url/sum" <"$work/big") == "$sum" ]]
  report 'curl: upload of 50 MB in chunks' $?
  [[ $(curl -fsS --http1.0 "$web_url/large" | wc -c) -eq 1000000 ]]
  report 'curl: HTTP/1.0' $?
  [[ $(curl -sS -o /dev/null -w '%{http_code}' "http://nobody.localhost:$public_port/") == 404 ]]
  report 'curl: an unknown name' $?
  # Nobody resolves edge.test.
  local secure=(curl -fsS --cacert "$cert" --connect-to '::127.0.0.1:')
  [[ $("${secure[@]}" -w ' %{http_version}' "$secure_url/small") == 'hello 2' ]]
  report 'curl: HTTP/2 over TLS, verified' $?
  [[ $("${secure[@]}" --http1.1 -w ' %{http_version}' "$secure_url/small") == 'hello 1.1' ]]
  report 'curl: HTTP/1.1 over TLS, verified' $?
  [[ $("${secure[@]}" -T "$work/big" "$secure_url/sum") == "$sum" ]]
  report 'curl: upload of 50 MB by HTTP/2' $?
  local plain
  plain=$(field "${tls_edge[run_json]}" http_url)
  plain=${plain%/}
  [[ $("${secure[@]}" -L "http://$secure_name:${plain##*:}/small") == hello ]]
  report 'curl: from plain HTTP to https' $?
}

try_git() {
  has git || { skip git 'git is not installed'; return; }
  export GIT_CONFIG_GLOBAL=$work/gitconfig GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0
  git config --global user.name tester
  git config --global user.email tester@localhost
  git config --global init.defaultBranch main
  git config --global http.receivepack true
  local repos=$work/repos
  mkdir "$repos"
  git init -q "$work/source"
  # A few MB that do not compress, in many objects.
  for nth in $(seq 1 200); do head -c 20000 /dev/urandom >"$work/source/file-$nth"; done
  git -C "$work/source" add . && git -C "$work/source" commit -qm 'everything'
  git clone -q --bare "$work/source" "$repos/project.git"
  git -C "$repos/project.git" config http.receivepack true
  start_service "$here/git-service.mjs" "$repos"
  use_edge plain
  open_tunnel http "$port" --quiet || { report 'git: tunnel' 1; return; }
  git clone -q "$public_url/project.git" "$work/clone" 2>"$work/git.log" && diff -r -x .git "$work/source" "$work/clone"
  report 'git: clone' $? "$(tail -n 1 "$work/git.log")"
  # Larger than http.postBuffer: sent in chunks.
  head -c 3000000 /dev/urandom >"$work/clone/new"
  git -C "$work/clone" add new && git -C "$work/clone" commit -qm 'more' \
    && git -C "$work/clone" push -q origin main 2>"$work/git.log" \
    && [[ $(git -C "$repos/project.git" rev-parse main) == "$(git -C "$work/clone" rev-parse main)" ]]
  report 'git: push of 3 MB' $? "$(tail -n 1 "$work/git.log")"
}

try_wrk() {
  has wrk || { skip wrk 'wrk is not installed'; return; }
  local connections
  for connections in 50 200; do
    wrk -t2 -c"$connections" -d"${seconds}s" -H "Host: $web_name:$public_port" "http://127.0.0.1:$public_port/small" \
      >"$work/wrk.log" 2>&1 && ! grep -qE 'Socket errors|Non-2xx' "$work/wrk.log"
    report "wrk: $connections connections, no error" $? \
      "$(grep -oE '(Requests/sec: *[0-9.]+|Socket errors.*|Non-2xx.*)' "$work/wrk.log" | tr -s ' \n' ' ')"
  done
  wrk -t2 -c50 -d"${seconds}s" -H "Host: $web_name:$public_port" -H 'Connection: close' \
    "http://127.0.0.1:$public_port/small" >"$work/wrk.log" 2>&1
  # wrk counts each end of a connection that it did not ask for as a read error; here each answer announces one.
  ! grep -qE 'Non-2xx|connect [1-9]|timeout [1-9]' "$work/wrk.log"
  report 'wrk: a connection for each request' $? "$(grep -oE 'Requests/sec: *[0-9.]+' "$work/wrk.log" | tr -s ' ')"
}

try_nghttp2() {
  has h2load || { skip h2load 'nghttp2-client is not installed'; return; }
  h2load -n 20000 -c 20 -m 50 --connect-to "127.0.0.1:$secure_port" "$secure_url/small" >"$work/h2load.log" 2>&1
  grep -q '20000 succeeded, 0 failed, 0 errored' "$work/h2load.log"
  report 'h2load: 20,000 requests, 20 connections of 50 streams' $? "$(grep -oE '[0-9.]+ req/s' "$work/h2load.log" | head -n 1)"
  h2load -n 500 -c 5 -m 20 --connect-to "127.0.0.1:$secure_port" "$secure_url/large" >"$work/h2load.log" 2>&1
  grep -q '500 succeeded, 0 failed, 0 errored' "$work/h2load.log"
  report 'h2load: 500 answers of 1 MB' $? "$(grep -oE '[0-9.]+[KMG]B/s' "$work/h2load.log" | head -n 1)"
  has nghttp || return
  head -c 10000000 "$work/big" >"$work/part"
  [[ $(nghttp -n --no-verify-peer -s -d "$work/part" -H ":authority: $secure_name:$secure_port" "https://127.0.0.1:$secure_port/sum" 2>&1 | grep -cE ' 200 .*/sum') -eq 1 ]]
  report 'nghttp: upload of 10 MB' $?
}

find_chromium() {
  local name
  for name in chromium chromium-browser google-chrome; do has "$name" && { command -v "$name"; return; }; done
  return 1
}

try_browser() {
  local chromium
  chromium=$(find_chromium) || { skip browser 'chromium is not installed'; return; }
  local all="document.title === 'ok 200, failed 0'" said
  said=$(node "$here/browser.mjs" "$chromium" "$web_url/page" "$all")
  report 'chromium: a page with 200 resources' $? "$said"
  said=$(node "$here/browser.mjs" "$chromium" "$secure_url/page" "$all")
  report 'chromium: the same by HTTP/2' $? "$said"
}

try_vite() {
  local chromium said
  chromium=$(find_chromium) || { skip vite 'chromium is not installed'; return; }
  mkdir "$work/vite"
  echo '{"private":true,"type":"module"}' >"$work/vite/package.json"
  (cd "$work/vite" && npm install --silent --no-audit --no-fund --prefer-offline --cache "$npm_cache" 'vite@^7') >"$work/npm.log" 2>&1 ||
    { skip vite 'vite cannot be had from npm'; return; }
  echo '<title>one</title><script type="module" src="/main.js"></script>' >"$work/vite/index.html"
  cat >"$work/vite/main.js" <<'JS'
import { word } from './word.js';
window.loads = Number(sessionStorage.loads ?? 0) + 1;
sessionStorage.loads = window.loads;
window.word = word;
if (import.meta.hot) import.meta.hot.accept('./word.js', (fresh) => { window.word = fresh.word; });
JS
  echo "export const word = 'first';" >"$work/vite/word.js"
  port=$(free_port)
  (cd "$work/vite" && exec node node_modules/vite/bin/vite.js --host 127.0.0.1 --port "$port" --strictPort) \
    >"$work/vite.log" 2>&1 &
  pids+=($!)
  until_true 20 grep -q 'Local:' "$work/vite.log" || { report 'vite: start' 1 "$(tail -n 1 "$work/vite.log")"; return; }
  use_edge plain
  open_tunnel http "$port" || { report 'vite: tunnel' 1; return; }
  said=$(node "$here/browser.mjs" "$chromium" "$public_url/" "window.word === 'first'" \
    "until grep -q '\"status\":101' '$events'; do sleep 0.1; done; echo \"export const word = 'second';\" >'$work/vite/word.js'" \
    "window.word === 'second' && window.loads === 1" \
    "sed -i s/one/two/ '$work/vite/index.html'" \
    "document.title === 'two' && window.loads === 2")
  report 'vite: a module replaced in the page, then a reload, both by its WebSocket' $? "$said"
}

declare -A plain_edge tls_edge
node "$root/scripts/ensure.mjs" build || exit 1
start_edge plain
plain_edge=([control]=$control [token_file]=$token_file [run_json]=$run_json)
start_edge tls 'domain = "edge.test"' "[tls]
cert_path = \"$cert\"
key_path = \"$key\""
tls_edge=([control]=$control [token_file]=$token_file [run_json]=$run_json)

start_service "$here/web-service.mjs" 200
open_tunnel http "$port" --quiet --tls --ca-file "$cert" || exit 1
secure_url=$public_url secure_port=$public_port
secure_name=${public_url#https://} && secure_name=${secure_name%:*}
use_edge plain
open_tunnel http "$port" --quiet || exit 1
web_url=$public_url
web_name=${public_url#http://} && web_name=${web_name%:*}

try_curl
try_wrk
try_nghttp2
try_browser
try_git
try_vite
printf '%s failed\n' "$failures"
exit "$failures"
