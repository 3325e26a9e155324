// A layer is one source of config values (a file, the environment, flags); layers are laid over one another, key by key.

export type ConfigPath = readonly (string | number)[];

export type Tree = Record<string, unknown>;

export interface Layer {
  readonly tree: Tree;
  /** Where a person finds the key: `server.toml:12`, the name of a variable. */
  where(path: ConfigPath): string;
  /** For ordering refusals; 0 where lines mean nothing. */
  line(path: ConfigPath): number;
}

export const namedLayer = (name: string, tree: object): Layer => ({
  tree: tree as Tree,
  where: () => name,
  line: () => 0,
});

/** Later layers win. Tables are merged, everything else is replaced whole. */
export const mergeLayers = (layers: readonly Layer[]): Tree =>
  layers.reduce<Tree>((merged, layer) => mergeTrees(merged, layer.tree), {});

const mergeTrees = (lower: Tree, upper: Tree): Tree => {
  const merged: Tree = { ...lower };
  for (const [key, value] of Object.entries(upper)) {
    if (value === undefined) continue;
    const below = Object.hasOwn(lower, key) ? lower[key] : undefined;
    if (!isTable(value)) setOwn(merged, key, value);
    else if (below === undefined || isTable(below)) setOwn(merged, key, mergeTrees(below ?? {}, value));
    // Else a table lies over something that should have been one: the lower value stays, to be refused where it stands.
  }
  return merged;
};

/** Defined, not assigned: a key called __proto__ must stay a key, and be refused. */
const setOwn = (tree: Tree, key: string, value: unknown): void => {
  Object.defineProperty(tree, key, { value, enumerable: true, writable: true, configurable: true });
};

export const isTable = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

/** The value at a path, or undefined. */
export const valueAt = (tree: unknown, path: ConfigPath): unknown =>
  path.reduce<unknown>((value, key) => {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
    return (value as Record<string | number, unknown>)[key];
  }, tree);

/** The layer that gave the value at a path, or its nearest table when the key is missing. */
export const findLayer = (layers: readonly Layer[], merged: Tree, path: ConfigPath): Layer | undefined => {
  const value = valueAt(merged, path);
  const giver = layers.findLast((layer) => {
    const given = valueAt(layer.tree, path);
    return given !== undefined && (given === value || isTable(value));
  });
  if (giver !== undefined || path.length === 0) return giver;
  return findLayer(layers, merged, path.slice(0, -1));
};

/** `auth.keys[0].sha256`; names that are not plain are quoted. */
export const pathText = (path: ConfigPath): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    const name = /^[\w-]+$/.test(key) ? key : JSON.stringify(key);
    return text === '' ? name : `${text}.${name}`;
  }, '');
