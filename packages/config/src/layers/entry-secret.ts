// Reads a secret of an entry in config.yml from any of its three keys: the text itself, an environment variable, or a separate file.
import { Secret } from '@tunnel/runtime';
import { readBounded } from './bounded-file.ts';
import { readFailure } from './file-layers.ts';
import type { Finding } from './problem.ts';

export interface SecretSources {
  readonly env: NodeJS.ProcessEnv;
  /** Resolves a file path written in config.yml. */
  readonly pathOf: (path: string) => string;
}

/** The keys `name`, `name_env` and `name_file` of an entry, of which at most one is set. */
export interface GivenSecret {
  readonly name: string;
  /** Word for the secret in error messages, such as "key". */
  readonly word: string;
  readonly text: Secret | undefined;
  readonly variable: string | undefined;
  readonly file: string | undefined;
  /** Whether a line break at the end of the secret file is part of the secret. */
  readonly endsWithLineBreak: boolean;
}

type SecretAnswer = { readonly secret: Secret | undefined } | { readonly finding: Finding };

/**
 * Reads the secret of an entry. A secret in an environment variable is used unchanged. Returns a finding if the variable is not set or
 * the file cannot be read.
 */
export const readEntrySecret = (path: readonly string[], given: GivenSecret, sources: SecretSources): SecretAnswer => {
  const { name, word, text, variable, file } = given;
  if (variable !== undefined) {
    const value = sources.env[variable] ?? '';
    if (value !== '') return { secret: new Secret(value) };
    const got = `${JSON.stringify(variable)}, which is not set`;
    const expected = `the name of an environment variable with the ${word}`;
    return { finding: { path: [...path, `${name}_env`], expected, got } };
  }
  if (file === undefined) return { secret: text };
  const answer = readSecretText(sources.pathOf(file));
  if ('secret' in answer) {
    return given.endsWithLineBreak ? answer : { secret: new Secret(withoutLineBreak(answer.secret.reveal())) };
  }
  const got = `${JSON.stringify(file)}: ${answer.reason}`;
  return { finding: { path: [...path, `${name}_file`], expected: `a file with the ${word}`, got } };
};

/** Maximum size of a secret file. A larger file is surely not a key. */
const MOST_BYTES = 64 * 1024;

/** Reads a file of UTF-8 text unchanged. A file that contains only a line break counts as empty. */
export const readSecretText = (file: string): { readonly secret: Secret } | { readonly reason: string } => {
  try {
    // Rejects invalid UTF-8: a lenient decoder replaces every invalid byte with the same character, which would make different keys
    // equal.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(readBounded(file, MOST_BYTES));
    return withoutLineBreak(text) === '' ? { reason: 'it is empty' } : { secret: new Secret(text) };
  } catch (error) {
    return { reason: readFailure(error) };
  }
};

/** Removes a trailing line break. Editors and `echo` end a file with a line break, which is not part of the key. */
const withoutLineBreak = (text: string): string => text.replace(/\r?\n$/, '');

/** Reads a secret from a file of UTF-8 text, without the trailing line break. */
export const readTextSecret = (file: string): ReturnType<typeof readSecretText> => {
  const answer = readSecretText(file);
  return 'secret' in answer ? { secret: new Secret(withoutLineBreak(answer.secret.reveal())) } : answer;
};

/** Reads a group key from a file of UTF-8 text, without the trailing line break. */
export const readGroupKeyFile = (file: string): { readonly key: Secret } | { readonly reason: string } => {
  const answer = readTextSecret(file);
  return 'secret' in answer ? { key: answer.secret } : answer;
};
