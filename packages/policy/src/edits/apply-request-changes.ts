// The head of a request as the rules want the service to see it: other fields, another path. Everything else is as it was read.

import { eachListItem, type HeaderField, linesOf, PartField, type RequestHead, roleOf } from '@tunnel/http1';
import { cookieForService } from '../login/login-cookies.ts';
import { isSameField, isTakenFor } from '../match/field-names.ts';
import type { HeaderPair, RequestChanges } from '../policy-step.ts';

/**
 * The same head where nothing of it changes. Fields that `Connection` names are left out here already, and the names with them: later they
 * could take away what a rule has set, or what says who the visitor is.
 */
export const applyRequestChanges = (head: RequestHead, changes: RequestChanges): RequestHead =>
  changesHead(changes) ? new ChangedHead(head, changes.path ?? head.path, changedFields(head, changes)) : head;

/**
 * For a tunnel without rules: a name may have had others before, or another owner, and browsers go on sending what they were given then. It
 * would open the name again, should it change back.
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

/** A class, as a getter of each head's own would give each a shape of its own, and make all that reads it slow. */
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

/** Lines that stay are those that were read: nothing of them is copied. */
const changedFields = (head: RequestHead, changes: RequestChanges): HeaderField[] => {
  const { cookie, set, add } = changes;
  const fields: HeaderField[] = [];
  // A target that names another host overrules Host, and the target is a path from here on.
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

/** A visitor's `X_User` would stand beside the `X-User` that a rule sets, and be the same variable to a CGI, WSGI or PHP service. */
const isGone = (field: HeaderField, { remove, set, removeSpellings }: RequestChanges): boolean => {
  for (const name of remove) if (isTakenFor(field, name)) return true;
  for (const [name] of set) if (isTakenFor(field, name)) return true;
  for (const name of removeSpellings) if (isTakenFor(field, name)) return true;
  return false;
};

const isNamed = (field: HeaderField, { connectionNames }: RequestHead): boolean =>
  connectionNames !== null && field.role === 'ordinary' && connectionNames.includes(field.lower);

const CONNECTION_OPTIONS: ReadonlySet<string> = new Set(['close', 'keep-alive', 'upgrade', 'te']);

/** What it says of the connection itself stays. */
const pushConnection = (field: HeaderField, fields: HeaderField[]): void => {
  const kept: string[] = [];
  eachListItem(field.value, (option) => {
    if (CONNECTION_OPTIONS.has(option.toLowerCase())) kept.push(option);
  });
  if (kept.length > 0) fields.push(new PartField(field.name, kept.join(', '), 'connection'));
};

/** A claim that the owner makes is no visitor's: it passes. What the edge writes itself is not the owner's to write. */
const ruleField = ([name, value]: HeaderPair): PartField => {
  const role = roleOf(name);
  return new PartField(name, value, role === 'claim' ? 'ordinary' : role);
};
