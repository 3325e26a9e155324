// Where a new API key is put so that the client finds it: a file of its own beside config.yml, which names it.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { pathFrom } from '@tunnel/config/layers';
import { type LoadedConfig, loadConfig } from '../config/file.ts';
import { type ConfigChanges, checkConfigKeys, saveConfigKeys, writtenConfigPath } from '../config/keys.ts';
import type { Io } from '../io/io.ts';
import { fileFault, writePrivateFile } from '../io/private-files.ts';

export interface KeyStore {
  readonly keyFile: string;
  /** Where the key before it is kept, if there is one: nobody can show it again. */
  readonly oldKeyFile: string | null;
  save(key: string): void;
}

/**
 * Everything that can be refused is refused here, before there is a key to lose. `more`: what else config.yml is to say.
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

/** `key`; of another file than config.yml beside a `key` that is not its own, one by its name: that other key stays in use. */
const keyFileOf = (configFile: string, config: LoadedConfig | null, io: Io): string => {
  const folder = dirname(configFile);
  const usual = join(folder, 'key');
  const name = basename(configFile);
  if (name === 'config.yml' || !existsSync(usual) || namesFile(config, usual, io)) return usual;
  return join(folder, `${basename(name, extname(name))}.key`);
};

const namesFile = (config: LoadedConfig | null, file: string, io: Io): boolean => keyFileIn(config, io) === file;

/** The file that `auth_token_file` names; null: it names none. */
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

/** Of a key that has ended: config.yml names none any more. A key file elsewhere is somebody's own, and stays. */
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
