// Access to config.yml: the file given by --config, or the file in the home folder. A new text for the file is checked before it is
// written.
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type ClientConfig, loadClientConfig } from '@tunnel/config/client';
import { ConfigProblem, pathFrom, readConfigText } from '@tunnel/config/layers';
import { Fault } from '@tunnel/errors';
import { sha256Hex } from '@tunnel/runtime';
import type { Io } from '../io/io.ts';
import { fileFault, writePrivateFile } from '../io/private-files.ts';

export interface LoadedConfig {
  readonly path: string;
  /** SHA-256 of the text that contains the values. */
  readonly hash: string;
  readonly values: ClientConfig;
}

/** Loads the config file. A file given by --config must exist. Returns null if the default file does not exist. */
export const loadConfig = (flag: string | undefined, io: Io): LoadedConfig | null => {
  const path = configPath(flag, io);
  if (flag === undefined && !existsSync(path)) return null;
  const text = readConfigText(path);
  return { path, hash: sha256Hex(text), values: loadClientConfig({ file: path, text, env: io.env, home: io.home }) };
};

/** Returns the path of the config file, whether or not the file exists. */
export const configPath = (flag: string | undefined, io: Io): string =>
  flag === undefined ? defaultConfigPath(io) : pathFrom(io.cwd, flag, io.home);

export const defaultConfigPath = (io: Io): string => join(io.home, '.tunnel', 'config.yml');

/**
 * Checks a new text for the config file by loading the text from a temporary file in the same folder. Returns null if the text is
 * invalid.
 */
export const tryConfig = (file: string, text: string, io: Pick<Io, 'env' | 'home'>): ClientConfig | null => {
  const aside = `${file}.${process.pid}.try`;
  try {
    writePrivateFile(aside, text);
    return loadClientConfig({ file: aside, env: io.env, home: io.home });
  } catch (error) {
    if (error instanceof Fault && !(error instanceof ConfigProblem)) throw fileFault(file, error.cause);
    return null;
  } finally {
    rmSync(aside, { force: true });
  }
};
