// Connection to the embedded database: a Unix socket in a folder accessible only to its owner, and the password of the only role.
// Commands next to a running server find the database in <data_dir>/postgres-support/connection.json.
import { chmodSync, chownSync, lstatSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isProcessAlive, Secret, sha256Hex, writeAtomicSync } from '@tunnel/runtime';
import { DATABASE_NAME, DATABASE_USER } from './access.ts';
import { POSTGRES_BOUNDS, postgresFiles } from './postgres-files.ts';
import type { RunAs } from './run-as.ts';

const SOCKET_NAME = '.s.PGSQL.5432';

const fits = (folder: string): boolean =>
  Buffer.byteLength(join(folder, SOCKET_NAME)) <= POSTGRES_BOUNDS.SOCKET_PATH_BYTES;

/**
 * Creates the folder of the socket below the data directory. If that path is too long for a socket, the folder is created in the folder
 * for temporary files.
 */
export const openSocketFolder = (preferred: string, user: RunAs): string => {
  if (fits(preferred)) return openFolder(preferred, user);
  const name = `tunnel-postgres-${sha256Hex(preferred).slice(0, 16)}`;
  return openFolder([join(tmpdir(), name), join('/tmp', name)].find(fits) ?? join('/tmp', name), user);
};

const openFolder = (folder: string, { uid, gid }: RunAs): string => {
  try {
    mkdirSync(folder, { mode: 0o700 });
    if (process.getuid?.() !== uid) chownSync(folder, uid, gid);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    takeOver(folder, uid, gid);
  }
  return folder;
};

/**
 * Takes over an existing folder. Its name is predictable, so in a folder writable by all users, a different user may have created it;
 * then an error is thrown.
 */
const takeOver = (folder: string, uid: number, gid: number): void => {
  const found = lstatSync(folder);
  if (!found.isDirectory() || (found.uid !== uid && found.uid !== process.getuid?.())) {
    throw new Error(`the folder of its socket, ${folder}, belongs to another user`);
  }
  if (found.uid !== uid) chownSync(folder, uid, gid);
  if ((found.mode & 0o777) !== 0o700) chmodSync(folder, 0o700);
};

/**
 * Removes the socket's lock file left behind by a server that has ended. The file can be empty, or contain a pid that belongs to a
 * different program by now.
 */
export const removeSocketLock = (folder: string): void => rmSync(join(folder, `${SOCKET_NAME}.lock`), { force: true });

/** Removes the folder of the socket if it is in the folder for temporary files. */
export const closeSocketFolder = (folder: string, preferred: string): void => {
  if (folder !== preferred) rmSync(folder, { recursive: true, force: true });
};

/** Returns the database URL in a form that both our driver and the PostgreSQL tools understand. */
export const socketUrl = (socketFolder: string, password: Secret): Secret => {
  const host = encodeURIComponent(socketFolder);
  const secret = encodeURIComponent(password.reveal());
  return new Secret(`postgres:///${DATABASE_NAME}?user=${DATABASE_USER}&password=${secret}&host=${host}`);
};

/** Returns the URL of the running embedded database. Null if no server runs on the data directory. */
export const embeddedUrl = (dataDir: string): Secret | null => {
  try {
    const { url, pid } = JSON.parse(readFileSync(postgresFiles(dataDir).connection, 'utf8')) as Record<string, unknown>;
    return typeof url === 'string' && typeof pid === 'number' && isProcessAlive(pid) ? new Secret(url) : null;
  } catch {
    return null;
  }
};

export const writeConnection = (file: string, url: Secret, pid: number): void =>
  writeAtomicSync(file, `${JSON.stringify({ url: url.reveal(), pid }, null, 2)}\n`, { soleWriter: true });

export const removeConnection = (file: string): void => rmSync(file, { force: true });
