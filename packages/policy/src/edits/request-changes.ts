// Changes that the rules make to a request, collected in rule order. A later change to a field overrides an earlier change.
import type { HeaderField } from '@tunnel/http1';
import { hasPasswordOf } from '../login/authentication.ts';
import type { FieldNames } from '../match/field-names.ts';
import type { AuthMethod, HeaderPair, Identity, RequestChanges } from '../policy-step.ts';
import { userText } from './placeholders.ts';

/** Header fields that tell the service the authenticated user. Values sent by visitors are removed. */
export const IDENTITY_FIELDS = ['x-tunnel-user', 'x-tunnel-auth'] as const;

const NONE: readonly string[] = [];

export interface FieldChanges {
  /** Names of header fields to remove, in lower case. */
  readonly remove: readonly string[];
  readonly set: readonly HeaderPair[];
  readonly add: readonly HeaderPair[];
}

const NO_FIELDS: FieldChanges = { remove: [], set: [], add: [] };
/** The usual header change for a visitor who signed in with a password: Authorization is removed. */
const NO_AUTHORIZATION: FieldChanges = { ...NO_FIELDS, remove: ['authorization'] };

/** Collects the changes. Field changes of the first rule are used without a copy. */
export class ChangeDraft {
  path: string | null = null;
  service: string | null = null;
  maxBody: number | null = null;
  #fields = NO_FIELDS;

  /** Applies a rule's changes. Removed and set fields replace the visitor's fields and those of earlier rules. */
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

  /** Removes a used credential that the visitor sent (`name` in lower case). A field set by a rule stays. */
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

  /**
   * Returns the collected changes. `last` remembers the changes of the previous request, which are mostly equal and then shared; null
   * disables sharing.
   */
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

/** Changes of the last changed request. Consecutive requests mostly change alike and share the object, also in captures. */
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

/** Returns true if the changes contain no part of the visitor's head, which would otherwise stay in memory as a whole. */
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

/** Header fields of visitors that a policy does not pass to the service. */
interface Guard {
  readonly guarded: FieldNames;
  readonly users: ReadonlySet<string> | null;
}

/** Returns the guarded names among the visitor's fields, in any spelling. Mostly empty. */
export const guardedIn = (
  headers: readonly HeaderField[],
  operators: Guard | null,
  tunnels: Guard | null,
  identity: Identity | null,
): readonly string[] => {
  let found = NONE;
  // A password that authenticated the visitor is removed already. Decoding it again would cost as much as ten rules.
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
