// Layers of config values. A layer is one source of values: a file, the environment or flags. Layers are merged key by key.

export type ConfigPath = readonly (string | number)[];

export type Tree = Record<string, unknown>;

export interface Layer {
  readonly tree: Tree;
  /** Returns the place of a key for error messages, such as `server.toml:12` or the name of a variable. */
  where(path: ConfigPath): string;
  /** Returns the line of a key, to sort errors. Returns 0 if the source has no lines. */
  line(path: ConfigPath): number;
}

export const namedLayer = (name: string, tree: object): Layer => ({
  tree: tree as Tree,
  where: () => name,
  line: () => 0,
});

/** Merges layers; later layers take precedence. Tables are merged key by key, other values are replaced as a whole. */
export const mergeLayers = (layers: readonly Layer[]): Tree =>
  layers.reduce<Tree>((merged, layer) => mergeTrees(merged, layer.tree), {});

const mergeTrees = (lower: Tree, upper: Tree): Tree => {
  const merged: Tree = { ...lower };
  for (const [key, value] of Object.entries(upper)) {
    if (value === undefined) continue;
    const below = Object.hasOwn(lower, key) ? lower[key] : undefined;
    if (!isTable(value)) setOwn(merged, key, value);
    else if (below === undefined || isTable(below)) setOwn(merged, key, mergeTrees(below ?? {}, value));
    // Otherwise, a table would replace a lower value that should also be a table. The lower value stays, so that the error is reported at
    // its source.
  }
  return merged;
};

/** Defines a property instead of assigning it, so that a key named __proto__ becomes an ordinary key, which the schema then rejects. */
const setOwn = (tree: Tree, key: string, value: unknown): void => {
  Object.defineProperty(tree, key, { value, enumerable: true, writable: true, configurable: true });
};

export const isTable = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

/** Returns the value at a path, or undefined if the path does not exist. */
export const valueAt = (tree: unknown, path: ConfigPath): unknown =>
  path.reduce<unknown>((value, key) => {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    return (value as Record<string | number, unknown>)[key];
  }, tree);

/**
 * Returns the layer that supplied the value at a path. If the key is missing, returns the layer that supplied the nearest enclosing
 * table.
 */
export const findLayer = (layers: readonly Layer[], merged: Tree, path: ConfigPath): Layer | undefined => {
  const value = valueAt(merged, path);
  const giver = layers.findLast((layer) => {
    const given = valueAt(layer.tree, path);
    return given !== undefined && (given === value || isTable(value));
  });
  if (giver !== undefined || path.length === 0) return giver;
  return findLayer(layers, merged, path.slice(0, -1));
};

/** Formats a path as text, such as `auth.keys[0].sha256`. Names with special characters are quoted. */
export const pathText = (path: ConfigPath): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    const name = /^[\w-]+$/.test(key) ? key : JSON.stringify(key);
    return text === '' ? name : `${text}.${name}`;
  }, '');
