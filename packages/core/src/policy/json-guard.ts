// A look at a value that claims to be a policy, before anybody reads what it means: how deep and how large it is, names that objects have of
// themselves, and texts that are no Unicode. Without recursion: its depth is a stranger's choice.

export interface GuardProblem {
  readonly path: (string | number)[];
  /** Completes "must be". */
  readonly expected: string;
}

/** Deeper than any policy: `not` in `not` is the deepest, and bounded on its own. */
const DEPTH_MAX = 40;
/** Of a file; what comes over the wire is bounded by its frame. Aliases of YAML make much of little. */
const VALUES_MAX = 50_000;

const LONE_SURROGATE = /\p{Surrogate}/u;

interface Waiting {
  readonly value: object;
  readonly path: readonly (string | number)[];
}

/** null: it may be read. */
export const problemOfJson = (root: unknown): GuardProblem | null => {
  let count = 0;
  const waiting: Waiting[] = [];
  const take = (value: unknown, path: readonly (string | number)[]): GuardProblem | null => {
    count += 1;
    if (count > VALUES_MAX) return { path: [], expected: `a policy of at most ${VALUES_MAX} values` };
    if (typeof value === 'string' && LONE_SURROGATE.test(value)) {
      return { path: [...path], expected: 'a text of whole characters (it has half of a surrogate pair)' };
    }
    if (typeof value !== 'object' || value === null) return null;
    if (path.length > DEPTH_MAX) return { path: path.slice(0, 2), expected: `nested at most ${DEPTH_MAX} deep` };
    waiting.push({ value, path });
    return null;
  };
  let problem = take(root, []);
  for (let next = waiting.pop(); next !== undefined && problem === null; next = waiting.pop()) {
    problem = problemOfEntries(next, take);
  }
  return problem;
};

const problemOfEntries = (
  { value, path }: Waiting,
  take: (value: unknown, path: readonly (string | number)[]) => GuardProblem | null,
): GuardProblem | null => {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const problem = take(item, [...path, index]);
      if (problem !== null) return problem;
    }
    return null;
  }
  for (const [key, item] of Object.entries(value)) {
    // `users['constructor']` of a visitor finds what nobody wrote; `__proto__` is not even kept.
    if (key in Object.prototype) return { path: [...path, key], expected: 'called otherwise: this name is taken' };
    if (LONE_SURROGATE.test(key)) return { path: [...path], expected: 'a table whose names are whole characters' };
    const problem = take(item, [...path, key]);
    if (problem !== null) return problem;
  }
  return null;
};
