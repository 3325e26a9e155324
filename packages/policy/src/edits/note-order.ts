// The order in which the notes of both lists are done to an answer. The operator's come last: what a tunnel notes never undoes them.
import type { ResponseNote } from '../policy-step.ts';

const GUARD: ResponseNote = { kind: 'guard-cookies' };
const PRIVATE: ResponseNote = { kind: 'private' };

// Made once: most requests have one of these.
export const GUARD_ALONE: readonly ResponseNote[] = [GUARD];
const PRIVATE_ALONE: readonly ResponseNote[] = [PRIVATE];
const GUARD_AND_PRIVATE: readonly ResponseNote[] = [GUARD, PRIVATE];
const NONE: readonly ResponseNote[] = [];

/** `isPrivate`: somebody is in by the login, and whatever the rules remove, no cache keeps it for others. */
export const orderedNotes = (
  tunnels: readonly ResponseNote[],
  operators: readonly ResponseNote[],
  isGuarded: boolean,
  isPrivate: boolean,
): readonly ResponseNote[] => {
  if (operators.length === 0 && tunnels.length === 0) {
    if (isPrivate) return isGuarded ? GUARD_AND_PRIVATE : PRIVATE_ALONE;
    return isGuarded ? GUARD_ALONE : NONE;
  }
  if (!isGuarded && !isPrivate && operators.length === 0) return tunnels;
  return [...(isGuarded ? GUARD_ALONE : NONE), ...tunnels, ...operators, ...(isPrivate ? PRIVATE_ALONE : NONE)];
};

/** What an answer of the login is made of. */
const OF_LOGIN: ReadonlySet<string> = new Set(['cache-control', 'location', 'set-cookie']);

const isFree = (name: string): boolean => !OF_LOGIN.has(name.toLowerCase());

/** For an answer that sets the edge's cookies: they, where it leads and that nobody stores it arrive as they are, whatever rules say. */
export const besideLogin = (notes: readonly ResponseNote[]): readonly ResponseNote[] =>
  notes.flatMap((note): ResponseNote[] => {
    if (note.kind === 'cors') return [note];
    if (note.kind !== 'headers') return [];
    const { remove, set, add } = note;
    const free = ([name]: readonly [string, string]): boolean => isFree(name);
    return [{ kind: 'headers', remove: remove.filter(isFree), set: set.filter(free), add: add.filter(free) }];
  });
