#!/usr/bin/env bash
# Runs the database tests on Debian's PostgreSQL 15, the oldest version we support: in a cluster of its own, which is gone
# afterwards. With --install it is installed first where that is possible (as root, with apt-get).
# usage: tests/tools/on-postgres-15.sh [--install] [ARGUMENTS FOR VITEST]
# exit code: that of the tests; 77 when there is no PostgreSQL 15 here, after one line that says so.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

bin=${POSTGRES_15_BIN:-/usr/lib/postgresql/15/bin}
unavailable() {
  echo "database tests on PostgreSQL 15: not run, $1"
  exit 77
}

# At most two minutes, whatever the network does.
apt() {
  env DEBIAN_FRONTEND=noninteractive timeout -k 5 "$1" apt-get -qq -o Acquire::Retries=0 -o Acquire::http::Timeout=10 \
    -o Dpkg::Options::=--force-confold "${@:2}"
}
install_it() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  # Debian's package would also make and start a cluster for the whole machine.
  if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    mkdir -p /etc/postgresql-common
    echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
  fi
  apt 45 install -y --no-install-recommends postgresql-15 && return
  apt 30 update && apt 45 install -y --no-install-recommends postgresql-15
}

if [ "${1:-}" = --install ]; then
  shift
  [ -x "$bin/postgres" ] || install_it >/dev/null 2>&1
fi
[ -x "$bin/postgres" ] || unavailable "there is no $bin/postgres (Debian: apt-get install postgresql-15)"

# PostgreSQL refuses root: then it runs as the user that Debian's package made, or as nobody.
user=()
if [ "$(id -u)" = 0 ]; then
  command -v setpriv >/dev/null || unavailable 'setpriv (util-linux) is missing'
  name=$(id -un postgres 2>/dev/null || echo nobody)
  user=(setpriv "--reuid=$(id -u "$name")" "--regid=$(id -g "$name")" --clear-groups)
fi

# In /tmp itself: a TMPDIR may be closed to that user, or too long for a socket.
dir=$(mktemp -d /tmp/tunnel-pg15-XXXXXX) || exit 1
[ ${#user[@]} = 0 ] || chown "$(id -u "$name")" "$dir"
as_user() { (cd / && exec "${user[@]}" "$@"); }
finish() {
  as_user "$bin/pg_ctl" -D "$dir/data" -m immediate -w stop >/dev/null 2>&1
  rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

settings="-c listen_addresses= -c unix_socket_directories=$dir -c fsync=off -c synchronous_commit=off"
settings+=" -c full_page_writes=off -c max_connections=200"
if ! { as_user "$bin/initdb" -D "$dir/data" -U postgres -E UTF8 --locale=C --auth=trust --no-sync &&
  as_user "$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -w -t 60 -o "$settings" start; } >"$dir.log" 2>&1 </dev/null; then
  cat "$dir.log" "$dir/log" 2>/dev/null
  rm -f "$dir.log"
  unavailable 'it did not start; its words are above'
fi
rm -f "$dir.log"

TEST_DATABASE_URL="postgres:///postgres?user=postgres&host=$dir" \
  node node_modules/vitest/vitest.mjs run --project database "$@"
