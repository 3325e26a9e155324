// What the rules want changed of one request, gathered in their order: a later word about a field overrules an earlier one.
import type { HeaderField } from '@tunnel/http1';
import { hasPasswordOf } from '../login/authentication.ts';
import type { FieldNames } from '../match/field-names.ts';
import type { AuthMethod, HeaderPair, Identity, RequestChanges } from '../policy-step.ts';
import { userText } from './placeholders.ts';

/** Visitors' own of these are nobody's word. */
export const IDENTITY_FIELDS = ['x-tunnel-user', 'x-tunnel-auth'] as const;

const NONE: readonly string[] = [];

export interface FieldChanges {
  /** Lower case. */
  readonly remove: readonly string[];
  readonly set: readonly HeaderPair[];
  readonly add: readonly HeaderPair[];
}

const NO_FIELDS: FieldChanges = { remove: [], set: [], add: [] };
/** What most who bring a password have changed. */
const NO_AUTHORIZATION: FieldChanges = { ...NO_FIELDS, remove: ['authorization'] };

/** Nothing that a rule brought is copied before a second one has a word about fields. */
export class ChangeDraft {
  path: string | null = null;
  service: string | null = null;
  maxBody: number | null = null;
  #fields = NO_FIELDS;

  /** What is removed and set goes of the visitor's, and of what rules before this one have set. */
  change(changes: FieldChanges): void {
    if (this.#fields === NO_FIELDS) {
      this.#fields = changes;
      return;
    }
    const { remove, set, add } = this.#fields;
    const again = new Set([...changes.remove, ...changes.set.map(([name]) => name.toLowerCase())]);
    const stays = ([name]: HeaderPair): boolean => !again.has(name.toLowerCase());
    this.#fields = {
      remove: [...new Set([...remove, ...changes.remove])],
      set: [...set.filter(stays), ...changes.set],
      add: [...add.filter(stays), ...changes.add],
    };
  }

  /** The visitor's alone, in lower case: a credential that was used. What a rule has set is for the service. */
  removeVisitors(name: string): void {
    if (this.#fields === NO_FIELDS && name === 'authorization') {
      this.#fields = NO_AUTHORIZATION;
      return;
    }
    const { remove, set, add } = this.#fields;
    if (!remove.includes(name)) this.#fields = { remove: [...remove, name], set, add };
  }

  boundBody(bytes: number): void {
    this.maxBody = this.maxBody === null ? bytes : Math.min(this.maxBody, bytes);
  }

  /** `last`: those of the request before, which are mostly the same; null: there are none. */
  changes(
    cookie: string | null,
    spellings: readonly string[],
    identity: Identity | null,
    last: LastChanges | null,
  ): RequestChanges {
    const { path, service, maxBody } = this;
    const fields = this.#fields;
    const known = last?.changes ?? null;
    if (known !== null && last?.fields === fields && isSameIdentity(last.identity, identity)) {
      const isOfRequest = path !== known.path || service !== known.service || maxBody !== known.maxBody;
      if (!isOfRequest && cookie === known.cookie && isSameList(spellings, known.removeSpellings)) return known;
    }
    const { remove, add } = fields;
    const set = identity === null ? fields.set : withIdentity(fields.set, identity);
    const changes = { path, service, remove, removeSpellings: spellings, cookie, set, add, maxBody };
    if (last !== null && isSmall(changes, identity)) keep(last, fields, identity, changes);
    return changes;
  }
}

/** Of the last request that was changed: one after the other is changed alike, and what keeps requests keeps that once. */
export interface LastChanges {
  fields: FieldChanges;
  identity: Identity | null;
  changes: RequestChanges | null;
}

export const newLastChanges = (): LastChanges => ({ fields: NO_FIELDS, identity: null, changes: null });

const keep = (last: LastChanges, fields: FieldChanges, identity: Identity | null, changes: RequestChanges): void => {
  last.fields = fields;
  last.identity = identity;
  last.changes = changes;
};

/** Nothing of a visitor's head is in it, which it would keep whole. */
const isSmall = ({ path, cookie }: RequestChanges, identity: Identity | null): boolean =>
  path === null && (cookie === null || cookie === '') && (identity?.user.length ?? 0) <= KEPT_USER_MAX_CHARS;

const KEPT_USER_MAX_CHARS = 128;

const isSameIdentity = (a: Identity | null, b: Identity | null): boolean =>
  a === b || (a !== null && b !== null && a.user === b.user && a.method === b.method);

const isSameList = (a: readonly string[], b: readonly string[]): boolean => {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at += 1) if (a[at] !== b[at]) return false;
  return true;
};

const withIdentity = (set: readonly HeaderPair[], identity: Identity): readonly HeaderPair[] => {
  const method = METHOD_PAIRS[identity.method];
  return set.length === 0 ? [userPair(identity), method] : [...set, userPair(identity), method];
};

const userPair = ({ user }: Identity): HeaderPair => ['X-Tunnel-User', userText(user)];

const METHOD_PAIRS: Readonly<Record<AuthMethod, HeaderPair>> = {
  basic: ['X-Tunnel-Auth', 'basic'],
  token: ['X-Tunnel-Auth', 'token'],
  jwt: ['X-Tunnel-Auth', 'jwt'],
  login: ['X-Tunnel-Auth', 'login'],
};

/** What a list of rules keeps from the service. */
interface Guard {
  readonly guarded: FieldNames;
  readonly users: ReadonlySet<string> | null;
}

/** Those of the guarded names that the visitor has brought, in whatever spelling. Most bring none. */
export const guardedIn = (
  headers: readonly HeaderField[],
  operators: Guard | null,
  tunnels: Guard | null,
  identity: Identity | null,
): readonly string[] => {
  let found = NONE;
  // A password that let somebody in goes already, and to read it once more would cost as much as ten rules.
  const looksForPasswords = identity?.method !== 'basic';
  for (const field of headers) {
    const name = guardedName(field, operators, looksForPasswords) ?? guardedName(field, tunnels, looksForPasswords);
    if (name !== null && !found.includes(name)) found = found === NONE ? [name] : [...found, name];
  }
  return found;
};

const guardedName = (field: HeaderField, guard: Guard | null, looksForPasswords: boolean): string | null => {
  if (guard === null) return null;
  if (looksForPasswords && guard.users !== null && hasPasswordOf(field, guard.users)) return 'authorization';
  return guard.guarded.spelled(field);
};
