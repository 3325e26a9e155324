// What has to be there before the server can be launched: folders, the lock on them, programs, a user to run as, the cluster.
import { existsSync, mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { Fault } from '@tunnel/errors';
import { type FileLock, lockHolder, type Secret, takeLock } from '@tunnel/runtime';
import { ensurePassword, writeAccessRules } from './access.ts';
import { openCluster } from './cluster.ts';
import { closeSocketFolder, openSocketFolder, removeConnection, socketUrl } from './connection.ts';
import { type PostgresFiles, postgresFiles } from './postgres-files.ts';
import { findPackage, openBinaries, type Programs } from './programs.ts';
import { chooseRunAs, giveTo } from './run-as.ts';

/** Whoever takes over a stale lock at the same moment may lose it to another, who then has it. */
const LOCK_TRIES = 5;

export interface InstallationOptions {
  /** The cluster is its folder `postgres`. */
  readonly dataDir: string;
  /** Where the programs are, instead of the installed package. */
  readonly packageDir?: string;
  /** Laid over ours. */
  readonly settings?: PostgresSettings;
}

export interface Installation {
  /** Held from before the cluster is made until after the server has stopped. */
  readonly lock: FileLock;
  readonly files: PostgresFiles;
  readonly programs: Programs;
  /** Of the server. */
  readonly args: readonly string[];
  readonly socketFolder: string;
  /** Of the role that `url` names. */
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
  // The user of the server looks for its libraries there; what is not for others has a mode of its own.
  mkdirSync(files.support, { recursive: true, mode: 0o755 });
  const lock = lockDatabase(files);
  try {
    const programs = openPrograms(packageDir, dataDir, files);
    const password = ensurePassword(files);
    writeAccessRules(files);
    await openCluster(files, programs, password);
    giveTo(files.cluster, programs.user);
    const socketFolder = openSocketFolder(files.run, programs.user);
    // The cluster comes first: by it the server is known in the list of processes.
    const args = ['-D', files.cluster, ...settingArgs(files, socketFolder, settings)];
    return { lock, files, programs, args, socketFolder, password, url: socketUrl(socketFolder, password) };
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

/** Without it, of two servers that start together on one data directory, each would take the other's database for an orphan. */
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

// How the embedded server is set: for a small machine, durable, on its Unix socket alone.

type PostgresSettings = Readonly<Record<string, string>>;

const SETTINGS: PostgresSettings = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  max_connections: '60',
  shared_buffers: '64MB',
  fsync: 'on',
  synchronous_commit: 'on',
  // Compiling a query takes longer than any of ours runs.
  jit: 'off',
  // The processes of replication are of no use here.
  max_wal_senders: '0',
  wal_level: 'minimal',
  max_logical_replication_workers: '0',
  timezone: 'UTC',
  log_timezone: 'UTC',
  lc_messages: 'C',
  log_destination: 'stderr',
  logging_collector: 'off',
  log_checkpoints: 'off',
  // Without the errors of queries: whoever sent one is told, and its text may hold an address or a token.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_line_prefix: '',
};

/** After a crash: the file system at once instead of some 1400 files one by one, which on a busy disk takes longer than all else. */
const ON_LINUX: PostgresSettings = { recovery_init_sync_method: 'syncfs' };

const settingArgs = ({ access }: PostgresFiles, socketFolder: string, more: PostgresSettings): string[] => {
  const here = process.platform === 'linux' ? ON_LINUX : {};
  const paths = { hba_file: access, unix_socket_directories: `"${socketFolder.replaceAll('"', '""')}"` };
  const all = { ...SETTINGS, ...here, ...paths, ...more };
  return Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
};
