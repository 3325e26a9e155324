// One call that the stand-in takes: its method, its path with at most one {id}, its parameters, and what it does.
import type * as z from 'zod';
import type { FormTree } from './form-params.ts';
import { checkParams } from './params.ts';
import type { SimWorld } from './sim-world.ts';

export type Method = 'GET' | 'POST' | 'DELETE';

export interface Route {
  readonly method: Method;
  readonly path: string;
  readonly answer: (world: SimWorld, params: FormTree, id: string) => object;
}

export const route = <S extends z.ZodType>(
  method: Method,
  path: string,
  schema: S,
  answer: (world: SimWorld, params: z.output<S>, id: string) => object,
): Route => ({
  method,
  path,
  answer: (world, params, id) => answer(world, checkParams(schema, params), id),
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

/** '' when the path has no id in it. */
const idIn = (pattern: string, path: string): string | null => {
  const [before = '', after] = pattern.split('{id}');
  if (after === undefined) return path === pattern ? '' : null;
  if (!path.startsWith(before) || !path.endsWith(after)) return null;
  const id = path.slice(before.length, path.length - after.length);
  return /^[\w-]{1,255}$/.test(id) ? id : null;
};
