// A look at a value that claims to be a policy, before anybody reads what it means: how deep and how large it is, names that objects have of
// themselves, and texts that are no Unicode. Without recursion: its depth is a stranger's choice.

export interface GuardProblem {
  readonly path: (string | number)[];
  /** Completes "must be". */
  readonly expected: string;
}

/** Deeper than any policy: `not` in `not` is the deepest, and bounded on its own. */
const DEPTH_MAX = 40;
/** Of a file, where aliases of YAML make much of little. */
const FILE_VALUES_MAX = 50_000;

const LONE_SURROGATE = /\p{Surrogate}/u;

interface Waiting {
  readonly value: object;
  readonly path: readonly (string | number)[];
}

type Key = string | number;

/** null: it may be read. */
export const problemOfJson = (root: unknown, valuesMax: number = FILE_VALUES_MAX): GuardProblem | null => {
  let count = 0;
  const waiting: Waiting[] = [];
  // A path is made for what has entries, or is wrong: most values are neither.
  const take = (value: unknown, path: readonly Key[], key: Key | null): GuardProblem | null => {
    count += 1;
    if (count > valuesMax) return { path: [], expected: `a policy of at most ${valuesMax} values` };
    if (typeof value === 'string' && LONE_SURROGATE.test(value)) {
      return { path: below(path, key), expected: 'a text of whole characters (it has half of a surrogate pair)' };
    }
    if (typeof value !== 'object' || value === null) return null;
    const own = below(path, key);
    if (own.length > DEPTH_MAX) return { path: own.slice(0, 2), expected: `nested at most ${DEPTH_MAX} deep` };
    waiting.push({ value, path: own });
    return null;
  };
  let problem = take(root, [], null);
  for (let next = waiting.pop(); next !== undefined && problem === null; next = waiting.pop()) {
    problem = problemOfEntries(next, take);
  }
  return problem;
};

const below = (path: readonly Key[], key: Key | null): Key[] => (key === null ? [...path] : [...path, key]);

const problemOfEntries = (
  { value, path }: Waiting,
  take: (value: unknown, path: readonly Key[], key: Key) => GuardProblem | null,
): GuardProblem | null => {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const problem = take(item, path, index);
      if (problem !== null) return problem;
    }
    return null;
  }
  for (const [key, item] of Object.entries(value)) {
    // `users['constructor']` of a visitor finds what nobody wrote; `__proto__` is not even kept.
    if (key in Object.prototype) return { path: [...path, key], expected: 'called otherwise: this name is taken' };
    if (LONE_SURROGATE.test(key)) return { path: [...path], expected: 'a table whose names are whole characters' };
    const problem = take(item, path, key);
    if (problem !== null) return problem;
  }
  return null;
};
