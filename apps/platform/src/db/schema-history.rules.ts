// Decides whether a version of the product can run on a database, from the applied migrations and their notes.

/** Migrations that were applied to a database. `notes` has the oldest version that can run on the database, by migration. */
export interface SchemaHistory {
  readonly applied: readonly string[];
  readonly notes: ReadonlyMap<string, string>;
}

export type SchemaVerdict =
  /** `pending`: known migrations still to apply. `newer`: applied migrations that are unknown to this version, but allow it. */
  | { readonly kind: 'usable'; readonly pending: readonly string[]; readonly newer: readonly string[] }
  /** `oldestVersion`: the oldest version that the migration allows. Null if the version is not the reason, or not known. */
  | { readonly kind: 'newer'; readonly migration: string; readonly oldestVersion: string | null };

/**
 * Judges a database for a version that knows the migrations in `known`, in their order. Applied but unknown migrations must allow the
 * version. Next to unknown migrations, no migration can be pending: the newer version has changed tables that the pending migration
 * was not written for.
 */
export const judgeSchema = (
  { applied, notes }: SchemaHistory,
  known: readonly string[],
  version: string,
): SchemaVerdict => {
  const newer = applied.filter((name) => !known.includes(name)).toSorted();
  const pending = known.filter((name) => !applied.includes(name));
  const refusing = newer.find((name) => !allows(notes.get(name), version));
  if (refusing !== undefined) {
    const note = notes.get(refusing);
    return { kind: 'newer', migration: refusing, oldestVersion: note !== undefined && isVersion(note) ? note : null };
  }
  const [first] = newer;
  if (first !== undefined && pending.length > 0) return { kind: 'newer', migration: first, oldestVersion: null };
  return { kind: 'usable', pending, newer };
};

const allows = (oldestVersion: string | undefined, version: string): boolean => {
  const order = oldestVersion === undefined ? null : compareVersions(version, oldestVersion);
  return order !== null && order >= 0;
};

/** A version in the form of semver.org. Numbers have at most nine digits, so that all of them are exact. */
const VERSION =
  /^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(?:-([\dA-Za-z-]{1,50}(?:\.[\dA-Za-z-]{1,50}){0,9}))?(?:\+[\dA-Za-z.-]{1,100})?$/;

export const isVersion = (text: string): boolean => VERSION.test(text);

/**
 * Compares two versions in the order of semver.org: a pre-release comes before its release, and build metadata does not count. Negative if
 * `a` is older than `b`, null if a text is not a version.
 */
export const compareVersions = (a: string, b: string): number | null => {
  const left = VERSION.exec(a);
  const right = VERSION.exec(b);
  if (left === null || right === null) return null;
  for (const at of [1, 2, 3]) {
    const difference = Number(left[at]) - Number(right[at]);
    if (difference !== 0) return difference;
  }
  return comparePreReleases(left[4], right[4]);
};

const comparePreReleases = (a: string | undefined, b: string | undefined): number => {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  const left = a.split('.');
  const right = b.split('.');
  for (const [at, identifier] of left.entries()) {
    const other = right[at];
    if (other === undefined) return 1;
    const difference = compareIdentifiers(identifier, other);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
};

const DIGITS = /^\d+$/;

/** Numbers are compared as numbers, and come before texts. */
const compareIdentifiers = (a: string, b: string): number => {
  const numbers = Number(DIGITS.test(b)) - Number(DIGITS.test(a));
  if (numbers !== 0) return numbers;
  if (a === b) return 0;
  if (DIGITS.test(a) && a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
};
