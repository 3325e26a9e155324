#!/usr/bin/env bash
# Runs real programs against tunnels with policies on loopback: nginx and HAProxy read PROXY headers, psql comes by an address list, git clones with a
# password in its URL, curl, h2load, WebSockets and gRPC show a token. One line each; what is not installed is skipped in one line; the last line is ok: or FAILED:.
# Uses what is there of Debian's nginx-light, haproxy, postgresql, git, curl and nghttp2-client, and of npm's ws and @grpc/grpc-js.
# Usage: tests/tools/policy/try-tools.sh    Exit code: 1 when something failed.
set -uo pipefail

# shellcheck source=tests/tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
here=$root/tests/tools/http
lib=$root/tests/tools/policy/lib
# For *.edge.test: clients take no wildcard right below a top-level name.
cert=$root/packages/testkit/fixtures/tls/renewed-cert.pem
key=$root/packages/testkit/fixtures/tls/renewed-key.pem
password='correct-horse-battery'
token='a-token-that-only-this-script-knows'

has() { command -v "$1" >/dev/null || [[ -x /usr/sbin/$1 ]]; }
program() { command -v "$1" || echo "/usr/sbin/$1"; }

stop_first() {
  # To a database SIGTERM means: when the last one has left.
  [[ -n ${database:-} ]] && kill -INT "$database" 2>/dev/null
}

listens() {
  node -e 'require("node:net").connect(+process.argv[1], "127.0.0.1").on("connect", () => process.exit(0)).on("error", () => process.exit(1))' "$1"
}

# try_receiver NAME PORT: what came as `visitor to reached` is the visitor of now, at the public port, in both versions.
try_receiver() {
  local name=$1 port=$2 version source said
  until_true 20 listens "$port" || { report "$name: start" 1 "$(tail -n 1 "$work/$name.log")"; return; }
  for version in v1 v2; do
    open_tunnel tcp "$port" --proxy-protocol "$version" || { report "$name: tunnel with PROXY $version" 1; continue; }
    # An address of its own: on the other one a program may have taken the port since.
    source=127.0.0.77:$(free_port)
    said=$(curl -sS --max-time 20 --interface "${source%:*}" --local-port "${source#*:}" "http://127.0.0.1:$public_port/" 2>&1)
    [[ $said == "$source to 127.0.0.1:$public_port" ]]
    report "$name: the visitor's address by PROXY $version" $? "$said"
  done
}

try_nginx() {
  has nginx || { skip nginx 'nginx is not installed'; return; }
  has curl || { skip nginx 'curl is not installed'; return; }
  local port
  port=$(free_port)
  mkdir "$work/nginx"
  cat >"$work/nginx/nginx.conf" <<CONFIG
daemon off;
pid $work/nginx/nginx.pid;
error_log $work/nginx/error.log;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path $work/nginx/body; proxy_temp_path $work/nginx/proxy;
  fastcgi_temp_path $work/nginx/f; uwsgi_temp_path $work/nginx/u; scgi_temp_path $work/nginx/s;
  server {
    listen 127.0.0.1:$port proxy_protocol;
    location / { return 200 "\$proxy_protocol_addr:\$proxy_protocol_port to \$proxy_protocol_server_addr:\$proxy_protocol_server_port"; }
  }
}
CONFIG
  "$(program nginx)" -p "$work/nginx" -c "$work/nginx/nginx.conf" >"$work/nginx.log" 2>&1 &
  pids+=($!)
  try_receiver nginx "$port"
}

try_haproxy() {
  has haproxy || { skip HAProxy 'haproxy is not installed'; return; }
  has curl || { skip HAProxy 'curl is not installed'; return; }
  local port
  port=$(free_port)
  cat >"$work/haproxy.cfg" <<CONFIG
defaults
  mode http
  timeout connect 5s
  timeout client 20s
  timeout server 20s
frontend seen
  bind 127.0.0.1:$port accept-proxy
  http-request return status 200 content-type text/plain lf-string "%[src]:%[src_port] to %[dst]:%[dst_port]"
CONFIG
  "$(program haproxy)" -db -f "$work/haproxy.cfg" >"$work/haproxy.log" 2>&1 &
  pids+=($!)
  try_receiver haproxy "$port"
}

# Only in a subshell or in the background: it becomes the command. A database does not run as root.
as_database_owner() {
  if [[ $(id -u) -ne 0 ]]; then exec "$@"; fi
  cd / && exec setpriv --reuid=postgres --regid=postgres --init-groups "$@"
}

try_psql() {
  has psql || { skip psql 'psql is not installed'; return; }
  local pg_bin port cluster said
  pg_bin=$(dirname "$(ls -1 /usr/lib/postgresql/*/bin/initdb 2>/dev/null | tail -n 1)")
  [[ -x $pg_bin/initdb ]] || { skip psql 'postgresql is not installed'; return; }
  port=$(free_port)
  cluster=$work/pg/cluster
  mkdir "$work/pg"
  [[ $(id -u) -eq 0 ]] && chown postgres "$work/pg"
  (as_database_owner "$pg_bin/initdb" -D "$cluster" -U tester -A trust --no-sync) >"$work/initdb.log" 2>&1 \
    || { report 'psql: initdb' 1 "$(tail -n 1 "$work/initdb.log")"; return; }
  as_database_owner "$pg_bin/postgres" -D "$cluster" -p "$port" -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories= -c fsync=off >"$work/postgres.log" 2>&1 &
  database=$!
  pids+=("$database")
  until_true 20 "$pg_bin/pg_isready" -h 127.0.0.1 -p "$port" \
    || { report 'psql: start of the database' 1 "$(tail -n 1 "$work/postgres.log")"; return; }
  open_tunnel tcp "$port" --allow-cidr 127.0.0.0/8 || { report 'psql: tunnel' 1; return; }
  [[ $(psql -qAtX "postgresql://tester@127.0.0.1:$public_port/postgres" -c 'select 6 * 7' 2>&1) == 42 ]]
  report 'psql: from an address of the list' $?
  open_tunnel tcp "$port" --allow-cidr 203.0.113.0/24 || { report 'psql: tunnel of others' 1; return; }
  said=$(psql -qAtX "postgresql://tester@127.0.0.1:$public_port/postgres?connect_timeout=20" -c 'select 6 * 7' 2>&1)
  [[ $? -ne 0 && $said != *42* ]]
  report 'psql: from another address it never gets in' $? "$(tail -n 1 <<<"$said")"
}

try_git() {
  has git || { skip git 'git is not installed'; return; }
  export GIT_CONFIG_GLOBAL=$work/gitconfig GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0
  git config --global user.name tester
  git config --global user.email tester@localhost
  git config --global init.defaultBranch main
  local repos=$work/repos port
  mkdir "$repos"
  git init -q "$work/source"
  for nth in $(seq 1 50); do head -c 20000 /dev/urandom >"$work/source/file-$nth"; done
  git -C "$work/source" add . && git -C "$work/source" commit -qm 'everything'
  git clone -q --bare "$work/source" "$repos/project.git"
  port=$(free_port)
  node "$here/git-service.mjs" "$port" "$repos" >"$work/git-service.log" 2>&1 &
  pids+=($!)
  until_true 20 listens "$port"
  printf 'ann:%s\n' "$password" >"$work/users.txt"
  chmod 600 "$work/users.txt"
  open_tunnel http "$port" --quiet --basic-auth-file "$work/users.txt" || { report 'git: tunnel' 1; return; }
  git clone -q "${public_url/:\/\//:\/\/ann:$password@}/project.git" "$work/clone" 2>"$work/git.log" \
    && diff -r -x .git "$work/source" "$work/clone"
  report 'git: clone with a password in the URL' $? "$(tail -n 1 "$work/git.log")"
  git clone -q "${public_url/:\/\//:\/\/ann:another@}/project.git" "$work/refused" 2>"$work/git.log"
  [[ $? -ne 0 && ! -e $work/refused/.git ]]
  report 'git: a wrong password is refused' $? "$(tail -n 1 "$work/git.log")"
}

# count_of LOG NAME: of h2load's line of statuses.
count_of() { grep -oE "[0-9]+ $2" "$1" | head -n 1 | cut -d' ' -f1; }

# start_secure_edge: with a certificate, and with what opens tunnels there in `secure`.
start_secure_edge() {
  start_edge secure 'domain = "edge.test"' "[tls]
cert_path = \"$cert\"
key_path = \"$key\""
  secure=(--quiet --tls --ca-file "$cert" --service-token-file "$work/token")
}

# start_program COMMAND...: sets `port`, which the program gets as its last argument.
start_program() {
  port=$(free_port)
  "$@" "$port" >>"$work/programs.log" 2>&1 &
  pids+=($!)
  until_true 20 listens "$port"
}

# report_lines NAME: of `WHAT ok` or `WHAT what went wrong`; none at all is wrong, too.
report_lines() {
  local line count=0
  while read -r line; do
    [[ $line == *' ok' ]]
    report "$1: ${line% ok}" $?
    count=$((count + 1))
  done
  [[ $count -gt 0 ]] || report "$1: nothing was tried" 1
}

try_h2load() {
  has h2load || { skip h2load 'nghttp2-client is not installed'; return; }
  local name=calls.edge.test
  h2load -n 5000 -c 10 -m 50 -H "x-tunnel-token: $token" --connect-to "127.0.0.1:$secure_port" "https://$name:$secure_port/small" >"$work/h2load.log" 2>&1
  [[ $(count_of "$work/h2load.log" 2xx) == 5000 ]]
  report 'h2load: 5,000 requests with a token, all served' $? "$(grep -oE '[0-9.]+ req/s' "$work/h2load.log" | head -n 1)"
  h2load -n 2000 -c 10 -m 50 --connect-to "127.0.0.1:$secure_port" "https://$name:$secure_port/small" >"$work/h2load.log" 2>&1
  [[ $(count_of "$work/h2load.log" 4xx) == 2000 ]]
  report 'h2load: 2,000 without, all turned away' $? "$(grep -oE 'status codes:.*' "$work/h2load.log")"
}

# One line for each version of HTTP: with a token, without one, HEAD, and an upload that asks first.
try_curl() {
  has curl || { skip curl 'curl is not installed'; return; }
  local version said sum options url=https://calls.edge.test:$secure_port
  head -c 3000000 /dev/urandom >"$work/upload"
  sum=$(sha256sum "$work/upload" | cut -d' ' -f1)
  for version in http1.1 http2; do
    options=(-sS "--$version" --max-time 30 --cacert "$cert" --resolve "calls.edge.test:$secure_port:127.0.0.1")
    said=$(curl "${options[@]}" -H "X-Tunnel-Token: $token" -w ' %{http_version} %{http_code}' "$url/small" 2>&1)
    [[ $said == "hello ${version#http}"*' 200' ]]
    report "curl over $version: served with a token" $? "$said"
    said=$(curl "${options[@]}" -o /dev/null -w '%{http_code} %{header_json}' "$url/small" 2>&1)
    [[ $said == '401 '*POLICY_UNAUTHENTICATED* ]]
    report "curl over $version: turned away without" $? "${said%%$'\n'*}"
    said=$(curl "${options[@]}" -I "$url/small" 2>&1)
    [[ $said == HTTP/*' 401'* && $said != *'<html'* ]]
    report "curl over $version: HEAD is turned away, too" $? "${said%%$'\r'*}"
    said=$(curl "${options[@]}" -H "X-Tunnel-Token: $token" -H 'Expect: 100-continue' --data-binary "@$work/upload" "$url/sum" 2>&1)
    [[ $said == "$sum" ]]
    report "curl over $version: an upload that asks first arrives to the byte" $? "$said"
    said=$(curl "${options[@]}" -H 'Expect: 100-continue' --data-binary "@$work/upload" -o /dev/null -w '%{http_code} %{size_upload}' "$url/sum" 2>&1)
    [[ $said == '401 '* ]]
    report "curl over $version: without a token it is turned away" $? "$said bytes sent"
  done
}

try_websocket() {
  [[ -d $root/node_modules/ws ]] || { skip WebSocket 'ws is not installed'; return; }
  start_program node "$lib/socket-guest.mjs" serve
  open_tunnel http "$port" --quiet --service-token-file "$work/token" || { report 'WebSocket: tunnel' 1; return; }
  report_lines WebSocket < <(timeout 60 node "$lib/socket-guest.mjs" visit "$public_url/" "$work/token" 2>&1)
}

try_grpc() {
  [[ -d $root/node_modules/@grpc/grpc-js ]] || { skip gRPC '@grpc/grpc-js is not installed'; return; }
  start_program node "$here/grpc-service.mjs"
  open_tunnel http "$port" "${secure[@]}" --local-protocol h2c --request-header 'X-Sent: {user}' || { report 'gRPC: tunnel' 1; return; }
  report_lines gRPC < <(timeout 60 node "$lib/grpc-guest.mjs" "${public_url#https://}" "$cert" "$work/token" 2>&1)
}

node "$root/scripts/ensure.mjs" build || exit 1
printf '%s\n' "$token" >"$work/token"
chmod 600 "$work/token"
start_edge edge
try_nginx
try_haproxy
try_psql
try_git
try_websocket
start_secure_edge
try_grpc
start_program node "$here/web-service.mjs"
if open_tunnel http "$port" "${secure[@]}" --subdomain calls; then
  secure_port=$public_port
  try_curl
  try_h2load
else
  report 'curl, h2load: tunnel' 1
fi
if [[ $failures -gt 0 ]]; then
  printf 'FAILED: try-tools: %s failed\n' "$failures"
  exit 1
fi
printf 'ok: try-tools: real programs at tunnels with policies\n'
