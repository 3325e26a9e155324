#!/bin/bash
# Runs real tools (ssh, psql, dig, iperf3) and a file of 2 GB through p2p tunnels on loopback, over the relay and direct; prints one ok/failed line each
# and leaves nothing behind. Needs what Debian calls openssh-server, openssh-client, postgresql, dnsmasq, dnsutils and iperf3; a tool that is missing is
# skipped. `try-p2p-tools.sh [BYTES]`.
source "$(dirname "$0")/../lib.sh"
big_bytes=${1:-2147483648}
secret=$work/secret
node "$root/apps/cli/bin/tunnel.mjs" p2p secret >"$secret"
# Always in the background: what is ended at the end is the program itself.
tunnel() { exec node "$root/apps/cli/bin/tunnel.mjs" "$@" --json --server "$control" --token-file "$token_file" --secret-file "$secret"; }

# open_peer NAME PORT direct|relay LISTEN_PORT [--udp]: publishes, connects and waits for the way; sets `listen`.
open_peer() {
  local name=$1 port=$2 way=$3 listen_port=$4
  shift 4
  local flags=("$@")
  [[ $way == relay ]] && flags+=(--no-direct)
  events=$work/connect-$name.json
  tunnel p2p publish "$name" "$port" "${flags[@]}" >"$work/publish-$name.json" 2>&1 &
  pids+=($!)
  until_true 20 grep -q '"event":"ready"' "$work/publish-$name.json" || { cat "$work/publish-$name.json" >&2; return 1; }
  tunnel p2p connect "$name" --listen "$listen_port" "${flags[@]}" >"$events" 2>&1 &
  pids+=($!)
  until_true 20 grep -q "\"path\":\"$way\"" "$events" || { cat "$events" >&2; return 1; }
  listen=$(field "$events" listen)
  listen=${listen##*:}
}

# way_held NAME WAY: nothing went another way meanwhile.
way_held() {
  [[ $(grep -o '"path":"[a-z]*"' "$work/connect-$1.json" | tail -n 1) == "\"path\":\"$2\"" ]]
  report "$1: still $2" $?
}

start_ssh() {
  local sshd
  sshd=$(command -v sshd || echo /usr/sbin/sshd)
  [[ -x $sshd ]] && command -v ssh >/dev/null || { skip ssh 'it is not installed'; return 1; }
  mkdir "$work/ssh"
  ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/host_key"
  ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/user_key"
  cp "$work/ssh/user_key.pub" "$work/ssh/authorized_keys"
  ssh_port=$(free_port)
  cat >"$work/ssh/sshd_config" <<CONFIG
ListenAddress 127.0.0.1
Port $ssh_port
HostKey $work/ssh/host_key
PidFile none
AuthorizedKeysFile $work/ssh/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
CONFIG
  [[ $(id -u) -eq 0 ]] && mkdir -p /run/sshd
  "$sshd" -D -e -f "$work/ssh/sshd_config" >"$work/sshd.log" 2>&1 &
  pids+=($!)
  head -c 50000000 /dev/urandom >"$work/big"
}

try_ssh() {
  local way=$1 sum
  open_peer "ssh-$way" "$ssh_port" "$way" 0 || { report "ssh-$way: tunnel" 1; return; }
  local options=(-F none -i "$work/ssh/user_key" -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o LogLevel=ERROR
    -o UserKnownHostsFile=/dev/null -o BatchMode=yes -p "$listen" "$(id -un)@127.0.0.1")
  [[ $(ssh "${options[@]}" 'echo through the peer' 2>&1) == 'through the peer' ]]
  report "ssh-$way: a command" $?
  sum=$(sha256sum <"$work/big")
  [[ $(ssh "${options[@]}" sha256sum <"$work/big") == "$sum" ]]
  report "ssh-$way: 50 MB to its standard input" $?
  [[ $(ssh "${options[@]}" "cat $work/big" | sha256sum) == "$sum" ]]
  report "ssh-$way: 50 MB from its standard output" $?
  way_held "ssh-$way" "$way"
}

# In a shell of its own, which it becomes.
as_database_owner() {
  if [[ $(id -u) -ne 0 ]]; then exec "$@"; fi
  cd / && exec setpriv --reuid=postgres --regid=postgres --init-groups "$@"
}

start_psql() {
  local pg_bin
  pg_bin=$(dirname "$(ls -1 /usr/lib/postgresql/*/bin/initdb 2>/dev/null | tail -n 1)")
  [[ -x $pg_bin/initdb ]] && command -v psql >/dev/null || { skip psql 'it is not installed'; return 1; }
  pg_port=$(free_port)
  mkdir "$work/pg"
  [[ $(id -u) -eq 0 ]] && chown postgres "$work/pg"
  (as_database_owner "$pg_bin/initdb" -D "$work/pg/cluster" -U tester -A trust --no-sync) >"$work/initdb.log" 2>&1
  as_database_owner "$pg_bin/postgres" -D "$work/pg/cluster" -p "$pg_port" -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories= -c fsync=off >"$work/postgres.log" 2>&1 &
  pids+=($!)
  until_true 30 psql -qAtX "postgresql://tester@127.0.0.1:$pg_port/postgres" -c 'select 1'
}

try_psql() {
  local way=$1
  open_peer "psql-$way" "$pg_port" "$way" 0 || { report "psql-$way: tunnel" 1; return; }
  local url="postgresql://tester@127.0.0.1:$listen/postgres"
  [[ $(psql -qAtX "$url" -c 'select 6 * 7') == 42 ]]
  report "psql-$way: a query" $?
  [[ $(psql -qAtX "$url" -c "select i, md5(i::text) from generate_series(1, 300000) i" | sha256sum) == \
    $(psql -qAtX "postgresql://tester@127.0.0.1:$pg_port/postgres" -c "select i, md5(i::text) from generate_series(1, 300000) i" | sha256sum) ]]
  report "psql-$way: 300,000 rows" $?
  way_held "psql-$way" "$way"
}

try_file() {
  local way=$1 what said
  open_peer "file-$way" "$file_port" "$way" 0 || { report "file-$way: tunnel" 1; return; }
  for what in up down; do
    local begun=$SECONDS
    said=$(node "$root/tests/tools/p2p/lib/big-file.mjs" "$what" "$listen" "$big_bytes")
    [[ $said == ok ]]
    report "file-$way: $big_bytes bytes $what, half-close" $? "$said, $((SECONDS - begun)) s"
  done
  way_held "file-$way" "$way"
}

try_dns() {
  local way=$1 port answered=0 i
  command -v dnsmasq >/dev/null && command -v dig >/dev/null || { skip dns 'dnsmasq or dig is not installed'; return; }
  port=$(free_port)
  dnsmasq -k -h -R -i lo --bind-interfaces --listen-address=127.0.0.1 -p "$port" -u root --pid-file= --txt-record="long.test,$(head -c 200 /dev/zero | tr '\0' x)" \
    --address=/name.test/192.0.2.7 >"$work/dnsmasq-$way.log" 2>&1 &
  pids+=($!)
  open_peer "dns-$way" "$port" "$way" 0 --udp || { report "dns-$way: tunnel" 1; return; }
  for ((i = 0; i < 200; i++)); do
    [[ $(dig +short +tries=1 +time=3 -p "$listen" @127.0.0.1 "n$i.name.test" A) == 192.0.2.7 ]] && answered=$((answered + 1))
  done
  [[ $answered -eq 200 ]]
  report "dns-$way: 200 questions" $? "$answered answered"
  way_held "dns-$way" "$way"
}

# iperf3 wants TCP and UDP on one port number: a tcp service beside the udp one.
try_iperf() {
  local way=$1 port shared lost
  command -v iperf3 >/dev/null || { skip iperf3 'it is not installed'; return; }
  port=$(free_port)
  # Below the ports that the kernel gives to anybody.
  shared=$((20000 + RANDOM % 10000))
  iperf3 -s -B 127.0.0.1 -p "$port" >"$work/iperf-$way.log" 2>&1 &
  pids+=($!)
  open_peer "perf-tcp-$way" "$port" "$way" "$shared" && open_peer "perf-$way" "$port" "$way" "$shared" --udp || { report "iperf3-$way: tunnels" 1; return; }
  iperf3 -u -c 127.0.0.1 -p "$shared" -b 20M -l 1200 -t 10 -J >"$work/iperf-$way.json" 2>&1
  lost=$(node -e 'const { end } = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8")); console.log(end.sum.lost_percent)' "$work/iperf-$way.json" 2>&1 | tail -n 1)
  awk -v lost="$lost" 'BEGIN { exit !(lost ~ /^[0-9.e-]+$/ && lost < 1) }'
  report "iperf3-$way: 20 Mbit/s of datagrams for 10 s, under 1 % lost" $? "$lost % lost"
  way_held "perf-$way" "$way"
}

start_edge edge '' 'udp_port_range = [62000, 62099]'
mkfifo "$work/file-port"
node "$root/tests/tools/p2p/lib/big-file.mjs" serve >"$work/file-port" &
pids+=($!)
read -r file_port <"$work/file-port"
start_ssh && has_ssh=1
start_psql && has_psql=1
for way in relay direct; do
  [[ ${has_ssh:-} ]] && try_ssh "$way"
  [[ ${has_psql:-} ]] && try_psql "$way"
  try_dns "$way"
  try_iperf "$way"
  try_file "$way"
done
((failures == 0))
