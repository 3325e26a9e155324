// What the rules want changed of one request, gathered in their order: a later word about a field overrules an earlier one.
import type { HeaderField } from '../http1/fields.ts';
import { FieldNames } from './field-names.ts';
import { fieldText } from './placeholders.ts';
import type { HeaderPair, Identity, RequestChanges } from './policy-step.ts';

/** Visitors' own of these are nobody's word. */
export const IDENTITY_FIELDS = ['x-tunnel-user', 'x-tunnel-auth'] as const;

const NONE: readonly string[] = [];

export class ChangeDraft {
  path: string | null = null;
  service: string | null = null;
  maxBody: number | null = null;
  #removed: string[] = [];
  #set: HeaderPair[] = [];
  #added: HeaderPair[] = [];

  /** The visitor's, and what rules before this one have set. */
  remove(name: string): void {
    this.#forget(name);
    this.removeVisitors(name);
  }

  /** The visitor's alone: a credential that was used. What a rule has set is for the service. */
  removeVisitors(name: string): void {
    const lower = name.toLowerCase();
    if (!this.#removed.includes(lower)) this.#removed.push(lower);
  }

  set(name: string, value: string): void {
    this.#forget(name);
    this.#set.push([name, value]);
  }

  add(name: string, value: string): void {
    this.#added.push([name, value]);
  }

  boundBody(bytes: number): void {
    this.maxBody = this.maxBody === null ? bytes : Math.min(this.maxBody, bytes);
  }

  #forget(name: string): void {
    const lower = name.toLowerCase();
    const isOther = ([given]: HeaderPair): boolean => given.toLowerCase() !== lower;
    this.#set = this.#set.filter(isOther);
    this.#added = this.#added.filter(isOther);
  }

  changes(cookie: string | null, spellings: readonly string[], identity: Identity | null): RequestChanges {
    const { path, service, maxBody } = this;
    const known = identity === null ? [] : identityPairs(identity);
    const set = [...this.#set, ...known];
    return { path, service, remove: this.#removed, removeSpellings: spellings, cookie, set, add: this.#added, maxBody };
  }
}

const identityPairs = ({ user, method }: Identity): readonly HeaderPair[] => [
  ['X-Tunnel-User', fieldText(user)],
  ['X-Tunnel-Auth', method],
];

const NO_NAMES = new FieldNames(NONE);

/** Those of the guarded names that the visitor has brought, in whatever spelling. Most bring none. */
export const guardedIn = (
  headers: readonly HeaderField[],
  operators: FieldNames = NO_NAMES,
  tunnels: FieldNames = NO_NAMES,
): readonly string[] => {
  let found = NONE;
  for (const field of headers) {
    const name = operators.spelled(field) ?? tunnels.spelled(field);
    if (name !== null && !found.includes(name)) found = [...found, name];
  }
  return found;
};
