// What rules have noted for the answer, done to it when it comes: to the head of a service's response, or to one of our own.
import { eachListItem } from '../http1/characters.ts';
import { type HeaderField, linesOf, PartField, roleOf } from '../http1/fields.ts';
import type { OwnResponse } from '../http1/own-response.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import { byteText } from './bytes.ts';
import { FieldNames, isField } from './field-names.ts';
import { isEdgeSetCookie } from './login-cookies.ts';
import type { HeaderPair, ResponseNote } from './policy-step.ts';

/** The same head where nothing of it changes. Interim ones are not the answer yet. */
export const notedHead = (head: ResponseHead, notes: readonly ResponseNote[]): ResponseHead => {
  if (head.interim || !notes.some((note) => concerns(note, head.headers))) return head;
  // What the service's `Connection` takes away goes now: later it would take ours of the same name.
  let fields: readonly HeaderField[] = head.headers.filter((field) => !isOfConnection(field, head)).map(partOf);
  for (const note of notes) fields = notedFields(fields, note);
  let text: string | null = null;
  return {
    kind: 'response',
    get text(): string {
      text ??= `HTTP/${head.version} ${head.status} ${head.reason}\r\n${linesOf(fields)}\r\n`;
      return text;
    },
    status: head.status,
    reason: head.reason,
    version: head.version,
    headers: fields,
    framing: head.framing,
    contentLength: head.contentLength,
    isChunked: head.isChunked,
    interim: head.interim,
    keepAlive: head.keepAlive,
    upgrade: head.upgrade,
    connectionNames: null,
  };
};

/** Most responses set no cookie of ours and say themselves how they are cached: their head stays as it is. */
const concerns = (note: ResponseNote, fields: readonly HeaderField[]): boolean => {
  switch (note.kind) {
    case 'headers':
    case 'cors':
      return true;
    case 'error-page':
      return false;
    case 'private':
      return !fields.some((field) => isField(field, 'cache-control'));
    case 'guard-cookies':
      return fields.some((field) => isField(field, 'set-cookie') && isEdgeSetCookie(field.value));
  }
};

const partOf = (field: HeaderField): PartField =>
  field instanceof PartField ? field : new PartField(field.name, field.value, field.role);

const isOfConnection = (field: HeaderField, { connectionNames }: ResponseHead): boolean =>
  connectionNames !== null && field.role === 'ordinary' && connectionNames.includes(field.lower);

const made = ([name, value]: HeaderPair): PartField => new PartField(name, value, roleOf(name));

const notedFields = (fields: readonly HeaderField[], note: ResponseNote): readonly HeaderField[] => {
  switch (note.kind) {
    case 'headers': {
      const gone = new FieldNames(
        [...note.remove, ...note.set.map(([name]) => name)].map((name) => name.toLowerCase()),
      );
      const kept = fields.filter((field) => !gone.has(field));
      return [...kept, ...note.set.map(made), ...note.add.map(made)];
    }
    case 'cors': {
      const others = fields.filter((field) => field.nameLength <= CORS.length || !field.lower.startsWith(CORS));
      const vary = others.some((field) => isField(field, 'vary') && variesByOrigin(field.value)) ? [] : [VARY];
      return [...others, ...note.fields.map(made), ...vary.map(made)];
    }
    case 'private':
      return fields.some((field) => isField(field, 'cache-control'))
        ? fields
        : [...fields, made(['cache-control', 'private'])];
    case 'guard-cookies':
      return fields.filter((field) => !isField(field, 'set-cookie') || !isEdgeSetCookie(field.value));
    case 'error-page':
      return fields;
  }
};

const CORS = 'access-control-';
const VARY: HeaderPair = ['vary', 'Origin'];

const variesByOrigin = (value: string): boolean => {
  let found = false;
  eachListItem(value.toLowerCase(), (item) => {
    found ||= item === 'origin' || item === '*';
  });
  return found;
};

/** One of our own: an answer of a rule, or an error page. The edge's own cookies stay, as it is the edge that sets them. */
export const notedOwn = (response: OwnResponse, notes: readonly ResponseNote[]): OwnResponse => {
  let { headers, body } = response;
  for (const note of notes) {
    if (note.kind === 'error-page') {
      if (isOwnPage(response)) {
        body = byteText(note.body);
        // The owner's page may load what it likes; ours loads nothing.
        headers = headers.filter(([name]) => name.toLowerCase() !== 'content-security-policy');
      }
    } else if (note.kind !== 'guard-cookies') {
      const fields = headers.map(made);
      headers = notedFields(fields, note).map(({ lower, value }): HeaderPair => [lower, value]);
    }
  }
  return headers === response.headers && body === response.body ? response : { status: response.status, headers, body };
};

const PAGE_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);

const isOwnPage = ({ status, headers }: OwnResponse): boolean =>
  PAGE_STATUSES.has(status) &&
  headers.some(([name]) => name.toLowerCase() === 'x-tunnel-error') &&
  headers.some(([name, value]) => name.toLowerCase() === 'content-type' && /^text\/html/i.test(value));
