// The data directory: made on first use, for this user alone; and what a server keeps in it: the admin token, and run.json, by which
// scripts find a running server and which keeps a second one out.
import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Edge } from '@tunnel/edge';
import { Fault } from '@tunnel/errors';
import {
  type Clock,
  ensureSecretFile,
  type FileLock,
  isProcessAlive,
  lockHolder,
  type Secret,
  systemClock,
  takeLock,
  writeAtomicSync,
} from '@tunnel/runtime';

/** Time limit for the first access to the directory. Network mounts hang when their server is down. */
const PROBE_MS = 5000;

interface OpenOptions {
  readonly clock?: Clock;
  /** Accesses the directory, successfully or not. */
  readonly probe?: (dir: string) => Promise<void>;
}

/** The absolute path of a directory that exists and can be written. */
export const openDataDir = async (
  configured: string,
  { clock = systemClock, probe = probeInChild }: OpenOptions = {},
): Promise<string> => {
  const dir = resolve(configured);
  await new Promise<void>((answered, reject) => {
    const late = clock.setTimeout(
      () => reject(dataDirFault(dir, new Error(`no response from the file system within ${PROBE_MS / 1000} s`))),
      PROBE_MS,
    );
    void probe(dir).finally(() => {
      late.cancel();
      answered();
    });
  });
  try {
    makeDirectory(dir);
    accessSync(dir, constants.R_OK | constants.W_OK | constants.X_OK);
    return dir;
  } catch (error) {
    throw dataDirFault(dir, error);
  }
};

/**
 * Runs in a child process, because Node.js cannot cancel a file system call and waits for pending calls at exit. The result is ignored: the calls after the probe
 * report errors.
 */
const probeInChild = (dir: string): Promise<void> =>
  new Promise((done) => {
    const child = spawn('ls', ['-d', '--', dir], { stdio: 'ignore', timeout: PROBE_MS, killSignal: 'SIGKILL' });
    child.unref();
    child.once('error', () => done()).once('exit', () => done());
  });

/** Replaces the `recursive` option of Node.js, which loops forever below /proc. */
const makeDirectory = (dir: string): void => {
  try {
    mkdirSync(dir, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && statSync(dir).isDirectory()) return;
    if (code !== 'ENOENT' || existsSync(dirname(dir))) throw error;
    makeDirectory(dirname(dir));
    mkdirSync(dir, { mode: 0o700 });
  }
};

const dataDirFault = (dir: string, error: unknown): Fault =>
  new Fault('CONFIG_DATA_DIR', { dir, reason: reasonOf(error) }, { cause: error });

const reasonOf = (error: unknown): string => {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  if (code === 'EEXIST' || code === 'ENOTDIR') return 'not a directory';
  if (code === 'EACCES' || code === 'EPERM') return 'permission denied';
  if (code === 'ENOENT') return 'it cannot be created';
  if (code === 'EROFS') return 'the file system is read-only';
  if (code === 'ENOSPC') return 'the disk is full';
  return error instanceof Error ? error.message : String(error);
};

// The admin token: the one of the config, or one that is generated once and kept in the data directory.

export interface AdminToken {
  readonly token: Secret;
  /** Null when the config names the token: nothing is written then. */
  readonly file: string | null;
}

export const loadAdminToken = (configured: Secret, dataDir: string): AdminToken => {
  if (configured.reveal() !== '') return { token: configured, file: null };
  const file = join(dataDir, 'admin-token');
  try {
    const token = ensureSecretFile(file);
    if (token.reveal() === '')
      throw new Fault('CONFIG_DATA_DIR', { dir: dataDir, reason: 'the file admin-token is empty' });
    return { token, file };
  } catch (error) {
    throw error instanceof Fault ? error : dataDirFault(dataDir, error);
  }
};

// <data_dir>/run.json: where a running server can be reached, for scripts; it also keeps a second server out.

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
  /** host:port of the responder for challenges. */
  readonly dns: string | null;
  /** The two for the path of datagrams and for P2P; none: nothing needs them. */
  readonly udp_ports: readonly number[];
  readonly admin_token_file: string | null;
}

const pathIn = (dataDir: string): string => join(dataDir, 'run.json');

/** One server a data directory, those that start at the same moment too. */
export const lockDataDir = (dataDir: string): FileLock => {
  refuseSecondServer(dataDir);
  const path = join(dataDir, 'server.lock');
  try {
    const lock = takeLock(path);
    if (lock !== null) return lock;
  } catch (error) {
    throw dataDirFault(dataDir, error);
  }
  throw new Fault('CONFIG_DATA_DIR_IN_USE', { dir: dataDir, pid: lockHolder(path) ?? 0 });
};

/** Refuses a data directory whose server lives. A file left by a killed server is no reason. */
export const refuseSecondServer = (dataDir: string): void => {
  const pid = pidIn(dataDir);
  if (pid === undefined || pid === process.pid || !isOurs(pid)) return;
  throw new Fault('CONFIG_DATA_DIR_IN_USE', { dir: dataDir, pid });
};

export const writeRunFile = (dataDir: string, content: RunFile): void => {
  try {
    writeAtomicSync(pathIn(dataDir), `${JSON.stringify(content, null, 2)}\n`, { soleWriter: true });
  } catch (error) {
    throw dataDirFault(dataDir, error);
  }
};

/** Only our own: a server that came after us keeps its file. */
export const removeRunFile = (dataDir: string): void => {
  if (pidIn(dataDir) === process.pid) rmSync(pathIn(dataDir), { force: true });
};

/** Of a server that lives; null: none does. */
export const readRunFile = (dataDir: string): RunFile | null => {
  const pid = pidIn(dataDir);
  if (pid === undefined || !isOurs(pid)) return null;
  try {
    return JSON.parse(readFileSync(pathIn(dataDir), 'utf8')) as RunFile;
  } catch {
    return null;
  }
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

type Address = Edge['addresses']['control'];

/** Where the parts of a server are; null: it does not run them. */
export interface Reach {
  readonly platform: (Address & { readonly tls?: boolean }) | null;
  readonly edge: Omit<Edge['addresses'], 'stackApi'> | null;
  readonly simulatorUrl: string | null;
  /** host:port of the responder for challenges. */
  readonly dns: string | null;
}

/** The run.json of a server that can be reached there. */
export const describeRun = (reach: Reach, adminTokenFile: string | null, pid: number): RunFile => {
  const { platform, edge, simulatorUrl, dns } = reach;
  return {
    pid,
    platform_url: platform === null ? null : `${platform.tls === true ? 'https' : 'http'}://${hostPort(platform)}`,
    api_url: edge === null ? null : `${edge.api.tls ? 'https' : 'http'}://${hostPort(edge.api)}`,
    control: edge === null ? null : hostPort(edge.control),
    http_url: edge === null ? null : httpUrl(edge.http),
    https_url: edge?.https ? `https://${hostPort(edge.https)}` : null,
    metrics_url: edge === null ? null : httpUrl(edge.metrics, '/metrics'),
    simulator_url: simulatorUrl,
    dns,
    udp_ports: edge?.udpPorts ?? [],
    admin_token_file: edge === null ? null : adminTokenFile,
  };
};

const EVERY_ADDRESS = new Set(['0.0.0.0', '::', '']);

/** What a person or a script on this machine can type: host:port, with loopback for a server that listens everywhere. */
const hostPort = ({ host, port }: Address): string => {
  const reachable = EVERY_ADDRESS.has(host) ? '127.0.0.1' : host;
  return `${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
};

const httpUrl = (address: Address, path = ''): string => `http://${hostPort(address)}${path}`;
