#!/bin/sh
# The command tunnel-server of the package. A small young generation of V8 saves memory.
exec /usr/lib/tunnel/bin/node --max-semi-space-size=4 /usr/lib/tunnel/server/bin/tunnel-server.mjs "$@"
