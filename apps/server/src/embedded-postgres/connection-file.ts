// <data_dir>/postgres-support/connection.json: how commands beside a running server reach its embedded database.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isProcessAlive, Secret } from '@tunnel/runtime';
import { DATABASE_NAME, DATABASE_USER } from './cluster.ts';
import { postgresFiles } from './postgres-files.ts';

/** In the form that both our driver and the tools of PostgreSQL understand. */
export const socketUrl = (socketFolder: string, user: string = DATABASE_USER, name: string = DATABASE_NAME): Secret =>
  new Secret(`postgres:///${name}?user=${user}&host=${encodeURIComponent(socketFolder)}`);

/** Null when no server runs on this data directory. */
export const embeddedUrl = (dataDir: string): Secret | null => {
  try {
    const { url, pid } = JSON.parse(readFileSync(postgresFiles(dataDir).connection, 'utf8')) as Record<string, unknown>;
    return typeof url === 'string' && typeof pid === 'number' && isProcessAlive(pid) ? new Secret(url) : null;
  } catch {
    return null;
  }
};

export const writeConnection = (file: string, url: Secret, pid: number): void => {
  const aside = `${file}.${process.pid}.tmp`;
  writeFileSync(aside, `${JSON.stringify({ url: url.reveal(), pid }, null, 2)}\n`, { mode: 0o600 });
  renameSync(aside, file);
};

export const removeConnection = (file: string): void => rmSync(file, { force: true });
