#!/usr/bin/env bash
# sslscan, testssl.sh and sslyze look at the https port and the control port of an edge with TLS on loopback: versions, ciphers, groups.
# One line each; a scanner that is not installed is skipped in one line; the last line is ok: or FAILED:.
# Uses Debian's openssl, sslscan and testssl.sh where they are installed; sslyze comes from PyPI.
# Usage: tests/tools/tls/scan.sh    Exit code: 1 when something failed.
set -uo pipefail

# shellcheck source=tests/tools/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

has() { command -v "$1" >/dev/null || [[ -x /usr/sbin/$1 ]]; }

# With a key of RSA: with another one nobody could exchange keys by it.
make_certificate() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout "$work/ca.key" -out "$work/ca.pem" -subj '/CN=scan authority' 2>/dev/null
  openssl req -newkey rsa:2048 -nodes -keyout "$work/edge.key" -out "$work/edge.csr" -subj '/CN=an edge' 2>/dev/null
  openssl x509 -req -in "$work/edge.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" -CAcreateserial -days 2 -out "$work/edge.pem" \
    -extfile <(printf 'subjectAltName=DNS:edge.test,DNS:*.edge.test,DNS:localhost,IP:127.0.0.1\n') 2>/dev/null
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

has openssl || { skip everything 'openssl is not installed'; exit 0; }
node "$root/scripts/ensure.mjs" build || exit 1
make_certificate
start_edge scanned 'domain = "edge.test"' "[tls]
cert_path = \"$work/edge.pem\"
key_path = \"$work/edge.key\""
https_port=$(field "$run_json" https_url | grep -oE '[0-9]+/?$' | tr -d /)
try_scans
if [[ $failures -gt 0 ]]; then
  printf 'FAILED: TLS of an edge: %s failed\n' "$failures"
  exit 1
fi
printf 'ok: TLS of an edge, as scanners see it\n'
