#!/bin/sh
# [acme] dns = "exec": sets challenge records on a name server that takes updates (RFC 2136) signed with a shared key (TSIG),
# as BIND, Knot and PowerDNS do. Needs nsupdate (Debian: bind9-dnsutils).
#   DNS_SERVER     where updates go: an address, or an address and a port ("192.0.2.1 53")
#   DNS_KEY_FILE   the key, as tsig-keygen prints it; readable by this server's user alone
set -eu
: "${DNS_SERVER:?where updates go, such as 192.0.2.1}"
: "${DNS_KEY_FILE:?the file of the shared key}"

case "$1" in
  set) update="update add $2. 1 TXT \"$3\"" ;;
  clear) update="update delete $2. TXT \"$3\"" ;;
  *) echo "usage: $0 set|clear NAME VALUE" >&2; exit 2 ;;
esac

nsupdate -t 20 -k "$DNS_KEY_FILE" <<END
server $DNS_SERVER
$update
send
END
