// Files with secrets in them: read by their owner alone, never seen half written; and where a new key is put so that the client finds it.
import {
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { Fault } from '@tunnel/errors';
import { type ClientConfig, loadClientConfig, pathFrom, randomToken } from '@tunnel/runtime';
import type { Io } from './io.ts';
import { defaultConfigPath } from './settings.ts';

export interface WriteOptions {
  /** Of the file; its owner's alone unless told. */
  readonly mode?: number;
}

export const writePrivateFile = (file: string, text: string, { mode = 0o600 }: WriteOptions = {}): void => {
  const aside = `${file}.${randomToken(6)}.new`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    try {
      writeFileSync(aside, text, { mode, flag: 'wx', flush: true });
      renameSync(aside, file);
    } finally {
      rmSync(aside, { force: true });
    }
  } catch (error) {
    throw fileFault(file, error);
  }
};

export const fileFault = (file: string, error: unknown): Fault => {
  const { code, message } = error as NodeJS.ErrnoException;
  return new Fault('CLIENT_FILE', { file, reason: REASONS[code ?? ''] ?? code ?? message }, { cause: error });
};

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of the path is not a folder',
  EEXIST: 'a part of the path is not a folder',
};

export interface KeyStore {
  readonly keyFile: string;
  /** Where the key before it is kept, if there is one: nobody can show it again. */
  readonly oldKeyFile: string | null;
  save(key: string): void;
}

const LINE = 'auth_token_file: key';
/** The key's line in a file of the usual form, and the comment that follows on it. A quoted value may hold a #. */
const KEY_LINE = /^auth_token(?:_file)?[ \t]*:[ \t]*(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\n]*?)([ \t]+#[^\n]*)?[ \t]*$/m;

/**
 * Puts a new key where the client finds it: into a file of its own, which config.yml names. Every other word of config.yml stays.
 * Everything that can be refused is refused here, before there is a key to lose.
 */
export const prepareKeyStore = (configFlag: string | undefined, io: Io): KeyStore => {
  const named = configFlag === undefined ? defaultConfigPath(io) : pathFrom(io.cwd, configFlag, io.home);
  // A link stays a link.
  const configFile = existsSync(named) ? realpathSync(named) : named;
  const keyFile = join(dirname(configFile), 'key');
  const oldKeyFile = `${keyFile}.old`;
  const before = existsSync(configFile) ? load(configFile, io) : null;
  const config = newConfig(configFile, keyFile, before, io);
  const old = before?.auth_token?.reveal() ?? readOldKey(keyFile);
  return {
    keyFile,
    oldKeyFile: old === null ? null : oldKeyFile,
    save: (key) => {
      if (old !== null) writePrivateFile(oldKeyFile, `${old}\n`);
      writePrivateFile(keyFile, `${key}\n`);
      if (config !== null) writePrivateFile(configFile, config.text, { mode: config.mode });
    },
  };
};

const readOldKey = (file: string): string | null => {
  try {
    return readFileSync(file, 'utf8').trim() || null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw fileFault(file, error);
  }
};

interface NewConfig {
  readonly text: string;
  readonly mode: number;
}

/** null: it names the key's file already. */
const newConfig = (file: string, keyFile: string, before: ClientConfig | null, io: Io): NewConfig | null => {
  if (before === null) return { text: `${LINE}\n`, mode: 0o600 };
  if (namesKeyFile(before, file, keyFile, io)) return null;
  const old = readFileSync(file, 'utf8');
  const text = withKeyLine(old);
  const after = tryConfig(file, text, io);
  if (after === null || !namesKeyFile(after, file, keyFile, io) || restOf(after) !== restOf(before)) {
    throw new Fault('CLIENT_USAGE', {
      reason: `${file} is written in a form that is not changed from here: put \`${LINE}\` into it by hand, then run this again`,
    });
  }
  return { text, mode: statSync(file).mode & 0o777 };
};

const withKeyLine = (text: string): string =>
  KEY_LINE.test(text)
    ? text.replace(KEY_LINE, (_line, comment: string | undefined) => LINE + (comment ?? ''))
    : `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${LINE}\n`;

const load = (file: string, io: Pick<Io, 'env' | 'home'>): ClientConfig =>
  loadClientConfig({ file, env: io.env, home: io.home });

/** Read as the real one would be, from the same folder. null: it would be refused. */
export const tryConfig = (file: string, text: string, io: Pick<Io, 'env' | 'home'>): ClientConfig | null => {
  const aside = `${file}.${process.pid}.try`;
  try {
    writePrivateFile(aside, text);
    return load(aside, io);
  } catch (error) {
    if (error instanceof Fault) throw fileFault(file, error.cause);
    return null;
  } finally {
    rmSync(aside, { force: true });
  }
};

const namesKeyFile = (config: ClientConfig, file: string, keyFile: string, io: Io): boolean =>
  config.auth_token_file !== undefined && pathFrom(dirname(file), config.auth_token_file, io.home) === keyFile;

/** All that a new key does not change; secrets compare as masks, their lines as they are. */
const restOf = ({ auth_token: _token, auth_token_file: _file, ...rest }: ClientConfig): string => JSON.stringify(rest);
