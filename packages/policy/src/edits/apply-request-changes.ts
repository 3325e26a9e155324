// The request head that the service receives after the rules changed its fields or path.

import { eachListItem, type HeaderField, linesOf, PartField, type RequestHead, roleOf } from '@tunnel/http1';
import { cookieForService } from '../login/login-cookies.ts';
import { isSameField, isTakenFor } from '../match/field-names.ts';
import type { HeaderPair, RequestChanges } from '../policy-step.ts';

/**
 * Returns the same head if the rules change nothing. Fields named by `Connection` are removed here together with the option, because a
 * later removal could delete a field set by a rule, or the visitor's identity.
 */
export const applyRequestChanges = (head: RequestHead, changes: RequestChanges): RequestHead =>
  changesHead(changes) ? new ChangedHead(head, changes.path ?? head.path, changedFields(head, changes)) : head;

/**
 * Removes edge cookies from requests of a tunnel without rules. The name may have had a policy or another owner before, and browsers still
 * send the cookies of that time. A service could replay such a cookie if the policy returned.
 */
export const withoutEdgeCookies = (head: RequestHead): RequestHead => {
  const cookie = cookieForService(head.headers);
  return cookie === null ? head : applyRequestChanges(head, { ...NOTHING, cookie });
};

const NOTHING: RequestChanges = {
  path: null,
  service: null,
  remove: [],
  removeSpellings: [],
  cookie: null,
  set: [],
  add: [],
  maxBody: null,
};

/** A class, because a getter in an object literal would give every head a different hidden class and slow down all readers. */
class ChangedHead implements RequestHead {
  readonly kind = 'request';
  readonly method: string;
  readonly target: string;
  readonly path: string;
  readonly version: RequestHead['version'];
  readonly headers: readonly HeaderField[];
  readonly host: string;
  readonly authority: string;
  readonly framing: RequestHead['framing'];
  readonly keepAlive: boolean;
  readonly upgrade: string | null;
  readonly expectContinue: boolean;
  readonly teTrailers: boolean;
  readonly connectionNames: readonly string[] | null = null;
  #text: string | null = null;

  constructor(head: RequestHead, path: string, headers: readonly HeaderField[]) {
    this.method = head.method;
    this.target = path;
    this.path = path;
    this.version = head.version;
    this.headers = headers;
    this.host = head.host;
    this.authority = head.authority;
    this.framing = head.framing;
    this.keepAlive = head.keepAlive;
    this.upgrade = head.upgrade;
    this.expectContinue = head.expectContinue;
    this.teTrailers = head.teTrailers;
  }

  get text(): string {
    this.#text ??= `${this.method} ${this.path} HTTP/${this.version}\r\n${linesOf(this.headers)}\r\n`;
    return this.#text;
  }
}

const changesHead = ({ path, remove, removeSpellings, cookie, set, add }: RequestChanges): boolean =>
  path !== null ||
  cookie !== null ||
  remove.length > 0 ||
  removeSpellings.length > 0 ||
  set.length > 0 ||
  add.length > 0;

/** Returns the request's header fields after the rules' changes. Reuses the unchanged fields without copying. */
const changedFields = (head: RequestHead, changes: RequestChanges): HeaderField[] => {
  const { cookie, set, add } = changes;
  const fields: HeaderField[] = [];
  // An absolute-form target overrides Host. From here on the target is only a path, so Host takes the target's authority.
  const isAbsolute = !head.target.startsWith('/') && head.target !== '*';
  if (isAbsolute) fields.push(new PartField('Host', head.authority, 'host'));
  let isCookieDone = false;
  for (const field of head.headers) {
    if (isGone(field, changes) || isNamed(field, head)) continue;
    if (field.role === 'host' && isAbsolute) continue;
    if (field.role === 'connection') pushConnection(field, fields);
    else if (cookie === null || !isSameField(field, 'cookie')) fields.push(field);
    else if (!isCookieDone) {
      isCookieDone = true;
      if (cookie !== '') fields.push(new PartField(field.name, cookie, field.role));
    }
  }
  for (const pair of set) fields.push(ruleField(pair));
  for (const pair of add) fields.push(ruleField(pair));
  return fields;
};

/** Also removes `X_User` from a visitor if a rule sets `X-User`: a CGI, WSGI or PHP service reads both as the same variable. */
const isGone = (field: HeaderField, { remove, set, removeSpellings }: RequestChanges): boolean => {
  for (const name of remove) if (isTakenFor(field, name)) return true;
  for (const [name] of set) if (isTakenFor(field, name)) return true;
  for (const name of removeSpellings) if (isTakenFor(field, name)) return true;
  return false;
};

const isNamed = (field: HeaderField, { connectionNames }: RequestHead): boolean =>
  connectionNames !== null && field.role === 'ordinary' && connectionNames.includes(field.lower);

const CONNECTION_OPTIONS: ReadonlySet<string> = new Set(['close', 'keep-alive', 'upgrade', 'te']);

/** Appends the Connection field with only the options that concern the connection, such as `close`. */
const pushConnection = (field: HeaderField, fields: HeaderField[]): void => {
  const kept: string[] = [];
  eachListItem(field.value, (option) => {
    if (CONNECTION_OPTIONS.has(option.toLowerCase())) kept.push(option);
  });
  if (kept.length > 0) fields.push(new PartField(field.name, kept.join(', '), 'connection'));
};

/** Lets rules set fields such as Forwarded and True-Client-IP, which visitors must not send. Fields written by the edge keep their role. */
const ruleField = ([name, value]: HeaderPair): PartField => {
  const role = roleOf(name);
  return new PartField(name, value, role === 'claim' ? 'ordinary' : role);
};
