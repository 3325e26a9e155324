// Storage of a new API key: a separate file beside config.yml. config.yml names the file, so that the client finds the key.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { pathFrom } from '@tunnel/config/layers';
import { type LoadedConfig, loadConfig } from '../config/file.ts';
import { type ConfigChanges, checkConfigKeys, saveConfigKeys, writtenConfigPath } from '../config/keys.ts';
import type { Io } from '../io/io.ts';
import { fileFault, writePrivateFile } from '../io/private-files.ts';

export interface KeyStore {
  readonly keyFile: string;
  /** File for the previous key, which no command can show again. Null without a previous key. */
  readonly oldKeyFile: string | null;
  save(key: string): void;
}

/**
 * Prepares the files for a new key. All checks run here, before a key exists that could be lost. `more` has further changes of
 * config.yml.
 */
export const prepareKeyStore = (configFlag: string | undefined, io: Io, more: ConfigChanges = {}): KeyStore => {
  const configFile = writtenConfigPath(configFlag, io);
  const before = existsSync(configFile) ? loadConfig(configFile, io) : null;
  const keyFile = keyFileOf(configFile, before, io);
  const changes: ConfigChanges = {
    ...(namesFile(before, keyFile, io) ? {} : { auth_token_file: basename(keyFile) }),
    ...more,
  };
  checkConfigKeys(configFile, changes, io);
  const old = before?.values.auth_token?.reveal() ?? readOldKey(keyFile);
  const oldKeyFile = `${keyFile}.old`;
  return {
    keyFile,
    oldKeyFile: old === null ? null : oldKeyFile,
    save: (key) => {
      if (old !== null) writePrivateFile(oldKeyFile, `${old}\n`);
      writePrivateFile(keyFile, `${key}\n`);
      saveConfigKeys(configFile, changes, io);
    },
  };
};

/**
 * Returns the path of the key file, usually `key` beside the config file. A config file with another name than config.yml does not take
 * over a `key` that it does not name. Its key file then has the name of the config file, so that the existing key stays in use.
 */
const keyFileOf = (configFile: string, config: LoadedConfig | null, io: Io): string => {
  const folder = dirname(configFile);
  const usual = join(folder, 'key');
  const name = basename(configFile);
  if (name === 'config.yml' || !existsSync(usual) || namesFile(config, usual, io)) return usual;
  return join(folder, `${basename(name, extname(name))}.key`);
};

const namesFile = (config: LoadedConfig | null, file: string, io: Io): boolean => keyFileIn(config, io) === file;

/** Returns the path set as `auth_token_file`, or null if the option is not set. */
export const keyFileIn = (config: LoadedConfig | null, io: Io): string | null => {
  const named = config?.values.auth_token_file;
  return config === null || named === undefined ? null : pathFrom(dirname(config.path), named, io.home);
};

const readOldKey = (file: string): string | null => {
  try {
    return readFileSync(file, 'utf8').trim() || null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw fileFault(file, error);
  }
};

/** Removes a revoked key from config.yml, and deletes the key file. A key file in another folder was set up by the user, and is kept. */
export const forgetKey = (configFlag: string | undefined, io: Io): void => {
  const configFile = writtenConfigPath(configFlag, io);
  const config = loadConfig(configFile, io);
  const file = keyFileIn(config, io);
  saveConfigKeys(
    configFile,
    { [config?.values.auth_token === undefined ? 'auth_token_file' : 'auth_token']: undefined },
    io,
  );
  try {
    if (file !== null && dirname(file) === dirname(configFile)) rmSync(file, { force: true });
  } catch (error) {
    throw fileFault(file ?? '', error);
  }
};
