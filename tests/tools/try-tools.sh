#!/usr/bin/env bash
# Runs real tools (iperf3, ssh, psql) through a tunnel on loopback, prints one ok/failed line each, and leaves nothing behind.
# Needs what Debian calls iperf3, openssh-server, openssh-client and postgresql; a tool that is missing is skipped.
# Usage: tests/tools/try-tools.sh [SECONDS_PER_IPERF_RUN]    Exit code: the number of failures.
set -uo pipefail

# shellcheck source=tests/tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
seconds=${1:-3}

stop_first() {
  # To a database SIGTERM means: when the last one has left.
  [[ -n ${database:-} ]] && kill -INT "$database" 2>/dev/null
}

try_iperf3() {
  command -v iperf3 >/dev/null || { skip iperf3 'iperf3 is not installed'; return; }
  local port streams reverse name
  port=$(free_port)
  iperf3 -s -B 127.0.0.1 -p "$port" >"$work/iperf3-server.log" 2>&1 &
  pids+=($!)
  open_tunnel tcp "$port" || { report 'iperf3: tunnel' 1; return; }
  for streams in 1 8; do
    for reverse in '' -R; do
      name="iperf3 -P $streams${reverse:+ $reverse}"
      # shellcheck disable=SC2086
      iperf3 -c 127.0.0.1 -p "$public_port" -t "$seconds" -P "$streams" $reverse -J >"$work/iperf3.json" 2>&1
      report "$name" $? "$(iperf3_rate)"
    done
  done
}

iperf3_rate() {
  node -e '
    const { end = {}, error } = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"));
    console.log(error ?? `${((end.sum_received ?? end.sum).bits_per_second / 1e9).toFixed(2)} Gbit/s`);
  ' "$work/iperf3.json" 2>/dev/null || head -n 1 "$work/iperf3.json"
}

try_ssh() {
  local sshd port
  sshd=$(command -v sshd || echo /usr/sbin/sshd)
  [[ -x $sshd ]] || { skip ssh 'sshd is not installed'; return; }
  command -v ssh >/dev/null || { skip ssh 'ssh is not installed'; return; }
  port=$(free_port)
  mkdir "$work/ssh"
  ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/host_key"
  ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/user_key"
  cp "$work/ssh/user_key.pub" "$work/ssh/authorized_keys"
  cat >"$work/ssh/sshd_config" <<CONFIG
ListenAddress 127.0.0.1
Port $port
HostKey $work/ssh/host_key
PidFile none
AuthorizedKeysFile $work/ssh/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
CONFIG
  # As root it wants its empty folder; as anybody else it does without one.
  [[ $(id -u) -eq 0 ]] && mkdir -p /run/sshd
  "$sshd" -D -e -f "$work/ssh/sshd_config" >"$work/sshd.log" 2>&1 &
  pids+=($!)
  open_tunnel tcp "$port" || { report 'ssh: tunnel' 1; return; }
  local options=(-F none -i "$work/ssh/user_key" -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o LogLevel=ERROR
    -o UserKnownHostsFile="$work/ssh/known_hosts" -o BatchMode=yes)
  local user
  user=$(id -un)
  until_true 10 ssh "${options[@]}" -p "$public_port" "$user@127.0.0.1" true

  [[ $(ssh "${options[@]}" -p "$public_port" "$user@127.0.0.1" 'echo through the tunnel' 2>&1) == 'through the tunnel' ]]
  report 'ssh: a command' $?

  head -c 100000000 /dev/urandom >"$work/big"
  local sum
  sum=$(sha256sum <"$work/big")
  [[ $(ssh "${options[@]}" -p "$public_port" "$user@127.0.0.1" sha256sum <"$work/big") == "$sum" ]]
  report 'ssh: 100 MB to its standard input' $?
  [[ $(ssh "${options[@]}" -p "$public_port" "$user@127.0.0.1" "cat $work/big" | sha256sum) == "$sum" ]]
  report 'ssh: 100 MB from its standard output' $?
  command -v scp >/dev/null || return
  scp -q "${options[@]}" -P "$public_port" "$work/big" "$user@127.0.0.1:$work/copy" && cmp -s "$work/big" "$work/copy"
  report 'scp: 100 MB' $?
}

# Only in a subshell or in the background: it becomes the command. A database does not run as root.
as_database_owner() {
  if [[ $(id -u) -ne 0 ]]; then exec "$@"; fi
  cd / && exec setpriv --reuid=postgres --regid=postgres --init-groups "$@"
}

try_psql() {
  command -v psql >/dev/null || { skip psql 'psql is not installed'; return; }
  pg_bin=$(dirname "$(ls -1 /usr/lib/postgresql/*/bin/initdb 2>/dev/null | tail -n 1)")
  [[ -x $pg_bin/initdb ]] || pg_bin=$(dirname "$(command -v initdb || echo /nowhere/initdb)")
  [[ -x $pg_bin/initdb ]] || { skip psql 'postgresql is not installed'; return; }
  local port cluster
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
  open_tunnel tcp "$port" || { report 'psql: tunnel' 1; return; }
  local url="postgresql://tester@127.0.0.1:$public_port/postgres"
  [[ $(psql -qAtX "$url" -c 'select 6 * 7') == 42 ]]
  report 'psql: a query' $?
  [[ $(psql -qAtX "$url" -c "select count(*), sum(length(repeat('x', 1000))) from generate_series(1, 200000)") == '200000|200000000' ]]
  report 'psql: a large sum' $?
  psql -qX "$url" -c 'create table t (id int, body text)' \
    && seq 1 300000 | sed 's/$/\tsome text that makes the row longer/' | psql -qX "$url" -c 'copy t from stdin' \
    && [[ $(psql -qAtX "$url" -c 'copy t to stdout' | wc -l) -eq 300000 ]]
  report 'psql: copy of 300,000 rows in and out' $?
  [[ -x $pg_bin/pgbench ]] || return
  "$pg_bin/pgbench" -q -i -s 1 "$url" >/dev/null 2>&1 \
    && "$pg_bin/pgbench" -c 20 -j 2 -T "$seconds" "$url" >"$work/pgbench.log" 2>&1 \
    && grep -q 'number of failed transactions: 0 ' "$work/pgbench.log"
  report 'pgbench: 20 clients' $? "$(grep -o 'tps = [0-9.]*' "$work/pgbench.log" | head -n 1)"
}

node "$root/scripts/ensure.mjs" build || exit 1
start_edge edge
try_iperf3
try_ssh
try_psql
printf '%s failed\n' "$failures"
exit "$failures"
