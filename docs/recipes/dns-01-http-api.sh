#!/bin/sh
# [acme] dns = "exec": sets challenge records through the HTTP API of a DNS provider. Needs curl. Providers differ in paths and fields:
# this one has POST and DELETE on /zones/ZONE/records, which is easily changed to what yours documents.
#   DNS_API         https://api.provider.example/v1
#   DNS_ZONE        example.com
#   DNS_TOKEN_FILE  a file with the line `header = "Authorization: Bearer ..."`, so that no token shows in the list of processes
set -eu
: "${DNS_API:?the address of the API}"
: "${DNS_ZONE:?the zone that the names are in}"
: "${DNS_TOKEN_FILE:?a file of curl settings with the token}"

case "$1" in
  set) method=POST ;;
  clear) method=DELETE ;;
  *) echo "usage: $0 set|clear NAME VALUE" >&2; exit 2 ;;
esac

# Names and values of challenges are letters, digits, dots, - and _: they need no escaping in JSON.
curl --silent --show-error --fail-with-body --max-time 20 --config "$DNS_TOKEN_FILE" \
  --request "$method" --header 'Content-Type: application/json' \
  --data "{\"type\":\"TXT\",\"name\":\"$2\",\"content\":\"$3\",\"ttl\":60}" \
  "$DNS_API/zones/$DNS_ZONE/records"
