// config.yml as commands find it: the one that was named, or the one in the home folder; and a new text for it, tried before it is written.
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
  /** SHA-256 of the text that the values were read from. */
  readonly hash: string;
  readonly values: ClientConfig;
}

/** The file named by --config, which must be there, or the default one if it is. */
export const loadConfig = (flag: string | undefined, io: Io): LoadedConfig | null => {
  const path = configPath(flag, io);
  if (flag === undefined && !existsSync(path)) return null;
  const text = readConfigText(path);
  return { path, hash: sha256Hex(text), values: loadClientConfig({ file: path, text, env: io.env, home: io.home }) };
};

/** Where it is, or would be. */
export const configPath = (flag: string | undefined, io: Io): string =>
  flag === undefined ? defaultConfigPath(io) : pathFrom(io.cwd, flag, io.home);

export const defaultConfigPath = (io: Io): string => join(io.home, '.tunnel', 'config.yml');

/** Read as the real one would be, from the same folder. null: it would be refused. */
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
