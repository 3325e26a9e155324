// Prepares everything needed to launch the database server: folders with a lock, the PostgreSQL programs, a user to run as, and the
// cluster.
import { existsSync, mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { Fault } from '@tunnel/errors';
import { type FileLock, lockHolder, type Secret, takeLock } from '@tunnel/runtime';
import { ensurePassword, writeAccessRules } from './access.ts';
import { openCluster } from './cluster.ts';
import { closeSocketFolder, openSocketFolder, removeConnection, socketUrl } from './connection.ts';
import { type LogMode, lastLogMode, logSettings } from './log-mode.ts';
import { type PostgresFiles, postgresFiles } from './postgres-files.ts';
import { findPackage, openBinaries, type Programs } from './programs.ts';
import { chooseRunAs, giveTo } from './run-as.ts';

/** Maximum attempts to take over a stale lock. If two processes try at the same moment, either can lose the lock to the other. */
const LOCK_TRIES = 5;

export interface InstallationOptions {
  /** The data directory. Its folder `postgres` is the cluster. */
  readonly dataDir: string;
  /** Folder with the PostgreSQL programs. Default: the installed npm package. */
  readonly packageDir?: string;
  /** PostgreSQL settings that override the built-in settings. */
  readonly settings?: PostgresSettings;
  /** How the log is written. Default: as since the last start, for programs that only visit the database. */
  readonly log?: LogMode;
}

export interface Installation {
  /** Lock on the database, held from before the cluster is created until the server has stopped. */
  readonly lock: FileLock;
  readonly files: PostgresFiles;
  readonly programs: Programs;
  /** Command-line arguments of the database server. */
  readonly args: readonly string[];
  readonly socketFolder: string;
  readonly log: LogMode;
  /** Password of the database role in `url`. */
  readonly password: Secret;
  readonly url: Secret;
}

export const openInstallation = async (options: InstallationOptions): Promise<Installation> => {
  const { packageDir = findPackage(), settings = {} } = options;
  if (packageDir === undefined) {
    throw new Error(`this server includes no PostgreSQL for ${process.platform} on ${process.arch}`);
  }
  mkdirSync(options.dataDir, { recursive: true, mode: 0o700 });
  const dataDir = realpathSync(options.dataDir);
  const files = postgresFiles(dataDir);
  // The support folder is readable by all users, because the user of the database server loads libraries from it. Private files in the
  // folder have a stricter mode.
  mkdirSync(files.support, { recursive: true, mode: 0o755 });
  const lock = lockDatabase(files);
  try {
    const programs = openPrograms(packageDir, dataDir, files);
    const password = ensurePassword(files);
    writeAccessRules(files);
    await openCluster(files, programs, password);
    giveTo(files.cluster, programs.user);
    const socketFolder = openSocketFolder(files.run, programs.user);
    // The cluster comes first in the arguments, because a running server is recognized by it in the list of processes.
    const log = options.log ?? lastLogMode(files);
    const args = ['-D', files.cluster, ...settingArgs(files, socketFolder, { ...logSettings(log), ...settings })];
    return { lock, files, programs, args, socketFolder, log, password, url: socketUrl(socketFolder, password) };
  } catch (error) {
    lock.release();
    throw error;
  }
};

export const closeInstallation = ({ lock, files, socketFolder }: Installation): void => {
  removeConnection(files.connection);
  closeSocketFolder(socketFolder, files.run);
  lock.release();
};

/**
 * Locks the database. Without the lock, two servers starting at the same time on the same data directory would each treat the other's
 * database as an orphan and stop it.
 */
const lockDatabase = ({ dataDir, lock: path }: PostgresFiles): FileLock => {
  for (let tries = 0; tries < LOCK_TRIES; tries += 1) {
    const lock = takeLock(path);
    if (lock !== null) return lock;
    const pid = lockHolder(path);
    if (pid !== null) throw new Fault('CONFIG_DATA_DIR_IN_USE', { dir: dataDir, pid });
  }
  throw new Error(`a stale lock cannot be taken over: remove ${path}`);
};

const openPrograms = (packageDir: string, dataDir: string, files: PostgresFiles): Programs => {
  const home = existsSync(files.cluster) ? files.cluster : files.support;
  const user = chooseRunAs(home, [dataDir, realpathSync(join(packageDir, 'native/bin'))]);
  return { binaries: openBinaries(packageDir, files.libraries), user };
};

// Settings of the embedded database server: suited to a small machine, durable, and reachable only through the Unix socket.

type PostgresSettings = Readonly<Record<string, string>>;

const SETTINGS: PostgresSettings = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  max_connections: '60',
  shared_buffers: '64MB',
  fsync: 'on',
  synchronous_commit: 'on',
  // JIT compilation of a query would take longer than running any query of the platform.
  jit: 'off',
  // Each process reads its own pages. The alternative are worker processes, which a small database does not keep busy.
  io_method: 'sync',
  // Replication is not used, so its processes are turned off.
  max_wal_senders: '0',
  max_logical_replication_workers: '0',
  timezone: 'UTC',
  log_timezone: 'UTC',
  lc_messages: 'C',
  log_destination: 'stderr',
  logging_collector: 'off',
  log_checkpoints: 'off',
  // Errors of queries are not logged: the client gets the error, and the statement could contain an address or a token.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_line_prefix: '',
};

/**
 * Additional settings on Linux. Recovery after a crash syncs the whole file system at once. Syncing about 1400 files separately would
 * take longer than the rest of the recovery on a busy disk.
 */
const ON_LINUX: PostgresSettings = { recovery_init_sync_method: 'syncfs' };

const settingArgs = ({ access }: PostgresFiles, socketFolder: string, more: PostgresSettings): string[] => {
  const here = process.platform === 'linux' ? ON_LINUX : {};
  const paths = { hba_file: access, unix_socket_directories: `"${socketFolder.replaceAll('"', '""')}"` };
  const all = { ...SETTINGS, ...here, ...paths, ...more };
  return Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
};
