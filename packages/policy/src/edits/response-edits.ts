// Applies the response edits of rules to a service's response head or to a response of the edge.

import {
  type EdgeResponse,
  eachListItem,
  type HeaderField,
  linesOf,
  PartField,
  type ResponseHead,
  roleOf,
} from '@tunnel/http1';
import { isEdgeSetCookie } from '../login/login-cookies.ts';
import { isOneOf, isOneOfPairs, isSameField } from '../match/field-names.ts';
import type { HeaderPair, ResponseEdit } from '../policy-step.ts';
import { byteText } from '../text/bytes.ts';

/**
 * Returns the same head if no edit changes it. Interim responses (1xx) only lose edge cookies, because the final response is still to come.
 */
export const editedHead = (head: ResponseHead, given: readonly ResponseEdit[]): ResponseHead => {
  const edits = head.interim ? given.filter(({ kind }) => kind === 'guard-cookies') : given;
  if (!concernsSome(edits, head.headers)) return head;
  const fields: HeaderField[] = [];
  // Fields named by the service's `Connection` are removed first; later the removal would hit fields added by edits.
  for (const field of head.headers) if (!isOfConnection(field, head)) fields.push(field);
  for (const edit of edits) applyEdit(fields, edit);
  return new EditedHead(head, fields);
};

/** A class, because a getter in an object literal would give every head a different hidden class and slow down all readers. */
class EditedHead implements ResponseHead {
  readonly kind = 'response';
  readonly status: number;
  readonly reason: string;
  readonly version: ResponseHead['version'];
  readonly headers: readonly HeaderField[];
  readonly framing: ResponseHead['framing'];
  readonly contentLength: number | null;
  readonly isChunked: boolean;
  readonly interim: boolean;
  readonly keepAlive: boolean;
  readonly upgrade: string | null;
  readonly connectionNames: readonly string[] | null = null;
  #text: string | null = null;

  constructor(head: ResponseHead, headers: readonly HeaderField[]) {
    this.status = head.status;
    this.reason = head.reason;
    this.version = head.version;
    this.headers = headers;
    this.framing = head.framing;
    this.contentLength = head.contentLength;
    this.isChunked = head.isChunked;
    this.interim = head.interim;
    this.keepAlive = head.keepAlive;
    this.upgrade = head.upgrade;
  }

  get text(): string {
    this.#text ??= `HTTP/${this.version} ${this.status} ${this.reason}\r\n${linesOf(this.headers)}\r\n`;
    return this.#text;
  }
}

const concernsSome = (edits: readonly ResponseEdit[], fields: readonly HeaderField[]): boolean => {
  for (const edit of edits) if (concerns(edit, fields)) return true;
  return false;
};

/**
 * Returns whether an edit can change the head. Most responses set no edge cookie and have Cache-Control, so their head stays as received.
 */
const concerns = (edit: ResponseEdit, fields: readonly HeaderField[]): boolean => {
  switch (edit.kind) {
    case 'headers':
    case 'cors':
      return true;
    case 'error-page':
      return false;
    case 'private':
      return !hasField(fields, 'cache-control');
    case 'guard-cookies':
      return fields.some(setsEdgeCookie);
  }
};

const hasField = (fields: readonly HeaderField[], lower: string): boolean => {
  for (const field of fields) if (isSameField(field, lower)) return true;
  return false;
};

const setsEdgeCookie = (field: HeaderField): boolean =>
  isSameField(field, 'set-cookie') && isEdgeSetCookie(field.value);

const isOfConnection = (field: HeaderField, { connectionNames }: ResponseHead): boolean =>
  connectionNames !== null && field.role === 'ordinary' && connectionNames.includes(field.lower);

const fieldOf = ([name, value]: HeaderPair): PartField => new PartField(name, value, roleOf(name));

const applyEdit = (fields: HeaderField[], edit: ResponseEdit): void => {
  switch (edit.kind) {
    case 'headers':
      dropNamed(fields, edit.remove, edit.set);
      for (const pair of edit.set) fields.push(fieldOf(pair));
      for (const pair of edit.add) fields.push(fieldOf(pair));
      return;
    case 'cors':
      drop(fields, isOfCors);
      for (const pair of edit.fields) fields.push(fieldOf(pair));
      if (!fields.some(variesByOrigin)) fields.push(fieldOf(VARY));
      return;
    case 'private':
      if (!hasField(fields, 'cache-control')) fields.push(fieldOf(NOT_SHARED));
      return;
    case 'guard-cookies':
      drop(fields, setsEdgeCookie);
      return;
    case 'error-page':
      return;
  }
};

const dropNamed = (fields: HeaderField[], names: readonly string[], pairs: readonly HeaderPair[]): void => {
  let kept = 0;
  for (const field of fields) {
    if (isOneOf(field, names) || isOneOfPairs(field, pairs)) continue;
    fields[kept] = field;
    kept += 1;
  }
  cutTo(fields, kept);
};

const drop = (fields: HeaderField[], isGone: (field: HeaderField) => boolean): void => {
  let kept = 0;
  for (const field of fields) {
    if (isGone(field)) continue;
    fields[kept] = field;
    kept += 1;
  }
  cutTo(fields, kept);
};

/** Shortens a list of header fields. Assigns the length only if a field was dropped, which is rare. */
const cutTo = (fields: HeaderField[], length: number): void => {
  if (length < fields.length) fields.length = length;
};

const isOfCors = (field: HeaderField): boolean => field.nameLength > CORS.length && field.lower.startsWith(CORS);

const CORS = 'access-control-';
const VARY: HeaderPair = ['vary', 'Origin'];
const NOT_SHARED: HeaderPair = ['cache-control', 'private'];

const variesByOrigin = (field: HeaderField): boolean => {
  if (!isSameField(field, 'vary')) return false;
  let found = false;
  eachListItem(field.value.toLowerCase(), (item) => {
    found ||= item === 'origin' || item === '*';
  });
  return found;
};

/** Applies edits to a response of the edge: the response of a rule, or an error page. Edge cookies stay, because the edge sets them. */
export const editedEdgeResponse = (response: EdgeResponse, edits: readonly ResponseEdit[]): EdgeResponse => {
  let { headers, body } = response;
  for (const edit of edits) {
    if (edit.kind === 'error-page') {
      if (isOwnPage(response)) {
        body = byteText(edit.body);
        // An owner's error page may load external resources, unlike the edge's page.
        headers = headers.filter(([name]) => name.toLowerCase() !== 'content-security-policy');
      }
    } else if (edit.kind !== 'guard-cookies') {
      const fields: HeaderField[] = headers.map(([name, value]) => new PartField(name, value, roleOf(name)));
      applyEdit(fields, edit);
      headers = fields.map(({ lower, value }): HeaderPair => [lower, value]);
    }
  }
  return headers === response.headers && body === response.body ? response : { status: response.status, headers, body };
};

const PAGE_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);

const isOwnPage = ({ status, headers }: EdgeResponse): boolean =>
  PAGE_STATUSES.has(status) &&
  headers.some(([name]) => name.toLowerCase() === 'x-tunnel-error') &&
  headers.some(([name, value]) => name.toLowerCase() === 'content-type' && /^text\/html/i.test(value));
