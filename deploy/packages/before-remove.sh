#!/bin/sh
# Runs before the files of the package are removed. An upgrade calls this script too: dpkg passes `upgrade`, rpm a number above 0.
set -e

if [ "$1" = remove ] || [ "$1" = 0 ]; then
  for unit in tunnel-server tunnel-edge tunnel-platform; do
    if [ -d /run/systemd/system ]; then
      systemctl disable --now --quiet "$unit.service" || true
    fi
    rm -f "/etc/systemd/system/multi-user.target.wants/$unit.service"
  done
fi
