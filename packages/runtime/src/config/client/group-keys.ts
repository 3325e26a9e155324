// The group key of an entry, whichever of the three keys gives it.
import { readFileSync, statSync } from 'node:fs';
import { Secret } from '../../secret.ts';
import { readFailure } from '../read-config-text.ts';
import type { Finding } from '../refuse.ts';
import type { ClientFile } from './schema.ts';

type TunnelEntry = ClientFile['tunnels'][string];

export type GroupKeyAnswer = { readonly key: Secret | undefined } | { readonly finding: Finding };

export interface GroupKeySources {
  readonly env: NodeJS.ProcessEnv;
  /** Where a path of the file leads. */
  readonly pathOf: (path: string) => string;
}

/** Nobody types a key of this size; it is some other file. */
const MOST_BYTES = 64 * 1024;

export const readGroupKey = (path: string[], entry: TunnelEntry, sources: GroupKeySources): GroupKeyAnswer => {
  const { group_key: key, group_key_env: variable, group_key_file: file } = entry;
  if (variable !== undefined) {
    const text = sources.env[variable] ?? '';
    if (text !== '') return { key: new Secret(text) };
    const got = `${JSON.stringify(variable)}, which is not set`;
    return {
      finding: { path: [...path, 'group_key_env'], expected: 'the name of a variable that holds the key', got },
    };
  }
  if (file === undefined) return { key };
  const answer = readGroupKeyFile(sources.pathOf(file));
  if ('key' in answer) return answer;
  const got = `${JSON.stringify(file)}: ${answer.reason}`;
  return { finding: { path: [...path, 'group_key_file'], expected: 'a file that holds the key', got } };
};

export const readGroupKeyFile = (file: string): { readonly key: Secret } | { readonly reason: string } => {
  try {
    if (statSync(file).size > MOST_BYTES) return { reason: `it is larger than ${MOST_BYTES} bytes` };
    // Bytes that are no text would all become the same character, and different keys one.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file));
    // Editors and `echo` end a file with a line break that is no part of the key.
    const key = text.replace(/\r?\n$/, '');
    return key === '' ? { reason: 'it is empty' } : { key: new Secret(key) };
  } catch (error) {
    return { reason: readFailure(error) };
  }
};
