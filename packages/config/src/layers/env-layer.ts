// The environment as a layer: TUNNEL_ and the key's path in upper case, `__` between levels, values in TOML.
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
    // A name that is no key of ours belongs to someone else (TUNNEL_API_KEY is the client's).
    if (isValueKey(schema, path)) setAt(tree, path, tomlValue(text));
  }
  return {
    tree,
    where: (path) => PREFIX + valueKeyAround(schema, path).join(BETWEEN_LEVELS).toUpperCase(),
    line: () => 0,
  };
};

/** What a variable says as a TOML value; text that is none stands for itself, so that plain words need no quotes. */
const tomlValue = (text: string): unknown => {
  try {
    const parsed = parse(`value = ${text}`);
    // A line break in the variable could have begun a second key.
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

/** The variable holds a whole list; a wrong entry inside it is still that variable's. */
const valueKeyAround = (schema: z.ZodType, path: ConfigPath): ConfigPath => {
  const length = path.findIndex((_, index) => isValueKey(schema, path.slice(0, index + 1)));
  return length === -1 ? path : path.slice(0, length + 1);
};
