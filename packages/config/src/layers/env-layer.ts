// Environment variables as a config layer. A variable name is TUNNEL_ and the path of the key in upper case, with `__` between levels.
// Values are TOML. For a secret key, the name with _FILE at its end names a file with the secret.
import { parse } from 'smol-toml';
import type * as z from 'zod';
import { readTextSecret } from './entry-secret.ts';
import type { ConfigPath, Layer, Tree } from './layer.ts';
import { ConfigProblem } from './problem.ts';
import { isConcealedAt, isValueKey } from './schema-walk.ts';

const PREFIX = 'TUNNEL_';
const BETWEEN_LEVELS = '__';
const FILE_ENDING = '_FILE';

export const envLayer = (schema: z.ZodType, env: NodeJS.ProcessEnv): Layer => {
  const tree: Tree = {};
  const fromFiles = new Set<string>();
  for (const [name, text] of Object.entries(env)) {
    if (text === undefined || !name.startsWith(PREFIX) || name !== name.toUpperCase()) continue;
    const path = pathOf(name);
    // Skips variables that match no key of the schema: other programs use the prefix too (TUNNEL_API_KEY belongs to the client).
    if (isValueKey(schema, path)) {
      setAt(tree, path, tomlValue(text));
    } else if (isSecretFile(schema, name) && text !== '') {
      const direct = name.slice(0, -FILE_ENDING.length);
      if (env[direct] !== undefined) throw bothSet(direct, name);
      setAt(tree, pathOf(direct), readSecretFile(name, { key: keyOf(direct), file: text }));
      fromFiles.add(direct);
    }
  }
  return {
    tree,
    where: (path) => {
      const name = PREFIX + valueKeyAround(schema, path).join(BETWEEN_LEVELS).toUpperCase();
      return fromFiles.has(name) ? name + FILE_ENDING : name;
    },
    line: () => 0,
  };
};

const pathOf = (name: string): string[] => name.slice(PREFIX.length).toLowerCase().split(BETWEEN_LEVELS);

/** Whether a variable names a file with the value of a secret key. */
const isSecretFile = (schema: z.ZodType, name: string): boolean => {
  if (!name.endsWith(FILE_ENDING)) return false;
  const path = pathOf(name.slice(0, -FILE_ENDING.length));
  return isValueKey(schema, path) && isConcealedAt(schema, path);
};

const keyOf = (name: string): string => pathOf(name).join('.');

const readSecretFile = (name: string, { key, file }: { readonly key: string; readonly file: string }): string => {
  const answer = readTextSecret(file);
  if ('secret' in answer) return answer.secret.reveal();
  const got = `${JSON.stringify(file)}: ${answer.reason}`;
  throw new ConfigProblem('CONFIG_WRONG_VALUE', { where: name, key, expected: 'in a readable file', got });
};

const bothSet = (direct: string, name: string): ConfigProblem =>
  new ConfigProblem('CONFIG_WRONG_VALUE', {
    where: direct,
    key: keyOf(direct),
    expected: `unset while ${name} is set`,
    got: 'a value',
  });

/** Parses the text of a variable as a TOML value. Text that is not valid TOML is used unchanged, so that plain words need no quotes. */
const tomlValue = (text: string): unknown => {
  try {
    const parsed = parse(`value = ${text}`);
    // A line break in the variable could start a second TOML key, so the result must have exactly one key.
    return Object.keys(parsed).length === 1 ? parsed['value'] : text;
  } catch {
    return text;
  }
};

const setAt = (tree: Tree, path: readonly string[], value: unknown): void => {
  const last = path.at(-1) ?? '';
  let table = tree;
  for (const key of path.slice(0, -1)) {
    table[key] ??= {};
    table = table[key] as Tree;
  }
  table[last] = value;
};

/**
 * Returns the path of the key that a variable sets. A variable holds a whole list, so an error in a list entry is reported for the
 * variable of the list.
 */
const valueKeyAround = (schema: z.ZodType, path: ConfigPath): ConfigPath => {
  const length = path.findIndex((_, index) => isValueKey(schema, path.slice(0, index + 1)));
  return length === -1 ? path : path.slice(0, length + 1);
};
