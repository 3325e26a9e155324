// The group key of an entry, whichever of the three keys gives it.
import { readFileSync } from 'node:fs';
import { Secret } from '../../secret.ts';
import { readFailure } from '../read-config-text.ts';
import type { Finding } from '../refuse.ts';
import type { ClientFile } from './schema.ts';

type TunnelEntry = ClientFile['tunnels'][string];

export type GroupKeyAnswer = { readonly key: Secret | undefined } | { readonly finding: Finding };

export const readGroupKey = (path: string[], entry: TunnelEntry, env: NodeJS.ProcessEnv): GroupKeyAnswer => {
  if (entry.group_key_env !== undefined) {
    const text = env[entry.group_key_env] ?? '';
    if (text !== '') return { key: new Secret(text) };
    const got = `${JSON.stringify(entry.group_key_env)}, which is not set`;
    return {
      finding: { path: [...path, 'group_key_env'], expected: 'the name of a variable that holds the key', got },
    };
  }
  if (entry.group_key_file !== undefined) return keyFromFile([...path, 'group_key_file'], entry.group_key_file);
  return { key: entry.group_key };
};

const keyFromFile = (path: string[], file: string): GroupKeyAnswer => {
  const refuse = (reason: string): GroupKeyAnswer => ({
    finding: { path, expected: 'a file that holds the key', got: `${JSON.stringify(file)}: ${reason}` },
  });
  try {
    // Editors and `echo` end a file with a line break that is no part of the key.
    const text = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
    return text === '' ? refuse('it is empty') : { key: new Secret(text) };
  } catch (error) {
    return refuse(readFailure(error));
  }
};
