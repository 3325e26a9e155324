// What has to be there before the server can be launched: folders, programs, a user to run as, the cluster.
import { existsSync, mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { Fault } from '@tunnel/errors';
import type { Secret } from '@tunnel/runtime';
import { findPackage, openBinaries } from './binaries.ts';
import { openCluster } from './cluster.ts';
import { removeConnection, socketUrl } from './connection-file.ts';
import { claim, release } from './holder.ts';
import { type PostgresFiles, postgresFiles } from './postgres-files.ts';
import { type PostgresSettings, settingArgs } from './postgres-settings.ts';
import { chooseRunAs, giveTo } from './run-as.ts';
import type { Programs } from './run-program.ts';
import { closeSocketFolder, openSocketFolder } from './socket-folder.ts';

export interface GroundOptions {
  /** The cluster is its folder `postgres`. */
  readonly dataDir: string;
  /** Where the programs are, instead of the installed package. */
  readonly packageDir?: string;
  /** Laid over ours. */
  readonly settings?: PostgresSettings;
}

export interface Ground {
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
  const holder = claim(files.support);
  if (holder !== undefined) throw new Fault('CONFIG_DATA_DIR_IN_USE', { dir: dataDir, pid: holder });
  try {
    const programs = openPrograms(packageDir, dataDir, files);
    await openCluster(files, programs);
    giveTo(files.cluster, programs.user);
    const socketFolder = openSocketFolder(files.run, programs.user);
    // The cluster comes first: by it the server is known in the list of processes.
    const args = ['-D', files.cluster, ...settingArgs(socketFolder, settings)];
    return { files, programs, args, socketFolder, url: socketUrl(socketFolder) };
  } catch (error) {
    release(files.support);
    throw error;
  }
};

export const closeGround = ({ files, socketFolder }: Ground): void => {
  removeConnection(files.connection);
  closeSocketFolder(socketFolder, files.run);
  release(files.support);
};

const openPrograms = (packageDir: string, dataDir: string, files: PostgresFiles): Programs => {
  const home = existsSync(files.cluster) ? files.cluster : files.support;
  const user = chooseRunAs(home, [dataDir, realpathSync(join(packageDir, 'native/bin'))]);
  return { binaries: openBinaries(packageDir, files.libraries), user };
};
