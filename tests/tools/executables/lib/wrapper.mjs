// A program to name in TUNNEL_BIN: starts the executable inside a root file system, or under qemu.
import { chmodSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

const COMMANDS = {
  // The folders of the tests are below the temporary folder. The network is shared, because server and services run outside.
  bwrap: ({ program, root, executable }) => [
    ...[program, '--ro-bind', root, '/', '--proc', '/proc', '--dev', '/dev', '--bind', tmpdir(), tmpdir()],
    ...['--ro-bind', dirname(executable), '/opt/tunnel', '--setenv', 'PATH', '', '--unsetenv', 'NODE_EXTRA_CA_CERTS'],
    '--die-with-parent',
    `/opt/tunnel/${basename(executable)}`,
  ],
  qemu: ({ program, root, executable }) => [program, '-L', root, executable],
};

/** Returns the path of the script. */
export function writeWrapper({ kind, ...parts }) {
  const file = join(dirname(parts.root), `tunnel-in-${kind}.sh`);
  const command = COMMANDS[kind](parts).map(quoted).join(' ');
  writeFileSync(file, `#!/bin/sh\nexec ${command} "$@"\n`);
  chmodSync(file, 0o755);
  return file;
}
