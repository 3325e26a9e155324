#!/bin/sh
# Runs after the files of the package are removed. The data and their owner, the user tunnel, stay.
set -e

if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
