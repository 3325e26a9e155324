// Sets keys at the top of config.yml, line by line: every other word of the file stays as it is, comments and order included.
import { existsSync, mkdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { type ClientConfig, loadClientConfig } from '@tunnel/config/client';
import { type FileLock, takeLock } from '@tunnel/runtime';
import type { Io } from '../io/io.ts';
import { fileFault, writePrivateFile } from '../io/private-files.ts';
import { misuse } from '../io/problem-report.ts';
import { configPath, tryConfig } from './file.ts';

export type ConfigKey =
  | 'server'
  | 'api_url'
  | 'platform_url'
  | 'tls'
  | 'ca_file'
  | 'insecure'
  | 'auth_token_file'
  | 'auth_token';

/** undefined: the key goes. A new `auth_token_file` takes the place of an `auth_token`, and the other way round. */
export type ConfigChanges = { readonly [key in ConfigKey]?: string | boolean | undefined };

/** The file that is written: a link stays a link. */
export const writtenConfigPath = (flag: string | undefined, io: Io): string => {
  const named = configPath(flag, io);
  return existsSync(named) ? realpathSync(named) : named;
};

/** Throws when `saveConfigKeys` would, and writes nothing. */
export const checkConfigKeys = (file: string, changes: ConfigChanges, io: Pick<Io, 'env' | 'home'>): void =>
  void changedConfig(file, changes, io);

/** Throws before anything is written: for a file that is not good, and for one that cannot be changed line by line. */
export const saveConfigKeys = (file: string, changes: ConfigChanges, io: Pick<Io, 'env' | 'home'>): void =>
  withConfigLock(file, () => {
    const config = changedConfig(file, changes, io);
    if (config !== null) writePrivateFile(file, config.text, { mode: config.mode });
  });

/** null: it says so already. */
const changedConfig = (
  file: string,
  changes: ConfigChanges,
  io: Pick<Io, 'env' | 'home'>,
): { readonly text: string; readonly mode: number } | null => {
  const before = existsSync(file) ? loadClientConfig({ file, env: io.env, home: io.home }) : null;
  if (before !== null && saysAll(before, changes)) return null;
  const text = withKeys(before === null ? '' : readFileSync(file, 'utf8'), changes);
  const after = tryConfig(file, text, io);
  if (after === null || !saysAll(after, changes) || (before !== null && !isSameBut(before, after, changes))) {
    throw misuse(`cannot edit ${file}. Put this into it by hand, then run the command again: ${byHand(changes)}.`);
  }
  return { text, mode: before === null ? 0o600 : statSync(file).mode & 0o777 };
};

const byHand = (changes: ConfigChanges): string =>
  Object.entries(changes)
    .map(([key, value]) => (value === undefined ? `no \`${key}\`` : `\`${lineOf(key, value)}\``))
    .join(', ');

const withKeys = (text: string, changes: ConfigChanges): string =>
  Object.entries(changes).reduce((words, [key, value]) => withKey(words, key, value), text);

const withKey = (text: string, key: string, value: string | boolean | undefined): string => {
  const line = lineIn(key);
  if (value === undefined) return text.replace(new RegExp(`${line.source}\\r?\\n?`, 'm'), '');
  const set = lineOf(key, value);
  if (line.test(text)) return text.replace(line, (_line, comment: string | undefined) => set + (comment ?? ''));
  return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${set}\n`;
};

/** In a file of the usual form, with the comment that follows on it. A quoted value may hold a #. */
const lineIn = (key: string): RegExp =>
  new RegExp(
    `^${KEY_WORDS.test(key) ? KEY_WORDS.source.slice(1, -1) : key}[ \\t]*:[ \\t]*(?:"(?:[^"\\\\\\n]|\\\\.)*"|'[^'\\n]*'|[^\\n]*?)([ \\t]+#[^\\n]*)?[ \\t]*$`,
    'm',
  );

/** One key by two ways. */
const KEY_WORDS = /^auth_token(?:_file)?$/;

const lineOf = (key: string, value: string | boolean): string => `${key}: ${yamlScalar(value)}`;

/** Words that YAML reads as something else than text, whatever its version. */
const READ_OTHERWISE = /^(true|false|yes|no|on|off|y|n|null|nan|inf|\.|[-+.]?\d)/i;

/** Plain where every reader of YAML takes it for the same text, in quotes else. */
export const yamlScalar = (value: string | number | boolean): string =>
  typeof value !== 'string' ||
  (/^[A-Za-z0-9_./-]+(:[A-Za-z0-9_./-]+)*$/.test(value) && !READ_OTHERWISE.test(value) && !value.startsWith('-'))
    ? String(value)
    : JSON.stringify(value);

const saysAll = (config: ClientConfig, changes: ConfigChanges): boolean =>
  Object.entries(changes).every(([key, value]) => config[key as ConfigKey] === value);

/** Secrets compare as masks, their lines as they are. */
const isSameBut = (before: ClientConfig, after: ClientConfig, changes: ConfigChanges): boolean => {
  const isKey = Object.keys(changes).some((key) => KEY_WORDS.test(key));
  const rest = (config: ClientConfig): string =>
    JSON.stringify(
      Object.entries(config).filter(([key]) => !(Object.hasOwn(changes, key) || (isKey && KEY_WORDS.test(key)))),
    );
  return rest(before) === rest(after);
};

const TRIES = 100;
const TRY_EVERY_MS = 20;

/** Of two commands that write at once neither loses what the other wrote. */
export const withConfigLock = <T>(file: string, write: () => T): T => {
  const lock = lockFile(file);
  try {
    return write();
  } finally {
    lock?.release();
  }
};

/** null: somebody holds it for longer than any of them writes. */
const lockFile = (file: string): FileLock | null => {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    for (let attempt = 1; attempt <= TRIES; attempt += 1) {
      const lock = takeLock(`${file}.lock`);
      if (lock !== null) return lock;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TRY_EVERY_MS);
    }
    return null;
  } catch (error) {
    throw fileFault(file, error);
  }
};
