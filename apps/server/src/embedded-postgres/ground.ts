// What has to be there before the server can be launched: folders, programs, a user to run as, the cluster.
import { existsSync, mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { Fault } from '@tunnel/errors';
import { type FileLock, lockHolder, type Secret, takeLock } from '@tunnel/runtime';
import { findPackage, openBinaries } from './binaries.ts';
import { openCluster } from './cluster.ts';
import { removeConnection, socketUrl } from './connection-file.ts';
import { type PostgresFiles, postgresFiles } from './postgres-files.ts';
import { type PostgresSettings, settingArgs } from './postgres-settings.ts';
import { chooseRunAs, giveTo } from './run-as.ts';
import type { Programs } from './run-program.ts';
import { closeSocketFolder, openSocketFolder } from './socket-folder.ts';

/** Whoever takes over a stale lock at the same moment may lose it to another, who then has it. */
const LOCK_TRIES = 5;

export interface GroundOptions {
  /** The cluster is its folder `postgres`. */
  readonly dataDir: string;
  /** Where the programs are, instead of the installed package. */
  readonly packageDir?: string;
  /** Laid over ours. */
  readonly settings?: PostgresSettings;
}

export interface Ground {
  /** Held from before the cluster is made until after the server has stopped. */
  readonly lock: FileLock;
  readonly files: PostgresFiles;
  readonly programs: Programs;
  /** Of the server. */
  readonly args: readonly string[];
  readonly socketFolder: string;
  readonly url: Secret;
}

export const openGround = async (options: GroundOptions): Promise<Ground> => {
  const { packageDir = findPackage(), settings = {} } = options;
  if (packageDir === undefined) {
    throw new Error(`no PostgreSQL is installed with this server for ${process.platform} on ${process.arch}`);
  }
  mkdirSync(options.dataDir, { recursive: true, mode: 0o700 });
  const dataDir = realpathSync(options.dataDir);
  const files = postgresFiles(dataDir);
  // The user of the server looks for its libraries there; what is not for others has a mode of its own.
  mkdirSync(files.support, { recursive: true, mode: 0o755 });
  const lock = lockDatabase(files);
  try {
    const programs = openPrograms(packageDir, dataDir, files);
    await openCluster(files, programs);
    giveTo(files.cluster, programs.user);
    const socketFolder = openSocketFolder(files.run, programs.user);
    // The cluster comes first: by it the server is known in the list of processes.
    const args = ['-D', files.cluster, ...settingArgs(socketFolder, settings)];
    return { lock, files, programs, args, socketFolder, url: socketUrl(socketFolder) };
  } catch (error) {
    lock.release();
    throw error;
  }
};

export const closeGround = ({ lock, files, socketFolder }: Ground): void => {
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
  throw new Error(`its lock was left behind and cannot be taken over: remove ${path}`);
};

const openPrograms = (packageDir: string, dataDir: string, files: PostgresFiles): Programs => {
  const home = existsSync(files.cluster) ? files.cluster : files.support;
  const user = chooseRunAs(home, [dataDir, realpathSync(join(packageDir, 'native/bin'))]);
  return { binaries: openBinaries(packageDir, files.libraries), user };
};
