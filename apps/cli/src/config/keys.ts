// Sets top-level keys of config.yml, line by line. All other text of the file stays unchanged, including comments and order.
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

/**
 * Changes of top-level keys. The value undefined removes a key. A new `auth_token_file` replaces an `auth_token`, and a new `auth_token`
 * replaces an `auth_token_file`.
 */
export type ConfigChanges = { readonly [key in ConfigKey]?: string | boolean | undefined };

/** Returns the path of the config file to write. A symbolic link is resolved, so that the link itself stays. */
export const writtenConfigPath = (flag: string | undefined, io: Io): string => {
  const named = configPath(flag, io);
  return existsSync(named) ? realpathSync(named) : named;
};

/** Throws the errors of `saveConfigKeys`, without writing the file. */
export const checkConfigKeys = (file: string, changes: ConfigChanges, io: Pick<Io, 'env' | 'home'>): void =>
  void changedConfig(file, changes, io);

/** Changes keys of the config file. Throws before writing if the file is invalid, or if it cannot be changed line by line. */
export const saveConfigKeys = (file: string, changes: ConfigChanges, io: Pick<Io, 'env' | 'home'>): void =>
  withConfigLock(file, () => {
    const config = changedConfig(file, changes, io);
    if (config !== null) writePrivateFile(file, config.text, { mode: config.mode });
  });

/** Returns the changed text of the file, or null if the file already has the values. */
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

/** Matches the line of a key in the usual layout, and the comment at its end. A quoted value can contain `#`. */
const lineIn = (key: string): RegExp =>
  new RegExp(
    `^${KEY_WORDS.test(key) ? KEY_WORDS.source.slice(1, -1) : key}[ \\t]*:[ \\t]*(?:"(?:[^"\\\\\\n]|\\\\.)*"|'[^'\\n]*'|[^\\n]*?)([ \\t]+#[^\\n]*)?[ \\t]*$`,
    'm',
  );

/** Matches `auth_token` and `auth_token_file`. The API key can come from either setting. */
const KEY_WORDS = /^auth_token(?:_file)?$/;

const lineOf = (key: string, value: string | boolean): string => `${key}: ${yamlScalar(value)}`;

/** Matches words that some version of YAML does not read as text. */
const READ_OTHERWISE = /^(true|false|yes|no|on|off|y|n|null|nan|inf|\.|[-+.]?\d)/i;

/** Formats a value for YAML. A text is unquoted if every YAML reader takes it as the same text, otherwise quoted. */
export const yamlScalar = (value: string | number | boolean): string =>
  typeof value !== 'string' ||
  (/^[A-Za-z0-9_./-]+(:[A-Za-z0-9_./-]+)*$/.test(value) && !READ_OTHERWISE.test(value) && !value.startsWith('-'))
    ? String(value)
    : JSON.stringify(value);

const saysAll = (config: ClientConfig, changes: ConfigChanges): boolean =>
  Object.entries(changes).every(([key, value]) => config[key as ConfigKey] === value);

/**
 * Returns true if two configurations differ only in the changed keys. All secrets compare as equal masks; their lines are not changed by
 * the edit.
 */
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

/** Runs `write` with a lock on the file, so that two commands writing at the same time cannot lose each other's changes. */
export const withConfigLock = <T>(file: string, write: () => T): T => {
  const lock = lockFile(file);
  try {
    return write();
  } finally {
    lock?.release();
  }
};

/** Takes the lock of a file. Returns null if another process holds the lock for longer than any command writes. */
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
