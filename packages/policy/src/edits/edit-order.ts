// The order in which the response edits of operator and tunnel are applied. The operator's edits come last, so that a tunnel cannot undo
// them.
import type { ResponseEdit } from '../policy-step.ts';

const GUARD: ResponseEdit = { kind: 'guard-cookies' };
const PRIVATE: ResponseEdit = { kind: 'private' };

// Shared lists for the most common combinations of response edits.
export const GUARD_ONLY: readonly ResponseEdit[] = [GUARD];
const PRIVATE_ONLY: readonly ResponseEdit[] = [PRIVATE];
const GUARD_AND_PRIVATE: readonly ResponseEdit[] = [GUARD, PRIVATE];
const NONE: readonly ResponseEdit[] = [];

/** `isPrivate`: the visitor is signed in. The response is marked private last, so that no rule can make shared caches store it. */
export const orderedEdits = (
  tunnels: readonly ResponseEdit[],
  operators: readonly ResponseEdit[],
  isGuarded: boolean,
  isPrivate: boolean,
): readonly ResponseEdit[] => {
  if (operators.length === 0 && tunnels.length === 0) {
    if (isPrivate) return isGuarded ? GUARD_AND_PRIVATE : PRIVATE_ONLY;
    return isGuarded ? GUARD_ONLY : NONE;
  }
  if (!isGuarded && !isPrivate && operators.length === 0) return tunnels;
  return [...(isGuarded ? GUARD_ONLY : NONE), ...tunnels, ...operators, ...(isPrivate ? PRIVATE_ONLY : NONE)];
};

/** Response header fields that the sign-in flow depends on. */
const OF_LOGIN: ReadonlySet<string> = new Set(['cache-control', 'location', 'set-cookie']);

const isFree = (name: string): boolean => !OF_LOGIN.has(name.toLowerCase());

/** Filters edits for a response that sets edge cookies: rules cannot change its cookies, redirect target or cache control. */
export const editsForLogin = (edits: readonly ResponseEdit[]): readonly ResponseEdit[] =>
  edits.flatMap((edit): ResponseEdit[] => {
    if (edit.kind === 'cors') return [edit];
    if (edit.kind !== 'headers') return [];
    const { remove, set, add } = edit;
    const free = ([name]: readonly [string, string]): boolean => isFree(name);
    return [{ kind: 'headers', remove: remove.filter(isFree), set: set.filter(free), add: add.filter(free) }];
  });
