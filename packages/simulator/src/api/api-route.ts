// API routes of the simulator: form decoding, parameter checks, paging and errors in the payment processor's format.
import * as z from 'zod';
import type { List } from '../state/model.ts';
import type { Sandbox } from '../state/sandbox.ts';

type Method = 'GET' | 'POST' | 'DELETE';

export interface Route {
  readonly method: Method;
  readonly path: string;
  readonly answer: (sandbox: Sandbox, params: FormTree, id: string) => object;
}

export const route = <S extends z.ZodType>(
  method: Method,
  path: string,
  schema: S,
  answer: (sandbox: Sandbox, params: z.output<S>, id: string) => object,
): Route => ({
  method,
  path,
  answer: (sandbox, params, id) => answer(sandbox, checkParams(schema, params), id),
});

export interface Match {
  readonly route: Route;
  readonly id: string;
}

export const findRoute = (routes: readonly Route[], method: string, path: string): Match | null => {
  for (const candidate of routes) {
    if (candidate.method !== method) continue;
    const id = idIn(candidate.path, path);
    if (id !== null) return { route: candidate, id };
  }
  return null;
};

/** Returns the id in a path, '' for a pattern without an id, or null if the path does not match. */
const idIn = (pattern: string, path: string): string | null => {
  const [before = '', after] = pattern.split('{id}');
  if (after === undefined) return path === pattern ? '' : null;
  if (!path.startsWith(before) || !path.endsWith(after)) return null;
  const id = path.slice(before.length, path.length - after.length);
  return /^[\w-]{1,255}$/.test(id) ? id : null;
};

// The processor's form encoding, `items[0][price]=…`, as a tree of strings. Objects have no prototype, so that any name is safe.

type FormTree = { [name: string]: FormValue };
type FormValue = string | FormTree | FormValue[];

const MOST_PARAMS = 500;
const DEEPEST = 6;

export const decodeForm = (text: string): FormTree => {
  const tree = newTree();
  let count = 0;
  for (const [name, value] of new URLSearchParams(text)) {
    count += 1;
    if (count > MOST_PARAMS) throw badRequest('The request has too many parameters');
    putField(tree, pathOf(name), value, name);
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

const putField = (tree: FormTree, path: readonly string[], value: string, name: string): void => {
  let here = tree;
  for (const part of path.slice(0, -1)) {
    const next = (here[part] ??= newTree());
    if (typeof next === 'string' || Array.isArray(next)) throw badRequest(`Invalid object: ${name}`, { param: name });
    here = next;
  }
  const last = path.at(-1) ?? '';
  // In a form, `lookup_keys[]=a&lookup_keys[]=b` is a list: each value takes the next index.
  const key = last === '' ? String(Object.keys(here).length) : last;
  if (key in here) throw badRequest(`Duplicate parameter: ${name}`, { param: name });
  here[key] = value;
};

/** Converts a tree with the names 0, 1, 2 … to a list. */
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

// Parameter types. As strict as the processor: unknown parameters are rejected by name.

export const text = (most = 5000) => z.string().min(1).max(most);
export const whole = (from: number, to: number) =>
  z
    .string()
    .regex(/^-?\d{1,15}$/)
    .transform(Number)
    .pipe(z.int().min(from).max(to));
export const flag = () => z.enum(['true', 'false']).transform((value) => value === 'true');
export const decimal = () => z.string().regex(/^\d{1,15}(\.\d{1,12})?$/);
export const metadata = () => z.record(z.string().max(40), z.string().max(500)).default({});
export const none = z.strictObject({});

/** Parameters of every list: newest first, up to `limit`, after the last seen object. */
export const paging = { limit: whole(1, 100).default(10), starting_after: text().optional() };

const checkParams = <S extends z.ZodType>(schema: S, tree: FormTree): z.output<S> => {
  const result = schema.safeParse({ ...tree });
  if (result.success) return result.data;
  throw refusalOf(result.error.issues, tree);
};

/** Reports unknown parameters first, because a misspelled parameter is also missing. */
const refusalOf = (issues: readonly z.core.$ZodIssue[], tree: FormTree): ApiError => {
  const unknown = issues.find((issue) => issue.code === 'unrecognized_keys');
  if (unknown?.code === 'unrecognized_keys') {
    const param = nameOf([...unknown.path, unknown.keys[0] ?? '']);
    return badRequest(`Received unknown parameter: ${param}`, { code: 'parameter_unknown', param });
  }
  const [first] = issues;
  const param = nameOf(first?.path ?? []);
  if (valueAt(tree, first?.path ?? []) === undefined) {
    return badRequest(`Missing required param: ${param}.`, { code: 'parameter_missing', param });
  }
  return badRequest(`Invalid ${param}: ${first?.message ?? 'it cannot be read'}`, { param });
};

const nameOf = ([head = '', ...rest]: readonly PropertyKey[]): string =>
  `${String(head)}${rest.map((part) => `[${String(part)}]`).join('')}`;

const valueAt = (tree: FormTree, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (value, part) => (typeof value === 'object' && value !== null ? Reflect.get(value, part) : undefined),
    tree,
  );

// A list in the processor's format: newest first, one page at a time.

interface PageWanted {
  readonly limit: number;
  readonly starting_after?: string | undefined;
}

/** Returns a page of a list of objects. `rows` are oldest first. */
export const listPage = <T extends { readonly id: string }>(
  url: string,
  rows: readonly T[],
  { limit, starting_after }: PageWanted,
): List<T> => {
  const newest = [...rows].reverse();
  const seen = starting_after === undefined ? -1 : newest.findIndex(({ id }) => id === starting_after);
  if (starting_after !== undefined && seen === -1) throw noSuch('object', starting_after, 'starting_after');
  const data = newest.slice(seen + 1, seen + 1 + limit);
  return { object: 'list', url, has_more: seen + 1 + limit < newest.length, data };
};

interface ApiErrorBody {
  readonly type: 'invalid_request_error' | 'card_error' | 'idempotency_error' | 'api_error';
  readonly message: string;
  readonly code?: string;
  readonly decline_code?: string;
  readonly param?: string;
}

export class ApiError extends Error {
  readonly status: number;
  readonly body: ApiErrorBody;

  constructor(status: number, body: ApiErrorBody) {
    super(body.message);
    this.status = status;
    this.body = body;
  }
}

export const badRequest = (message: string, more: { code?: string; param?: string } = {}): ApiError =>
  new ApiError(400, { type: 'invalid_request_error', message, ...more });

export const noSuch = (kind: string, id: string, param = 'id'): ApiError =>
  new ApiError(404, {
    type: 'invalid_request_error',
    code: 'resource_missing',
    message: `No such ${kind}: '${id}'`,
    param,
  });

export const cardDeclined = (): ApiError =>
  new ApiError(402, {
    type: 'card_error',
    code: 'card_declined',
    decline_code: 'generic_decline',
    message: 'Your card was declined.',
  });
