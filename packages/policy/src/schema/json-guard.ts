// Checks an untrusted value before it is parsed as a policy: depth, size, property names of Object.prototype, and invalid Unicode. Works
// without recursion, because a stranger chooses the depth.

export interface GuardProblem {
  readonly path: (string | number)[];
  /** Expected value, as words that complete the phrase "must be". */
  readonly expected: string;
}

/** Maximum depth, more than any policy needs. The deepest structure is nested `not`, which has a separate limit. */
const DEPTH_MAX = 40;
/** Maximum values in a file, where YAML aliases can expand a short text to many values. */
const FILE_VALUES_MAX = 50_000;

const LONE_SURROGATE = /\p{Surrogate}/u;

interface Waiting {
  readonly value: object;
  readonly path: readonly (string | number)[];
}

type Key = string | number;

/** Checks an untrusted value. Returns null if it is safe to parse as a policy. */
export const problemOfJson = (root: unknown, valuesMax: number = FILE_VALUES_MAX): GuardProblem | null => {
  let count = 0;
  const waiting: Waiting[] = [];
  // Paths to values are built only for containers and errors. Most values are neither.
  const take = (value: unknown, path: readonly Key[], key: Key | null): GuardProblem | null => {
    count += 1;
    if (count > valuesMax) return { path: [], expected: `a policy of at most ${valuesMax} values` };
    if (typeof value === 'string' && LONE_SURROGATE.test(value)) {
      return { path: below(path, key), expected: 'valid Unicode text (found half of a surrogate pair)' };
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
    // A visitor's `users['constructor']` would find a property that the policy does not contain; `__proto__` would not even be kept.
    if (key in Object.prototype) return { path: [...path, key], expected: 'another name: this name is reserved' };
    if (LONE_SURROGATE.test(key)) return { path: [...path], expected: 'a table with valid Unicode names' };
    const problem = take(item, path, key);
    if (problem !== null) return problem;
  }
  return null;
};
