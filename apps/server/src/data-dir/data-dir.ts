// The data directory, created on first use with access for the current user only, and two files in it: the admin token, and run.json, by
// which scripts find a running server.
import { spawn } from 'node:child_process';
import { accessSync, chmodSync, constants, existsSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Edge } from '@tunnel/edge';
import { Fault } from '@tunnel/errors';
import {
  type Clock,
  ensureSecretFile,
  type FileLock,
  lockHolder,
  readBoundedSync,
  type Secret,
  systemClock,
  takeLock,
  writeAtomicSync,
} from '@tunnel/runtime';

/** Time limit for the first access to the directory. Network mounts hang when their server is down. */
const PROBE_MS = 5000;

interface OpenOptions {
  readonly clock?: Clock;
  /** Accesses the data directory, and resolves whether or not the access succeeds. */
  readonly probe?: (dir: string) => Promise<void>;
}

/**
 * Creates the data directory if needed, and returns its absolute path. Throws a fault if the directory is not writable or does not
 * respond.
 */
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
  } catch (error) {
    throw dataDirFault(dir, error);
  }
  if (existsSync(join(dir, UNFINISHED_RESTORE))) throw new Fault('CONFIG_RESTORE_UNFINISHED', { dir });
  return dir;
};

/** File that marks a data directory while a restore writes to it. A killed restore leaves the file, and no server starts beside it. */
export const UNFINISHED_RESTORE = 'restore-unfinished';

/**
 * Accesses the directory in a child process, because Node.js cannot cancel a file system call and waits for pending calls at exit. The
 * result is ignored: the calls after the probe report errors.
 */
const probeInChild = (dir: string): Promise<void> =>
  new Promise((done) => {
    const child = spawn('ls', ['-d', '--', dir], { stdio: 'ignore', timeout: PROBE_MS, killSignal: 'SIGKILL' });
    child.unref();
    child.once('error', () => done()).once('exit', () => done());
  });

/**
 * Creates a directory and its parents with exactly these permissions, whatever the umask. An existing directory stays as it is. Replaces
 * the `recursive` option of Node.js, which loops forever below /proc, and gives the parents the same permissions.
 */
export const makeDirectory = (dir: string, mode = 0o700, parentMode = mode): void => {
  const make = (): void => {
    mkdirSync(dir, { mode });
    chmodSync(dir, mode);
  };
  try {
    make();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && statSync(dir).isDirectory()) return;
    if (code !== 'ENOENT' || existsSync(dirname(dir))) throw error;
    makeDirectory(dirname(dir), parentMode);
    make();
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

// The admin token: from the config, or generated once and stored in the data directory.

export interface AdminToken {
  readonly token: Secret;
  /** Path of the file with the token. Null if the config contains the token, so that no file is written. */
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

// <data_dir>/run.json: the addresses of a running server, for scripts. The file also prevents a second server on the same data directory.

/** Content of run.json. A value is null if the server does not run the respective part. */
export interface RunFile {
  readonly pid: number;
  readonly platform_url: string | null;
  readonly api_url: string | null;
  readonly control: string | null;
  readonly http_url: string | null;
  readonly https_url: string | null;
  readonly metrics_url: string | null;
  readonly simulator_url: string | null;
  /** Address (host:port) of the DNS responder for ACME challenges. */
  readonly dns: string | null;
  /** The two UDP ports, for the datagram path and for P2P. Empty if no feature needs the ports. */
  readonly udp_ports: readonly number[];
  readonly admin_token_file: string | null;
}

const pathIn = (dataDir: string): string => join(dataDir, 'run.json');
const lockIn = (dataDir: string): string => join(dataDir, 'server.lock');

/**
 * Locks the data directory for a single server. The lock also works if two servers start at the same moment. The pid in run.json decides
 * nothing, because in a new container a thread of the starting server can have the pid of a killed server.
 */
export const lockDataDir = (dataDir: string): FileLock => {
  const path = lockIn(dataDir);
  try {
    const lock = takeLock(path);
    if (lock !== null) return lock;
  } catch (error) {
    throw dataDirFault(dataDir, error);
  }
  throw new Fault('CONFIG_DATA_DIR_IN_USE', { dir: dataDir, pid: lockHolder(path) ?? 0 });
};

export const writeRunFile = (dataDir: string, content: RunFile): void => {
  try {
    writeAtomicSync(pathIn(dataDir), `${JSON.stringify(content, null, 2)}\n`, { soleWriter: true });
  } catch (error) {
    throw dataDirFault(dataDir, error);
  }
};

/** Removes run.json if the file belongs to this process, so that the file of a newer server stays. */
export const removeRunFile = (dataDir: string): void => {
  if (pidIn(dataDir) === process.pid) rmSync(pathIn(dataDir), { force: true });
};

/** Reads the run.json of a running server. Returns null if no server is running. */
export const readRunFile = (dataDir: string): RunFile | null => {
  const run = parsedRunFile(dataDir);
  return run !== undefined && holderOf(dataDir) === run.pid ? run : null;
};

/** Returns the pid of the server that holds the lock. The lock recognizes a killed server even if its pid is in use again. */
const holderOf = (dataDir: string): number | null => {
  try {
    return lockHolder(lockIn(dataDir));
  } catch {
    // A lock that cannot be read is no proof of a running server.
    return null;
  }
};

const pidIn = (dataDir: string): number | undefined => parsedRunFile(dataDir)?.pid;

/** Maximum size of run.json. Pipes and larger files are ignored like a missing file, because reading them could block. */
const RUN_FILE_MAX_BYTES = 64 * 1024;

const parsedRunFile = (dataDir: string): RunFile | undefined => {
  try {
    const run = JSON.parse(readBoundedSync(pathIn(dataDir), RUN_FILE_MAX_BYTES) ?? 'null') as RunFile | null;
    return run !== null && Number.isSafeInteger(run.pid) && run.pid > 0 ? run : undefined;
  } catch {
    return undefined;
  }
};

type Address = Edge['addresses']['control'];

/** Addresses of a server's parts. A value is null if the server does not run the respective part. */
export interface Reach {
  readonly platform: (Address & { readonly tls?: boolean }) | null;
  readonly edge: Omit<Edge['addresses'], 'stackApi'> | null;
  readonly simulatorUrl: string | null;
  /** Address (host:port) of the DNS responder for ACME challenges. */
  readonly dns: string | null;
}

/** Returns the content of run.json for a server with the given addresses. */
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

/**
 * Returns an address as host:port that works on this machine. For a server that listens on all interfaces, the host is the loopback
 * address.
 */
const hostPort = ({ host, port }: Address): string => {
  const reachable = EVERY_ADDRESS.has(host) ? '127.0.0.1' : host;
  return `${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
};

const httpUrl = (address: Address, path = ''): string => `http://${hostPort(address)}${path}`;
