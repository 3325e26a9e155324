// <data_dir>/run.json: where a running server can be reached, for scripts; it also keeps a second server out.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Fault } from '@tunnel/errors';
import { isProcessAlive } from '@tunnel/runtime';
import { dataDirFault } from './data-dir.ts';

/** Null stands for a part that this server does not run. */
export interface RunFile {
  readonly pid: number;
  readonly platform_url: string | null;
  readonly api_url: string | null;
  readonly control: string | null;
  readonly http_url: string | null;
  readonly https_url: string | null;
  readonly metrics_url: string | null;
  readonly simulator_url: string | null;
  readonly admin_token_file: string | null;
}

const pathIn = (dataDir: string): string => join(dataDir, 'run.json');

/** Refuses a data directory whose server lives. A file left by a killed server is no reason. */
export const refuseSecondServer = (dataDir: string): void => {
  const pid = pidIn(dataDir);
  if (pid === undefined || pid === process.pid || !isOurs(pid)) return;
  throw new Fault('CONFIG_DATA_DIR_IN_USE', { dir: dataDir, pid });
};

export const writeRunFile = (dataDir: string, content: RunFile): void => {
  const file = pathIn(dataDir);
  try {
    writeFileSync(`${file}.${process.pid}.tmp`, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
    renameSync(`${file}.${process.pid}.tmp`, file);
  } catch (error) {
    throw dataDirFault(dataDir, error);
  }
};

/** Only our own: a server that came after us keeps its file. */
export const removeRunFile = (dataDir: string): void => {
  if (pidIn(dataDir) === process.pid) rmSync(pathIn(dataDir), { force: true });
};

const pidIn = (dataDir: string): number | undefined => {
  try {
    const { pid } = JSON.parse(readFileSync(pathIn(dataDir), 'utf8')) as { pid?: unknown };
    return typeof pid === 'number' && Number.isSafeInteger(pid) && pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
};

/** Alive, and a server: after a reboot or in a new container the number may belong to any program. */
const isOurs = (pid: number): boolean => {
  if (!isProcessAlive(pid)) return false;
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('tunnel-server');
  } catch {
    // No /proc on this system: the living pid has to be enough.
    return true;
  }
};
