#!/bin/sh
# Runs when the files of the package are in place. dpkg passes `configure` and the previous version, rpm the number of installed versions.
set -e

if command -v systemd-sysusers > /dev/null; then
  systemd-sysusers tunnel.conf
elif ! id -u tunnel > /dev/null 2>&1; then
  useradd --system --user-group --no-create-home --home-dir /var/lib/tunnel --shell /usr/sbin/nologin tunnel
fi

# The server reads its settings as a member of this group. A file that the operator gave to another user stays as it is.
if [ "$(stat -c %U:%G /etc/tunnel/server.toml 2> /dev/null)" = root:root ]; then
  chgrp tunnel /etc/tunnel/server.toml
fi

if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  # An upgrade restarts the services that are running. Nothing else is started.
  if [ "$1" -gt 1 ] 2> /dev/null || { [ "$1" = configure ] && [ -n "$2" ]; }; then
    systemctl try-restart tunnel-server.service tunnel-edge.service tunnel-platform.service || true
  fi
fi
