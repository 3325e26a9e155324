// A secret of one entry of config.yml, whichever of its three keys gives it: as text, in a variable, or in a file of its own.
import { Secret } from '@tunnel/runtime';
import { readBounded } from './bounded-file.ts';
import { readFailure } from './file-layers.ts';
import type { Finding } from './problem.ts';

export interface SecretSources {
  readonly env: NodeJS.ProcessEnv;
  /** Where a path of the file leads. */
  readonly pathOf: (path: string) => string;
}

/** `name`, `name_env` and `name_file` of an entry; at most one of them is given. */
export interface GivenSecret {
  readonly name: string;
  /** For people: what the variable or the file holds. */
  readonly word: string;
  readonly text: Secret | undefined;
  readonly variable: string | undefined;
  readonly file: string | undefined;
  /** Whether a line break at the end of the file stays. */
  readonly endsWithLineBreak: boolean;
}

type SecretAnswer = { readonly secret: Secret | undefined } | { readonly finding: Finding };

/** A secret in a variable is taken as it stands there. */
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

/** Nobody types a key of this size; it is some other file. */
const MOST_BYTES = 64 * 1024;

/** A file of UTF-8 text, as it is; one with nothing but a line break is empty. */
export const readSecretText = (file: string): { readonly secret: Secret } | { readonly reason: string } => {
  try {
    // Bytes that are no text would all become the same character, and different keys one.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(readBounded(file, MOST_BYTES));
    return withoutLineBreak(text) === '' ? { reason: 'it is empty' } : { secret: new Secret(text) };
  } catch (error) {
    return { reason: readFailure(error) };
  }
};

/** Editors and `echo` end a file with a line break that is no part of the key. */
const withoutLineBreak = (text: string): string => text.replace(/\r?\n$/, '');

/** As above, without its last line break. */
export const readGroupKeyFile = (file: string): { readonly key: Secret } | { readonly reason: string } => {
  const answer = readSecretText(file);
  return 'secret' in answer ? { key: new Secret(withoutLineBreak(answer.secret.reveal())) } : answer;
};
