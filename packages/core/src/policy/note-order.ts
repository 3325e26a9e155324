// The order in which the notes of both lists are done to an answer. The operator's come last: what a tunnel notes never undoes them.
import type { ResponseNote } from './policy-step.ts';

export const GUARD_ALONE: readonly ResponseNote[] = [{ kind: 'guard-cookies' }];
const PRIVATE: readonly ResponseNote[] = [{ kind: 'private' }];
const NONE: readonly ResponseNote[] = [];

/** `isPrivate`: somebody is in by the login, and whatever the rules remove, no cache keeps it for others. */
export const orderedNotes = (
  tunnels: readonly ResponseNote[],
  operators: readonly ResponseNote[],
  isGuarded: boolean,
  isPrivate: boolean,
): readonly ResponseNote[] => {
  const first = isGuarded ? GUARD_ALONE : NONE;
  if (!isPrivate && operators.length === 0) {
    if (tunnels.length === 0) return first;
    if (!isGuarded) return tunnels;
  }
  return [...first, ...tunnels, ...operators, ...(isPrivate ? PRIVATE : NONE)];
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
