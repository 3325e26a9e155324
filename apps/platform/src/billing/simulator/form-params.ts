// The processor's form encoding, `items[0][price]=…`, as a tree of texts. Built without prototypes: a name is only ever a name.
import { badRequest } from './sim-error.ts';

export type FormTree = { [name: string]: FormValue };
export type FormValue = string | FormTree | FormValue[];

const MOST_PARAMS = 500;
const DEEPEST = 6;

export const decodeForm = (text: string): FormTree => {
  const tree = newTree();
  let count = 0;
  for (const [name, value] of new URLSearchParams(text)) {
    count += 1;
    if (count > MOST_PARAMS) throw badRequest('The request has too many parameters');
    place(tree, pathOf(name), value, name);
  }
  return listsOf(tree) as FormTree;
};

const newTree = (): FormTree => Object.create(null) as FormTree;

const pathOf = (name: string): readonly string[] => {
  const [, head = '', rest = ''] = /^([^[\]]+)((?:\[[^[\]]*\])*)$/.exec(name) ?? [];
  const path = [head, ...[...rest.matchAll(/\[([^[\]]*)\]/g)].map(([, part = '']) => part)];
  if (head === '' || path.length > DEEPEST) throw badRequest(`Invalid parameter name: ${name}`, { param: name });
  return path;
};

const place = (tree: FormTree, path: readonly string[], value: string, name: string): void => {
  let here = tree;
  for (const part of path.slice(0, -1)) {
    const next = (here[part] ??= newTree());
    if (typeof next === 'string' || Array.isArray(next)) throw badRequest(`Invalid object: ${name}`, { param: name });
    here = next;
  }
  const last = path.at(-1) ?? '';
  // `lookup_keys[]=a&lookup_keys[]=b` counts up by itself.
  const key = last === '' ? String(Object.keys(here).length) : last;
  if (key in here) throw badRequest(`Duplicate parameter: ${name}`, { param: name });
  here[key] = value;
};

/** A tree whose names are 0, 1, 2 … is a list. */
const listsOf = (value: FormValue): FormValue => {
  if (typeof value === 'string' || Array.isArray(value)) return value;
  const entries = Object.entries(value).map(([name, inner]) => [name, listsOf(inner)] as const);
  if (entries.length > 0 && entries.every(([name], index) => name === String(index))) {
    return entries.map(([, inner]) => inner);
  }
  const tree = newTree();
  for (const [name, inner] of entries) tree[name] = inner;
  return tree;
};
