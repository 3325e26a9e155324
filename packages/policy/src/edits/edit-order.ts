// The order in which the edits of both lists are applied to a response. The operator's come last: edits of a tunnel never undo them.
import type { ResponseEdit } from '../policy-step.ts';

const GUARD: ResponseEdit = { kind: 'guard-cookies' };
const PRIVATE: ResponseEdit = { kind: 'private' };

// Made once: most requests have one of these.
export const GUARD_ONLY: readonly ResponseEdit[] = [GUARD];
const PRIVATE_ONLY: readonly ResponseEdit[] = [PRIVATE];
const GUARD_AND_PRIVATE: readonly ResponseEdit[] = [GUARD, PRIVATE];
const NONE: readonly ResponseEdit[] = [];

/** `isPrivate`: somebody is in by the login, and whatever the rules remove, no cache keeps it for others. */
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

/** What an answer of the login is made of. */
const OF_LOGIN: ReadonlySet<string> = new Set(['cache-control', 'location', 'set-cookie']);

const isFree = (name: string): boolean => !OF_LOGIN.has(name.toLowerCase());

/** For an answer that sets the edge's cookies: they, where it leads and that nobody stores it arrive as they are, whatever rules say. */
export const editsForLogin = (edits: readonly ResponseEdit[]): readonly ResponseEdit[] =>
  edits.flatMap((edit): ResponseEdit[] => {
    if (edit.kind === 'cors') return [edit];
    if (edit.kind !== 'headers') return [];
    const { remove, set, add } = edit;
    const free = ([name]: readonly [string, string]): boolean => isFree(name);
    return [{ kind: 'headers', remove: remove.filter(isFree), set: set.filter(free), add: add.filter(free) }];
  });
