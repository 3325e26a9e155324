// Environment variables as a config layer. A variable name is TUNNEL_ and the path of the key in upper case, with `__` between levels.
// Values are TOML.
import { parse } from 'smol-toml';
import type * as z from 'zod';
import type { ConfigPath, Layer, Tree } from './layer.ts';
import { isValueKey } from './schema-walk.ts';

const PREFIX = 'TUNNEL_';
const BETWEEN_LEVELS = '__';

export const envLayer = (schema: z.ZodType, env: NodeJS.ProcessEnv): Layer => {
  const tree: Tree = {};
  for (const [name, text] of Object.entries(env)) {
    if (text === undefined || !name.startsWith(PREFIX) || name !== name.toUpperCase()) continue;
    const path = name.slice(PREFIX.length).toLowerCase().split(BETWEEN_LEVELS);
    // Skips variables that match no key of the schema: other programs use the prefix too (TUNNEL_API_KEY belongs to the client).
    if (isValueKey(schema, path)) setAt(tree, path, tomlValue(text));
  }
  return {
    tree,
    where: (path) => PREFIX + valueKeyAround(schema, path).join(BETWEEN_LEVELS).toUpperCase(),
    line: () => 0,
  };
};

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
