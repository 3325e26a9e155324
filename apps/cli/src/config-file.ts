// config.yml as commands find it: the one that was named, or the one in the home folder.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type ClientConfig, loadClientConfig, pathFrom } from '@tunnel/runtime';
import type { Io } from './io.ts';

export interface LoadedConfig {
  readonly path: string;
  readonly values: ClientConfig;
}

/** The file named by --config, which must be there, or the default one if it is. */
export const loadConfig = (flag: string | undefined, io: Io): LoadedConfig | null => {
  const path = configPath(flag, io);
  if (flag === undefined && !existsSync(path)) return null;
  return { path, values: loadClientConfig({ file: path, env: io.env, home: io.home }) };
};

/** Where it is, or would be. */
export const configPath = (flag: string | undefined, io: Io): string =>
  flag === undefined ? defaultConfigPath(io) : pathFrom(io.cwd, flag, io.home);

export const defaultConfigPath = (io: Io): string => join(io.home, '.tunnel', 'config.yml');
